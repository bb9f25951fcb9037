// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// heapProfile is a record of samples as a heap profile has them, most of value 0:
// between two of them there often is what reads as a length.
func heapProfile(t testing.TB, seed uint64, samples int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "inuse_space", "bytes")
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for i := range samples {
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(int32(128 + i%16_000))
		value := int64(0)
		if random.IntN(10) == 0 {
			value = random.Int64N(1 << 20)
		}
		s.Values().Append(value)
	}
	record, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	return record
}

func prefixed(records ...[]byte) []byte {
	var file []byte
	for _, record := range records {
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(record))), record...)
	}
	return file
}

// countingReader counts what is read.
type countingReader struct {
	io.ReaderAt
	calls, bytes int
}

func (r *countingReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, at)
	r.calls++
	r.bytes += n
	return n, err
}

// readRecords gives copies of the records, and what was read for them.
func readRecords(t testing.TB, file []byte, content Content) (records [][]byte, read *countingReader) {
	read = &countingReader{ReaderAt: bytes.NewReader(file)}
	r, err := NewReader(read, int64(len(file)), Format{Content: content}, ReaderOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for record, err := range r.All() {
		if err != nil {
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
			continue
		}
		records = append(records, bytes.Clone(record))
	}
	return records, read
}

// TestE9NoRecordIsInvented in samples that a torn write or a flipped bit of a length
// leaves for the reader to look through.
func TestE9NoRecordIsInvented(t *testing.T) {
	good := testRecord(OTLPProto, 1, 100)
	files, read := 0, 0
	seed := profiletest.Seed(t)
	for round := range profiletest.Rounds(t, 1, 100) {
		heap := heapProfile(t, seed+uint64(round), 120_000)
		for _, part := range []int{2, 3, 8} {
			torn := prefixed(good, heap)
			records, _ := readRecords(t, torn[:len(torn)-len(heap)/part], OTLPProto)
			require.Equal(t, [][]byte{good}, records, "round %d: torn by 1/%d", round, part)
			files, read = files+1, read+len(records)
		}
		for bit := range 32 {
			flipped := prefixed(heap, good)
			flipped[bit/8] ^= 1 << (bit % 8)
			records, _ := readRecords(t, flipped, OTLPProto)
			require.Equal(t, [][]byte{good}, records, "round %d: bit %d", round, bit)
			files, read = files+1, read+len(records)
		}
	}
	profiletest.Account(t, fmt.Sprintf("%d torn records and flipped lengths", files), files, read, 0)
}

// TestE9NoSampleIsARecord, though in samples of several values one value before may
// well be the length of a sample in bytes, or of a few.
func TestE9NoSampleIsARecord(t *testing.T) {
	files := 0
	for value := range int64(128) {
		pd := pprofile.NewProfiles()
		pd.Dictionary().StringTable().Append("", "wall", "nanoseconds")
		p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
		for i := range 50 {
			s := p.Samples().AppendEmpty()
			s.SetStackIndex(int32(i % 4))
			s.Values().Append(0, 0, 0, value)
		}
		torn, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		require.NoError(t, err)
		file := prefixed(torn)
		for cut := range 200 {
			records, _ := readRecords(t, file[:len(file)-1-cut], OTLPProto)
			require.Empty(t, records, "value %d: torn %d bytes before the end", value, cut+1)
			files++
		}
	}
	profiletest.Injected(t, fmt.Sprintf("%d torn records", files))
}

// TestE2TornHeapProfileIsCutOff when a leftover is repaired.
func TestE2TornHeapProfileIsCutOff(t *testing.T) {
	good := testRecord(OTLPProto, 1, 100)
	heap := heapProfile(t, 1, 120_000)
	file := prefixed(good, heap)
	file = file[:len(file)-len(heap)/8]
	dir := t.TempDir()
	name := Name{Sequence: 1, Format: Format{Content: OTLPProto}, Partial: true}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name.String()), file, 0o600))
	w := openTestWriter(t, dir, Options{Format: Format{Content: OTLPProto}})
	require.NoError(t, w.Close())
	finished, err := os.ReadFile(filepath.Join(dir, list(t, dir)[0]))
	require.NoError(t, err)
	assert.Equal(t, prefixed(good), finished)
	profiletest.Account(t, "1 torn records", 1, len(readAll(t, dir, 100)), 0)
}

// TestE9PlantedRecord: a label that looks like a record is none.
func TestE9PlantedRecord(t *testing.T) {
	planted := prefixed(binary.AppendUvarint([]byte{dictionaryTag}, 0x20))
	planted[3] += 0x20
	planted = append(planted, bytes.Repeat([]byte{stringTableTag, 0}, 0x10)...)
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", string(planted), strings.Repeat(string(planted)+"text", 100))
	host, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	good := testRecord(OTLPProto, 1, 100)
	file := prefixed(host, good, good)
	file[0] ^= 0x40
	records, _ := readRecords(t, file, OTLPProto)
	assert.Equal(t, [][]byte{good, good}, records)
	profiletest.Account(t, "1 planted records", 2, len(records), 0)
}

