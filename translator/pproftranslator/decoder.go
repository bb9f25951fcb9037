// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// Fields of the messages of pprof's profile.proto.
const (
	profileSampleType        = 1
	profileSample            = 2
	profileMapping           = 3
	profileLocation          = 4
	profileFunction          = 5
	profileString            = 6
	profileDropFrames        = 7
	profileKeepFrames        = 8
	profileTimeNanos         = 9
	profileDurationNanos     = 10
	profilePeriodType        = 11
	profilePeriod            = 12
	profileComment           = 13
	profileDefaultSampleType = 14
	profileDocURL            = 15

	valueTypeType = 1
	valueTypeUnit = 2

	sampleLocation = 1
	sampleValue    = 2
	sampleLabel    = 3

	labelKey     = 1
	labelString  = 2
	labelNumber  = 3
	labelNumUnit = 4

	mappingID              = 1
	mappingMemoryStart     = 2
	mappingMemoryLimit     = 3
	mappingFileOffset      = 4
	mappingFilename        = 5
	mappingBuildID         = 6
	mappingHasFunctions    = 7
	mappingHasFilenames    = 8
	mappingHasLineNumbers  = 9
	mappingHasInlineFrames = 10

	locationID       = 1
	locationMapping  = 2
	locationAddress  = 3
	locationLine     = 4
	locationIsFolded = 5

	lineFunction = 1
	lineLine     = 2
	lineColumn   = 3

	functionID         = 1
	functionName       = 2
	functionSystemName = 3
	functionFilename   = 4
	functionStartLine  = 5
)

var profileFields = [...]string{
	profileSampleType: "sample_type", profileSample: "sample", profileMapping: "mapping",
	profileLocation: "location", profileFunction: "function", profileString: "string_table",
	profileDropFrames: "drop_frames", profileKeepFrames: "keep_frames", profileTimeNanos: "time_nanos",
	profileDurationNanos: "duration_nanos", profilePeriodType: "period_type", profilePeriod: "period",
	profileComment: "comment", profileDefaultSampleType: "default_sample_type", profileDocURL: "doc_url",
}

func profileField(field uint64) string {
	if field < uint64(len(profileFields)) && profileFields[field] != "" {
		return "the field " + profileFields[field]
	}
	return fmt.Sprintf("field %d", field)
}

// Bounds that are not worth a setting.
const (
	maxSampleTypes = 1024
	maxComments    = 64 << 10
)

// kind is what is known of the mappings, locations or functions of a message:
// where each is, its id, and its index in the tables plus one once it is there.
type kind struct {
	name      string
	positions []position
	idList    []uint64
	ids       idTable
	indices   []int32 // by number: the index in the tables plus one, 0 for not there yet
}

// position is where a message begins and ends in the payload.
type position struct{ start, stop uint32 }

// decoder translates one payload at a time; it keeps its memory.
type decoder struct {
	limits  Limits
	labels  labelNames
	data    []byte
	tables  *dictionary.Tables
	samples dictionary.Samples

	strings       []position
	stringIndices []int32 // by pprof string: the index in the tables plus one
	roles         []role  // by pprof string, once labels have been seen

	mappings, locations, functions kind
	header                         header
	sheets                         []sheet // without timestamps
	timed                          timeline
	clamped                        int

	location  dictionary.Location
	mapping   dictionary.Mapping
	locIDs    []uint64
	stack     []int32
	values    []uint64
	label     labelSet
	value     dictionary.Value
	attribute []int32
}

type valueType struct{ typ, unit int64 }

// header is what the message says once; strings are pprof string indices.
type header struct {
	sampleTypes                                 []valueType
	samples                                     int
	comments                                    []uint64
	dropFrames, keepFrames, defaultType, docURL int64
	time, duration, period                      int64
	periodType                                  valueType
}

