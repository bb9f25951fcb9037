// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// inputError says that an input must stay as it is. Others may be made without it.
type inputError struct {
	file *layout.File
	err  error // nil if it was removed
}

func (e *inputError) Error() string { return fmt.Sprintf("%s: %v", e.file.Path, e.err) }

// make makes the file of a partition from those inputs that can be read.
func (p *pass) make(above, b *layout.Branch, level layout.Level, inputs []layout.File) error {
	stem := path.Base(b.Path) + "_" + p.id
	withParquet := p.options.Parquet != nil && level == layout.Hour
	return p.tryInputs(inputs, func(inputs []layout.File) error {
		m := &maker{pass: p, above: above, stem: stem, level: level, inputs: inputs}
		if withParquet {
			m.parquet = p.parquetOf(b, stem)
		}
		result, err := m.make()
		if p.leavesOut(b, level, err) {
			withParquet = false
			m = &maker{pass: p, above: above, stem: stem, level: level, inputs: inputs}
			result, err = m.make()
		}
		if err != nil || result == nil {
			return err
		}
		return p.clean(result)
	})
}

// tryInputs calls do with the inputs that were not skipped, and again without each that cannot be read.
func (p *pass) tryInputs(inputs []layout.File, do func([]layout.File) error) error {
	inputs = slices.DeleteFunc(inputs, func(f layout.File) bool {
		size, skipped := p.skipped[f.Path]
		return skipped && size == f.Size
	})
	slices.SortFunc(inputs, func(a, b layout.File) int { return cmp.Compare(a.Path, b.Path) })
	for len(inputs) > 0 {
		err := do(inputs)
		bad, isInput := errors.AsType[*inputError](err)
		if !isInput {
			return err
		}
		if bad.err != nil {
			p.skip(bad.file, bad.err)
		}
		name := bad.file.Path
		inputs = slices.DeleteFunc(slices.Clone(inputs), func(f layout.File) bool { return f.Path == name })
	}
	return nil
}

// maker makes one file.
type maker struct {
	*pass

	above   *layout.Branch // gets the file
	stem    string
	level   layout.Level
	inputs  []layout.File
	parquet *lake.Options // nil if nothing is written as Parquet

	segment    *store.SegmentWriter // nil if only Parquet is written
	bounds     layout.Bounds
	named      []segment.Input
	options    *merge.Options
	window     *merge.Window
	partitions []string // of the window, in order
	tables     *lake.Partition
}

// make writes the file and gives it its name. The error is an *inputError if an input must be left out.
func (m *maker) make() (made *layout.File, err error) {
	began := m.pass.options.Now()
	making := m.stem + layout.MakingSuffix
	file, err := m.above.Dir.Create(making)
	if err != nil {
		return nil, m.above.Fail("create", making, err)
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			_ = m.above.Dir.Remove(making) // otherwise the next one does
		}
	}()
	result := Result{Inputs: len(m.inputs)}
	for i := range m.inputs {
		f := &m.inputs[i]
		m.named = append(m.named, segment.Input{Name: strings.TrimPrefix(f.Path, m.above.Path+"/"), Size: f.Size})
		m.bounds.AddFile(f)
		result.Before += f.Size
	}
	if m.segment, err = store.NewSegmentWriter(file, nil, m.named); err != nil {
		return nil, m.above.Fail("write", making, err)
	}
	if err := m.readInputs(); err != nil {
		return nil, err
	}
	if made, err = m.commit(making); err != nil {
		return nil, err
	}
	result.Path, result.Records, result.After, result.Duration = made.Path, m.segment.Records(), made.Size, m.pass.options.Now().Sub(began)
	m.pass.options.Compacted(result)
	return made, nil
}

// readInputs merges the inputs, and writes what they have. Parquet files have their names after it.
func (m *maker) readInputs() (err error) {
	m.options = &merge.Options{
		SlotLength: m.pass.options.Resolutions[m.level-layout.Hour], SlotByStart: true, Snapshots: merge.SnapshotsLatest,
		DropTimestamps:      m.level == layout.Day,
		SnapshotSampleTypes: sampletypes.SnapshotSampleTypes, SplitBy: []string{"service.name"},
	}
	m.window = merge.NewWindow(m.options)
	if m.parquet != nil {
		if m.tables, err = lake.Create(*m.parquet); err != nil {
			return err
		}
		defer m.tables.Abort()
	}
	for i := range m.inputs {
		damaged, err := m.add(&m.inputs[i])
		if err != nil {
			return err
		}
		if m.segment != nil {
			m.named[i].Damaged = damaged
		}
	}
	if err := m.flush(); err != nil {
		return err
	}
	return m.commitParquet()
}

// commit gives the file its name.
func (m *maker) commit(making string) (*layout.File, error) {
	size, err := m.segment.End(m.named)
	if err != nil {
		return nil, m.above.Fail("write", making, err)
	}
	base := layout.WrittenBase(m.stem, &m.bounds, segment.Proto)
	if err := m.above.Dir.Rename(making, base); err != nil {
		return nil, m.above.Fail("rename", making, err)
	}
	if err := m.above.Dir.Sync(); err != nil { // the next Run removes the inputs
		return nil, m.above.Fail("sync", "", err)
	}
	f, _ := layout.ParsePath(path.Join(m.above.Path, base))
	f.Size = size
	return &f, nil
}

