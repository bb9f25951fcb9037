// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"slices"
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

// message is a protobuf message in the making.
type message []byte

// varints adds {field, number} pairs.
func (m message) varints(pairs ...uint64) message {
	for i := 0; i < len(pairs); i += 2 {
		m = protowire.AppendVarint(protowire.AppendTag(m, protowire.Number(pairs[i]), protowire.VarintType), pairs[i+1])
	}
	return m
}

func (m message) bytes(field protowire.Number, content []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), content)
}

// nested is a content in messages in these fields, the outermost first.
func nested(content []byte, fields ...protowire.Number) []byte {
	for _, field := range slices.Backward(fields) {
		content = message{}.bytes(field, content)
	}
	return content
}

// pprofWriter writes a pprof profile field by field: google/pprof needs seconds and gigabytes for
// the largest ones.
type pprofWriter struct {
	fields  message
	strings uint64
}

// string adds an entry to the table of strings and returns its index.
func (w *pprofWriter) string(s string) uint64 {
	w.fields = w.fields.bytes(profileStrings, []byte(s))
	w.strings++
	return w.strings - 1
}

// newPprof returns a header with a time that no other profile of this process has. A profile of CPU time
// has a duration.
func newPprof(sampleType, unit string) *pprofWriter {
	w := &pprofWriter{}
	w.string("")
	valueType := message{}.varints(1, w.string(sampleType), 2, w.string(unit))
	w.fields = w.fields.bytes(profileSampleType, valueType).varints(profileTime, uint64(time.Now().UnixNano()+times.Add(1)))
	if sampleType == "cpu" {
		w.fields = w.fields.varints(profileDuration, uint64(time.Second))
	}
	return w
}

var times atomic.Int64

// function adds a function and a location in it, both with an id.
func (w *pprofWriter) function(id, name uint64) {
	location := message{}.varints(idField, id).bytes(lineField, message{}.varints(1, id, 2, id%500))
	w.fields = w.fields.bytes(profileFunction, message{}.varints(idField, id, 2, name)).bytes(profileLocation, location)
}

// location adds a location with an address.
func (w *pprofWriter) location(id uint64) {
	w.fields = w.fields.bytes(profileLocation, message{}.varints(idField, id, 3, id))
}

// sample adds a sample with the value 1, a stack, and a label if it is not nil.
func (w *pprofWriter) sample(label message, stack ...uint64) {
	var packed []byte
	for _, location := range stack {
		packed = protowire.AppendVarint(packed, location)
	}
	sample := message{}.bytes(sampleLocation, packed).varints(sampleValue, 1)
	if label != nil {
		sample = sample.bytes(sampleLabel, label)
	}
	w.fields = w.fields.bytes(profileSample, sample)
}

// distinctProfile returns a valid profile of CPU time, gzipped, in which each sample has a stack and a label
// that no other sample has. They are random, so that it shrinks little: about 100 bytes a sample,
// 80 gzipped. Each sample has the value 1.
func distinctProfile(t *testing.T, samples int) []byte {
	t.Helper()
	return distinctSamples(t, "cpu", "nanoseconds", samples)
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
	w := newPprof(sampleType, unit)
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
		w.sample(message{}.varints(1, key, 2, w.string(name())), stack...)
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
		w := newPprof("cpu", "nanoseconds")
		for i := range uint64(before) {
			w.location(i + 1)
		}
		for i := uint64(0); len(w.fields) < size-100; i++ {
			entry(w, i)
		}
		return quicklyCompressed(t, w.fields)
	}
	const locations = 4096
	return map[string][]byte{
		"strings": fill(1, func(w *pprofWriter, i uint64) {
			w.string(strconv.FormatUint(i, 36))
		}),
		"functions": fill(1, func(w *pprofWriter, i uint64) {
			w.function(i+2, 1)
			w.sample(nil, i+2)
		}),
		"locations": fill(1, func(w *pprofWriter, i uint64) {
			w.location(i + 2)
			w.sample(nil, i+2)
		}),
		"samples": fill(locations, func(w *pprofWriter, i uint64) {
			w.sample(nil, 1+i%locations, 1+i/locations%locations)
		}),
		"labels": fill(1, func(w *pprofWriter, i uint64) {
			w.sample(message{}.varints(1, 1, 3, i+1), 1)
		}),
	}
}
