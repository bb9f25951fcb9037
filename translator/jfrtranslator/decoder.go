// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// decoder translates one recording at a time and keeps its memory for the next.
//
// The number of a constant that a sample reaches says what became of it: the index in the OTLP dictionary or in a
// slice of d.
type decoder struct {
	jfr.Recording
	options  Unmarshaler
	report   Report
	prepared bool // labels and replaced are known

	// Of the recording.
	settings    settings
	labels      labels
	replaced    replacement
	tables      *dictionary.Tables
	translated  map[chunk]bool
	sampleBytes int  // of the result
	maxTexts    int  // bytes of text that may be read
	noted       bool // that the last chunk was translated, in translated
	texts       int  // bytes of text that were read for attributes and methods
	nextCheck   int  // how many of these there may be before the size of the result is checked

	// Of the metadata.
	bound      bool
	pools      [][]jfr.Step // which read a constant
	frameSteps []jfr.Step
	// frameVarints is the number of integers that a frame consists of, or 0 if there is more to it, or if a stack has more
	// than frames at its end.
	frameVarints int
	events       []*event // by class; nil for those that are not read
	async        bool     // it is async-profiler's
	datadog      bool     // it is that of Datadog's library

	// Of the chunk.
	rows               []row
	rowNumbers         jfr.Table // by the fields of the row, or their hash
	timedValues        []timedValue
	settingsAt         []int32   // where events with settings are
	methods            []method  // the first one is unknown
	threads            []thread  // the first one is unknown
	contexts           []uint64  // of threads: values of their last samples from slotContextOf on
	stack, stackBefore []int32   // the locations of the stack that was read last, and of the one before
	stackEnd           int       // where it ends, or 0
	locationOf         jfr.Table // by method, frame type and line
	families           [families]accumulator
	last               uint64 // the latest time of a sample

	kindAttributes [frameKinds]int32

	key, name        []byte
	values           []uint64              // of the current event
	fields           [constantSlots]uint64 // of the current constant
	attributes, keys []int32
	lines            []dictionary.Line
	value            dictionary.Value
}

func newDecoder() *decoder {
	return &decoder{tables: dictionary.New(), translated: map[chunk]bool{}}
}

// start prepares d for a recording.
func (d *decoder) start(u *Unmarshaler) {
	d.options, d.prepared = *u, false
	d.ChunkSize = min(cmp.Or(u.ChunkSize, defaultChunkSize), maxChunkSize)
	d.report, d.settings, d.replaced = Report{}, settings{}, 0
	clear(d.translated)
}

// chunk identifies a chunk of a recording.
type chunk struct {
	header jfr.Header
	hash   uint64
}

// repeated reports whether the recording had the chunk before. After jcmd JFR.dump, a JVM that ends writes all its chunks into
// the same file again.
func (d *decoder) repeated() bool {
	const most = 1024 // chunks to remember: a JVM's have 12 MB
	c := d.chunk()
	if d.translated[c] {
		return true
	}
	if d.noted = len(d.translated) < most; d.noted {
		d.translated[c] = true
	}
	return false
}

func (d *decoder) chunk() chunk { return chunk{d.Header, xxhash.Sum64(d.Data)} }

// translate translates the next chunk, or all that are left, into one dictionary. It returns io.EOF if there is none.
func (d *decoder) translate(one bool) (pprofile.Profiles, error) {
	pd := pprofile.NewProfiles()
	d.tables.Reset()
	d.kindAttributes = [frameKinds]int32{}
	d.sampleBytes, d.maxTexts, d.texts, d.nextCheck = 0, 16<<20, 0, 0
	d.noted = false
	var err error
	if !d.prepared {
		if err = d.readLabels(d.options.Labels); err == nil {
			d.findReplaced()
			d.prepared = true
		}
	}
	if err == nil && !d.More() {
		return pd, io.EOF
	}
	scopes := pd.ResourceProfiles().AppendEmpty().ScopeProfiles()
	for more := true; more && err == nil; more = !one && d.More() {
		err = d.translateChunk(scopes)
	}
	if err != nil {
		return pd, fmt.Errorf("jfr: %w", err)
	}
	d.tables.Write(pd.Dictionary())
	d.report.InvalidStrings += d.tables.Repaired()
	d.report.Bytes = d.resultSize()
	return pd, nil
}

