// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// small returns recordings of each kind.
func small() map[string][]byte {
	context := ddprof()
	context.Event("datadog.ExecutionSample", 1000, 1, 1, 1, 1, 2, 77, 70, 5)
	locks := java()
	locks.Class("jdk.JavaMonitorEnter", jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread, jfrwriter.Stack)
	locks.Event("jdk.JavaMonitorEnter", 1000, 500, 1, 1)
	locks.State = 1
	return map[string][]byte{
		"async-profiler": cpu().Bytes(),
		"datadog":        append(cpu().Bytes(), context.Bytes()...),
		"unfinished":     locks.Bytes(),
	}
}

// requireErrorOrConforming fails unless data is rejected or translates into conforming profiles.
func requireErrorOrConforming(t testing.TB, data []byte) (accepted bool) {
	for _, timestamps := range []bool{false, true} {
		u := &jfrtranslator.Unmarshaler{Timestamps: timestamps}
		pd, err := u.UnmarshalProfiles(data)
		if err != nil {
			assert.ErrorContains(t, err, "jfr: ")
			return false
		}
		if pd.SampleCount() > 0 {
			profiletest.RequireConforms(t, pd)
		}
	}
	return true
}

func TestUnmarshalSurvivesEveryPrefixAndBitFlips_J1(t *testing.T) {
	step := 13 // so that each bit of a byte has its turn
	if full, _ := profiletest.Soak(t); full {
		step = 1
	}
	for name, data := range small() {
		t.Run(name, func(t *testing.T) {
			accepted := 0
			for n := range data {
				if requireErrorOrConforming(t, data[:n]) {
					accepted++
				}
			}
			if name == "unfinished" {
				assert.Positive(t, accepted)
			}
			for bit := 0; bit < 8*len(data); bit += step {
				flipped := bytes.Clone(data)
				flipped[bit/8] ^= 1 << (bit % 8)
				requireErrorOrConforming(t, flipped)
			}
		})
	}
}

// A decoder is used for many recordings, also at the same time. What it makes of one does not depend on those before, of
// which some were malformed.
func TestUnmarshalKeepsNothingOfTheRecordingBefore_J1(t *testing.T) {
	all := slices.Collect(maps.Values(small()))
	c := ddprof()
	c.Event("datadog.ExecutionSample", 1000, 1, 1, 1, 1, 2, 77, 70, 5)
	c.State = 1
	all = append(all, c.Bytes())
	marshalled := func(t *testing.T, n int, timestamps bool) []byte {
		pd, err := (&jfrtranslator.Unmarshaler{Timestamps: timestamps}).UnmarshalProfiles(all[n])
		require.NoError(t, err)
		return profiletest.Proto(t, pd)
	}
	want := map[bool][][]byte{}
	for n := range all {
		want[true], want[false] = append(want[true], marshalled(t, n, true)), append(want[false], marshalled(t, n, false))
	}
	for seed := range uint64(4) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 2))
			for range 125 {
				n, timestamps := random.IntN(len(all)), random.IntN(2) == 1
				require.Equal(t, want[timestamps][n], marshalled(t, n, timestamps))
				flipped := bytes.Clone(all[random.IntN(len(all))])
				flipped[68+random.IntN(len(flipped)-68)] ^= 1 << random.IntN(8)
				requireErrorOrConforming(t, flipped)
			}
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, data := range small() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireErrorOrConforming(t, data) })
}

// put overwrites a number of the header.
func put(c *jfrwriter.Chunk, at int, n int64) []byte {
	data := c.Bytes()
	binary.BigEndian.PutUint64(data[at:], uint64(n))
	return data
}

func metadataOf(elements ...any) []byte {
	c := jfrwriter.New()
	c.RawMetadata(jfrwriter.Append(nil, jfrwriter.Struct(elements)))
	return c.Bytes()
}

