// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"io"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/regularfile"
)

// This file goes with internal/recordfile, internal/compact and internal/objectstore, as do Object, Part, Fetch, StorageError and the
// fields Index, Object and IndexObject of File.

// Marshal returns the record that the Writer of a file gets for a payload. It rejects attribute values that readers reject.
// Unless pd is read-only, the marshaler replaces strings of its resources by references.
func Marshal(m pprofile.Marshaler, pd pprofile.Profiles) (record recordfile.Record, err error) {
	if record.Summaries, err = recordfile.Summarize(pd); err != nil {
		return record, err
	}
	record.Labels, record.Samples = labels.Of(pd), pd.SampleCount()
	record.Data, err = m.MarshalProfiles(pd)
	return record, err
}

// StoredIndex returns the index beside a file, or nil if there is none that describes the file.
func (o *Options) StoredIndex(ctx context.Context, file File) *recordfile.Index {
	if !file.Index {
		return nil
	}
	opened, err := o.openIndex(ctx, file)
	if err != nil {
		return nil
	}
	defer opened.close()
	if opened.size > o.maxRecord() {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(opened, o.maxRecord()+1))
	if err != nil || int64(len(data)) > o.maxRecord() {
		return nil
	}
	x, err := recordfile.ParseIndex(data, file.Size, o.maxDecoded())
	if err != nil {
		return nil
	}
	return x
}

// openIndex opens the index of a file.
func (o *Options) openIndex(ctx context.Context, file File) (*content, error) {
	if file.IndexObject != nil {
		return ofObject(ctx, file.IndexObject, Part{}), nil
	}
	return o.owned(regularfile.Open(file.Path + recordfile.IndexSuffix))
}

// FetchIndexes fetches the indexes of files in object stores together, for StoredIndex.
func (o *Options) FetchIndexes(ctx context.Context, files []File) {
	o.fetch(ctx, len(files), func(i int) (Object, []Part) { return files[i].IndexObject, []Part{{}} })
}
