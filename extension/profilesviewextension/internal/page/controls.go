// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"html/template"
	"strings"
	"time"
)

// link is a choice of a page: another range, comparison or order.
type link struct {
	Text    string
	Query   template.URL
	Current bool
}

// ranges are those up to now. byDefault is the length of that of a page whose URL states none.
func (p *params) ranges(byDefault time.Duration, changes ...change) (links []link) {
	from := cmp.Or(p.values.Get("from"), "-"+shortly(byDefault))
	for _, r := range []struct{ text, length string }{
		{"5 m", "5m"}, {"15 m", "15m"}, {"1 h", "1h"}, {"6 h", "6h"}, {"24 h", "24h"}, {"7 d", "168h"},
	} {
		current := from == "-"+r.length && !p.values.Has("to")
		changed := append(changes[:len(changes):len(changes)], withoutBase, without("to"), set("from", "-"+r.length))
		links = append(links, link{r.text, p.with(changed...), current})
	}
	return links
}

// comparisons are with the range before, the range an hour ago and so on.
func (p *params) comparisons() (links []link) {
	sel := p.selected
	length := sel.To.Sub(sel.From)
	for _, c := range []struct {
		text string
		ago  time.Duration
	}{
		{"previous range", length}, {"1 h ago", time.Hour}, {"yesterday", 24 * time.Hour}, {"7 days ago", 7 * 24 * time.Hour},
	} {
		if c.ago == length && len(links) > 0 { // the previous range
			continue
		}
		from, to := sel.From.Add(-c.ago), sel.To.Add(-c.ago)
		base := []change{between("base_", from, to)}
		if !p.values.Has("to") && to.Before(p.now) { // moves with the range
			base = []change{set("base_from", "-"+withoutZeros(p.now.Sub(from))), set("base_to", "-"+withoutZeros(p.now.Sub(to)))}
		}
		current := p.base != nil && isNear(p.base.From, from) && isNear(p.base.To, to)
		links = append(links, link{c.text, p.with(base...), current})
	}
	return append(links, link{"nothing", p.with(withoutBase), p.base == nil})
}

// isNear reports whether two times are the same except for the time that a user takes.
func isNear(a, b time.Time) bool { return a.Sub(b).Abs() < time.Second }

func (p *params) sorts() (links []link) {
	for _, s := range []struct{ text, key string }{{"CPU", sortCPU}, {"newest", sortNewest}, {"name", sortName}} {
		current := cmp.Or(p.values.Get("sort"), sortCPU) == s.key
		links = append(links, link{s.text, p.with(set("sort", s.key)), current})
	}
	return links
}

// The orders of services. Services with equal CPU time are sorted by newest profile, then by name.
const (
	sortCPU    = "cpu"
	sortNewest = "newest"
	sortName   = "name"
)

// shortly writes a duration to the second, and a long one in days.
func shortly(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%.0fd", d.Hours()/24)
	}
	return withoutZeros(d.Round(time.Second))
}

// withoutZeros writes a duration without the units at its end that are zero.
func withoutZeros(d time.Duration) string {
	text := d.String()
	if before, found := strings.CutSuffix(text, "m0s"); found {
		text = before + "m"
	}
	if before, found := strings.CutSuffix(text, "h0m"); found {
		text = before + "h"
	}
	return text
}
