// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// maxRecord is the size in bytes of a record that is divided if it has several scopes. Readers with 32 MiB of memory read it.
const maxRecord = 4 << 20

// maker makes one result.
type maker struct {
	*directory
	level  Level
	inputs []recordfile.Name

	writer     *recordfile.Writer
	failed     error // of the writer
	made       recordfile.ClosedFile
	options    *merge.Options
	window     *merge.Window
	partitions []string // of the window, in order
}

// inputError says that an input cannot be read completely.
type inputError struct {
	name recordfile.Name
	err  error
}

func (e *inputError) Error() string { return e.err.Error() }

// make writes the result and gives it its name. The error is an *inputError if one input must be left out.
func (m *maker) make(ctx context.Context, start time.Time) (err error) {
	began := m.directory.options.Now()
	m.options = &merge.Options{
		SlotLength: m.level.Resolution, SlotByStart: true, Snapshots: merge.SnapshotsLatest,
		SnapshotSampleTypes: sampletypes.SnapshotSampleTypes, SplitBy: []string{"service.name"},
	}
	m.window = merge.NewWindow(m.options)
	m.writer, err = recordfile.OpenWriter(recordfile.Options{
		Directory: filepath.Join(m.path, temporary), Format: m.directory.options.Format, MaxOpen: 1, OpenDir: m.directory.options.OpenDir,
		FileClosed: func(f recordfile.ClosedFile) { m.made = f },
		Failed:     func(err error) { m.failed = err },
	})
	if err != nil {
		return err
	}
	result := Result{Inputs: len(m.inputs)}
	for _, name := range m.inputs {
		size, err := m.add(ctx, name)
		if err != nil {
			return errors.Join(err, m.writer.Close())
		}
		result.Before += size
	}
	if err := errors.Join(m.flush(), m.writer.Close(), m.failed, m.made.IndexError); err != nil || m.made.Records == 0 {
		return err
	}
	if result.Path, err = m.commit(start); err != nil {
		return err
	}
	result.Records, result.After, result.Duration = m.made.Records, m.made.Size, m.directory.options.Now().Sub(began)
	m.directory.options.Compacted(result)
	return nil
}

// add adds the records of an input.
func (m *maker) add(ctx context.Context, name recordfile.Name) (size int64, err error) {
	info, err := m.dir.Lstat(name.String())
	if err != nil {
		return 0, err
	}
	file := archive.File{Path: filepath.Join(m.path, name.String()), Size: info.Size()}
	options := archive.Options{MaxMemory: m.directory.options.MaxMemory, Setting: "compact::max_memory"}
	for record, err := range options.Records(ctx, file, archive.Part{}) {
		if err != nil {
			return 0, m.inputError(ctx, name, err)
		}
		for part, err := range record.Parts(nil) {
			if err == nil {
				err = m.addRecord(part)
			}
			if err != nil {
				return 0, m.inputError(ctx, name, err)
			}
		}
	}
	return info.Size(), ctx.Err()
}

// inputError returns err as one of the input if it concerns its content. Retention may have removed it.
func (m *maker) inputError(ctx context.Context, name recordfile.Name, err error) error {
	if _, isInput := errors.AsType[*archive.Error](err); isInput && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
		return &inputError{name, err}
	}
	return err
}

// addRecord merges a record, and writes the window before that if it has no room.
func (m *maker) addRecord(record *archive.Record) error {
	pd, err := record.Profiles()
	if err != nil {
		return err
	}
	stateTypes(pd)
	payload, err := merge.Check(pd, m.options)
	if err != nil {
		return record.Fail(err)
	}
	if int64(m.window.Size()) > m.directory.options.MaxMemory/4 {
		if err := m.flush(); err != nil {
			return err
		}
	}
	if err = m.window.Add(payload); err != nil {
		if err := m.flush(); err != nil {
			return err
		}
		if err = m.window.Add(payload); err != nil {
			return record.Fail(err)
		}
	}
	for i := range payload.Profiles {
		if at, known := slices.BinarySearch(m.partitions, payload.Profiles[i].Partition); !known {
			m.partitions = slices.Insert(m.partitions, at, payload.Profiles[i].Partition)
		}
	}
	return nil
}

