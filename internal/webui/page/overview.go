// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
)

// servicesPerPage is how many services a page of the overview has.
const servicesPerPage = 50

// rowsPerService is how many sample types of a service a page shows at most.
const rowsPerService = 100

// overview is the content of the template of the same name.
type overview struct {
	*params

	Errors    []error // of files that cannot be read
	Title     string
	Directory string
	Bar       *bar
	Service   string           // of which all sample types are shown
	One       bool             // there is a Service
	Base      *query.Selection // that of the base, or nil
	Services  []*service
	Shown     string
	Previous  template.URL // query of the page before
	Next      template.URL
	Profiles  int          // those of several sample types count once
	Elsewhere bool         // there are profiles of other times, if the range has none
	Any       bool         // nothing but the range restricts the profiles
	AllQuery  template.URL // query for the times of all files
	Odd       bool         // there are profiles of other times that were received in the range
	OddQuery  template.URL // query for their times
	Empty     bool         // there is no profile at all
}

// service is one with its rows.
type service struct {
	Name  string
	Query template.URL
	Rows  []*row
	// Spans are those of a trace, and MoreSpans the number of further ones.
	Spans     []tracedSpan
	MoreSpans int
	More      int // rows that are not shown

	cpu  float64
	last uint64
}

// row is a kind of a service.
type row struct {
	*total
	Value    string
	Each     string // the processes, and the rate of each
	Base     string
	BaseEach string
	Change   string // in percent
	By       string // the change in numbers
	Trend    string // class of the change
	Coverage string // of the range
	Before   string // coverage of the base
	Newest   string
	Chart    *drawing
	// Query selects the profiles, and Difference compares them with the base.
	Query, Difference template.URL
}

// ownOfOverview are parameters that no other page has.
var ownOfOverview = []string{"q", "sort", "refresh", "by"}

func (p *Page) overview(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	for _, key := range []string{"trace_id", "span_id"} {
		if values.Get(key) != "" { // the page would show more than it says
			return usageError{fmt.Errorf("%s does not select totals: use it with /flamegraph or /api/profile", key)}
		}
	}
	by := values.Get("by")
	if strings.ContainsAny(by, "={") || query.IsKeyLabel(labels.Name(by)) {
		return usageError{fmt.Errorf("by is %.60q: must be the name of a label of profiles, such as pod, and not of their service or type", by)}
	}
	params, err := parseParams(values, defaultRange, p.now())
	if err != nil {
		return err
	}
	search := strings.ToLower(strings.TrimSpace(values.Get("q")))
	offered := newOffered()
	shown := func(s *contents.Key) bool {
		offered.add(s)
		return params.selected.MatchesKey(r.Context(), s) && slices.ContainsFunc([]string{s.Service, s.Type, s.SampleType}, func(name string) bool {
			return strings.Contains(strings.ToLower(name), search)
		})
	}
	selected := &scope{Selection: params.selected, selects: shown, by: by, offers: true}
	room := p.room()
	totals, missed, err := p.totals(r.Context(), selected, room)
	if err != nil {
		return err
	}
	var base []*total
	if params.base != nil {
		if base, _, err = p.totals(r.Context(), &scope{Selection: params.base, selects: shown, by: by, offers: true}, room); err != nil {
			return err
		}
	}
	if offered.labels, err = p.catalog.Labels(r.Context(), params.selected); err != nil {
		return err
	}
	for _, key := range ownOfOverview {
		if value := values.Get(key); value != "" {
			params.values.Set(key, value)
		}
	}
	o := &overview{
		params: params, Errors: missed.Failed, Title: "Profiles", Directory: p.settings.Directory, Bar: params.bar(viewOverview, offered),
		Base: params.base, Any: !slices.ContainsFunc([]string{"service", "type", "label", "q"}, params.values.Has),
	}
	odd, err := p.catalog.Odd(r.Context(), params.selected, shown)
	if err != nil {
		return err
	}
	o.Odd, o.OddQuery = !odd.Last.IsZero(), params.showing(&odd)
	if len(totals) == 0 && len(base) == 0 {
		all, err := p.catalog.Extent(r.Context())
		if err != nil {
			return err
		}
		o.Empty, o.AllQuery = all.Last.IsZero(), params.showing(&all)
		o.Elsewhere = all.First.Before(params.selected.From) || !all.Last.Before(params.selected.To)
	}
	if services := params.selected.Services; len(services) == 1 {
		o.One, o.Service, o.Title = true, services[0], "Profiles of "+services[0]
	}
	o.addServices(totals, base)
	o.paginate(values.Get("page"))
	_, n := bars(params.selected)
	for _, service := range o.Services {
		for _, row := range service.Rows {
			if err := room.take(barSize * int64(n)); err != nil {
				return err
			}
			row.Chart = row.draw(params.selected)
		}
	}
	writePage(w, http.StatusOK, "overview", o)
	return nil
}

