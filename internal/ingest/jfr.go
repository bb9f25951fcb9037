// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// JFR is how recordings of JVMs are translated. They tell profile type and temporality
// themselves.
type JFR struct {
	// Timestamps keeps the time of each event. Otherwise equal samples of a chunk are summed.
	Timestamps bool `mapstructure:"timestamps"`
}

// Recording has the client's information about a recording.
type Recording struct {
	// Expected is set if the client says that the payload is a recording.
	Expected bool
	// Labels are the labels of contexts, a LabelsSnapshot of Pyroscope; may be compressed.
	Labels []byte
	// SampleRate is the number of samples a second, or 0.
	SampleRate float64
	// Chunks are those of a file, of which the next one is the payload; may be nil.
	Chunks *jfrtranslator.Reader
}

// Chunks returns the chunks of a recording in a file.
func (in *Ingester) Chunks(from io.ReaderAt, size int64) *jfrtranslator.Reader {
	u := in.unmarshaler(in.limit())
	return u.NewReader(from, size)
}

func (in *Ingester) unmarshaler(limit int) jfrtranslator.Unmarshaler {
	return jfrtranslator.Unmarshaler{ChunkSize: limit, Timestamps: in.settings.JFR.Timestamps}
}

// workOfJFR is how many bytes of memory a byte of a recording or of folded stacks may take.
const workOfJFR = 16

// reserveMost reserves so many bytes, or less if a payload may never have as much.
func reserveMost(bytes int64, reserve func(bytes int64) error) (int64, error) {
	for {
		err := reserve(bytes)
		if _, tooLarge := errors.AsType[*pproftranslator.LimitError](err); !tooLarge {
			return bytes, err
		}
		bytes = bytes / 8 * 7
	}
}

// translateJFR translates the recording p.Data, or the next chunk of p.Recording.Chunks. It replaces p.Data by its
// hash, which profile IDs are made of: a recording has many scopes.
func (in *Ingester) translateJFR(t *Prepared, p *Payload, limit int, reserve func(bytes int64) error) (err error) {
	settings := in.settings.JFR
	if settings == nil || p.Transform != nil {
		return ErrJFR
	}
	labels, err := Decompress(p.Recording.Labels, limit, reserve)
	if err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	if Compression(p.Recording.Labels) != "" {
		reserve = beyond(int64(cap(labels)), reserve)
	}
	u := in.unmarshaler(limit)
	u.Labels, u.SampleRate = labels, p.Recording.SampleRate
	translate, size := func(memory int64) (pprofile.Profiles, jfrtranslator.Report, error) {
		return u.UnmarshalReport(p.Data, memory)
	}, len(p.Data)
	chunks := p.Recording.Chunks
	if chunks != nil {
		translate, size = chunks.Next, limit
	}
	memory, err := reserveMost(int64(size)*workOfJFR+1<<20, reserve)
	if err != nil {
		return err
	}
	profiles, report, err := translate(memory)
	if over, isLimit := errors.AsType[*jfrtranslator.LimitError](err); isLimit {
		return &pproftranslator.LimitError{What: over.What, Limit: over.Limit}
	}
	if err != nil {
		return err
	}
	if chunks != nil {
		p.Data, _ = chunks.Chunk()
		t.size = len(p.Data)
	}
	t.profiles = profiles
	t.report = pproftranslator.Report{InvalidStrings: report.InvalidStrings, NegativeTimes: report.NegativeValues, Bytes: report.Bytes}
	hash := sha256.Sum256(p.Data)
	p.Data = hash[:]
	p.ProfileType, p.ProfileTypeOf, p.Temporality, p.ProfileAttributes = "", nil, nil, nil
	return nil
}
