// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of pprof's Profile message and of those in it.
const (
	profileSampleType, profileSample, profileLocation, profileFunction, profileStrings = 1, 2, 4, 5, 6
	profileTime, profileDuration                                                       = 9, 10
	sampleLocation, sampleValue, sampleLabel                                           = 1, 2, 3
	idField, lineField                                                                 = 1, 4
)

// pprofWriter writes a pprof profile field by field: google/pprof needs seconds and gigabytes for
// the largest ones.
type pprofWriter struct {
	fields  []byte
	strings int
	// For messages in it, used again and again.
	pairs, packed, message []byte
}

func (w *pprofWriter) number(field protowire.Number, n uint64) {
	w.fields = protowire.AppendVarint(protowire.AppendTag(w.fields, field, protowire.VarintType), n)
}

func (w *pprofWriter) bytes(field protowire.Number, message []byte) {
	w.fields = protowire.AppendBytes(protowire.AppendTag(w.fields, field, protowire.BytesType), message)
}

// string adds an entry to the table of strings and returns its index.
func (w *pprofWriter) string(s string) uint64 {
	w.bytes(profileStrings, []byte(s))
	w.strings++
	return uint64(w.strings - 1)
}

// numbers returns a message of {field, number} pairs, valid until the next call.
func (w *pprofWriter) numbers(pairs ...uint64) []byte {
	w.pairs = w.pairs[:0]
	for i := 0; i < len(pairs); i += 2 {
		w.pairs = protowire.AppendTag(w.pairs, protowire.Number(pairs[i]), protowire.VarintType)
		w.pairs = protowire.AppendVarint(w.pairs, pairs[i+1])
	}
	return w.pairs
}

// begin writes a header with a time that no other profile of this process has. A profile of CPU time
// has a duration.
func (w *pprofWriter) begin(sampleType, unit string) {
	w.string("")
	w.bytes(profileSampleType, w.numbers(1, w.string(sampleType), 2, w.string(unit)))
	w.number(profileTime, uint64(time.Now().UnixNano()+times.Add(1)))
	if sampleType == "cpu" {
		w.number(profileDuration, uint64(time.Second))
	}
}

var times atomic.Int64

// function adds a function and a location in it, both with an id.
func (w *pprofWriter) function(id, name uint64) {
	w.bytes(profileFunction, w.numbers(1, id, 2, name))
	line := bytes.Clone(w.numbers(1, id, 2, id%500))
	location := w.numbers(1, id)
	location = protowire.AppendBytes(protowire.AppendTag(location, lineField, protowire.BytesType), line)
	w.bytes(profileLocation, location)
}

// sample adds a sample with the value 1, a stack, and a label if it is not nil.
func (w *pprofWriter) sample(label []byte, stack ...uint64) {
	w.packed, w.message = w.packed[:0], w.message[:0]
	for _, location := range stack {
		w.packed = protowire.AppendVarint(w.packed, location)
	}
	w.message = protowire.AppendBytes(protowire.AppendTag(w.message, sampleLocation, protowire.BytesType), w.packed)
	w.message = append(w.message, sampleValue<<3, 1)
	if label != nil {
		w.message = protowire.AppendBytes(protowire.AppendTag(w.message, sampleLabel, protowire.BytesType), label)
	}
	w.bytes(profileSample, w.message)
}

// distinctProfile returns a valid CPU profile, gzipped, in which each sample has a stack and a label
// that no other sample has. They are random, so that it shrinks little: about 100 bytes a sample,
// 80 gzipped. Each sample has the value 1.
func distinctProfile(t *testing.T, samples int) []byte {
	t.Helper()
	return distinctSamples(t, "cpu", "nanoseconds", samples)
}

// distinctHeap is distinctProfile for a heap profile, with one of Go's cumulative sample types.
func distinctHeap(t *testing.T, samples int) []byte {
	t.Helper()
	return distinctSamples(t, "alloc_space", "bytes", samples)
}

func distinctSamples(t *testing.T, sampleType, unit string, samples int) []byte {
	t.Helper()
	const depth = 16
	r := rand.New(rand.NewPCG(uint64(samples), uint64(times.Add(1))))
	random := make([]byte, 21)
	name := func() string {
		for i := range random {
			random[i] = byte(r.Uint32())
		}
		return base64.StdEncoding.EncodeToString(random)
	}
	w := &pprofWriter{}
	w.begin(sampleType, unit)
	key := w.string("request")
	functions := uint64(max(1000, samples/10))
	for id := range functions {
		w.function(id+1, w.string("example.com/shop."+name()))
	}
	stack := make([]uint64, depth)
	for range samples {
		for i := range stack {
			stack[i] = 1 + r.Uint64()%functions
		}
		w.sample(w.numbers(1, key, 2, w.string(name())), stack...)
	}
	return quicklyCompressed(t, w.fields)
}

// quicklyCompressed is compressed for large profiles.
func quicklyCompressed(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	require.NoError(t, err)
	return out.Bytes()
}

// maxDecompressedSize is the default of max_decompressed_size.
const maxDecompressedSize = 64 << 20

// tinyEntries returns valid profiles of the largest size that is decompressed, gzipped, by the kind
// of the distinct, tiny entries that each of them consists of.
func tinyEntries(t *testing.T, size int) map[string][]byte {
	t.Helper()
	fill := func(before int, entry func(w *pprofWriter, i uint64)) []byte {
		w := &pprofWriter{}
		w.begin("cpu", "nanoseconds")
		for i := range uint64(before) {
			w.bytes(profileLocation, w.numbers(1, i+1, 3, i+1)) // an address
		}
		for i := uint64(0); len(w.fields) < size-100; i++ {
			entry(w, i)
		}
		return quicklyCompressed(t, w.fields)
	}
	const locations = 4096
	var label []byte
	return map[string][]byte{
		"strings": fill(1, func(w *pprofWriter, i uint64) {
			w.string(strconv.FormatUint(i, 36))
		}),
		"functions": fill(1, func(w *pprofWriter, i uint64) {
			w.function(i+2, 1)
			w.sample(nil, i+2)
		}),
		"locations": fill(1, func(w *pprofWriter, i uint64) {
			w.bytes(profileLocation, w.numbers(1, i+2, 3, i+2))
			w.sample(nil, i+2)
		}),
		"samples": fill(locations, func(w *pprofWriter, i uint64) {
			w.sample(nil, 1+i%locations, 1+i/locations%locations)
		}),
		"labels": fill(1, func(w *pprofWriter, i uint64) {
			label = binary.AppendUvarint(append(label[:0], 1<<3, 1, 3<<3), i+1)
			w.sample(label, 1)
		}),
	}
}