// add adds the records of an input that can be read. damaged is set if some cannot.
func (m *maker) add(f *layout.File) (damaged bool, err error) {
	file, err := m.root.OpenToRead(f.Path)
	if errors.Is(err, fs.ErrNotExist) { // removed by retention
		return false, &inputError{f, nil}
	}
	if err != nil {
		return false, &inputError{f, err}
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err == nil && info.Size() != f.Size {
		err = store.ErrGone
	}
	if err != nil {
		return false, &inputError{f, err}
	}
	memory := m.pass.options.MaxMemory
	reader := segment.NewReader(file, 0, f.Size, f.Format, int(min(max(memory/8, segment.MaxRecordMemory), segment.MaxRecordSize)))
	defer reader.Close()
	for data, err := range reader.All() {
		if m.ctx.Err() != nil {
			return false, context.Cause(m.ctx)
		}
		_, tooLarge := errors.AsType[*segment.SizeError](err)
		_, isDamage := errors.AsType[*segment.DamageError](err)
		if isDamage && !tooLarge {
			damaged = true
			continue
		}
		var pd pprofile.Profiles
		if err == nil {
			pd, err = store.Decode(f.Format, data, max(memory/4, segment.MaxRecordMemory))
		}
		if err != nil {
			return false, &inputError{f, err}
		}
		if err := m.addRecord(f, pd); err != nil {
			return false, err
		}
	}
	return damaged, nil
}

// addRecord merges a record, and writes the window before that if it has no room.
func (m *maker) addRecord(f *layout.File, pd pprofile.Profiles) error {
	stateTypes(pd)
	payload, err := merge.Check(pd, m.options)
	if err != nil {
		return &inputError{f, err}
	}
	if int64(m.window.Size()) > m.pass.options.MaxMemory/4 {
		if err := m.flush(); err != nil {
			return err
		}
	}
	if err = m.window.Add(payload); err != nil {
		if err := m.flush(); err != nil {
			return err
		}
		if err = m.window.Add(payload); err != nil {
			return &inputError{f, err}
		}
	}
	if m.window.Counts().Saturated > 0 {
		return &inputError{f, errors.New("a sum does not fit into 64 bits")}
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
				attributes.PutStr(attrkey.ProfileType, dictionary.ValidUTF8(t))
			}
		}
	}
}

// flush writes the window, service by service.
func (m *maker) flush() error {
	for _, partition := range m.partitions {
		if m.ctx.Err() != nil {
			return context.Cause(m.ctx)
		}
		if err := m.writePayload(m.window.Emit(partition)); err != nil {
			return err
		}
	}
	m.window, m.partitions = merge.NewWindow(m.options), nil
	return nil
}

// scope is a scope of a payload, whose Profiles are of one slot.
type scope struct {
	part        dictionary.Part
	profileType string
	slot        uint64
}

// writePayload writes the payload of a service as a record for each profile type, or in parts if that would be large.
func (m *maker) writePayload(pd pprofile.Profiles) error {
	var scopes []scope
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			slot := uint64(0)
			if sp.Profiles().Len() > 0 {
				slot = uint64(sp.Profiles().At(0).Time()) / uint64(m.options.SlotLength)
			}
			profileType := dictionary.TextOf(sp.Scope().Attributes(), attrkey.ProfileType) // as stateTypes has written
			scopes = append(scopes, scope{dictionary.Part{Resource: i, Scopes: []int{j}}, profileType, slot})
		}
	}
	slices.SortStableFunc(scopes, func(a, b scope) int {
		return cmp.Or(cmp.Compare(a.profileType, b.profileType), cmp.Compare(a.slot, b.slot))
	})
	from := dictionary.NewSplitter(pd)
	for start, end := 0, 0; start < len(scopes); start = end {
		for end < len(scopes) && scopes[end].profileType == scopes[start].profileType {
			end++
		}
		of := pd
		if end-start < len(scopes) {
			of = take(from, scopes[start:end])
		}
		if err := m.writeScopes(of, scopes[start:end], from); err != nil {
			return err
		}
	}
	return nil
}

// take takes scopes out of a payload.
func take(from *dictionary.Splitter, scopes []scope) pprofile.Profiles {
	parts := make([]dictionary.Part, len(scopes))
	for i := range scopes {
		parts[i] = scopes[i].part
	}
	return from.Take(parts)
}

// writeScopes writes a payload that has scopes. If it would be large, it takes each half of the slots, or of the scopes of a slot, from the splitter.
func (m *maker) writeScopes(pd pprofile.Profiles, scopes []scope, from *dictionary.Splitter) error {
	entry, err := contents.Describe(pd)
	if err != nil {
		return err
	}
	pd.MarkReadOnly() // otherwise its resources would get references in place of strings
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	if err != nil {
		return err
	}
	at := middle(scopes)
	if at == 0 || store.DecodedSize(segment.Proto, data) <= segment.MaxRecordMemory {
		if m.tables != nil && len(data) > 0 {
			if err := m.tables.Add(pd); err != nil {
				return err
			}
		}
		return m.writeRecord(data, entry)
	}
	for _, half := range [][]scope{scopes[:at], scopes[at:]} {
		if err := m.writeScopes(take(from, half), half, from); err != nil {
			return err
		}
	}
	return nil
}

// middle returns where the second half of the slots starts, or of the scopes of one slot. It is 0 if there is one scope.
func middle(scopes []scope) (at int) {
	for i := 1; i < len(scopes); i++ {
		if scopes[i].slot != scopes[i-1].slot && (at == 0 || i <= len(scopes)/2) {
			at = i
		}
	}
	if at == 0 {
		at = len(scopes) / 2
	}
	return at
}

func (m *maker) writeRecord(data []byte, entry *contents.Entry) error {
	if len(data) == 0 || m.segment == nil {
		return nil // it has no Profiles, or is written as Parquet only
	}
	m.bounds.Add(entry.Start, entry.End, m.pass.options.Now())
	if err := m.segment.Add(data, entry); err != nil {
		return m.above.Fail("write", m.stem+layout.MakingSuffix, err)
	}
	return nil
}
