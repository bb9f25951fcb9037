// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Limits of one request.
const (
	// MaxEntries is how many profiles or series a request may hold, how many attributes
	// it may set for one, and how many parameters its query may have.
	MaxEntries = 256

	// MaxAttributeLength bounds a name or value that a request sets, in bytes.
	MaxAttributeLength = 64 << 10

	// maxDescription bounds the attributes of all profiles of a request, in bytes.
	// Attributes count once for each profile that gets them.
	maxDescription = 16 << 20

	// MaxDocument bounds a part that describes profiles in JSON, in bytes, and
	// maxObjects its braces: one for each sample type of a profile.
	MaxDocument = 1 << 20
	maxObjects  = 1 + 1024

	maxParts = 2 * MaxEntries // of a form
)

// Request is a request whose body counts towards max_in_flight. A Protocol may read it again, if there was no memory for all that
// it needs: the body is read from the client once.
type Request struct {
	*http.Request

	// ResourceAttributes are those of the configuration. The request's override them.
	ResourceAttributes map[string]string

	// AuthParameters are query parameters that belong to the authenticator.
	AuthParameters []string

	MediaType string // of the body
	// withoutBreaks: the body has no line break, but the media type of curl -d, which removes them.
	withoutBreaks bool

	boundary string // of a form
	encoding string // "" if the body has no Content-Encoding
	limit    int64  // bytes of all profiles, decompressed
	lease    *budget.Lease
	body     []byte // as sent, once it was read and until its profiles are translated
}

func (s *Server) newRequest(r *http.Request) *Request {
	request := &Request{
		Request:            r,
		ResourceAttributes: s.settings.ResourceAttributes,
		encoding:           strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ","))),
		limit:              int64(s.config.MaxDecompressedSize),
		lease:              s.settings.InFlight.Lease(inFlightWait),
	}
	if mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil {
		request.MediaType, request.boundary = mediaType, parameters["boundary"]
	}
	if request.encoding == "identity" {
		request.encoding = ""
	}
	if auth := s.config.HTTP.Auth.Get(); auth != nil {
		request.AuthParameters = auth.RequestParameters
	}
	return request
}

// Query parses the query. Errors do not contain values, which may be secret.
func (r *Request) Query() (url.Values, error) {
	if err := checkCount("query: parameters", 1+strings.Count(r.URL.RawQuery, "&")); err != nil {
		return nil, err
	}
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, malformed("query: malformed, want name=value pairs, percent-encoded and joined by &")
	}
	return parameters, nil
}

// Profile reads a body that is one profile. It may be compressed; if so, it has the
// compression that Content-Encoding states.
func (r *Request) Profile() ([]byte, error) {
	if r.body == nil {
		body, err := ingest.ReadAll(r.Context(), r.Body, r.ContentLength, r.lease)
		if err != nil {
			return nil, bodyError(r.Context(), err)
		}
		r.body = body
		r.withoutBreaks = r.MediaType == mediaTypeQuery && !bytes.ContainsAny(body, "\r\n")
	}
	body := r.body
	if len(body) == 0 {
		return nil, malformed("body: empty, want a profile")
	}
	if r.encoding != "" && ingest.Compression(body) != r.encoding {
		return nil, malformed("body: not %s, although Content-Encoding says so", r.encoding)
	}
	return body, nil
}

// Message reads a body that holds profiles and removes its Content-Encoding, but no
// other compression.
func (r *Request) Message() ([]byte, error) {
	body, err := r.Profile()
	if err != nil {
		return nil, err
	}
	if r.encoding != "" {
		if body, err = ingest.Decompress(r.lease, body, int(r.limit)); err != nil {
			return nil, bodyError(r.Context(), err)
		}
	}
	return body, nil
}

// Reserve takes bytes for a copy of parts of the body, until its profiles are translated.
func (r *Request) Reserve(bytes int64) error {
	if err := r.lease.Take(bytes); err != nil {
		return bodyError(r.Context(), err)
	}
	return nil
}

