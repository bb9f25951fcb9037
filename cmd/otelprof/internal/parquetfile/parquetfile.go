// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package parquetfile writes the samples of profiles as rows of an Apache Parquet file, which SQL engines read.
//
// A row is one sample, with the value, the stack as a list of function names, and the attributes as maps. The columns
// are those of Row; they have the names that OTLP and otelprof ls give them. Rows are in the order of the payloads. The
// Writer holds one row group in memory, which is smaller than the limit that it gets.
package parquetfile

import (
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	pqzstd "github.com/parquet-go/parquet-go/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// Row is a sample. Times beyond the year 2262 become the last that an int64 holds in nanoseconds.
type Row struct {
	// Time is the start of the profile in microseconds, as not all engines read nanoseconds; null if it has none.
	Time         int64 `parquet:"time,optional,timestamp(microsecond),delta"`
	TimeUnixNano int64 `parquet:"time_unix_nano,optional,delta"`
	DurationNano int64 `parquet:"duration_nano"`

	Service    string `parquet:"service,dict"`
	Type       string `parquet:"type,dict"` // of the profile, such as heap
	SampleType string `parquet:"sample_type,dict"`
	Unit       string `parquet:"unit,dict"`
	PeriodType string `parquet:"period_type,dict"`
	PeriodUnit string `parquet:"period_unit,dict"`
	Period     int64  `parquet:"period"`
	Snapshot   bool   `parquet:"snapshot"` // must not be summed over time

	Value int64    `parquet:"value"` // the sum of the values of the sample, at most the largest int64
	Stack []string `parquet:"stack,list" parquet-element:",dict"`
	// Timestamps and their Values are empty if the sample has no timestamps.
	Timestamps []int64 `parquet:"timestamps_unix_nano,list" parquet-element:",delta"`
	Values     []int64 `parquet:"timestamp_values,list"`

	ResourceAttributes map[string]string `parquet:"resource_attributes" parquet-key:",dict" parquet-value:",dict"`
	Attributes         map[string]string `parquet:"attributes" parquet-key:",dict" parquet-value:",dict"` // of the Profile and the sample

	TraceID string `parquet:"trace_id,optional,dict"` // in hexadecimal digits; null without a link
	SpanID  string `parquet:"span_id,optional,dict"`
}

const (
	batch  = 256       // rows that parquet-go gets at once
	window = 512 << 10 // of zstd, twice a page

	// Parts of the memory limit: of a row group, and of the dictionary of one of the columns.
	groupShare      = 16
	dictionaryShare = 64
)

// codec is zstd with less memory: that of parquet-go keeps two windows of 16 MiB.
type codec struct {
	pqzstd.Codec
	encoder *zstd.Encoder
}

func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}

// Writer writes a Parquet file.
type Writer struct {
	file  *parquet.GenericWriter[Row]
	limit int64 // of a row group in bytes
	start int64 // of the row group in the file
	rows  []Row
	names []string // of the stacks of rows
}

// NewWriter returns a Writer of a file that the caller closes. maxMemory, in bytes, bounds what the row groups take.
func NewWriter(w io.Writer, maxMemory int64) *Writer {
	encoder, err := zstd.NewWriter(nil, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		panic(err) // the options are constant
	}
	file := parquet.NewGenericWriter[Row](w, parquet.Compression(&codec{encoder: encoder}), parquet.DictionaryMaxBytes(maxMemory/dictionaryShare))
	return &Writer{file: file, limit: maxMemory / groupShare, rows: make([]Row, 0, batch)}
}

// Close writes the end of the file.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.file.Close()
}

// flush writes the rows, and the row group if it is large enough.
func (w *Writer) flush() error {
	if _, err := w.file.Write(w.rows); err != nil {
		return err
	}
	clear(w.rows)
	w.rows, w.names = w.rows[:0], w.names[:0]
	if size := w.file.Size(); size-w.start >= w.limit {
		if err := w.file.Flush(); err != nil {
			return err
		}
		w.start = w.file.Size()
	}
	return nil
}