// findReplaced notes the kinds of Datadog's samples, which may be in a later chunk than those of the JDK that they
// replace.
func (d *decoder) findReplaced() {
	const all = replacedCPU | replacedAllocations
	for d.Rewind(); d.More() && d.replaced != all; {
		// translateChunk reports an error, after which there is no next chunk, or another one.
		if err := d.loadChunk(); err != nil || !slices.ContainsFunc(d.events, func(e *event) bool { return e != nil && e.replaces != 0 }) {
			continue
		}
		for typeID := range d.Events {
			if e := d.eventOf(typeID); e != nil {
				d.replaced |= e.replaces
			}
		}
	}
	d.Rewind()
}

// loadChunk reads the next chunk, and finds the types that samples need in its metadata.
func (d *decoder) loadChunk() error {
	changed, err := d.LoadChunk()
	d.bound = d.bound && !changed
	if err == nil && !d.bound {
		if err = d.bind(); err != nil {
			return d.At("metadata", err)
		}
		d.bound = true
	}
	return err
}

// translateChunk translates the next chunk, unless it is a repetition.
func (d *decoder) translateChunk(to pprofile.ScopeProfilesSlice) error {
	if err := d.loadChunk(); err != nil {
		return err
	}
	if d.repeated() {
		return nil
	}
	d.maxTexts += maxRereads * len(d.Data)
	d.rowNumbers.Reset()
	d.locationOf.Reset()
	d.rows, d.timedValues, d.settingsAt = d.rows[:0], d.timedValues[:0], d.settingsAt[:0]
	d.stackEnd, d.last = 0, 0
	d.methods, d.threads, d.contexts = append(d.methods[:0], method{}), append(d.threads[:0], thread{}), d.contexts[:0]
	for i := range d.families {
		d.families[i].samples.Reset()
		d.families[i].values = d.families[i].values[:0]
	}
	d.SetPools(len(d.pools))
	d.readEvents()
	for _, at := range d.settingsAt {
		if e := d.readEvent(at); d.Err == nil {
			d.readSetting(e)
		}
	}
	d.resolve()
	if d.Err == nil {
		d.writeChunk(to)
	}
	return d.Err
}

func (d *decoder) release() {
	d.Recording.Release()
	d.options, d.labels = Unmarshaler{}, labels{}
	if d.Held()+d.tables.Retained() <= maxPooled {
		decoders.Put(d)
	}
}

// check ends the translation if the recording takes too much memory, or does so with text of so many bytes more.
func (d *decoder) check(text int) {
	const mostTexts = 64 << 10 // bytes of text without a check
	d.nextCheck = d.texts + mostTexts
	if d.texts > d.maxTexts {
		d.Fail(fmt.Sprintf("bytes of repeated texts up to chunk %d", d.Chunk), int64(d.maxTexts))
	}
	const copies = 4 // in the tables, which grow, and in the result
	d.Count(d.tables.Retained() + d.resultSize() + copies*text)
	d.Err = cmp.Or(d.Err, d.tables.Err())
}

// takeText accounts for a text before it goes into the result, and reports whether the translation goes on. One sample
// may have many texts, and few bytes of a recording may be many long texts.
func (d *decoder) takeText(bytes int) bool {
	if d.texts += bytes; d.texts > d.nextCheck {
		d.check(bytes)
	}
	return d.Err == nil
}

// resultSize is about the memory of the result so far, in bytes.
func (d *decoder) resultSize() int {
	size := d.sampleBytes + d.tables.OutputSize()
	return size + size/8 + d.tables.StringsOutputSize() + 2*profileSize*int(families)
}