// showing returns the query that selects the range of some profiles, or "" if they are later than a range may be.
func (p *params) showing(of *catalog.Extent) template.URL {
	from, to := of.First, of.Last.Add(1)
	if to.After(query.MaxTime) {
		to = query.MaxTime
	}
	if !from.Before(to) {
		return ""
	}
	return p.with(between("", from, to), "base_from", "base_to")
}

// preferred are the sample types that stand for their profile type.
var preferred = []string{"cpu", "inuse_space", "delay", "wall", "live_bytes", "alloc_space", "goroutine", "goroutines"}

// stands returns how well a sample type stands for its profile type; less is better.
func (k kind) stands() int {
	if i := slices.Index(preferred, k.SampleType); i >= 0 {
		return i
	}
	switch {
	case webui.IsNanoseconds(k.Unit):
		return len(preferred)
	case webui.IsBytes(k.Unit):
		return len(preferred) + 1
	default:
		return len(preferred) + 2
	}
}

// addServices adds those of the range, and those that only the base has, with rows without a total.
func (o *overview) addServices(totals, base []*total) {
	sent, baseOf := map[kind]bool{}, map[kind]*total{}
	for _, t := range totals {
		sent[t.kind] = true
	}
	for _, t := range base {
		baseOf[t.kind] = t
		if !sent[t.kind] {
			totals = append(totals, &total{kind: t.kind})
		}
	}
	slices.SortFunc(totals, compareTotals)
	o.Services = byService(totals, func(t *total) *row { return newRow(o.params, t, baseOf[t.kind]) })
	for _, s := range o.Services {
		s.Query = o.narrowed(s.Name).with(nil, "q")
		for _, r := range s.Rows {
			if r.isCPU() {
				s.cpu += r.Rate
			}
		}
		standing := s.order()
		for _, r := range standing {
			o.Profiles += r.Profiles
		}
		if o.One {
			standing = s.Rows
		}
		s.show(standing)
	}
	slices.SortFunc(o.Services, func(a, b *service) int {
		byCPU, byLast := cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.last, a.last)
		switch o.Param("sort") {
		case "name":
			return cmp.Compare(a.Name, b.Name)
		case "newest":
			return cmp.Or(byLast, cmp.Compare(a.Name, b.Name))
		default:
			return cmp.Or(byCPU, byLast, cmp.Compare(a.Name, b.Name))
		}
	})
}

// byService returns the rows of totals, which are sorted by service.
func byService(totals []*total, newRow func(*total) *row) (services []*service) {
	markAmbiguous(totals)
	for _, t := range totals {
		if n := len(services); n == 0 || services[n-1].Name != t.Service {
			services = append(services, &service{Name: t.Service})
		}
		s := services[len(services)-1]
		s.last = max(s.last, t.Last)
		s.Rows = append(s.Rows, newRow(t))
	}
	return services
}

// order sorts the rows, CPU first, and returns those that stand for a profile type. Profiles without a type may be of
// several, so all that stand for one are returned, and those of more Profiles.
func (s *service) order() (standing []*row) {
	slices.SortStableFunc(s.Rows, func(a, b *row) int { return cmp.Compare(a.stands(), b.stands()) })
	type name struct{ typ, period string }
	most := map[name]int{} // Profiles of a returned row, by profile type and, if that is ambiguous, period type
	for _, r := range s.Rows {
		n := name{typ: r.Type}
		if r.Ambiguous {
			n.period = r.period()
		}
		of, found := most[n]
		if !found || r.Type == "" && (r.stands() < len(preferred) || r.Profiles > of) {
			standing = append(standing, r)
		}
		most[n] = max(of, r.Profiles)
	}
	return standing
}

