// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

func TestMain(m *testing.M) {
	if os.Getenv(killDir) != "" {
		writeUntilKilled()
	}
	goleak.VerifyTestMain(m)
}

// begin is the start of a day.
var begin = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// newRecord returns a record whose only sample has the value 1 and a function with the name of the ID.
func newRecord(t testing.TB, format segment.Format, service string, id int, start, end time.Time) store.Record {
	return recordOf(t, format, service, newPayload(service, id, start, end))
}

func recordOf(t testing.TB, format segment.Format, service string, pd pprofile.Profiles) store.Record {
	entry, err := contents.Describe(pd)
	require.NoError(t, err)
	var data []byte
	if format == segment.JSON {
		data, err = (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
	} else {
		data, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	}
	require.NoError(t, err)
	return store.Record{Data: data, Group: []string{layout.GroupDir("service.name", layout.GroupName(service))}, Entry: entry}
}

func newPayload(service string, id int, start, end time.Time) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	dict := pd.Dictionary()
	dict.StringTable().Append("", "samples", "count", "function-"+strconv.Itoa(id))
	dict.MappingTable().AppendEmpty()
	dict.AttributeTable().AppendEmpty()
	dict.LinkTable().AppendEmpty()
	dict.FunctionTable().AppendEmpty()
	dict.FunctionTable().AppendEmpty().SetNameStrindex(3)
	dict.LocationTable().AppendEmpty()
	dict.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(1)
	dict.StackTable().AppendEmpty()
	dict.StackTable().AppendEmpty().LocationIndices().Append(1)
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("service.name", service)
	p := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(1)
	p.SampleType().SetUnitStrindex(2)
	if !start.IsZero() {
		p.SetTime(pcommon.NewTimestampFromTime(start))
		p.SetDurationNano(uint64(end.Sub(start)))
	}
	sample := p.Samples().AppendEmpty()
	sample.SetStackIndex(1)
	sample.Values().Append(1)
	return pd
}

// countIDs adds the values of the samples of a record, by the names of their functions. It uses no code of ours.
func countIDs(t testing.TB, counts map[int]int, format segment.Format, data []byte) {
	var pd profilespb.ProfilesData
	if format == segment.JSON {
		require.NoError(t, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, &pd))
	} else {
		require.NoError(t, proto.Unmarshal(data, &pd))
	}
	dict := pd.Dictionary
	for _, rp := range pd.ResourceProfiles {
		for _, sp := range rp.ScopeProfiles {
			for _, p := range sp.Profiles {
				for _, s := range p.Samples {
					location := dict.LocationTable[dict.StackTable[s.StackIndex].LocationIndices[0]]
					name := dict.StringTable[dict.FunctionTable[location.Lines[0].FunctionIndex].NameStrindex]
					id, err := strconv.Atoi(strings.TrimPrefix(name, "function-"))
					require.NoError(t, err)
					for _, v := range s.Values {
						counts[id] += int(v)
					}
				}
			}
		}
	}
}

// readAll reads everything that counts, through the indexes. It lists again when a file is gone.
func readAll(t testing.TB, s *store.Store) map[int]int {
	t.Helper()
	for range 50 {
		counts, err := tryReadAll(t, s)
		if errors.Is(err, store.ErrGone) {
			continue
		}
		require.NoError(t, err)
		return counts
	}
	require.Fail(t, "files are gone each time")
	return nil
}

func tryReadAll(t testing.TB, s *store.Store) (map[int]int, error) {
	counts := map[int]int{}
	segments, err := s.Live(context.Background(), time.Time{}, begin.AddDate(1, 0, 0), nil)
	if err != nil {
		return nil, err
	}
	for _, seg := range segments {
		x, err := seg.Index(context.Background())
		if err != nil {
			return nil, err
		}
		sum, values := int64(0), map[int]int{}
		for i := range x.Records {
			entry, err := x.Entry(i)
			require.NoError(t, err)
			for _, summary := range entry.Summaries {
				sum += summary.Sum
			}
		}
		for data, err := range seg.Records(context.Background(), x, x.Records) {
			if _, damaged := errors.AsType[*segment.DamageError](err); damaged {
				sum = -1
				continue
			}
			if err != nil {
				return nil, err
			}
			countIDs(t, values, seg.Format, data)
		}
		read := 0
		for id, n := range values {
			counts[id] += n
			read += n
		}
		if len(x.Damage) == 0 && sum >= 0 {
			assert.EqualValues(t, sum, read, "the index of %s", seg.Path)
		}
	}
	return counts, nil
}

func openStore(t testing.TB, location string) *store.Store {
	s, err := store.Open(location, store.ReadOptions{MaxRecord: 16 << 20, MaxDecoded: 64 << 20, Cache: 16 << 20, Now: func() time.Time { return begin }})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// once returns the counts of acknowledged records.
func once(ids ...int) map[int]int {
	counts := map[int]int{}
	for _, id := range ids {
		counts[id] = 1
	}
	return counts
}

// paths are those of all files below a directory, without hidden ones.
func paths(t testing.TB, dir string) (names []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), ".") {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}))
	return names
}