func TestUnmarshalNamesChunkOffsetAndEvent_J2(t *testing.T) {
	raw := func(data ...byte) []byte {
		c := cpu()
		c.Raw(data)
		return c.Bytes()
	}
	event := func(fields ...any) []byte {
		c := cpu()
		c.Event("jdk.ExecutionSample", fields...)
		return c.Bytes()
	}
	constant := func(class string, value ...any) []byte {
		c := cpu()
		c.Constant(class, 9, value...)
		c.Event("jdk.ExecutionSample", 1000, 9, 9, 9)
		return c.Bytes()
	}
	beyond := func(c *jfrwriter.Chunk, class string, values ...any) []byte {
		c.Class("profiler.Malloc", jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack, jfrwriter.Long("size"))
		c.Class("datadog.ObjectSample", jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack, jfrwriter.Long("size"), jfrwriter.Field{Name: "weight", Kind: "double"})
		executionSample(c)
		for range 3 {
			c.Event(class, append([]any{1000, 1, 1}, values...)...)
		}
		return c.Bytes()
	}
	deep := []any{1, "x"}
	for range 100 {
		deep = append(deep, 0, 0, 1)
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":                 {nil, "jfr: the recording is empty"},
		"no recording":          {bytes.Repeat([]byte("text"), 30), `jfr: chunk 1, byte 0: a chunk starts with "text": must be FLR and a zero byte`},
		"half a header":         {cpu().Bytes()[:40], "jfr: chunk 1, byte 0: the header has 40 of 68 bytes"},
		"half a second header":  {append(cpu().Bytes(), cpu().Bytes()[:40]...), "jfr: chunk 2, byte 0: the header has 40 of 68 bytes"},
		"version 1":             {append([]byte("FLR\x00\x00\x01"), cpu().Bytes()[6:]...), "the major version is 1: must be 2"},
		"not compressed":        {append(cpu().Bytes()[:67], append([]byte{0}, cpu().Bytes()[68:]...)...), "integers are not compressed"},
		"no ticks a second":     {put(cpu(), 56, 0), "ticks a second are 0: must be 1 or more"},
		"negative size":         {put(cpu(), 8, -1), "the size of the chunk is -1: must be 68 or more"},
		"large size":            {put(cpu(), 8, 1<<62), "of 4611686018427387904 bytes"},
		"metadata outside":      {put(cpu(), 24, 1<<62), "the metadata are at byte 4611686018427387904: must be inside the chunk, 68 to "},
		"metadata elsewhere":    {put(cpu(), 24, 70), "jfr: chunk 1, byte 70, event metadata: "},
		"event of no size":      {raw(0), "the event is not complete"},
		"event beyond the end":  {raw(0xff, 0xff, 0x7f, 1), "the event is not complete"},
		"event without a type":  {raw(1), "the event is not complete"},
		"event without fields":  {event(1000), "event jdk.ExecutionSample: ends too early"},
		"string beyond the end": {constant("java.lang.Thread", []byte{3, 0x7f, 'x'}), "checkpoint: constants of type java.lang.Thread, byte"},
		"unknown string":        {constant("java.lang.Thread", []byte{6}), "has an unknown encoding of strings"},
		"frames beyond the end": {constant("jdk.types.StackTrace", false, 1<<40), "has more elements than bytes"},
		"constants lie":         {raw(0x0a, 1, 1, 1, 0, 0, 1, 20, 0xff, 0x7f), "checkpoint: constants of type boolean, byte"},
		"pools lie":             {raw(0x08, 1, 1, 1, 0, 0, 0x7f, 0), "checkpoint: has more elements than bytes"},
		"constants of no type":  {raw(0x09, 1, 1, 1, 0, 0, 1, 0x7f, 0), "checkpoint: constants of type 127, which the metadata do not have"},
		"strings lie":           {metadataOf(1 << 40), "metadata: has more elements than bytes"},
		"string index":          {metadataOf(1, "root", 5, 0, 0), "metadata: string index 5 is not in the metadata, which has 1 strings"},
		"attributes lie":        {metadataOf(1, "root", 0, 1<<40), "metadata: has more elements than bytes"},
		"elements lie":          {metadataOf(1, "root", 0, 0, 1<<40), "metadata: has more elements than bytes"},
		"large weight":          {beyond(java(), "datadog.ObjectSample", 1<<40, 1e30), "event datadog.ObjectSample: the weight is not a number, or its product with the size is more than int64 holds"},
		"large sizes":           {beyond(java(), "profiler.Malloc", 1<<62), "event profiler.Malloc: the sum of the values of equal samples is more than int64 holds"},
		"large period":          {beyond(async(java(), "event", "cpu", "interval", "4611686018427387903"), "jdk.ExecutionSample", 1), "jfr: chunk 1: the sum of the values of equal samples is more than int64 holds"},
		"deep metadata":         {metadataOf(deep...), "metadata: levels of elements in the metadata: more than the limit of 32"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&jfrtranslator.Unmarshaler{}).UnmarshalProfiles(test.data)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// endless returns a chunk with types whose values have values of the same type, and constants of these types.
func endless() map[string]*jfrwriter.Chunk {
	missing := cpu()
	missing.Class("vendor.Self", jfrwriter.Field{Name: "self", Kind: ""}, jfrwriter.Long("x"))
	cycle := cpu()
	cycle.Class("vendor.A")
	cycle.Class("vendor.B", jfrwriter.Field{Name: "a", Kind: "vendor.A"})
	cycle.SetFields("vendor.A", jfrwriter.Field{Name: "b", Kind: "vendor.B"})
	array := cpu() // each level takes a byte at least
	array.Class("vendor.A")
	array.SetFields("vendor.A", jfrwriter.Field{Name: "a", Kind: "vendor.A", Array: true})
	deep := cpu()
	deep.Class("vendor.0", jfrwriter.Long("x"))
	for i := range rune(40) {
		inner := "vendor." + string('0'+i)
		deep.Class("vendor."+string('1'+i), jfrwriter.Field{Name: "a", Kind: inner}, jfrwriter.Field{Name: "b", Kind: inner})
	}
	return map[string]*jfrwriter.Chunk{"missing": missing, "cycle": cycle, "array": array, "deep": deep}
}

func TestUnmarshalRejectsTypesWithoutEnd_J2(t *testing.T) {
	for name, c := range endless() {
		_, err := (&jfrtranslator.Unmarshaler{}).UnmarshalProfiles(c.Bytes())
		require.NoError(t, err, "%s: types without values", name)
	}
	all := endless()
	all["missing"].Constant("vendor.Self", 1, 5, 5)
	all["cycle"].Constant("vendor.A", 1, 1)
	all["array"].Constant("vendor.A", 1, bytes.Repeat([]byte{1}, 1000), 0)
	for i := range rune(40) {
		all["deep"].Constant("vendor."+string('0'+i), 1, bytes.Repeat([]byte{1}, 1<<min(i, 17)))
	}
	for name, want := range map[string]string{
		"missing": "is of a type that the metadata does not have",
		"cycle":   "levels of values in values of type vendor.B: more than the limit of 16",
		"array":   "has values that nest too deep",
		"deep":    "more than the limit of",
	} {
		_, err := (&jfrtranslator.Unmarshaler{}).UnmarshalProfiles(all[name].Bytes())
		assert.ErrorContains(t, err, want, name)
	}
}

// A string that is a constant may not be another constant; stacks, methods and classes
// cannot refer to themselves.
func TestUnmarshalSurvivesConstantsThatReferToThemselves_J2(t *testing.T) {
	c := async(jfrwriter.New(), "event", "cpu", "interval", "10000000")
	executionSample(c)
	c.Constant("java.lang.String", 1, jfrwriter.Ref(2))
	c.Constant("java.lang.String", 2, jfrwriter.Ref(1))
	c.Constant("jdk.types.Symbol", 1, jfrwriter.Ref(1))
	c.Constant("java.lang.Class", 1, 1, 1)
	c.Constant("jdk.types.Method", 1, 1, 1, 1, 1, false)
	c.StackTrace(1, jfrwriter.Frame{Method: 1}, jfrwriter.Frame{Method: 5})
	c.Event("jdk.ExecutionSample", 1000, 0, 1, 0)
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, c)
	assert.Contains(t, show(t, pd), "  [unknown];[unknown] 1\n")
}

func TestUnmarshalEnforcesEachLimit_J2(t *testing.T) {
	stack := func(depth int) []byte {
		c := java()
		executionSample(c)
		c.StackTrace(9, make([]jfrwriter.Frame, depth)...)
		c.Event("jdk.ExecutionSample", 1000, 1, 9, 1)
		return c.Bytes()
	}
	name := func(length int) []byte {
		c := java()
		executionSample(c)
		c.Constant("java.lang.Thread", 9, jfrwriter.Null, 1, string(bytes.Repeat([]byte("x"), length)), 1)
		c.Event("jdk.ExecutionSample", 1000, 9, 1, 1)
		return c.Bytes()
	}
	whole := cpu().Bytes()
	for limit, test := range map[string]struct {
		chunkSize int
		at        func(delta int) []byte
	}{
		"frames of a stack: more than the limit of 65536":      {0, func(delta int) []byte { return stack(64<<10 + delta) }},
		"bytes of a string: more than the limit of 1048576":    {0, func(delta int) []byte { return name(1<<20 + delta) }},
		"bytes of the chunk: more than the limit of " + "2000": {2000, func(delta int) []byte { return padded(whole, 2000+delta) }},
	} {
		for delta := -1; delta <= 1; delta++ {
			_, err := (&jfrtranslator.Unmarshaler{ChunkSize: test.chunkSize}).UnmarshalProfiles(test.at(delta))
			if delta <= 0 {
				require.NoError(t, err, limit)
				continue
			}
			var over *jfrtranslator.LimitError
			require.ErrorAs(t, err, &over)
			assert.ErrorContains(t, err, limit)
		}
	}
}

// A string over the limit is not decoded, which would take memory beyond what was reserved.
func TestUnmarshalDoesNotDecodeLongStrings_J2(t *testing.T) {
	const size = 16 << 20
	for name, value := range map[string]any{
		"surrogate pairs": strings.Repeat("x", size) + "\xed\xa0\xbd\xed\xb8\x80",
		"UTF-16":          jfrwriter.String{Encoding: 4, Value: strings.Repeat("x", size) + "ä"},
		"Latin-1":         jfrwriter.String{Encoding: 5, Value: strings.Repeat("ä", size)},
	} {
		t.Run(name, func(t *testing.T) {
			c := java()
			executionSample(c)
			c.Constant("java.lang.Thread", 9, jfrwriter.Null, 1, value, 1)
			c.Event("jdk.ExecutionSample", 1000, 9, 1, 1)
			data := c.Bytes()
			var err error
			profiletest.Heap() // drops the decoder that is kept for the next recording
			allocated := profiletest.AllocatedBy(func() { _, err = (&jfrtranslator.Unmarshaler{}).UnmarshalProfiles(data) })
			var over *jfrtranslator.LimitError
			require.ErrorAs(t, err, &over)
			assert.ErrorContains(t, err, "bytes of a string")
			assert.Less(t, allocated, uint64(2<<20))
		})
	}
}

// padded returns a chunk of the given size: data, and events that nobody knows.
func padded(data []byte, size int) []byte {
	data = bytes.Clone(data)
	for n := size - len(data); n > 0; n = size - len(data) {
		n = min(n, 100)
		data = append(append(data, byte(n), 0x7d), make([]byte, n-2)...)
	}
	binary.BigEndian.PutUint64(data[8:], uint64(len(data)))
	return data
}

// adversarial are recordings that are small for what they could take.
func adversarial() map[string][]byte {
	const n = 50_000
	threads := java()
	executionSample(threads)
	for i := range n {
		threads.Constant("java.lang.Thread", uint64(i), jfrwriter.Null, 0, jfrwriter.Null, i)
		threads.Event("jdk.ExecutionSample", 0, i, 0, 0)
	}
	symbols := java()
	for i := range n {
		symbols.Constant("jdk.types.Symbol", uint64(i), jfrwriter.Null)
	}
	sparse := java()
	for i := range n {
		sparse.Constant("jdk.types.ThreadState", uint64(i)<<20, jfrwriter.Null)
	}
	spans := java()
	executionSample(spans, jfrwriter.Long("spanId"))
	for i := range n {
		spans.Event("jdk.ExecutionSample", 0, 0, 0, 0, i)
	}
	var chunks []byte
	for i := range 1000 { // of types that change, so that each chunk has its own
		c := java()
		executionSample(c, jfrwriter.Long(fmt.Sprint("field", i)))
		c.Event("jdk.ExecutionSample", 0, 0, 1, 0, i)
		chunks = append(chunks, c.Bytes()...)
	}
	return map[string][]byte{"chunks": chunks, "threads": threads.Bytes(), "symbols": symbols.Bytes(), "sparse ids": sparse.Bytes(), "spans": spans.Bytes()}
}

// repeated are recordings in which one row, or the metadata, refer to one long text many times, or to frames of no bytes.
func repeated() map[string][]byte {
	const n = 1000
	long := strings.Repeat("a", 1<<19)
	stack := java()
	executionSample(stack)
	stack.Constant("jdk.types.Symbol", 1<<20, long)
	stack.Constant("java.lang.Class", 1<<20, 1<<20, 1)
	frames := make([]jfrwriter.Frame, n)
	for i := range frames {
		stack.Constant("jdk.types.Symbol", uint64(1<<21+i), fmt.Sprint("m", i))
		stack.Constant("jdk.types.Method", uint64(100+i), 1<<20, 1<<21+i, 0, 0, false)
		frames[i] = jfrwriter.Frame{Method: uint64(100 + i), Line: 1}
	}
	stack.StackTrace(100, frames...)
	stack.Event("jdk.ExecutionSample", 0, 0, 100, 0)

	attributes, names := jfrwriter.New(), jfrwriter.New()
	fields, nameFields := []jfrwriter.Field{jfrwriter.StartTime, jfrwriter.Stack}, []jfrwriter.Field{jfrwriter.StartTime, jfrwriter.Stack}
	refs, texts := []any{1000, 0}, []any{1000, 0}
	for i := range n {
		fields, refs = append(fields, jfrwriter.Text(fmt.Sprint("a", i))), append(refs, jfrwriter.Ref(1))
		nameFields, texts = append(nameFields, jfrwriter.Text(long)), append(texts, "x")
	}
	attributes.Class("datadog.ExecutionSample", fields...)
	attributes.Constant("java.lang.String", 1, long)
	attributes.Event("datadog.ExecutionSample", refs...)
	names.Class("datadog.ExecutionSample", nameFields...)
	names.Event("datadog.ExecutionSample", texts...)

	settings := jfrwriter.New()
	settings.Class("profiler.Log", jfrwriter.StartTime)
	settings.Class("jdk.ActiveSetting", jfrwriter.StartTime, jfrwriter.Text("name"), jfrwriter.Text("value"))
	settings.Constant("java.lang.String", 1, long)
	for range n {
		settings.Event("jdk.ActiveSetting", 1000, jfrwriter.Ref(1), jfrwriter.Ref(1))
	}

	classes := jfrwriter.New()
	for range n {
		classes.Class(long)
	}
	return map[string][]byte{
		"methods of a stack": stack.Bytes(), "attributes of a sample": attributes.Bytes(), "names of attributes": names.Bytes(),
		"settings": settings.Bytes(), "names of types": classes.Bytes(),
	}
}

func TestUnmarshalTakesNoMoreThanItMay_J2(t *testing.T) {
	recordings := adversarial()
	maps.Copy(recordings, repeated())
	for _, name := range []string{"methods of a stack", "settings"} {
		_, err := (&jfrtranslator.Unmarshaler{}).UnmarshalProfiles(recordings[name])
		require.ErrorContains(t, err, "bytes of repeated texts up to chunk 1: more than the limit of", name)
	}
	for name, data := range recordings {
		for memory := int64(32 << 10); memory <= 32<<20; memory *= 4 {
			var err error
			profiletest.Heap() // drops the decoder that is kept for the next recording
			allocated := profiletest.AllocatedBy(func() { _, _, err = (&jfrtranslator.Unmarshaler{}).UnmarshalWithin(data, memory, nil) })
			if err != nil {
				var over *jfrtranslator.LimitError
				require.ErrorAs(t, err, &over, "%s, %d", name, memory)
			}
			// What is allocated in total is more than what is held at once: slices grow.
			assert.LessOrEqual(t, int64(allocated), 4*memory+1<<20, "%s, %d", name, memory)
		}
	}
}
