// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const limit = 1 << 20

// newMessages returns the OTLP messages of some records.
func newMessages(t testing.TB, n int) (messages [][]byte) {
	for i := range n {
		data, err := proto.Marshal(&profilespb.ProfilesData{
			ResourceProfiles: []*profilespb.ResourceProfiles{{ScopeProfiles: []*profilespb.ScopeProfiles{{
				Profiles: []*profilespb.Profile{{OriginalPayload: bytes.Repeat(zstdMagic, 3)}},
			}}}},
			Dictionary: &profilespb.ProfilesDictionary{StringTable: []string{"", fmt.Sprintf("function-%d", i), "a text that repeats, a text that repeats"}},
		})
		require.NoError(t, err)
		messages = append(messages, data)
	}
	return messages
}

// newSegment returns a file with the index of its records, and of inputs unless these are none.
func newSegment(t testing.TB, inputs []Input, messages ...[]byte) (file []byte, x *Index) {
	e := NewEncoder()
	defer e.Release()
	x = &Index{Tables: []byte("tables \x28\xb5\x2f\xfd\xfe"), Inputs: inputs}
	var err error
	if inputs != nil {
		file, err = AppendIndex(file, &Index{Inputs: inputs}, 0)
		require.NoError(t, err)
	}
	for i, message := range messages {
		encoded, err := e.Encode(Proto, message)
		require.NoError(t, err)
		x.Records = append(x.Records, Record{Offset: int64(len(file)), Length: int64(len(encoded)), Entry: fmt.Appendf(nil, "entry %d \xfd", i)})
		file = append(file, encoded...)
	}
	file, err = AppendIndex(file, x, int64(len(file)))
	require.NoError(t, err)
	return file, x
}

// readAll scans a file.
func readAll(file []byte) (records [][]byte, damage []*DamageError, err error) {
	r := NewReader(bytes.NewReader(file), 0, int64(len(file)), Proto, limit)
	defer r.Close()
	for data, err := range r.All() {
		if damaged, is := errors.AsType[*DamageError](err); is {
			damage = append(damage, damaged)
			continue
		}
		if err != nil {
			return records, damage, err
		}
		records = append(records, bytes.Clone(data))
	}
	return records, damage, nil
}

func TestOtherProgramsReadSegments(t *testing.T) {
	messages := newMessages(t, 5)
	file, _ := newSegment(t, []Input{{Name: "14/a", Size: 1}}, messages...)
	path := filepath.Join(t.TempDir(), "profiles.otlp.pb.zst")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	require.Equal(t, messages, profiletest.ReadRecords(t, path))

	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("not run: there is no zstd program")
	}
	output, err := exec.CommandContext(t.Context(), program, "-t", path).CombinedOutput()
	require.NoError(t, err, "%s", output)
	plain, err := exec.CommandContext(t.Context(), program, "-dc", path).Output()
	require.NoError(t, err)
	require.Equal(t, profiletest.ReadPlain(t, path), plain)
}

func TestIndexes(t *testing.T) {
	inputs := []Input{{Name: "14/a", Size: 123}, {Name: "14/b", Size: 456, Damaged: true}}
	file, want := newSegment(t, inputs, newMessages(t, 20)...)
	got, end, err := ReadIndex(bytes.NewReader(file), int64(len(file)), limit)
	require.NoError(t, err)
	require.Equal(t, want, got)
	last := want.Records[len(want.Records)-1]
	require.Equal(t, last.Offset+last.Length, end)
	head, err := ReadInputs(bytes.NewReader(file), int64(len(file)), limit)
	require.NoError(t, err)
	require.Equal(t, inputs, head)
	require.Equal(t, -1, bytes.Index(file[end:], zstdMagic), "the index looks like a record")

	r := NewReader(bytes.NewReader(file), 0, int64(len(file)), Proto, limit)
	defer r.Close()
	for i, record := range slices.Backward(want.Records) {
		data, err := r.Record(record)
		require.NoError(t, err)
		require.Equal(t, newMessages(t, 20)[i], data)
	}
}

