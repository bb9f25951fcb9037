// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// Settings are those of a Page.
type Settings struct {
	Directory string
	MaxMemory int64
	// Timeout is the longest time of a request, 0 for none.
	Timeout time.Duration
	Logger  *zap.Logger
}

// Page serves all paths.
type Page struct {
	settings Settings
	catalog  *catalog.Catalog
	queries  *slots
	handler  http.Handler
	now      func() time.Time

	viewed chan struct{} // an overview was shown
	work   sync.WaitGroup
}

// New returns a Page.
func New(settings Settings) *Page {
	p := &Page{
		settings: settings,
		catalog:  newCatalog(settings),
		queries:  newSlots(running),
		now:      time.Now,
		viewed:   make(chan struct{}, 1),
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", p.query(p.overview, writeErrorPage))
	mux.Handle("/api/services", p.query(p.apiServices, writeErrorText))
	mux.Handle("/api/profile", p.query(p.apiProfile, writeErrorText))
	mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { writeErrorPage(w, r, errNotFound) }))
	p.handler = gzhttp.GzipHandler(withoutDots(mux))
	return p
}

func newCatalog(settings Settings) *catalog.Catalog {
	return catalog.New(settings.Directory, settings.MaxMemory/8*filesEighths)
}

func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// withoutDots rejects paths that http.ServeMux would redirect.
func withoutDots(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for segment := range strings.SplitSeq(r.URL.Path, "/") {
			if segment == ".." || segment == "." {
				writeErrorPage(w, r, errNotFound)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Index reads the files that no request has asked for, after an overview was shown. It returns when ctx ends.
func (p *Page) Index(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.viewed:
		}
		for _, path := range p.catalog.Unread() {
			release, err := p.queries.acquire(ctx)
			if err != nil {
				break // requests come first; the next overview continues
			}
			p.catalog.Read(p.options(), path)
			release()
		}
	}
}

// Wait waits for work that requests have left.
func (p *Page) Wait() { p.work.Wait() }

// options are those of a query.
func (p *Page) options() *archive.Options {
	return &archive.Options{MaxMemory: p.settings.MaxMemory / 8 * queryEighths}
}

// query makes a handler of a function that reads files. It runs in a slot and within the timeout. An error
// is written if the function has written nothing.
func (p *Page) query(serve func(http.ResponseWriter, *http.Request) error, writeError func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if p.settings.Timeout > 0 {
			timed, cancel := context.WithTimeoutCause(ctx, p.settings.Timeout, errTimeout)
			defer cancel()
			ctx = timed
		}
		release, err := p.queries.acquire(ctx)
		if err == nil {
			defer release()
			err = serve(w, r.WithContext(ctx))
		}
		if err == nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = errTimeout
		}
		writeError(w, r, err)
	})
}

var (
	errTimeout  = errors.New("the query takes too long: select less, by service, type or time")
	errNotFound = errors.New("no such page")
)

// statusOf returns the status of an error.
func statusOf(err error) int {
	_, isTypes := errors.AsType[*query.TypesError](err)
	switch {
	case errors.Is(err, errUsage), isTypes:
		return http.StatusBadRequest
	case errors.Is(err, query.ErrEmpty), errors.Is(err, errNotFound):
		return http.StatusNotFound
	case errors.Is(err, errBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, errTimeout):
		return http.StatusServiceUnavailable
	default:
		return http.StatusUnprocessableEntity
	}
}

// hint says how to select less or other profiles.
func hint(err error) string {
	_, isTypes := errors.AsType[*query.TypesError](err)
	switch {
	case isTypes:
		return "select one with the parameter type, by profile type, sample type, or both, such as mutex:delay"
	case errors.Is(err, query.ErrEmpty):
		return "/api/services lists the services and types of the range; without from and to it is the last 15 minutes"
	}
	return ""
}

func startError(w http.ResponseWriter, err error, contentType string) {
	if errors.Is(err, errBusy) {
		w.Header().Set("Retry-After", "5")
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(statusOf(err))
}

func writeErrorText(w http.ResponseWriter, _ *http.Request, err error) {
	startError(w, err, "text/plain; charset=utf-8")
	text := err.Error()
	if more := hint(err); more != "" {
		text += "; " + more
	}
	_, _ = w.Write([]byte(text + "\n"))
}

func writeErrorPage(w http.ResponseWriter, r *http.Request, err error) {
	startError(w, err, "text/html; charset=utf-8")
	render(w, "error", map[string]any{"Title": http.StatusText(statusOf(err)), "Error": err.Error(), "Hint": hint(err), "Query": r.URL.RawQuery})
}
