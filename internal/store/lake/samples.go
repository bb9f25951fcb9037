// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"cmp"
	"io"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Sample is a row of the table of samples.
type Sample struct {
	// Time is the start of the profile in microseconds, as not all engines read nanoseconds; null if it has none.
	Time         int64 `parquet:"time,optional,timestamp(microsecond),dict"`
	TimeUnixNano int64 `parquet:"time_unix_nano,optional,dict"`
	DurationNano int64 `parquet:"duration_nano"`

	Profile

	Value int64 `parquet:"value"` // the sum of the values of the sample, at most the largest int64
	// Function is the innermost function of the stack, which engines read faster than the list; "" without one.
	Function string `parquet:"function,dict"`
	// Stack has the names of the functions, the innermost first. The lists after it have an element for each of these: "" and 0 are unknown.
	Stack []string `parquet:"stack,list" parquet-element:",dict"`
	Files []string `parquet:"stack_files,list" parquet-element:",dict"`
	Lines []int64  `parquet:"stack_lines,list" parquet-element:",dict"`
	// Inlined is set for a function that was inlined into the next one.
	Inlined []bool `parquet:"stack_inlined,list"`
	// BuildIDs are those of the programs and libraries that have the functions.
	BuildIDs []string `parquet:"stack_build_ids,list" parquet-element:",dict"`
	// Timestamps and their Values are empty if the sample has no timestamps.
	Timestamps []int64 `parquet:"timestamps_unix_nano,list" parquet-element:",delta"`
	Values     []int64 `parquet:"timestamp_values,list"`

	Attributes map[string]string `parquet:"attributes" parquet-key:",dict" parquet-value:",dict"` // of the Profile and the sample

	TraceID string `parquet:"trace_id,optional,dict"` // in hexadecimal digits; null without a link
	SpanID  string `parquet:"span_id,optional,dict"`
}

// frames are the functions of a location, or of the locations of rows that were not written yet.
type frames struct {
	names, files, buildIDs []string
	lines                  []int64
	inlined                []bool
}

func (f *frames) add(other *frames) {
	f.names, f.files, f.buildIDs = append(f.names, other.names...), append(f.files, other.files...), append(f.buildIDs, other.buildIDs...)
	f.lines, f.inlined = append(f.lines, other.lines...), append(f.inlined, other.inlined...)
}

func (f *frames) reset() {
	f.names, f.files, f.buildIDs, f.lines, f.inlined = f.names[:0], f.files[:0], f.buildIDs[:0], f.lines[:0], f.inlined[:0]
}

// Samples writes the table of samples.
type Samples struct {
	*table[Sample]

	waiting frames // of the rows that were not given to the file yet
}

// NewSamples returns a writer into a file that the caller closes. maxMemory, in bytes, bounds what the row groups take.
func NewSamples(w io.Writer, maxMemory int64) *Samples {
	return &Samples{table: newTable[Sample](w, SamplesDir, maxMemory, newCodec())}
}

// Close writes the end of the file.
func (s *Samples) Close() error { return s.close() }

// Add adds the samples of a valid payload without string references, and completes its dictionary. Rows are in the order of their stacks, so
// that equal ones are next to each other: the file is smaller by a factor of 2.
func (s *Samples) Add(pd pprofile.Profiles) error {
	addZeroValues(pd.Dictionary())
	p := sampled{locations: make([]*frames, pd.Dictionary().LocationTable().Len())}
	var profiles []profileOfSamples
	var order []sampleOfStack
	_ = p.each(pd, func(profile pprofile.Profile) error {
		for i, sample := range profile.Samples().All() {
			order = append(order, sampleOfStack{sample.StackIndex(), int32(len(profiles)), int32(i)}) // #nosec G115 -- a payload has fewer
		}
		profiles = append(profiles, profileOfSamples{profile, p.rowOf(profile)})
		return nil
	})
	slices.SortFunc(order, func(a, b sampleOfStack) int {
		return cmp.Or(cmp.Compare(a.stack, b.stack), cmp.Compare(a.profile, b.profile), cmp.Compare(a.sample, b.sample))
	})
	for _, at := range order {
		of := &profiles[at.profile]
		if err := s.addSample(&p, of, of.profile.Samples().At(int(at.sample))); err != nil {
			return err
		}
	}
	return nil
}

// sampleOfStack is the place of a sample in a payload.
type sampleOfStack struct{ stack, profile, sample int32 }

// profileOfSamples is a Profile with the columns that its samples have in common.
type profileOfSamples struct {
	profile pprofile.Profile
	row     Sample
}