// process is a process with files: a hook is asked before each of its calls of the file system, and when it is killed, all of them fail
// and its locks are free.
type process struct {
	before func(call string) error
	syncs  bool // really

	mu     sync.Mutex
	killed bool
	open   map[interface{ Close() error }]bool
	calls  int
}

var errKilled = errors.New("the process was killed")

func (p *process) call(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return errKilled
	}
	p.calls++
	if p.before == nil {
		return nil
	}
	err := p.before(name)
	if errors.Is(err, errKilled) {
		p.killLocked()
	}
	return err
}

func (p *process) sync(call string, sync func() error) error {
	if err := p.call(call); err != nil || !p.syncs {
		return err
	}
	return sync()
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killLocked()
}

func (p *process) killLocked() {
	p.killed = true
	for c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

func (p *process) opened(c interface{ Close() error }) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[interface{ Close() error }]bool{}
	}
	p.open[c] = true
}

func (p *process) close(c interface{ Close() error }) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return errKilled
	}
	delete(p.open, c)
	return c.Close()
}

func (p *process) openDir(path string, inside ...string) (layout.Dir, error) {
	if err := p.call("OpenDir " + filepath.Join(inside...)); err != nil {
		return nil, err
	}
	dir, err := layout.OpenDir(path, inside...)
	if err != nil {
		return nil, err
	}
	p.opened(dir)
	return &processDir{dir, p}, nil
}

type processDir struct {
	layout.Dir
	p *process
}

func (d *processDir) handle(call, name string, open func(string) (layout.Handle, error)) (layout.Handle, error) {
	if err := d.p.call(call + " " + name); err != nil {
		return nil, err
	}
	h, err := open(name)
	if err != nil {
		return nil, err
	}
	d.p.opened(h)
	return &processHandle{h, d.p}, nil
}

func (d *processDir) Create(name string) (layout.Handle, error) {
	return d.handle("Create", name, d.Dir.Create)
}
func (d *processDir) Open(name string) (layout.Handle, error) {
	return d.handle("Open", name, d.Dir.Open)
}
func (d *processDir) OpenToRead(name string) (layout.Handle, error) {
	return d.handle("OpenToRead", name, d.Dir.OpenToRead)
}

func (d *processDir) Lstat(name string) (fs.FileInfo, error) {
	if err := d.p.call("Lstat " + name); err != nil {
		return nil, err
	}
	return d.Dir.Lstat(name)
}

func (d *processDir) LstatPath(name string) (fs.FileInfo, error) {
	if err := d.p.call("LstatPath " + name); err != nil {
		return nil, err
	}
	return d.Dir.LstatPath(name)
}

func (d *processDir) Rename(from, to string) error {
	if err := d.p.call("Rename " + from); err != nil {
		return err
	}
	return d.Dir.Rename(from, to)
}

func (d *processDir) Replace(from, to string) error {
	if err := d.p.call("Replace " + from); err != nil {
		return err
	}
	return d.Dir.Replace(from, to)
}

func (d *processDir) Remove(name string) error {
	if err := d.p.call("Remove " + name); err != nil {
		return err
	}
	return d.Dir.Remove(name)
}

func (d *processDir) Names() ([]string, error) {
	if err := d.p.call("Names"); err != nil {
		return nil, err
	}
	return d.Dir.Names()
}

func (d *processDir) OpenChild(name string) (layout.Dir, error) {
	if err := d.p.call("OpenChild " + name); err != nil {
		return nil, err
	}
	dir, err := d.Dir.OpenChild(name)
	if err != nil {
		return nil, err
	}
	d.p.opened(dir)
	return &processDir{dir, d.p}, nil
}

func (d *processDir) TryLock(shared bool) (bool, error) {
	if err := d.p.call(fmt.Sprint("TryLock ", shared)); err != nil {
		return false, err
	}
	return d.Dir.TryLock(shared)
}

func (d *processDir) Sync() error  { return d.p.sync("Sync", d.Dir.Sync) }
func (d *processDir) Close() error { return d.p.close(d.Dir) }

type processHandle struct {
	layout.Handle
	p *process
}

func (h *processHandle) WriteAt(data []byte, at int64) (int, error) {
	if err := h.p.call("WriteAt"); err != nil {
		n := 0
		if !h.p.killed || len(data) > 1 { // a part is written
			n, _ = h.Handle.WriteAt(data[:len(data)/2], at)
		}
		return n, err
	}
	return h.Handle.WriteAt(data, at)
}

func (h *processHandle) Truncate(size int64) error {
	if err := h.p.call("Truncate"); err != nil {
		return err
	}
	return h.Handle.Truncate(size)
}

func (h *processHandle) Sync() error { return h.p.sync("SyncFile", h.Handle.Sync) }

func (h *processHandle) Stat() (fs.FileInfo, error) {
	if err := h.p.call("Stat"); err != nil {
		return nil, err
	}
	return h.Handle.Stat()
}

func (h *processHandle) Close() error { return h.p.close(h.Handle) }

// exists reports whether there is a file.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