// stateTypes states the profile type of each scope, which readers derive from its sample types otherwise: scopes are divided
// into slots.
func stateTypes(pd pprofile.Profiles) {
	text := func(i int32) string { return dictionary.ValidString(pd.Dictionary().StringTable(), i) }
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			attributes := sp.Scope().Attributes()
			if t := sampletypes.ProfileType(attributes, sampletypes.Of(sp, text)); t != "" {
				attributes.PutStr(sampletypes.ProfileTypeAttribute, dictionary.ValidUTF8(t))
			}
		}
	}
}

// flush writes the window, a record for each service.
func (m *maker) flush() error {
	for _, partition := range m.partitions {
		if pd := m.window.Emit(partition); pd.ProfileCount() > 0 {
			if err := m.write(pd); err != nil {
				return err
			}
		}
	}
	m.window, m.partitions = merge.NewWindow(m.options), nil
	return nil
}

// write writes a payload as a record, or in parts if that would be large.
func (m *maker) write(pd pprofile.Profiles) error {
	var scopes []dictionary.Part
	for i, rp := range pd.ResourceProfiles().All() {
		for j := range rp.ScopeProfiles().Len() {
			scopes = append(scopes, dictionary.Part{Resource: i, Scopes: []int{j}})
		}
	}
	size := (&pprofile.ProtoMarshaler{}).ProfilesSize(pd)
	if parts := min(size/maxRecord+1, len(scopes)); parts > 1 {
		splitter := dictionary.NewSplitter(pd)
		for part := range slices.Chunk(scopes, (len(scopes)+parts-1)/parts) {
			if err := m.append(splitter.Take(part)); err != nil {
				return err
			}
		}
		return nil
	}
	return m.append(pd)
}

func (m *maker) append(pd pprofile.Profiles) (err error) {
	record := recordfile.Record{Samples: pd.SampleCount(), Labels: labels.Of(pd)}
	if record.Summaries, err = recordfile.Summarize(pd); err != nil {
		return err
	}
	if m.directory.options.Format.Content == recordfile.OTLPJSON {
		record.Data, err = (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
	} else {
		record.Data, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	}
	if err != nil {
		return err
	}
	return m.writer.Append(record)
}

// commit gives the result its name. The rename of the file is the moment from which it counts, and its inputs do not.
func (m *maker) commit(start time.Time) (path string, err error) {
	name := recordfile.Name{Time: start, Sequence: 1, Format: m.directory.options.Format, Span: m.level.Into}
	for slices.Contains(m.names, name.String()) || slices.Contains(m.names, archive.ManifestName(name.String())) {
		name.Sequence++
	}
	end := start.Add(m.level.Into) // readers take it for the time of the last write
	if err := os.Chtimes(m.made.Path, end, end); err != nil {
		return "", err
	}
	path = filepath.Join(m.path, name.String())
	made := temporary + "/" + filepath.Base(m.made.Path)
	err = m.writeManifest(archive.ManifestName(name.String()))
	if err == nil {
		err = m.dir.Rename(made+recordfile.IndexSuffix, name.String()+recordfile.IndexSuffix)
	}
	if err == nil {
		err = m.dir.Rename(made, name.String())
	}
	if err == nil {
		err = m.dir.Sync()
	}
	if err != nil { // the next run removes the manifest, unless the file has its name
		if _, missing := m.dir.Lstat(name.String()); missing != nil {
			_ = m.dir.Remove(name.String() + recordfile.IndexSuffix)
		}
		return "", fmt.Errorf("%s: %w", path, err)
	}
	m.names = append(m.names, name.String())
	return path, nil
}

// writeManifest writes the manifest, which is on the disk before the file has its name.
func (m *maker) writeManifest(name string) error {
	inputs := make([]string, len(m.inputs))
	for i, input := range m.inputs {
		inputs[i] = input.String()
	}
	file, err := m.dir.Create(name)
	if err != nil {
		return err
	}
	content := archive.Manifest(inputs)
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Sync(), file.Close(), m.dir.Sync())
}
