// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Profiles decodes the record. The result refers to nothing of the record. The error is an
// *Error.
func (r *Record) Profiles() (pprofile.Profiles, error) {
	if err := r.Fits(1); err != nil {
		return pprofile.NewProfiles(), err
	}
	pd, err := r.decode()
	if err != nil {
		return pprofile.NewProfiles(), r.Fail(err)
	}
	return pd, nil
}

func (r *Record) decode() (pprofile.Profiles, error) {
	switch r.Encoding {
	case OTLPJSON:
		if len(r.Data) > len("{}") && !bytes.Contains(r.Data, []byte(`"resource`)) && !bytes.Contains(r.Data, []byte(`"dictionary"`)) {
			if known := pproftranslator.Lookalike(r.Data); known != nil {
				return pprofile.Profiles{}, fmt.Errorf("is not a profile: %w", known)
			}
			return pprofile.Profiles{}, errors.New("is JSON without resourceProfiles: must be OTLP/JSON profiles")
		}
		return (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(r.Data)
	case Folded:
		pd, err := (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles(r.Data)
		if err == nil {
			setDelta(pd)
		}
		return pd, err
	case Pprof, legacyPprof:
		return r.decodePprof()
	case JFR, GoTrace, Script:
		return r.translated, nil
	default:
		return (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(r.Data)
	}
}

// setDelta says that the values of folded stacks, which have no time, were counted during an interval: such
// profiles are summed.
func setDelta(pd pprofile.Profiles) {
	dict := pd.Dictionary()
	dict.StringTable().Append(attrkey.Temporality)
	attribute := dict.AttributeTable().AppendEmpty()
	attribute.SetKeyStrindex(int32(dict.StringTable().Len() - 1))
	attribute.Value().SetStr("delta")
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).AttributeIndices().Append(int32(dict.AttributeTable().Len() - 1))
}

// Fits returns an *Error if work on the record that takes the given multiple of its decoded size
// could exceed the memory limit.
func (r *Record) Fits(multiple int64) error {
	// No message takes more for each of its bytes, and small ones cannot nest too deep for the stack.
	const maxPerByte, small = 64, 256 << 10
	limit := r.options.maxDecoded()
	if r.stored {
		limit = max(limit, segment.MaxRecordMemory*multiple)
	}
	if n := int64(len(r.Data)); n > 0 && n <= small && n*maxPerByte*multiple <= limit {
		return nil
	}
	size, err := r.DecodedSize()
	if err == nil && size > limit/multiple {
		err = fmt.Errorf("the record has %s and takes about %s of memory, more than %s: %s",
			mebibytes(int64(len(r.Data))), mebibytes(size*multiple), mebibytes(limit), r.options.raise())
	}
	if err != nil {
		return r.Fail(err)
	}
	return nil
}

func (r *Record) decodePprof() (pprofile.Profiles, error) {
	data := r.Data
	if r.Encoding == legacyPprof {
		message, err := pproftranslator.ConvertLegacy(data)
		if err != nil {
			return pprofile.Profiles{}, err
		}
		data = message
	}
	limits := pproftranslator.Limits{DecompressedSize: int(r.options.maxRecord()), Memory: r.options.MaxMemory}
	return (&pproftranslator.Unmarshaler{Limits: limits}).UnmarshalProfiles(data)
}

// DecodedSize estimates the memory that the decoded record takes, before it is decoded. Of
// pprofs the translator limits it. The error concerns a record that cannot be decoded.
func (r *Record) DecodedSize() (int64, error) {
	if r.size > 0 {
		return r.size, nil
	}
	size, err := r.estimate()
	if err == nil {
		r.size = size
	}
	return size, err
}

func (r *Record) estimate() (int64, error) {
	const element = 128 // bytes of an object, at least
	switch r.Encoding {
	case OTLPProto:
		var m wire.Meter
		_, err := m.Write(r.Data)
		return m.Size, err
	case OTLPJSON:
		var m wire.JSONMeter
		_, err := m.Write(r.Data)
		return m.Size, err
	case Folded:
		return int64(dictionary.ValidSize(r.Data) + element*bytes.Count(r.Data, []byte("\n")) + 32*bytes.Count(r.Data, []byte(";"))), nil
	case legacyPprof:
		return pproftranslator.LegacyMemory(r.Data), nil
	default:
		return 2 * int64(len(r.Data)), nil
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