// retained is the memory that d holds on to, in bytes, but for what is small.
func (d *decoder) retained() int {
	size := d.tables.Retained() + d.samples.Retained() + 8*cap(d.strings) + 4*cap(d.stringIndices) + cap(d.roles) + 8*cap(d.locIDs) + 4*cap(d.stack)
	for _, k := range []*kind{&d.mappings, &d.locations, &d.functions} {
		size += 8*cap(k.positions) + 8*cap(k.idList) + 4*cap(k.ids.dense) + 4*cap(k.ids.sparse) + 4*cap(k.indices)
	}
	for _, s := range d.sheets[:cap(d.sheets)] {
		size += 4*cap(s.rows) + 4*cap(s.samples) + 8*cap(s.values)
	}
	t := &d.timed
	return size + 4*cap(t.rows) + 4*cap(t.samples) + 4*cap(t.counts) + 4*cap(t.events) + 8*cap(t.times) + 8*cap(t.values)
}

func (d *decoder) reset(data []byte) {
	d.data = data
	d.tables.Reset()
	d.samples.Reset()
	d.strings = d.strings[:0]
	for _, k := range []*kind{&d.mappings, &d.locations, &d.functions} {
		k.positions, k.idList = k.positions[:0], k.idList[:0]
	}
	d.mappings.name, d.locations.name, d.functions.name = "mapping", "location", "function"
	d.header = header{sampleTypes: d.header.sampleTypes[:0], comments: d.header.comments[:0]}
	for i := range d.sheets {
		d.sheets[i].reset()
	}
	d.sheets = d.sheets[:0]
	d.timed.reset()
	d.clamped = 0
}

var errEmpty = errors.New("pprof: the payload is empty")