// TestE9RecordsOfPdataAreFound behind a damaged one, before the end, another one, or
// a torn one however long.
func TestE9RecordsOfPdataAreFound(t *testing.T) {
	random := profiletest.NewRand(profiletest.Seed(t))
	files, read := 0, 0
	for round := range profiletest.Rounds(t, 10, 1000) {
		var records [][]byte
		for i := range 3 {
			pd := pprofile.NewProfiles()
			pd.Dictionary().StringTable().Append("")
			if i > 0 {
				pd = profiletest.GenerateProfiles(random)
			}
			record, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
			require.NoError(t, err)
			records = append(records, record)
		}
		damaged := prefixed(records[1])
		damaged[0] ^= 0x40
		file := append(damaged, prefixed(records[0], records[2])...)
		torn := prefixed(records[1])
		for cut := range torn {
			if cut > 100 && cut%97 != 0 {
				continue
			}
			got, _ := readRecords(t, append(file[:len(file):len(file)], torn[:cut]...), OTLPProto)
			require.True(t, slices.EqualFunc([][]byte{records[0], records[2]}, got, bytes.Equal), "round %d: torn after %d bytes", round, cut)
			files, read = files+1, read+len(got)
		}
	}
	profiletest.Account(t, fmt.Sprintf("%d damaged records, with torn ones behind", files), 2*files, read, 0)
}

// TestE9ReadingIsLinear: what is read for a damaged file is in proportion to the
// file, whatever is in it.
func TestE9ReadingIsLinear(t *testing.T) {
	size := 1 << 20
	if full, _ := profiletest.Soak(t); full {
		size = 16 << 20
	}
	labels := []byte(strings.Repeat(`SELECT a FROM t WHERE x IN ({1} {2}) AND some more text of a query that is a label; `, size/84))
	object := fmt.Appendf(nil, `{"id":1,"text":"%s"}`, labels)
	damagedLine := append(bytes.Replace(object, []byte("id"), []byte{'"', 'd'}, 1), lineFeed)
	samples := heapProfile(t, 1, size/16)
	good := make([][]byte, 16)
	for i := range good {
		good[i] = testRecord(OTLPProto, 1, size/4)
	}
	// Each of these fields begins what looks like a message that goes on for long.
	fields := bytes.Repeat([]byte{resourceProfilesTag, 6, 0, 0, 0, 8, 0, 0}, size/8)
	// So does each of these, and no two go from field to field in common.
	crossing := bytes.Repeat([]byte{0, 0, 0x80, 0, resourceProfilesTag, 0x80, 0x20}, size/7)
	random := rand.New(rand.NewPCG(1, 0))
	resources := pprofile.NewProfiles()
	resources.Dictionary().StringTable().Append("")
	for range size / 100 {
		p := resources.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
		p.SetProfileID(pprofile.ProfileID{15: byte(random.Uint32()), 12: 1, 13: byte(random.Uint32())})
		for range 3 {
			p.Samples().AppendEmpty().Values().Append(random.Int64())
		}
	}
	ofResources, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(resources)
	require.NoError(t, err)
	for _, tt := range []struct {
		name    string
		content Content
		file    []byte
		records int
	}{
		{"damaged line", OTLPJSON, damagedLine, 0},
		{"damaged line before another", OTLPJSON, append(damagedLine, "{\"id\":2}\n"...), 1},
		{"torn line", OTLPJSON, object, 0},
		{"joined lines", OTLPJSON, append(append(append(bytes.Clone(object), 'x'), object...), lineFeed), 1},
		{"open braces", OTLPJSON, append(bytes.Repeat([]byte(`}x{"a":`), size/7), lineFeed), 0},
		{"strings like braces", OTLPJSON, append(bytes.Repeat([]byte(`"}x{",":",`), size/10), lineFeed), 0},
		{"samples", OTLPProto, append([]byte{0xff, 0xff, 0xff, 0xff}, append(samples, prefixed(good...)...)...), len(good)},
		{"resources", OTLPProto, append([]byte{0xff, 0xff, 0xff, 0xff}, append(ofResources, prefixed(good...)...)...), len(good)},
		{"fields", OTLPProto, append([]byte{0xff, 0xff, 0xff, 0xff}, append(fields, prefixed(good...)...)...), len(good)},
		{"crossing fields", OTLPProto, append([]byte{0xff, 0xff, 0xff, 0xff}, append(crossing, prefixed(good...)...)...), len(good)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			records, read := readRecords(t, tt.file, tt.content)
			assert.Equal(t, tt.records, len(records), "records") //nolint:testifylint // not all their bytes
			t.Logf("%d bytes: %d read in %d calls", len(tt.file), read.bytes, read.calls)
			assert.Less(t, read.bytes, 16*len(tt.file)+8<<20)
			assert.Less(t, read.calls, len(tt.file)/6+1000)
			profiletest.Account(t, "1 damaged files", tt.records, len(records), 0)
		})
	}
}
