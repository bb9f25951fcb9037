// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

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
	// rendering bounds how many of pprof's pages are made at once.
	rendering *slots
	responses *slots // bytes
	mounts    mounts
	handler   http.Handler
	now       func() time.Time

	viewed   chan struct{} // an overview was shown
	requests *semaphore.Weighted
}

// New returns a Page.
func New(settings Settings) *Page {
	p := &Page{
		settings:  settings,
		catalog:   newCatalog(settings),
		queries:   newSlots(running),
		rendering: newSlots(1),
		responses: newSlots(settings.MaxMemory / 8 * responsesEighths),
		mounts:    mounts{maxMemory: settings.MaxMemory / 8 * mountsEighths},
		now:       time.Now,
		viewed:    make(chan struct{}, 1),
		requests:  semaphore.NewWeighted(maxRequests),
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", p.query(p.overview, writeErrorPage))
	mux.Handle("/api/services", p.query(p.apiServices, writeErrorText))
	mux.Handle("/api/profile", p.query(p.apiProfile, writeErrorText))
	mux.HandleFunc("/flamegraph", p.flamegraph)
	mux.HandleFunc("/trace", p.findTrace)
	mux.Handle("/trace/{id}", p.query(p.trace, writeErrorPage))
	mux.HandleFunc("/p/{selection}", notFound) // not the redirect of ServeMux
	mux.HandleFunc("/p/{selection}/{$}", p.mounted)
	mux.HandleFunc("/p/{selection}/{page}", p.mounted)
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/", notFound)
	p.handler = cleanPaths(mux)
	return p
}

func newCatalog(settings Settings) *catalog.Catalog {
	return catalog.New(settings.Directory, settings.MaxMemory/8*filesEighths)
}

func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.requests.TryAcquire(1) {
		writeErrorText(w, r, errBusy)
		return
	}
	defer p.requests.Release(1)
	p.handler.ServeHTTP(w, r)
}

func notFound(w http.ResponseWriter, r *http.Request) { writeErrorPage(w, r, errNotFound) }

// cleanPaths rejects paths that http.ServeMux would redirect.
func cleanPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.TrimSuffix(r.URL.Path, "/") != strings.TrimSuffix(path.Clean(r.URL.Path), "/") {
			notFound(w, r)
			return
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
		for _, unread := range p.catalog.Unread() {
			release, err := p.queries.acquire(ctx)
			if err != nil {
				break // requests come first; the next overview continues
			}
			p.catalog.Read(p.options(), unread)
			release()
		}
	}
}

// Wait waits for the requests that still run. Further ones are rejected.
func (p *Page) Wait() { _ = p.requests.Acquire(context.Background(), maxRequests) } // without an end there is no error

// options are those of a query.
func (p *Page) options() *archive.Options {
	return &archive.Options{MaxMemory: p.settings.MaxMemory / 8 * queryEighths, Setting: "max_memory"}
}

// query makes a handler of a function that reads files.
func (p *Page) query(serve func(http.ResponseWriter, *http.Request) error, writeError writeErrorFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.run(w, r, writeError, p.queries.acquire, serve)
	})
}

// run calls a function within the timeout, while it holds the slot that acquire returns. The response is complete and
// compressed before a slow client gets it, and the slot is held until there is room for it. An error is written if there
// is one.
func (p *Page) run(w http.ResponseWriter, r *http.Request, writeError writeErrorFunc, acquire func(context.Context) (func(), error), serve func(http.ResponseWriter, *http.Request) error) {
	ctx := r.Context()
	if p.settings.Timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, p.settings.Timeout)
		defer cancel()
		ctx = timed
	}
	fail := func(w http.ResponseWriter, r *http.Request, err error) {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errTimeout
		}
		writeError(w, r, err)
	}
	complete := &response{header: http.Header{}}
	release := func() {}
	defer func() { release() }()
	gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		acquired, err := acquire(ctx)
		if err == nil {
			release = sync.OnceFunc(acquired)
			p.catalog.Refresh()
			err = serve(w, r)
		}
		if err != nil {
			fail(w, r, err)
		}
	})).ServeHTTP(complete, r.WithContext(ctx))
	sent, err := p.responses.acquireMany(ctx, int64(complete.body.Cap()))
	if err != nil {
		fail(w, r, err)
		return
	}
	defer sent()
	release()
	complete.send(w)
}

type writeErrorFunc func(http.ResponseWriter, *http.Request, error)

var (
	errTimeout  = errors.New("the query takes too long: select less, by service, type or time")
	errNotFound = errors.New("no such page")
)

// statusOf returns the status of an error.
func statusOf(err error) int {
	_, isTypes := errors.AsType[*query.TypesError](err)
	_, isUsage := errors.AsType[usageError](err)
	switch {
	case isUsage, isTypes:
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
		return "the overview and /api/services list the services and types of a range, by default of the last 15 minutes"
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

func writeErrorPage(w http.ResponseWriter, _ *http.Request, err error) {
	startError(w, err, "text/html; charset=utf-8")
	render(w, "error", map[string]any{"Title": http.StatusText(statusOf(err)), "Error": err.Error(), "Hint": hint(err)})
}