// addZeroValues adds the zero value, which index 0 means, to empty tables.
func addZeroValues(dict pprofile.ProfilesDictionary) {
	if dict.StackTable().Len() == 0 {
		dict.StackTable().AppendEmpty()
	}
	if dict.LocationTable().Len() == 0 {
		dict.LocationTable().AppendEmpty()
	}
	if dict.FunctionTable().Len() == 0 {
		dict.FunctionTable().AppendEmpty()
	}
}

func (s *Samples) addSample(p *sampled, of *profileOfSamples, sample pprofile.Sample) error {
	row := of.row
	p.fill(&row, of.profile, sample)
	start := len(s.waiting.names)
	for _, location := range p.dict.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
		if p.locations[location] == nil {
			p.locations[location] = p.framesOf(location)
		}
		s.waiting.add(p.locations[location])
	}
	row.Stack, row.Files, row.BuildIDs = s.waiting.names[start:], s.waiting.files[start:], s.waiting.buildIDs[start:]
	row.Lines, row.Inlined = s.waiting.lines[start:], s.waiting.inlined[start:]
	if len(row.Stack) > 0 {
		row.Function = row.Stack[0]
	}
	written, err := s.add(&row)
	if written {
		s.waiting.reset()
	}
	return err
}

// sampled turns the samples of a payload into rows.
type sampled struct {
	payload

	locations []*frames // nil for those that no sample had yet
}

// rowOf returns the columns that the samples of a Profile have in common. Attributes are those of samples without any.
func (p *sampled) rowOf(profile pprofile.Profile) Sample {
	start := nanoseconds(uint64(profile.Time()))
	row := Sample{Time: start / 1000, TimeUnixNano: start, DurationNano: nanoseconds(profile.DurationNano()), Profile: p.common}
	row.Attributes = make(map[string]string, profile.AttributeIndices().Len())
	p.addAttributes(row.Attributes, profile.AttributeIndices().AsRaw())
	return row
}

// fill sets the columns of a sample but the stack.
func (p *sampled) fill(row *Sample, profile pprofile.Profile, sample pprofile.Sample) {
	row.Value = sampletypes.ValueOf(sample)
	if n := sample.TimestampsUnixNano().Len(); n > 0 {
		row.Timestamps = make([]int64, n)
		for i, t := range sample.TimestampsUnixNano().All() {
			row.Timestamps[i] = nanoseconds(t)
		}
		row.Values = sample.Values().AsRaw()
		if len(row.Values) == 0 {
			row.Values = slices.Repeat([]int64{1}, n)
		}
	}
	if indices := sample.AttributeIndices(); indices.Len() > 0 {
		row.Attributes = make(map[string]string, profile.AttributeIndices().Len()+indices.Len())
		p.addAttributes(row.Attributes, profile.AttributeIndices().AsRaw())
		p.addAttributes(row.Attributes, indices.AsRaw())
	}
	if i := int(sample.LinkIndex()); i < p.dict.LinkTable().Len() {
		link := p.dict.LinkTable().At(i)
		row.TraceID, row.SpanID = link.TraceID().String(), link.SpanID().String() // "" if they are zero
	}
}

// framesOf returns the functions of a location: one for each line, or one without.
func (p *sampled) framesOf(location int32) *frames {
	l := p.dict.LocationTable().At(int(location))
	f := &frames{names: dictionary.FrameNames(p.dict, location)}
	n := len(f.names)
	f.files, f.lines, f.inlined = make([]string, n), make([]int64, n), make([]bool, n)
	f.buildIDs = slices.Repeat([]string{p.buildID(l.MappingIndex())}, n)
	for i, line := range l.Lines().All() {
		f.files[i] = p.text(p.dict.FunctionTable().At(int(line.FunctionIndex())).FilenameStrindex())
		f.lines[i], f.inlined[i] = line.Line(), i+1 < n
	}
	return f
}

// buildIDKeys are the attributes of a mapping that may have its build ID, the first of which counts.
var buildIDKeys = []string{
	string(semconv.ProcessExecutableBuildIDGNUKey), string(semconv.ProcessExecutableBuildIDGoKey), string(semconv.ProcessExecutableBuildIDHtlhashKey),
}

func (p *sampled) buildID(mapping int32) string {
	if mapping == 0 || int(mapping) >= p.dict.MappingTable().Len() {
		return ""
	}
	found, best := "", len(buildIDKeys)
	for _, i := range p.dict.MappingTable().At(int(mapping)).AttributeIndices().All() {
		if i <= 0 || int(i) >= p.dict.AttributeTable().Len() {
			continue
		}
		a := p.dict.AttributeTable().At(int(i))
		if at := slices.Index(buildIDKeys, p.text(a.KeyStrindex())); at >= 0 && at < best {
			found, best = dictionary.ValidUTF8(a.Value().AsString()), at
		}
	}
	return found
}
