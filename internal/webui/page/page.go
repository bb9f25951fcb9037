// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi"
)

// Settings are those of a Page.
type Settings struct {
	Directory string // or the URL of one in an object store
	// Given, unless it is nil, is what the page shows in place of the directory, whose name says so. Base, unless it is nil, is compared with it.
	Given, Base *catalog.Catalog
	MaxMemory   int64
	// Timeout is the longest time of a request, 0 for none.
	Timeout time.Duration
	// TraceURL is the template of the URL of a trace, with TraceIDInURL in it, or "".
	TraceURL string
	// MCP, unless it is "", is the version that the Model Context Protocol is served with.
	MCP string
}

// Page serves all paths.
type Page struct {
	settings Settings
	catalog  *catalog.Catalog
	base     *catalog.Catalog // of bases, by default the same
	queries  *slots
	// rendering bounds how many flame graphs are made at once.
	rendering *slots
	responses *slots // bytes
	mux       *http.ServeMux
	now       func() time.Time
	requests  *semaphore.Weighted
}

// New returns a Page. The error is that of the URL of a directory.
func New(settings Settings) (*Page, error) {
	p := &Page{
		settings:  settings,
		queries:   newSlots(running),
		rendering: newSlots(1),
		responses: newSlots(settings.MaxMemory / 8 * responsesEighths),
		mux:       http.NewServeMux(),
		now:       time.Now,
		requests:  semaphore.NewWeighted(maxRequests),
	}
	if p.catalog = settings.Given; p.catalog == nil {
		lists := settings.MaxMemory / 8 * filesEighths / 4
		var err error
		if p.catalog, err = catalog.New(settings.Directory, catalog.Memory{
			Lists: lists, Indexes: settings.MaxMemory/8*filesEighths - lists, Blocks: settings.MaxMemory / 8 * objectsEighths,
		}, p.options()); err != nil {
			return nil, err
		}
	}
	p.base = cmp.Or(settings.Base, p.catalog)
	for pattern, serve := range map[string]handler{
		"/{$}":                  accepting(ofExplore, p.query(p.explore, p.queries)),
		"/api/services":         accepting(ofServices, p.query(p.apiServices, p.queries)),
		"/api/pgo":              accepting(ofTrace, p.query(p.apiPGO, p.queries)),
		"/api/profile":          accepting(selecting, p.query(p.apiProfile, p.queries)),
		"/select":               accepting(ofSelect, p.choose),
		"/static/{hash}/{name}": accepting([]string{}, static),
		"/timeline":             accepting(ofTimeline, p.query(p.timeline, p.queries)),
		"/api/timeline/heatmap": accepting(ofHeatmap, p.query(p.apiHeatmap, p.queries)),
		"/api/timeline/lanes":   accepting(ofLanes, p.query(p.apiLanes, p.queries)),
		"/trace":                accepting(slices.Concat(ofTrace, []string{"id"}), p.findTrace),
		"/trace/{id}":           accepting(ofTrace, p.query(p.trace, p.queries)),
		"/favicon.ico":          func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(http.StatusNoContent); return nil },
		"/":                     notFound,
	} {
		p.mux.Handle(pattern, serve)
	}
	for path, method := range queryapi.Handlers(p.catalog) {
		p.mux.Handle(path, p.rpc(method))
	}
	p.mux.HandleFunc(queryapi.Prefix, queryapi.WriteUnserved)
	if settings.MCP != "" {
		p.mux.Handle(mcpPath, p.mcp(settings.MCP))
	}
	return p, nil
}

// Close closes connections to object stores.
func (p *Page) Close() { p.catalog.Close() }

// Options are those of the queries of a page of a given source, with this memory.
func Options(maxMemory int64, setting string) archive.Options {
	return archive.Options{MaxMemory: maxMemory / 8 * queryEighths, Setting: setting}
}

// options are those of a query.
func (p *Page) options() archive.Options {
	share := int64(queryEighths)
	if bucket.IsURL(p.settings.Directory) {
		share -= objectsEighths / running
	}
	return archive.Options{MaxMemory: p.settings.MaxMemory / 8 * share, Setting: "max_memory"}
}