// bodyError says that err concerns the body, unless the client disconnected.
func bodyError(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = errors.Join(ctx.Err(), err)
	}
	return fmt.Errorf("body: %w", err)
}

// Part is one part of a form.
type Part struct {
	Name, File string // of the field, and of the file, which may be empty
	Body       []byte
}

// Form reads the parts of a form.
func (r *Request) Form() ([]Part, error) {
	if r.MediaType != mediaTypeForm || r.boundary == "" {
		return nil, unsupported("Content-Type: must be %s with a boundary", mediaTypeForm)
	}
	message, err := r.Message()
	if err != nil {
		return nil, err
	}
	if err := r.Reserve(int64(len(message))); err != nil { // for copies of its parts
		return nil, err
	}
	reader := multipart.NewReader(bytes.NewReader(message), r.boundary)
	var parts []Part
	for {
		next, err := reader.NextRawPart()
		if err == io.EOF { //nolint:errorlint // the end, as documented
			return parts, nil
		}
		if len(parts) == maxParts {
			return nil, &pproftranslator.LimitError{What: "body: parts", Limit: maxParts}
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(next)
		}
		if err != nil { // which may quote a header
			return nil, malformed("body: not a form with the boundary that Content-Type states, or cut short")
		}
		// Copies, since FormName and FileName refer to the whole header.
		parts = append(parts, Part{Name: strings.Clone(next.FormName()), File: strings.Clone(next.FileName()), Body: content})
	}
}

// JSON decodes a part that describes profiles.
func (p *Part) JSON(into any) error {
	if len(p.Body) > MaxDocument {
		return &pproftranslator.LimitError{What: fmt.Sprintf("part %q: size in bytes", p.Name), Limit: MaxDocument, Got: int64(len(p.Body))}
	}
	if n := bytes.Count(p.Body, []byte("{")); n > maxObjects {
		return &pproftranslator.LimitError{What: fmt.Sprintf("part %q: braces", p.Name), Limit: maxObjects, Got: int64(n)}
	}
	if err := decodeJSON(p.Body, into); err != nil {
		return malformed("part %q: %v", p.Name, err)
	}
	return nil
}

// decodeJSON decodes a document. Its errors do not quote the content.
func decodeJSON(document []byte, into any) error {
	err := json.Unmarshal(document, into)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("malformed JSON at byte %d", syntax.Offset)
	}
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("wrong type at byte %d, of field %q", mistyped.Offset, mistyped.Field)
	}
	return err
}

// checkCount checks a number of entries. what is their name.
func checkCount(what string, n int) error {
	if n > MaxEntries {
		return &pproftranslator.LimitError{What: what, Limit: MaxEntries, Got: int64(n)}
	}
	return nil
}

// checkLength checks the lengths of an attribute. where is its place in messages.
func checkLength(where, name, value string) error {
	if len(name) > MaxAttributeLength {
		return &pproftranslator.LimitError{What: where + ": size in bytes of a name", Limit: MaxAttributeLength, Got: int64(len(name))}
	}
	if len(value) > MaxAttributeLength {
		return &pproftranslator.LimitError{What: fmt.Sprintf("%s: size in bytes of %q", where, name), Limit: MaxAttributeLength, Got: int64(len(value))}
	}
	return nil
}

// setAttribute adds a new attribute, after checking it.
func setAttribute(attributes map[string]string, where, name, value string) error {
	if err := checkLength(where, name, value); err != nil {
		return err
	}
	switch _, duplicate := attributes[name]; {
	case name == "":
		return malformed("%s: empty name", where)
	case !utf8.ValidString(name) || !utf8.ValidString(value):
		return malformed("%s: %q is not valid UTF-8", where, name)
	case duplicate:
		return malformed("%s: duplicate %q", where, name)
	}
	attributes[name] = value
	return nil
}
