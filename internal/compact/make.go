// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// maxRecord is the memory in bytes that a record takes when it is decoded, if it has Profiles of several slots. Readers with 32 MiB of
// memory read it.
const maxRecord = 8 << 20

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

// inputError says that some inputs must stay as they are. Others may be made without them.
type inputError struct {
	names []recordfile.Name
	err   error // nil if they were removed
}

func (e *inputError) Error() string { return e.err.Error() }

// make writes the result and gives it its name. The error is an *inputError if inputs must be left out.
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
	defer func() { _ = m.writer.Close() }() // it is closed already, unless something panicked
	result := Result{Inputs: len(m.inputs)}
	for _, name := range m.inputs {
		size, err := m.add(ctx, name)
		if errors.Is(err, fs.ErrNotExist) { // by retention
			err = &inputError{names: []recordfile.Name{name}}
		}
		if err != nil {
			return errors.Join(err, m.writer.Close())
		}
		result.Before += size
	}
	if err := errors.Join(m.flush(ctx), m.writer.Close(), m.failed); err != nil {
		return err
	}
	switch err := m.made.IndexError; {
	case errors.Is(err, recordfile.ErrIndexMemory):
		return &inputError{m.inputs, errIndex}
	case err != nil:
		return err
	}
	if m.made.Records == 0 {
		return &inputError{m.inputs, errors.New("they have no profiles")}
	}
	if _, err := m.dir.Lstat(m.temporary() + recordfile.IndexSuffix); errors.Is(err, fs.ErrNotExist) {
		return &inputError{m.inputs, errIndex}
	}
	if result.Path, err = m.commit(start); err != nil {
		return err
	}
	result.Records, result.After, result.Duration = m.made.Records, m.made.Size, m.directory.options.Now().Sub(began)
	m.directory.options.Compacted(result)
	return nil
}

// errIndex concerns files with too many resources for one index. Each of them has one.
var errIndex = errors.New("the index of the result takes too much memory")

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
				err = m.addRecord(ctx, part)
			}
			if err != nil {
				return 0, m.inputError(ctx, name, err)
			}
		}
	}
	return info.Size(), ctx.Err()
}

// inputError returns err as one of the input if it concerns its content. Retention may have removed it, or the process has too many
// open files.
func (m *maker) inputError(ctx context.Context, name recordfile.Name, err error) error {
	errno, ofSystem := errors.AsType[syscall.Errno](err)
	if _, isInput := errors.AsType[*archive.Error](err); isInput && ctx.Err() == nil && (!ofSystem || errno == syscall.EIO) {
		return &inputError{[]recordfile.Name{name}, err}
	}
	return err
}

// addRecord merges a record, and writes the window before that if it has no room.
func (m *maker) addRecord(ctx context.Context, record *archive.Record) error {
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
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	if err = m.window.Add(payload); err != nil {
		if err := m.flush(ctx); err != nil {
			return err
		}
		if err = m.window.Add(payload); err != nil {
			return record.Fail(err)
		}
	}
	if m.window.Counts().Saturated > 0 {
		return record.Fail(errors.New("a sum does not fit into 64 bits"))
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

// flush writes the window, service by service.
func (m *maker) flush(ctx context.Context) error {
	for _, partition := range m.partitions {
		if err := errors.Join(ctx.Err(), m.write(m.window.Emit(partition))); err != nil {
			return err
		}
	}
	m.window, m.partitions = merge.NewWindow(m.options), nil
	return nil
}

// scope is a scope of a payload, whose Profiles are of one slot.
type scope struct {
	part dictionary.Part
	slot uint64
}

// write writes the payload of a service as a record, or in parts if that would be large.
func (m *maker) write(pd pprofile.Profiles) error {
	var scopes []scope
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			scopes = append(scopes, scope{dictionary.Part{Resource: i, Scopes: []int{j}}, uint64(sp.Profiles().At(0).Time()) / uint64(m.level.Resolution)})
		}
	}
	slices.SortStableFunc(scopes, func(a, b scope) int { return cmp.Compare(a.slot, b.slot) })
	return m.writeScopes(pd, scopes, dictionary.NewSplitter(pd))
}

// writeScopes writes a payload that has scopes. If it would be large, it takes each half of the slots from the splitter.
func (m *maker) writeScopes(pd pprofile.Profiles, scopes []scope, from *dictionary.Splitter) error {
	record, size, err := m.marshal(pd)
	if err != nil {
		return err
	}
	at := middle(scopes)
	if size <= maxRecord || at == 0 {
		return m.writer.Append(record)
	}
	for _, half := range [][]scope{scopes[:at], scopes[at:]} {
		parts := make([]dictionary.Part, len(half))
		for i := range half {
			parts[i] = half[i].part
		}
		if err := m.writeScopes(from.Take(parts), half, from); err != nil {
			return err
		}
	}
	return nil
}

// middle returns where the second half of the slots starts, or 0 if there is one slot.
func middle(scopes []scope) (at int) {
	for i := 1; i < len(scopes); i++ {
		if scopes[i].slot != scopes[i-1].slot && (at == 0 || i <= len(scopes)/2) {
			at = i
		}
	}
	return at
}

// marshal returns the record of a payload, and the memory that it takes when it is decoded.
func (m *maker) marshal(pd pprofile.Profiles) (record recordfile.Record, size int64, err error) {
	pd.MarkReadOnly() // otherwise its resources would get references in place of strings
	marshaler, encoding := pprofile.Marshaler(&pprofile.ProtoMarshaler{}), archive.OTLPProto
	if m.directory.options.Format.Content == recordfile.OTLPJSON {
		marshaler, encoding = &pprofile.JSONMarshaler{}, archive.OTLPJSON
	}
	if record, err = archive.Marshal(marshaler, pd); err == nil {
		size, err = (&archive.Record{Encoding: encoding, Data: record.Data}).DecodedSize()
	}
	return record, size, err
}

// commit gives the result its name. The rename of the file is the moment from which it counts, and its inputs do not.
func (m *maker) commit(start time.Time) (path string, err error) {
	// A name that was replaced is not used again: manifests here or in an object store may still have it.
	name := recordfile.Name{Time: start, Sequence: m.sequence + 1, Format: m.directory.options.Format, Span: m.level.Into}
	end := start.Add(m.level.Into) // readers take it for the time of the last write
	if err := os.Chtimes(m.made.Path, end, end); err != nil {
		return "", err
	}
	path, made := filepath.Join(m.path, name.String()), m.temporary()
	err = m.writeManifest(recordfile.ManifestName(name.String()))
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
	m.sequence = name.Sequence
	m.replaced[path] = m.directory.options.Now()
	return path, nil
}

// temporary is the name of the result before it has its own.
func (m *maker) temporary() string { return temporary + "/" + filepath.Base(m.made.Path) }

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
	content := recordfile.Manifest(inputs)
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Sync(), file.Close(), m.dir.Sync())
}