// Only the end of a file is read for its index, and all of it if it is long.
func TestOneReadFindsAnIndex(t *testing.T) {
	for _, tables := range []int{10, 3 * TailSize} {
		r := profiletest.NewRand(1)
		x := &Index{Tables: make([]byte, tables)}
		for i := range x.Tables {
			x.Tables[i] = byte(r.Uint32())
		}
		frame, err := AppendIndex(nil, x, 5*TailSize)
		require.NoError(t, err)
		require.Equal(t, -1, bytes.Index(frame, zstdMagic))
		from := &countingReader{Reader: bytes.NewReader(append(make([]byte, 5*TailSize), frame...))}
		got, _, err := ReadIndex(from, int64(5*TailSize+len(frame)), limit)
		require.NoError(t, err)
		require.Equal(t, x.Tables, got.Tables)
		require.Equal(t, map[int]int{10: 1, 3 * TailSize: 2}[tables], from.reads)
	}
}

type countingReader struct {
	*bytes.Reader
	reads int
}

func (r *countingReader) ReadAt(p []byte, offset int64) (int, error) {
	r.reads++
	return r.Reader.ReadAt(p, offset)
}

// TestAFlippedByteIsFound_E9: it costs a record, or one of the lists of inputs, or the index.
func TestAFlippedByteIsFound_E9(t *testing.T) {
	messages := newMessages(t, 4)
	inputs := []Input{{Name: "14/a", Size: 123}}
	file, want := newSegment(t, inputs, messages...)
	for at := range file {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			damaged := bytes.Clone(file)
			damaged[at] ^= flip
			from, size := bytes.NewReader(damaged), int64(len(damaged))
			x, _, err := ReadIndex(from, size, limit)
			head, headErr := ReadInputs(from, size, limit)
			lost := 0
			if err != nil {
				require.ErrorIs(t, err, ErrNoIndex)
				lost++
			} else {
				require.Equal(t, want, x)
			}
			if headErr != nil {
				require.ErrorIs(t, headErr, ErrNoIndex)
				lost++
			} else {
				require.Equal(t, inputs, head)
			}
			records, damage, readErr := readAll(damaged)
			require.NoError(t, readErr)
			for _, record := range records {
				require.Contains(t, messages, record)
			}
			lost += len(messages) - len(records)
			require.LessOrEqual(t, lost, 1, "byte %d of %d", at, len(file)) // such as the size of a window does not change the content
			require.Equal(t, lost == 0, len(damage) == 0, "byte %d of %d", at, len(file))

			byIndex := 0
			r := NewReader(from, 0, size, Proto, limit)
			for i, record := range want.Records {
				data, err := r.Record(record)
				if err == nil {
					require.Equal(t, messages[i], data)
					byIndex++
				}
			}
			r.Close()
			require.Equal(t, len(records), byIndex)
		}
	}
}

// TestACutFileHasItsRecords: without the rest, the records before are there.
func TestACutFileHasItsRecords(t *testing.T) {
	messages := newMessages(t, 4)
	file, want := newSegment(t, nil, messages...)
	for size := range file {
		complete := 0
		for _, r := range want.Records {
			if r.Offset+r.Length <= int64(size) {
				complete++
			}
		}
		records, _, err := readAll(file[:size])
		require.NoError(t, err)
		require.Equal(t, messages[:complete], append([][]byte{}, records...))
		_, _, err = ReadIndex(bytes.NewReader(file[:size]), int64(size), limit)
		require.ErrorIs(t, err, ErrNoIndex)
	}
}

func TestHostileIndexesAreRejected(t *testing.T) {
	bomb, err := AppendIndex(nil, &Index{Tables: make([]byte, 100*limit)}, 0)
	require.NoError(t, err)
	_, _, err = ReadIndex(bytes.NewReader(bomb), int64(len(bomb)), limit)
	require.ErrorIs(t, err, ErrNoIndex)
	outside, err := AppendIndex(nil, &Index{Records: []Record{{Offset: 10, Length: 100}}}, 20)
	require.NoError(t, err)
	_, _, err = ReadIndex(bytes.NewReader(append(make([]byte, 20), outside...)), int64(20+len(outside)), limit)
	require.ErrorIs(t, err, ErrNoIndex)
}

func FuzzReader(f *testing.F) {
	file, _ := newSegment(f, []Input{{Name: "14/a", Size: 1}}, newMessages(f, 2)...)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, err := readAll(data)
		require.NoError(t, err)
		if x, end, err := ReadIndex(bytes.NewReader(data), int64(len(data)), limit); err == nil {
			for _, r := range x.Records {
				require.LessOrEqual(t, r.Offset+r.Length, end)
			}
		}
		_, _ = ReadInputs(bytes.NewReader(data), int64(len(data)), limit)
	})
}