// decode reads the payload. The entries that its samples reach go into dst.
func (d *decoder) decode(dst pprofile.ProfilesDictionary) error {
	if len(d.data) == 0 {
		return errEmpty
	}
	if err := d.readProfile(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	if err := d.checkEntries(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	dst.LocationTable().EnsureCapacity(len(d.locations.positions) + 1)
	dst.FunctionTable().EnsureCapacity(len(d.functions.positions) + 1)
	d.tables.Mirror(dst)
	if err := d.readSamples(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return d.tables.Err()
}

// readProfile reads the top level: what the message says once, and where the
// entries are.
func (d *decoder) readProfile() error {
	h := &d.header
	c := cursor{data: d.data, end: len(d.data)}
	for c.next() {
		switch c.field {
		case profileSampleType:
			if len(h.sampleTypes) == maxSampleTypes {
				return &LimitError{What: "pprof: sample types", Limit: maxSampleTypes}
			}
			m := c.message()
			h.sampleTypes = append(h.sampleTypes, readValueType(&m))
			if m.err != nil {
				return fmt.Errorf("sample_type[%d]: %w", len(h.sampleTypes)-1, m.err)
			}
		case profileSample:
			if h.samples++; h.samples > d.limits.Samples {
				return &LimitError{What: "pprof: samples", Limit: int64(d.limits.Samples)}
			}
			if c.message(); c.err != nil {
				return fmt.Errorf("sample[%d]: %w", h.samples-1, c.err)
			}
		case profileMapping:
			d.mappings.add(&c)
		case profileLocation:
			d.locations.add(&c)
		case profileFunction:
			d.functions.add(&c)
		case profileString:
			if c.message(); c.err != nil {
				return fmt.Errorf("string_table[%d]: %w", len(d.strings), c.err)
			}
			size := c.stop - c.start
			if len(d.strings) == 0 && size > 0 {
				return fmt.Errorf("string_table[0] is %.40q, not empty", d.data[c.start:c.stop])
			}
			if size > d.limits.StringLength {
				return &LimitError{
					What:  fmt.Sprintf("pprof: length in bytes of string_table[%d]", len(d.strings)),
					Limit: int64(d.limits.StringLength), Got: int64(size),
				}
			}
			d.strings = append(d.strings, position{uint32(c.start), uint32(c.stop)})
		case profileDropFrames:
			h.dropFrames = c.int()
		case profileKeepFrames:
			h.keepFrames = c.int()
		case profileTimeNanos:
			if h.time != 0 {
				return errors.New("time_nanos is there twice: these are several profiles, one after the other")
			}
			h.time = c.int()
		case profileDurationNanos:
			h.duration = c.int()
		case profilePeriodType:
			m := c.message()
			h.periodType = readValueType(&m)
			if m.err != nil {
				return fmt.Errorf("period_type: %w", m.err)
			}
		case profilePeriod:
			h.period = c.int()
		case profileComment:
			if h.comments = c.appendRepeated(h.comments, maxComments); len(h.comments) > maxComments {
				return &LimitError{What: "pprof: comments", Limit: maxComments}
			}
		case profileDefaultSampleType:
			h.defaultType = c.int()
		case profileDocURL:
			h.docURL = c.int()
		}
	}
	if c.err != nil {
		return fmt.Errorf("byte %d, after %s: %w", c.at, profileField(c.field), c.err)
	}
	d.stringIndices = zeroed(d.stringIndices, len(d.strings))
	d.roles = d.roles[:0]
	return d.checkHeader()
}

func (k *kind) add(c *cursor) {
	c.message()
	k.positions = append(k.positions, position{uint32(c.start), uint32(c.stop)})
}

func readValueType(c *cursor) (v valueType) {
	for c.next() {
		switch c.field {
		case valueTypeType:
			v.typ = c.int()
		case valueTypeUnit:
			v.unit = c.int()
		}
	}
	return v
}

func (d *decoder) checkHeader() error {
	h := &d.header
	for i, t := range h.sampleTypes {
		if err := d.checkStrings(t.typ, t.unit); err != nil {
			return fmt.Errorf("sample_type[%d]: %w", i, err)
		}
	}
	for i, c := range h.comments {
		if err := d.checkStrings(int64(c)); err != nil {
			return fmt.Errorf("comment[%d]: %w", i, err)
		}
	}
	for _, f := range []struct {
		name  string
		index int64
	}{
		{"drop_frames", h.dropFrames},
		{"keep_frames", h.keepFrames},
		{"default_sample_type", h.defaultType},
		{"doc_url", h.docURL},
		{"period_type.type", h.periodType.typ},
		{"period_type.unit", h.periodType.unit},
	} {
		if err := d.checkStrings(f.index); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if len(h.sampleTypes) == 0 && h.samples > 0 {
		return fmt.Errorf("there are %d samples and no sample_type", h.samples)
	}
	return nil
}

func (d *decoder) checkStrings(indices ...int64) error {
	for _, i := range indices {
		if i < 0 || i >= int64(len(d.strings)) {
			return fmt.Errorf("string index %d is not in string_table, which has %d entries", i, len(d.strings))
		}
	}
	return nil
}

// checkEntries reads the mappings, functions and locations to see that each is
// well formed, whether a sample reaches it or not.
func (d *decoder) checkEntries() error {
	var m mappingMessage
	for _, p := range d.mappings.positions {
		if err := d.readMapping(p, &m); err != nil {
			return d.mappings.wrap(err)
		}
		if err := d.checkStrings(m.filename, m.buildID); err != nil {
			return d.mappings.wrap(err)
		}
		if err := d.mappings.addID(m.id); err != nil {
			return err
		}
	}
	var f functionMessage
	for _, p := range d.functions.positions {
		if err := d.readFunction(p, &f); err != nil {
			return d.functions.wrap(err)
		}
		if err := d.checkStrings(f.name, f.systemName, f.filename); err != nil {
			return d.functions.wrap(err)
		}
		if err := d.functions.addID(f.id); err != nil {
			return err
		}
	}
	for _, k := range []*kind{&d.mappings, &d.functions} {
		if err := k.index(); err != nil {
			return err
		}
	}
	for i, p := range d.locations.positions {
		id, err := d.checkLocation(p)
		if err != nil {
			return fmt.Errorf("location[%d]: %w", i, err)
		}
		if err := d.locations.addID(id); err != nil {
			return err
		}
	}
	return d.locations.index()
}

func (k *kind) wrap(err error) error {
	return fmt.Errorf("%s[%d]: %w", k.name, len(k.idList), err)
}

func (k *kind) addID(id uint64) error {
	if id == 0 {
		return fmt.Errorf("%s[%d] has the id 0, which is reserved", k.name, len(k.idList))
	}
	k.idList = append(k.idList, id)
	return nil
}

func (k *kind) index() error {
	if n, ok := k.ids.reset(k.idList); !ok {
		return fmt.Errorf("%s[%d] has the id %d, as an earlier one has", k.name, n, k.idList[n])
	}
	k.indices = zeroed(k.indices, len(k.idList))
	return nil
}

type mappingMessage struct {
	id, start, limit, offset uint64
	filename, buildID        int64
	has                      [4]bool // functions, filenames, line numbers, inline frames
}

func (d *decoder) readMapping(p position, m *mappingMessage) error {
	*m = mappingMessage{}
	c := cursor{data: d.data, at: int(p.start), end: int(p.stop)}
	for c.next() {
		switch c.field {
		case mappingID:
			m.id = c.uint()
		case mappingMemoryStart:
			m.start = c.uint()
		case mappingMemoryLimit:
			m.limit = c.uint()
		case mappingFileOffset:
			m.offset = c.uint()
		case mappingFilename:
			m.filename = c.int()
		case mappingBuildID:
			m.buildID = c.int()
		case mappingHasFunctions, mappingHasFilenames, mappingHasLineNumbers, mappingHasInlineFrames:
			m.has[c.field-mappingHasFunctions] = c.uint() != 0
		}
	}
	return c.err
}

type functionMessage struct {
	id                         uint64
	name, systemName, filename int64
	startLine                  int64
}

func (d *decoder) readFunction(p position, f *functionMessage) error {
	*f = functionMessage{}
	c := cursor{data: d.data, at: int(p.start), end: int(p.stop)}
	for c.next() {
		switch c.field {
		case functionID:
			f.id = c.uint()
		case functionName:
			f.name = c.int()
		case functionSystemName:
			f.systemName = c.int()
		case functionFilename:
			f.filename = c.int()
		case functionStartLine:
			f.startLine = c.int()
		}
	}
	return c.err
}

type lineMessage struct {
	function     uint64
	line, column int64
}

func readLine(c *cursor) (l lineMessage) {
	for c.next() {
		switch c.field {
		case lineFunction:
			l.function = c.uint()
		case lineLine:
			l.line = c.int()
		case lineColumn:
			l.column = c.int()
		}
	}
	return l
}

func (d *decoder) checkLocation(p position) (id uint64, err error) {
	c := cursor{data: d.data, at: int(p.start), end: int(p.stop)}
	lines := 0
	for c.next() {
		switch c.field {
		case locationID:
			id = c.uint()
		case locationMapping, locationAddress, locationIsFolded:
			c.uint()
		case locationLine:
			m := c.message()
			l := readLine(&m)
			if c.err != nil || m.err != nil {
				return 0, fmt.Errorf("line[%d]: %w", lines, errors.Join(c.err, m.err))
			}
			if l.function == 0 || d.functions.ids.number(l.function) < 0 {
				return 0, fmt.Errorf("line[%d] has the function id %d, which no function has", lines, l.function)
			}
			lines++
		}
	}
	return id, c.err
}

// stringIndex is the index in the tables of string i of the payload.
func (d *decoder) stringIndex(i int64) int32 {
	if n := d.stringIndices[i]; n != 0 {
		return n - 1
	}
	n := d.tables.String(d.bytes(i))
	d.stringIndices[i] = n + 1
	return n
}

func (d *decoder) bytes(i int64) []byte {
	p := d.strings[i]
	return d.data[p.start:p.stop]
}

// locationIndex is the index in the tables of the location with the given
// number, which passed checkLocation.
func (d *decoder) locationIndex(number int32) int32 {
	if n := d.locations.indices[number]; n != 0 {
		return n - 1
	}
	p := d.locations.positions[number]
	c := cursor{data: d.data, at: int(p.start), end: int(p.stop)}
	l := &d.location
	l.Mapping, l.Address, l.Lines, l.Attributes = 0, 0, l.Lines[:0], l.Attributes[:0]
	mapping, folded := uint64(0), false
	for c.next() {
		switch c.field {
		case locationMapping:
			mapping = c.value
		case locationAddress:
			l.Address = c.value
		case locationIsFolded:
			folded = c.value != 0
		case locationLine:
			m := c.message()
			line := readLine(&m)
			l.Lines = append(l.Lines, dictionary.Line{
				Function: d.functionIndex(line.function), Line: line.line, Column: line.column,
			})
		}
	}
	l.Mapping = d.mappingIndex(mapping)
	if folded {
		l.Attributes = append(l.Attributes, d.flag(attrLocationIsFolded))
	}
	n := d.tables.Location(*l)
	d.locations.indices[number] = n + 1
	return n
}

func (d *decoder) functionIndex(id uint64) int32 {
	number := d.functions.ids.number(id)
	if n := d.functions.indices[number]; n != 0 {
		return n - 1
	}
	var f functionMessage
	_ = d.readFunction(d.functions.positions[number], &f) // read without error before
	n := d.tables.Function(dictionary.Function{
		Name:       d.stringIndex(f.name),
		SystemName: d.stringIndex(f.systemName),
		Filename:   d.stringIndex(f.filename),
		StartLine:  f.startLine,
	})
	d.functions.indices[number] = n + 1
	return n
}

// mappingIndex takes an id that no mapping has for none, as google/pprof does.
func (d *decoder) mappingIndex(id uint64) int32 {
	number := d.mappings.ids.number(id)
	if number < 0 {
		return 0
	}
	if n := d.mappings.indices[number]; n != 0 {
		return n - 1
	}
	var m mappingMessage
	_ = d.readMapping(d.mappings.positions[number], &m) // read without error before
	to := &d.mapping
	*to = dictionary.Mapping{
		MemoryStart: m.start, MemoryLimit: m.limit, FileOffset: m.offset,
		Filename:   d.stringIndex(m.filename),
		Attributes: to.Attributes[:0],
	}
	if id := d.tables.Valid(d.bytes(m.buildID)); len(id) > 0 {
		key := attrBuildIDGNU
		if isGoBuildID(id) {
			key = attrBuildIDGo
		}
		d.value = d.value[:0].AppendString(id)
		to.Attributes = append(to.Attributes, d.tables.Attribute(d.tables.StringOf(key), 0, d.value))
	}
	for i, has := range m.has {
		if has {
			to.Attributes = append(to.Attributes, d.flag(attrMappingHas[i]))
		}
	}
	n := d.tables.Mapping(*to)
	d.mappings.indices[number] = n + 1
	return n
}

// flag is the index of an attribute with the value true.
func (d *decoder) flag(key string) int32 {
	d.value = d.value[:0].AppendBool(true)
	return d.tables.Attribute(d.tables.StringOf(key), 0, d.value)
}

func (d *decoder) readSamples() error {
	types := len(d.header.sampleTypes)
	c := cursor{data: d.data, end: len(d.data)}
	n := 0
	for c.next() {
		if c.field != profileSample {
			continue
		}
		if err := d.readSample(c.message(), types); err != nil {
			if _, ok := errors.AsType[*LimitError](err); ok {
				return err
			}
			return fmt.Errorf("sample[%d]: %w", n, err)
		}
		n++
	}
	return nil
}

func (d *decoder) readSample(c cursor, types int) error {
	d.locIDs, d.values = d.locIDs[:0], d.values[:0]
	d.label.reset()
	for c.next() {
		switch c.field {
		case sampleLocation:
			d.locIDs = c.appendRepeated(d.locIDs, d.limits.StackDepth)
			if len(d.locIDs) > d.limits.StackDepth {
				return &LimitError{What: "pprof: locations of a sample", Limit: int64(d.limits.StackDepth)}
			}
		case sampleValue:
			if d.values = c.appendRepeated(d.values, types); len(d.values) > types {
				return fmt.Errorf("it has more values than the %d sample types", types)
			}
		case sampleLabel:
			m := c.message()
			l := readLabel(&m)
			if c.err != nil || m.err != nil {
				return fmt.Errorf("label[%d]: %w", len(d.label.all), errors.Join(c.err, m.err))
			}
			if len(d.label.all) >= d.limits.Labels {
				return &LimitError{What: "pprof: labels of a sample", Limit: int64(d.limits.Labels)}
			}
			d.label.all = append(d.label.all, l)
		}
	}
	if c.err != nil {
		return fmt.Errorf("byte %d: %w", c.at, c.err)
	}
	if len(d.values) != types {
		return fmt.Errorf("it has %d values for %d sample types", len(d.values), types)
	}
	d.stack = d.stack[:0]
	for i, id := range d.locIDs {
		number := d.locations.ids.number(id)
		if number < 0 {
			return fmt.Errorf("location_id[%d] is %d, which no location has", i, id)
		}
		d.stack = append(d.stack, d.locationIndex(number))
	}
	identity := identity{stack: d.tables.Stack(d.stack)}
	if len(d.label.all) > 0 {
		if err := d.readLabels(&identity); err != nil {
			return err
		}
	}
	sample := d.samples.Number(identity.stack, identity.set, identity.link)
	if d.tables.Err() != nil {
		return d.tables.Err()
	}
	if identity.timed {
		d.timed.add(sample, identity.time, d.values)
		return nil
	}
	return d.addValues(sample)
}

// identity is what tells the samples of a Profile apart, and the timestamp.
type identity struct {
	stack, set, link int32
	time             uint64
	timed            bool
}

// maxSheets bounds how often the values of one identity may overflow int64.
const maxSheets = 64

func (d *decoder) addValues(sample int32) error {
	for i := 0; ; i++ {
		if i == len(d.sheets) {
			if i == maxSheets {
				return &LimitError{What: "pprof: sums of equal samples, in multiples of int64", Limit: maxSheets}
			}
			if i < cap(d.sheets) {
				d.sheets = d.sheets[:i+1]
			} else {
				d.sheets = append(d.sheets, sheet{})
			}
		}
		if d.sheets[i].add(sample, d.values) {
			return nil
		}
	}
}

// sheet is a matrix of values: a row a sample identity, a column a sample type.
type sheet struct {
	rows    []int32 // by sample number: the row plus one
	samples []int32 // by row
	values  []int64
}

func (s *sheet) reset() {
	s.rows, s.samples, s.values = s.rows[:0], s.samples[:0], s.values[:0]
}

// add adds values to the row of sample. It changes nothing and returns false
// where a sum would overflow.
func (s *sheet) add(sample int32, values []uint64) bool {
	if int(sample) >= len(s.rows) {
		s.rows = grown(s.rows, int(sample)+1)
	}
	row := s.rows[sample]
	if row == 0 {
		s.samples = append(s.samples, sample)
		s.rows[sample] = int32(len(s.samples))
		for _, v := range values {
			s.values = append(s.values, int64(v))
		}
		return true
	}
	sums := s.values[int(row-1)*len(values):][:len(values)]
	for i, v := range values {
		if v := int64(v); v > 0 && sums[i] > math.MaxInt64-v || v < 0 && sums[i] < math.MinInt64-v {
			return false
		}
	}
	for i, v := range values {
		sums[i] += int64(v)
	}
	return true
}

// grown returns s with n elements, the new ones zero.
func grown(s []int32, n int) []int32 {
	old := len(s)
	for cap(s) < n {
		s = append(s[:cap(s)], 0)
	}
	s = s[:n]
	clear(s[old:])
	return s
}

// timeline holds the samples with a timestamp, in order.
type timeline struct {
	rows    []int32 // by sample number: the row plus one
	samples []int32 // by row
	counts  []int32 // by row: its events
	events  []int32 // by event: its row
	times   []uint64
	values  []int64 // by event, then sample type
}

func (t *timeline) reset() {
	t.rows, t.samples, t.counts = t.rows[:0], t.samples[:0], t.counts[:0]
	t.events, t.times, t.values = t.events[:0], t.times[:0], t.values[:0]
}

func (t *timeline) add(sample int32, time uint64, values []uint64) {
	if int(sample) >= len(t.rows) {
		t.rows = grown(t.rows, int(sample)+1)
	}
	row := t.rows[sample]
	if row == 0 {
		t.samples = append(t.samples, sample)
		t.counts = append(t.counts, 0)
		row = int32(len(t.samples))
		t.rows[sample] = row
	}
	t.counts[row-1]++
	t.events = append(t.events, row-1)
	t.times = append(t.times, time)
	for _, v := range values {
		t.values = append(t.values, int64(v))
	}
}
