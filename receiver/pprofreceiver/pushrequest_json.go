// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	// maxPushedJSON bounds how many braces and commas a PushRequest in JSON has: an
	// entry has at least one, and takes more memory than text.
	maxPushedJSON = 64 << 10

	// entryMemory is what an entry takes besides its text, in bytes, with the lists
	// that it is in as they grow.
	entryMemory = 192
)

func entriesOfJSON(message []byte) int {
	return bytes.Count(message, []byte("{")) + bytes.Count(message, []byte(","))
}

// memoryOfJSON is what readPushRequestJSON holds at most, in bytes.
func memoryOfJSON(message []byte) int64 {
	return int64(len(message)) + entryMemory*int64(min(entriesOfJSON(message), maxPushedJSON))
}

// readPushRequestJSON is readPushRequest for the JSON form of the message.
func readPushRequestJSON(message []byte) ([]pushedSeries, error) {
	if n := entriesOfJSON(message); n > maxPushedJSON {
		return nil, &pproftranslator.LimitError{What: "braces and commas", Limit: maxPushedJSON, Got: int64(n)}
	}
	var request struct {
		Series []struct {
			Labels []struct {
				Name  shortText `json:"name"`
				Value shortText `json:"value"`
			} `json:"labels"`
			Samples []struct {
				RawProfile base64Bytes `json:"rawProfile"`
				ProtoName  base64Bytes `json:"raw_profile"` // protobuf's JSON takes both
			} `json:"samples"`
		} `json:"series"`
	}
	if err := json.Unmarshal(message, &request); err != nil {
		if limit, over := errors.AsType[*pproftranslator.LimitError](err); over {
			return nil, limit
		}
		return nil, badRequest("not a PushRequest in JSON: " + jsonError(err))
	}
	var count pushedCount
	all := make([]pushedSeries, 0, min(len(request.Series), maxAttachments))
	for _, from := range request.Series {
		if err := count.addSeries(); err != nil {
			return nil, err
		}
		if err := count.addSamples(len(from.Samples)); err != nil {
			return nil, err
		}
		var series pushedSeries
		for _, l := range from.Labels {
			series.labels = append(series.labels, label{string(l.Name), string(l.Value)})
		}
		for _, sample := range from.Samples {
			raw := sample.RawProfile
			if raw == nil {
				raw = sample.ProtoName
			}
			series.samples = append(series.samples, raw)
		}
		all = append(all, series)
	}
	return all, nil
}

// shortText is a name or a value of a label, whose size is checked before it is
// copied.
type shortText string

func (s *shortText) UnmarshalJSON(quoted []byte) error {
	const longest = int64(len(`\u0000`) * maxAttributeLength)
	if size := int64(len(quoted) - len(`""`)); size > longest {
		return &pproftranslator.LimitError{What: "labels: size in bytes of a name or a value, as JSON", Limit: longest, Got: size}
	}
	return json.Unmarshal(quoted, (*string)(s))
}

// base64Bytes are bytes as protobuf's JSON has them: in either alphabet of base64,
// padded or not. Nothing but they is allocated.
type base64Bytes []byte

func (b *base64Bytes) UnmarshalJSON(quoted []byte) error {
	text, isString := bytes.CutPrefix(quoted, []byte(`"`))
	if !isString { // null, which is nothing, or an error
		return json.Unmarshal(quoted, new(string))
	}
	text = bytes.TrimSuffix(text, []byte(`"`))
	// Room for one byte more than there can be, so that the end is seen.
	decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(text))+1)
	n, err := io.ReadFull(base64.NewDecoder(base64.RawStdEncoding, &base64Text{rest: text}), decoded)
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return errBase64
	}
	*b = decoded[:n:n]
	return nil
}

var errBase64 = errors.New("a profile is not base64")

// base64Text reads what is between the quotes of a JSON string: without its escapes
// and its padding, and in the standard alphabet of base64.
type base64Text struct{ rest []byte }

func (t *base64Text) Read(p []byte) (n int, err error) {
	for ; n < len(p) && len(t.rest) > 0; n++ {
		c, size := t.next()
		switch c {
		case '-':
			c = '+'
		case '_':
			c = '/'
		case '=':
			if !t.isPadding() {
				return n, errBase64
			}
			t.rest = nil
			return n, io.EOF
		}
		p[n] = c
		t.rest = t.rest[size:]
	}
	if len(t.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// next is the first character, and how many bytes it takes. What base64 has not is
// 0.
func (t *base64Text) next() (c byte, size int) {
	const escape = len(`\u0000`)
	switch rest := t.rest; {
	case rest[0] != '\\':
		return rest[0], 1
	case len(rest) > 1 && rest[1] == '/':
		return '/', 2
	case len(rest) >= escape && rest[1] == 'u':
		if code, err := strconv.ParseUint(string(rest[2:escape]), 16, 7); err == nil {
			return byte(code), escape
		}
	}
	return 0, 1
}

// isPadding tells whether nothing but padding is left.
func (t *base64Text) isPadding() bool {
	for left := *t; len(left.rest) > 0; {
		c, size := left.next()
		if c != '=' {
			return false
		}
		left.rest = left.rest[size:]
	}
	return true
}