// Add adds the samples of a payload that query.Resolve returned, and completes its dictionary.
func (w *Writer) Add(pd pprofile.Profiles) error {
	addZeroValues(pd.Dictionary())
	p := payload{dict: pd.Dictionary(), frames: make([][]string, pd.Dictionary().LocationTable().Len())}
	for _, rp := range pd.ResourceProfiles().All() {
		resource := rp.Resource().Attributes()
		p.row.ResourceAttributes = textsOf(resource)
		p.row.Service = p.row.ResourceAttributes["service.name"]
		for _, sp := range rp.ScopeProfiles().All() {
			types := sampletypes.Of(sp, p.text)
			p.row.Type = dictionary.ValidUTF8(sampletypes.ProfileType(sp.Scope().Attributes(), types))
			for i, profile := range sp.Profiles().All() {
				p.startProfile(profile, types[i])
				for _, sample := range profile.Samples().All() {
					if err := w.add(&p, sample); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
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
	if dict.AttributeTable().Len() == 0 {
		dict.AttributeTable().AppendEmpty()
	}
}

func (w *Writer) add(p *payload, sample pprofile.Sample) error {
	row := p.row
	p.fill(&row, sample)
	start := len(w.names)
	for _, location := range p.dict.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
		if p.frames[location] == nil {
			p.frames[location] = query.FrameNames(p.dict, location)
		}
		w.names = append(w.names, p.frames[location]...)
	}
	row.Stack = w.names[start:len(w.names):len(w.names)]
	w.rows = append(w.rows, row)
	if len(w.rows) < batch {
		return nil
	}
	return w.flush()
}

// payload turns samples into rows.
type payload struct {
	dict   pprofile.ProfilesDictionary
	frames [][]string // names by location, nil for those that no sample had yet
	row    Row        // with the columns that the samples of a Profile have in common

	profile pcommon.Int32Slice // attributes of the Profile
	sample  []int32            // attributes of the last sample, whose map is in row
}

func (p *payload) text(i int32) string { return dictionary.ValidString(p.dict.StringTable(), i) }

func (p *payload) startProfile(profile pprofile.Profile, t sampletypes.Type) {
	nanoseconds := int64(min(uint64(profile.Time()), math.MaxInt64))
	p.row.Time, p.row.TimeUnixNano = nanoseconds/1000, nanoseconds
	p.row.DurationNano = int64(min(profile.DurationNano(), math.MaxInt64))
	p.row.SampleType, p.row.Unit = t.Type, t.Unit
	p.row.PeriodType, p.row.PeriodUnit = p.text(profile.PeriodType().TypeStrindex()), p.text(profile.PeriodType().UnitStrindex())
	p.row.Period = profile.Period()
	p.row.Snapshot = sampletypes.IsSnapshot(p.dict, profile, sampletypes.SnapshotSampleTypes)
	p.profile, p.sample, p.row.Attributes = profile.AttributeIndices(), nil, nil
}

// fill sets the columns of a sample but the stack.
func (p *payload) fill(row *Row, sample pprofile.Sample) {
	row.Value = sampletypes.ValueOf(sample)
	if n := sample.TimestampsUnixNano().Len(); n > 0 {
		row.Timestamps = make([]int64, n)
		for i, t := range sample.TimestampsUnixNano().All() {
			row.Timestamps[i] = int64(min(t, math.MaxInt64))
		}
		row.Values = sample.Values().AsRaw()
		if len(row.Values) == 0 {
			row.Values = slices.Repeat([]int64{1}, n)
		}
	}
	if indices := sample.AttributeIndices().AsRaw(); p.row.Attributes == nil || !slices.Equal(indices, p.sample) {
		p.row.Attributes, p.sample = make(map[string]string, p.profile.Len()+len(indices)), indices
		for _, i := range p.profile.All() {
			p.addAttribute(i)
		}
		for _, i := range indices {
			p.addAttribute(i)
		}
	}
	row.Attributes = p.row.Attributes
	if i := int(sample.LinkIndex()); i < p.dict.LinkTable().Len() {
		link := p.dict.LinkTable().At(i)
		row.TraceID, row.SpanID = link.TraceID().String(), link.SpanID().String() // "" if they are zero
	}
}

func (p *payload) addAttribute(i int32) {
	a := p.dict.AttributeTable().At(int(i))
	if key := p.text(a.KeyStrindex()); key != attrkey.Processes {
		p.row.Attributes[key] = dictionary.ValidUTF8(a.Value().AsString())
	}
}

func textsOf(attributes pcommon.Map) map[string]string {
	texts := make(map[string]string, attributes.Len())
	for key, value := range attributes.All() {
		texts[dictionary.ValidUTF8(key)] = dictionary.ValidUTF8(value.AsString())
	}
	return texts
}
