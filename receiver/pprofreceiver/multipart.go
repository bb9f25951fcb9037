// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	mediaTypeMultipart = "multipart/form-data"

	// maxDocument bounds a part that is no profile but tells about them, in bytes.
	maxDocument = 1 << 20
)

// part is one part of a form.
type part struct {
	name, file string // of the field, and of the file, which may be empty
	body       []byte
}

// isForm tells whether the body is a form of parts.
func isForm(header http.Header) bool {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && mediaType == mediaTypeMultipart
}

// readForm reads the parts of a form, at most maxParts. What they hold, and their names, is kept by
// the reservation; parts that wants refuses are passed over without being held.
func (s *server) readForm(r *http.Request, held *ingest.Reservation, wants func(name, file string) bool) ([]part, error) {
	mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != mediaTypeMultipart || parameters["boundary"] == "" {
		return nil, unsupported("Content-Type: want " + mediaTypeMultipart + " with a boundary")
	}
	encoding, err := s.contentEncoding(r.Header)
	if err != nil {
		return nil, err
	}
	if r.ContentLength > s.bodyLimit {
		return nil, &http.MaxBytesError{Limit: s.bodyLimit}
	}
	ctx, body := r.Context(), io.Reader(r.Body)
	if encoding != "" {
		whole, err := s.readMessage(r, held)
		if err != nil {
			return nil, err
		}
		held.Keep()
		body = bytes.NewReader(whole)
	}
	// More parts than there may be profiles, for those that are none.
	const maxParts = 2 * maxAttachments
	var parts []part
	limited := &headerReader{body: body}
	form := multipart.NewReader(limited, parameters["boundary"])
	for n := 0; ; n++ {
		limited.left = maxPartHeader
		next, err := form.NextRawPart()
		limited.left = unlimited
		if err == io.EOF { //nolint:errorlint // the end, as documented
			return parts, nil
		}
		if err != nil {
			return nil, bodyError(ctx, truncated(err))
		}
		if n == maxParts {
			return nil, &pproftranslator.LimitError{What: "body: parts", Limit: maxParts}
		}
		// Copies, since these hold the whole header.
		name, file := strings.Clone(next.FormName()), strings.Clone(next.FileName())
		if err := held.Resize(ctx, int64(len(name)+len(file))); err != nil {
			return nil, bodyError(ctx, err)
		}
		held.Keep()
		if !wants(name, file) {
			if _, err := io.Copy(io.Discard, next); err != nil {
				return nil, bodyError(ctx, fmt.Errorf("part %.200q: %w", name, truncated(err)))
			}
			parts = append(parts, part{name: name, file: file})
			continue
		}
		content, err := ingest.ReadAll(ctx, next, -1, held)
		if err != nil {
			return nil, bodyError(ctx, fmt.Errorf("part %.200q: %w", name, truncated(err)))
		}
		held.Keep()
		parts = append(parts, part{name: name, file: file, body: content})
	}
}

const (
	// maxPartHeader bounds what is read at a time that is not the content of a part:
	// a boundary, the header of a part, and what a buffer reads ahead.
	maxPartHeader = 32 << 10
	unlimited     = -1
)

// headerReader reads the body of a form, and no more than left bytes of it unless
// that is unlimited: the library would hold a header of 10 MB.
type headerReader struct {
	body io.Reader
	left int
}

func (r *headerReader) Read(p []byte) (int, error) {
	if r.left == unlimited {
		return r.body.Read(p)
	}
	if r.left == 0 {
		return 0, &pproftranslator.LimitError{What: "size in bytes of the header of a part", Limit: maxPartHeader}
	}
	n, err := r.body.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// truncated says of a form that ends too early that it does, and of a header that it
// is malformed, without what is in it.
func truncated(err error) error {
	if _, malformed := errors.AsType[textproto.ProtocolError](err); malformed {
		return errors.New("the header of a part is malformed")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the form ends before its last boundary")
	}
	return err
}

// document checks the size of a part that is read as a whole.
func (p *part) document() ([]byte, error) {
	if len(p.body) > maxDocument {
		return nil, &pproftranslator.LimitError{What: fmt.Sprintf("part %q: size in bytes", p.name), Limit: maxDocument, Got: int64(len(p.body))}
	}
	return p.body, nil
}
