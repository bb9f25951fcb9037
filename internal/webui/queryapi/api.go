// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

// Prefix is what the paths of all methods start with.
const Prefix = "/querier.v1.QuerierService/"

// api serves one request.
type api struct {
	catalog *catalog.Catalog
	missed  catalog.Missing
	// utf8Names: names of labels are those of attributes, such as k8s.pod.name. Else each character that Prometheus did not allow is an
	// underscore.
	utf8Names bool
}

// Handlers returns the handler of each method, by path. Clients use the Connect protocol.
func Handlers(files *catalog.Catalog) map[string]http.Handler {
	handlers := map[string]http.Handler{}
	handle(handlers, files, "ProfileTypes", (*api).profileTypes)
	handle(handlers, files, "LabelNames", (*api).labelNames)
	handle(handlers, files, "LabelValues", (*api).labelValues)
	handle(handlers, files, "Series", (*api).series)
	handle(handlers, files, "SelectMergeStacktraces", (*api).selectMergeStacktraces)
	handle(handlers, files, "SelectMergeSpanProfile", (*api).selectMergeSpanProfile)
	handle(handlers, files, "SelectMergeProfile", (*api).selectMergeProfile)
	handle(handlers, files, "SelectSeries", (*api).selectSeries)
	handle(handlers, files, "SelectHeatmap", (*api).selectHeatmap)
	handle(handlers, files, "Diff", (*api).diff)
	handle(handlers, files, "GetProfileStats", (*api).profileStats)
	return handlers
}

// handle adds the handler of a method. Its response has a Warning header for each file or record that could not be read.
func handle[Request, Response any](handlers map[string]http.Handler, files *catalog.Catalog, method string, serve func(*api, context.Context, *Request) (*Response, error)) {
	path := Prefix + method
	handlers[path] = connect.NewUnaryHandler(path, func(ctx context.Context, r *connect.Request[Request]) (*connect.Response[Response], error) {
		var a *api
		var message *Response
		err := query.Repeat(func() (err error) {
			a = &api{catalog: files, utf8Names: acceptsUTF8Names(r.Header())}
			message, err = serve(a, ctx, r.Msg)
			return err
		})
		if err != nil {
			return nil, connectError(err)
		}
		response := connect.NewResponse(message)
		for _, err := range a.unread() {
			response.Header().Add("Warning", fmt.Sprintf("199 - %q", err.Error()))
		}
		return response, nil
	})
}

// acceptsUTF8Names reports whether a client takes any names of labels, as Pyroscope's clients say it: with a parameter of a media type.
func acceptsUTF8Names(header http.Header) bool {
	for _, accepted := range header.Values("Accept") {
		for mediaType := range strings.SplitSeq(accepted, ",") {
			if _, parameters, err := mime.ParseMediaType(mediaType); err == nil && parameters["allow-utf8-labelnames"] == "true" {
				return true
			}
		}
	}
	return false
}

// unread returns what could not be read.
func (a *api) unread() (errs []error) {
	for _, note := range a.missed.Notes() {
		errs = append(errs, connect.NewError(connect.CodeDataLoss, errors.New(note)))
	}
	return errs
}

// WriteUnserved responds to a request for a method that is not served.
func WriteUnserved(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, Prefix)
	WriteError(w, r, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("method %.60q is not served", method)))
}

// WriteTooLarge responds that the body of a request has more than limit bytes. Connect's own answer is 429, after which clients retry.
func WriteTooLarge(w http.ResponseWriter, r *http.Request, limit int64) {
	WriteError(tooLarge{w}, r, invalid("the body has more than %d bytes: select less, or raise max_request_body_size", limit))
}

type tooLarge struct{ http.ResponseWriter }

func (w tooLarge) WriteHeader(int) { w.ResponseWriter.WriteHeader(http.StatusRequestEntityTooLarge) }

// WriteError responds with an error that concerns the request as a whole.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	_ = connect.NewErrorWriter().Write(w, r, connectError(err)) // an error is that of the client's connection
}

// connectError returns err with the code that Connect has for it.
func connectError(err error) *connect.Error {
	coded, isCoded := errors.AsType[*connect.Error](err)
	switch {
	case isCoded:
		return coded
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the query takes too long: select less, by service, type or time"))
	default:
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
}

func invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// between sets the range of a selection to the milliseconds from start to end, both of which it contains. A range without
// both is that of all profiles.
func between(sel *query.Selection, start, end int64) error {
	latest := query.MaxTime.UnixMilli()
	if start == 0 && end == 0 {
		end = latest
	}
	if start > end {
		return invalid("start is %d: must not be after end, %d", start, end)
	}
	sel.From, sel.To = time.UnixMilli(min(max(start, 0), latest)), time.UnixMilli(min(max(end, 0), latest)).Add(1)
	return nil
}

// selection returns the selection of a profile type, labels and a range.
func selection(typeID, selector string, start, end int64) (*query.Selection, error) {
	sel := &query.Selection{}
	typeID = strings.TrimSuffix(typeID, ":delta")
	if strings.Count(typeID, ":") != 4 {
		return nil, invalid("profile_typeID is %.200q: must be name:sample_type:sample_unit:period_type:period_unit", typeID)
	}
	sel.Types = []string{typeID}
	var err error
	if sel.Labels, err = labels.ParseSelector(selector); err != nil {
		return nil, invalid("label_selector is %.200q: %w", selector, err)
	}
	return sel, between(sel, start, end)
}

const (
	// maxSelectors is how many selectors a request may have.
	maxSelectors = 10
	// maxNames is how many labels a request may group by.
	maxNames = 100
)

// matching is a request with several selectors, each of which adds to the answer.
type matching interface {
	GetMatchers() []string
	GetStart() int64
	GetEnd() int64
}

// eachSelection calls do with the selection of each selector of a request.
func eachSelection(r matching, do func(*query.Selection) error) error {
	selectors := r.GetMatchers()
	if len(selectors) == 0 {
		selectors = []string{"{}"}
	}
	if len(selectors) > maxSelectors {
		return invalid("matchers must be at most %d", maxSelectors)
	}
	for _, selector := range selectors {
		matchers, err := labels.ParseSelector(selector)
		if err != nil {
			return invalid("matchers has %.200q: %w", selector, err)
		}
		sel := &query.Selection{Labels: matchers}
		if err := between(sel, r.GetStart(), r.GetEnd()); err != nil {
			return err
		}
		if err := do(sel); err != nil {
			return err
		}
	}
	return nil
}

func (a *api) profileStats(ctx context.Context, _ *querierpb.GetProfileStatsRequest) (*querierpb.GetProfileStatsResponse, error) {
	all, err := a.catalog.Extent(ctx)
	if err != nil || all.Last.IsZero() {
		return &querierpb.GetProfileStatsResponse{}, err
	}
	return &querierpb.GetProfileStatsResponse{
		DataIngested: true, OldestProfileTime: all.First.UnixMilli(), NewestProfileTime: all.Last.UnixMilli(),
	}, nil
}