// show keeps the first of rows.
func (s *service) show(rows []*row) {
	s.Rows = rows[:min(len(rows), rowsPerService)]
	s.More = len(rows) - len(s.Rows)
}

func newRow(params *params, t, base *total) *row {
	const none = "–"
	params, shown := params.narrowed(t.Service), map[string]string{"type": t.selector()}
	r := &row{total: t, Query: params.with(shown, slices.Concat(ownOfOverview, selectingBase)...), Value: none, Base: none}
	v, was := 0.0, 0.0
	if t.Profiles > 0 {
		v = t.shown()
		words := t.words(params.now, params.selected)
		r.Value, r.Each = t.written(), words.Processes()
		r.Coverage, r.Newest = t.coverage(words), webui.Ago(params.now.Sub(query.TimeOf(t.Last)))
	}
	if base != nil {
		was = base.shown()
		words := base.words(params.now, params.base)
		r.Base, r.BaseEach, r.Before = base.written(), words.Processes(), base.coverage(words)
	}
	if base == nil || t.Profiles == 0 {
		return r
	}
	r.Difference = params.with(shown, ownOfOverview...)
	if !t.hasRate() || !base.hasRate() {
		return r
	}
	r.By, r.Trend = signed(t.value, v-was), "down"
	if change, ok := rate.Change(was, v); ok {
		r.Change = signed(func(v float64) string { return fmt.Sprintf("%.3g %%", v) }, change*100)
	}
	switch {
	case min(t.Samples, base.Samples) < fewSamples:
		r.Trend = "few"
	case v > was:
		r.Trend = "up"
	}
	return r
}

// fewSamples: a change of fewer samples may be chance.
const fewSamples = 20

// signed writes a value with its sign.
func signed(write func(float64) string, v float64) string {
	if v < 0 {
		return "−" + write(-v)
	}
	return "+" + write(v)
}

// hasRate reports whether the profiles have a rate, or a level.
func (t *total) hasRate() bool { return t.Snapshot || t.Data > 0 }

// shown is the rate of the series, or the sum of the living snapshots.
func (t *total) shown() float64 {
	if t.Snapshot {
		return float64(t.Sum)
	}
	return t.Rate
}

// written writes what is shown, or the sum of profiles that have no rate.
func (t *total) written() string {
	if !t.hasRate() {
		return t.quantity(float64(t.Sum))
	}
	return t.value(t.shown())
}

// words says what people read of the total.
func (t *total) words(now time.Time, sel *query.Selection) *webui.Words {
	return &webui.Words{
		SampleType: t.SampleType, Unit: t.Unit, From: sel.From, To: sel.To, Now: now,
		Reading: rate.Reading{Summary: t.Summary, Snapshots: t.Snapshot, Sum: t.Sum, Living: t.Living, At: t.At},
	}
}

// coverage says how much of the time of the processes was profiled, and how much of the range has data.
func (t *total) coverage(words *webui.Words) string {
	switch {
	case t.Snapshot:
		return ""
	case !t.hasRate():
		return "the sum: profiles without a duration"
	default:
		return "profiled " + words.Coverage()
	}
}

// selector selects the profile type, or without one the sample type.
func (k kind) selector() string {
	if k.Type == "" {
		return ":" + k.SampleType
	}
	return k.Type
}

// paginate keeps the services of a page.
func (o *overview) paginate(number string) {
	total := len(o.Services)
	page, _ := strconv.Atoi(number)
	page = max(1, min(page, (total+servicesPerPage-1)/servicesPerPage))
	from, to := (page-1)*servicesPerPage, min(page*servicesPerPage, total)
	o.Services = o.Services[min(from, to):to]
	o.Shown = webui.Count(total, "service")
	if o.Param("by") != "" {
		o.Shown = webui.Count(total, "value")
	}
	if total > servicesPerPage {
		o.Shown = fmt.Sprintf("%d–%d of %s", from+1, to, o.Shown)
	}
	if page > 1 {
		o.Previous = o.with(map[string]string{"page": strconv.Itoa(page - 1)})
	}
	if to < total {
		o.Next = o.with(map[string]string{"page": strconv.Itoa(page + 1)})
	}
}