// maxRereads is how many bytes of text may be read for each byte of a chunk, besides 16 MiB, for attributes and methods: one
// string may be that of many.
const maxRereads = 256

// Pools of constants. More follow for the types of attributes.
const (
	poolString = jfr.StringPool + iota
	poolStack
	poolMethod
	poolClass
	poolSymbol
	poolThread
	poolState
	poolFrameType
)

// poolTypes are the types of the constants.
var poolTypes = []string{
	poolString: "java.lang.String", poolStack: "jdk.types.StackTrace", poolMethod: "jdk.types.Method", poolClass: "java.lang.Class",
	poolSymbol: "jdk.types.Symbol", poolThread: "java.lang.Thread", poolState: "jdk.types.ThreadState", poolFrameType: "jdk.types.FrameType",
}

// bind finds the types that samples need in the metadata.
func (d *decoder) bind() error {
	d.pools = d.pools[:0]
	for _, name := range poolTypes {
		d.addPool(d.Meta.Find(name))
	}
	d.frameSteps, d.frameVarints = nil, 0
	if stack := d.Meta.Find(poolTypes[poolStack]); stack >= 0 {
		fields := d.Meta.FieldsOf(stack)
		for i := range fields {
			if constantSlot(&fields[i]) == slotFrames {
				d.frameSteps = d.Compile(fields[i].Class, constantSlot)
				if i == len(fields)-1 {
					d.frameVarints = d.Varints(fields[i].Class)
				}
			}
		}
	}
	if d.Err != nil {
		return d.Err
	}
	return d.bindEvents()
}

// addPool makes the next pool, for a class which may be -1. Of a constant that consists of a string,
// that is slotText.
func (d *decoder) addPool(class int32) {
	var steps []jfr.Step
	if class >= 0 {
		text := false
		d.Meta.Classes[class].Pool = int32(len(d.pools))
		steps = jfr.Trim(d.Compile(class, func(f *jfr.Field) jfr.Slot {
			s := constantSlot(f)
			if f.Kind == jfr.KindText && !f.Array && !text && s != slotOSName && s != slotJavaName {
				s, text = slotText, true
			}
			return s
		}))
	}
	d.pools = append(d.pools, steps)
}

// number returns the number of a constant, which translate makes of it once in a chunk. It is 0 if there is no such
// constant.
func (d *decoder) number(pool int32, id uint64, translate func(d *decoder, constant *jfr.Value) int32) int32 {
	constant := d.Constant(pool, id)
	if constant == nil {
		return 0
	}
	number, translated := constant.Number()
	if !translated {
		number = translate(d, constant)
		constant.SetNumber(number)
	}
	return number
}

// symbol returns the string of a constant, such as a symbol, valid until the next call. It returns nil if
// the pool does not have it.
func (d *decoder) symbol(pool int32, id uint64) []byte {
	if constant := d.Constant(pool, id); constant != nil {
		return d.text(pool, constant.At)
	}
	return nil
}

// text is symbol for the constant at a position.
func (d *decoder) text(pool, at int32) []byte {
	if steps := d.pools[pool]; len(steps) == 0 || steps[0].Slot != slotText { // it usually comes first
		at = int32(d.readConstant(pool, at)[slotText])
	}
	return d.Text(at)
}

// readConstant reads the fields of the constant at a position. They are valid until the next call.
func (d *decoder) readConstant(pool, at int32) *[constantSlots]uint64 {
	c := d.CursorAt(at)
	return d.readFields(&c, d.pools[pool])
}

func (d *decoder) readFields(c *jfr.Cursor, steps []jfr.Step) *[constantSlots]uint64 {
	d.fields = [constantSlots]uint64{}
	d.Read(c, steps, d.fields[:], nil)
	return &d.fields
}

// eventOf returns how the samples of a type are read, or nil.
func (d *decoder) eventOf(typeID uint64) *event {
	if class := d.Meta.ClassOf(typeID); class >= 0 {
		return d.events[class]
	}
	return nil
}