func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.requests.TryAcquire(1) {
		writeError(w, r, errBusy)
		return
	}
	defer p.requests.Release(1)
	if strings.TrimSuffix(r.URL.Path, "/") != strings.TrimSuffix(path.Clean(r.URL.Path), "/") { // ServeMux would redirect it
		writeError(w, r, errNotFound)
		return
	}
	p.mux.ServeHTTP(w, r)
}

// Memory returns the bytes of MaxMemory that are in use, with the whole share of each query that runs.
func (p *Page) Memory() int64 {
	return p.catalog.Memory() + p.responses.used.Load() + p.queries.used.Load()*p.options().MaxMemory
}

// Wait waits until no request runs, or until ctx ends, whose error it then returns. Further requests are rejected.
func (p *Page) Wait(ctx context.Context) error { return p.requests.Acquire(ctx, maxRequests) }

// handler serves a request, or returns an error before it has written anything.
type handler func(http.ResponseWriter, *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		writeError(w, r, err)
	}
}

// accepting makes a handler of one with these parameters, or with any if known is nil.
func accepting(known []string, serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		values, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return usageError{fmt.Errorf("the query is malformed: %w", err)}
		}
		if err := checkParameters(values, known); err != nil {
			return err
		}
		return serve(w, r)
	}
}

func notFound(http.ResponseWriter, *http.Request) error { return errNotFound }

// query makes a handler of one that reads files. It runs within the timeout, while it holds a slot of each of held.
func (p *Page) query(serve handler, held ...*slots) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var complete *response
		var sent func()
		err := p.bounded(r.Context(), func(ctx context.Context) (err error) {
			complete, sent, err = p.response(r.WithContext(ctx), serve, held)
			return err
		})
		if err != nil {
			return err
		}
		defer sent()
		complete.send(w)
		return nil
	}
}

// bounded reads files within the timeout and the work of regular expressions that a request may take.
func (p *Page) bounded(ctx context.Context, read func(context.Context) error) error {
	limited, end := labels.LimitWork(ctx)
	defer end()
	ctx = limited
	if p.settings.Timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, p.settings.Timeout)
		defer cancel()
		ctx = timed
	}
	err := read(ctx)
	switch excess := labels.WorkError(limited); {
	case excess != nil && err != nil:
		return usageError{excess}
	case errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	}
	return err
}

// response returns the response of a handler, complete and compressed before a slow client gets it. The slots are held
// until there is room for it. The caller calls sent when the client has it.
func (p *Page) response(r *http.Request, serve handler, held []*slots) (complete *response, sent func(), err error) {
	for _, s := range held {
		release, err := s.acquire(r.Context(), 1)
		if err != nil {
			return nil, nil, err
		}
		defer release()
	}
	err = query.Repeat(func() (err error) {
		complete = &response{header: http.Header{}}
		gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { err = serve(w, r) })).ServeHTTP(complete, r)
		return cmp.Or(err, r.Context().Err()) // what is found after its end may not be all
	})
	if err != nil {
		return nil, nil, err
	}
	sent, err = p.responses.acquire(r.Context(), int64(complete.Cap()))
	return complete, sent, err
}

// usageError is an error in the parameters of a URL.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

var (
	errTimeout  = errors.New("the query takes too long: select less, by service, type or time")
	errNotFound = errors.New("no such page")
)

// statusOf returns the status of a response that is an error.
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
	case bucket.IsStorageError(err):
		return http.StatusBadGateway
	default:
		return http.StatusUnprocessableEntity
	}
}

// writeError writes the status and the text of an error, and how to select less or other profiles.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status, hint := statusOf(err), ""
	types, isTypes := errors.AsType[*query.TypesError](err)
	switch {
	case isTypes:
		hint = "select one with the parameter " + types.Parameter
	case errors.Is(err, query.ErrEmpty):
		hint = "/api/services lists the services and types of a range, by default of the last 15 minutes"
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "5")
	}
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		writePage(w, status, "error", map[string]any{"Title": http.StatusText(status), "Error": err.Error(), "Hint": hint})
		return
	}
	text := err.Error()
	if hint != "" {
		text += "; " + hint
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}
