// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/otelcol-profiles/otelcol-profiles/internal/fileindex"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// Index returns what a file holds: from the index beside it if that is good, else by reading the file. Its
// records are decoded. Those of a file that was read have no place. failed gets each *Error, and reading continues after
// it if it returns nil.
func (o *Options) Index(file File, failed func(error) error) (*fileindex.Index, error) {
	if x := o.StoredIndex(file); x != nil {
		if _, err := x.Records(); err == nil {
			return x, nil
		}
	}
	b := fileindex.NewBuilder(fileindex.NewMemory(o.maxDecoded()))
	for record, err := range o.Records(file) {
		var summaries []fileindex.Summary
		if err == nil {
			summaries, err = record.summaries()
		}
		if err != nil {
			if err := failed(err); err != nil {
				return nil, err
			}
			continue
		}
		if len(summaries) > 0 {
			b.Add(0, 0, summaries)
		}
	}
	x := b.Index()
	if x == nil {
		err := fmt.Errorf("services and types of the file take more than %s of memory: raise the memory limit, which is %s",
			mebibytes(o.maxDecoded()), mebibytes(o.MaxMemory))
		return &fileindex.Index{}, failed(&Error{File: file.Path, Err: err})
	}
	return x, nil
}

func (r *Record) summaries() ([]fileindex.Summary, error) {
	pd, err := r.Profiles()
	if err != nil {
		return nil, err
	}
	summaries, _ := Summarize(pd) // references were resolved
	return summaries, nil
}

// StoredIndex returns the index beside a file, or nil if there is none that describes the file.
func (o *Options) StoredIndex(file File) *fileindex.Index {
	if !file.Index {
		return nil
	}
	data, err := o.readIndex(file.Path + segment.IndexSuffix)
	if err != nil {
		return nil
	}
	x, err := fileindex.Parse(data, file.Size, o.maxDecoded())
	if err != nil {
		return nil
	}
	return x
}

func (o *Options) readIndex(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > o.maxRecord() {
		return nil, errors.New("the index takes more memory than the limit allows")
	}
	data := make([]byte, info.Size())
	_, err = io.ReadFull(f, data)
	return data, err
}
