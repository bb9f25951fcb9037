// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
)

// servicesPerPage is how many services a page of the landing has.
const servicesPerPage = 50

// rowsPerService is how many sample types of a service a page shows at most.
const rowsPerService = 100

// landing lists the services of a range. It is the content of the template of the same name.
type landing struct {
	*frame

	Base     *query.Selection // that of the base, or nil
	Grown    []*growth        // what grew most
	Services []*service
	Shown    string
	Previous template.URL // query of the page before
	Next     template.URL
	Profiles int // those of several sample types count once
}

// service is one with its rows.
type service struct {
	Name  string
	Query template.URL
	Rows  []*row
	More  int // rows that are not shown

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
	Chart    *chart
	Query    template.URL // of the page that shows it

	profiled float64 // what the flame graph has
}

// landing writes the page of a URL that names neither a service nor a type.
func (p *Page) landing(w http.ResponseWriter, r *http.Request, params *params) error {
	search := strings.ToLower(strings.TrimSpace(params.Param("q")))
	offered := newOffered()
	shown := func(s *contents.Key) bool {
		offered.add(s)
		return params.selected.MatchesKey(r.Context(), s) && slices.ContainsFunc([]string{s.Service, s.Type, s.SampleType}, func(name string) bool {
			return strings.Contains(strings.ToLower(name), search)
		})
	}
	room, by := p.room(), params.Param("by")
	found, err := totalsOf(r.Context(), p.catalog, &scope{Selection: params.selected, selects: shown, by: by, offers: true}, room)
	if err != nil {
		return err
	}
	base := &summed{}
	if params.base != nil {
		if base, err = totalsOf(r.Context(), p.base, &scope{Selection: params.base, selects: shown, by: by, offers: true}, room); err != nil {
			return err
		}
	}
	if offered.labels, err = p.catalog.Labels(r.Context(), params.selected); err != nil {
		return err
	}
	l := &landing{frame: p.frame(params, offered, found.missed), Base: params.base}
	l.Bar.Search = true
	if err := l.lookAround(r.Context(), p.catalog, shown, len(found.groups)+len(base.groups) > 0); err != nil {
		return err
	}
	if params.base == nil && by == "" {
		l.Grown = params.grown(found.groups)
	}
	l.addServices(found.groups, base.groups)
	l.paginate(params.Param("page"))
	for _, service := range l.Services {
		for _, row := range service.Rows {
			a := axisOf(params.selected, row.total)
			if err := room.take(slotSize * int64(a.steps.Count)); err != nil {
				return err
			}
			row.Chart = newChart(a, row.kind, row.bars(a, false))
			row.Chart.Query = params.narrowed(service.Name).with(map[string]string{"type": row.selector()}, slices.Concat(ownOfLanding, ofRange)...)
		}
	}
	writePage(w, http.StatusOK, "landing", l)
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

// addServices adds those of the range, and those that only the base has, with rows without a total.
func (l *landing) addServices(totals, base []*total) {
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
	slices.SortFunc(totals, func(a, b *total) int { return query.Kind(a.kind).Compare(query.Kind(b.kind)) })
	l.Services = byService(totals, func(t *total) *row { return newRow(l.narrowed(t.Service), t, baseOf[t.kind]) })
	for _, s := range l.Services {
		s.Query = l.narrowed(s.Name).with(nil, ownOfLanding...)
		for _, r := range s.Rows {
			if r.isCPU() {
				s.cpu += r.Rate
			}
		}
		standing := s.order()
		for _, r := range standing {
			l.Profiles += r.Profiles
		}
		s.show(standing)
	}
	slices.SortFunc(l.Services, func(a, b *service) int {
		byCPU, byLast := cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.last, a.last)
		switch l.Param("sort") {
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
		if !found || r.Type == "" && (query.Kind(r.kind).IsPreferred() || r.Profiles > of) {
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

// paginate keeps the services of a page.
func (l *landing) paginate(number string) {
	total := len(l.Services)
	page, _ := strconv.Atoi(number)
	page = max(1, min(page, (total+servicesPerPage-1)/servicesPerPage))
	from, to := (page-1)*servicesPerPage, min(page*servicesPerPage, total)
	l.Services = l.Services[min(from, to):to]
	l.Shown = webui.Count(total, "service")
	if l.Param("by") != "" {
		l.Shown = webui.Count(total, "value")
	}
	if total > servicesPerPage {
		l.Shown = fmt.Sprintf("%d–%d of %s", from+1, to, l.Shown)
	}
	if page > 1 {
		l.Previous = l.with(map[string]string{"page": strconv.Itoa(page - 1)})
	}
	if to < total {
		l.Next = l.with(map[string]string{"page": strconv.Itoa(page + 1)})
	}
}

// growth is how a kind has changed over the range.
type growth struct {
	query.Growth

	Name, Before, After, By, Change string
	Query                           template.URL // of the page that compares the end of the range with its start
}

// maxGrown is how many rows of what grew the page shows, and fewGrown up to how many it adds those that may be chance.
const (
	maxGrown = 5
	fewGrown = 3
)

// grown returns what grew most.
func (p *params) grown(groups []*total) (rows []*growth) {
	var all []*query.Series
	for _, t := range groups {
		if t.series != nil {
			all = append(all, t.series)
		}
	}
	growths := query.GrowthsOf(all, p.selected)
	for _, of := range growths.Rows {
		if of.Weight <= 0 || of.Noise && len(rows) >= fewGrown || len(rows) == maxGrown {
			continue
		}
		k := kind(of.Kind)
		row := &growth{
			Growth: of, Name: k.TypeName(), Before: k.value(of.Before), After: k.value(of.After),
			By: signed(k.value, of.After-of.Before), Change: inPercent(of.Before, of.After),
		}
		seconds := func(prefix string, sel *query.Selection) map[string]string {
			return between(prefix, sel.From.Truncate(time.Second), sel.To.Add(time.Second-1).Truncate(time.Second))
		}
		shown := seconds("", growths.Last)
		if !of.IsNew {
			maps.Copy(shown, seconds("base_", growths.First))
		}
		shown["type"] = k.selector()
		row.Query = p.narrowed(of.Service).with(shown, ownOfLanding...)
		rows = append(rows, row)
	}
	return rows
}
