// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Catalog knows what a store has. It is safe for concurrent use.
type Catalog struct {
	// MaxAge is how old a list of files may be, if it takes little time.
	MaxAge time.Duration

	store      *store.Store
	options    archive.Options
	listMemory int64 // of all lists, in bytes

	listing context.Context // of all lists
	close   context.CancelFunc
	working sync.WaitGroup // lists that are being made

	mu    sync.Mutex
	lists *simplelru.LRU[reach, *lister]

	given  *query.Source // unless it is nil, it is what is shown, in place of a store
	extent Extent        // of given
}

// reach is how far a list goes back: log2 of hours.
type reach int

// allTime is the reach of a list of all files.
const allTime reach = 20

// reachOf returns the least reach of a list that has a time.
func reachOf(from, now time.Time) (r reach) {
	for r < allTime && r.since(now).After(from) {
		r++
	}
	return r
}

// since is when a list begins.
func (r reach) since(now time.Time) time.Time {
	if r == allTime {
		return time.Time{}
	}
	return now.Add(-time.Hour << r)
}

// Memory is how many bytes a Catalog may take.
type Memory struct {
	Lists, Indexes int64
	// Blocks is for an object store only.
	Blocks int64
}

// New returns the catalog of a directory, or of the URL of one in an object store, which may not exist yet. options say how to read files.
func New(directory string, memory Memory, options archive.Options) (*Catalog, error) {
	cache, maxAge := 2*memory.Indexes, time.Second
	if bucket.IsURL(directory) {
		cache, maxAge = memory.Indexes+memory.Blocks, 30*time.Second // lists cost time and money
	}
	opened, err := store.OpenPart(directory, store.ReadOptions{MaxRecord: options.MaxMemory / 8, MaxDecoded: options.MaxMemory / 4, Cache: cache})
	if err != nil {
		return nil, err
	}
	c := &Catalog{MaxAge: maxAge, store: opened, options: options, listMemory: memory.Lists}
	c.listing, c.close = context.WithCancel(context.Background())
	c.lists, _ = simplelru.NewLRU[reach, *lister](int(allTime)+1, nil) // an error would be of the number
	return c, nil
}

// Given returns the catalog of a source, which is read for each query. extent is that of its Profiles.
func Given(source *query.Source, extent Extent) *Catalog {
	c := &Catalog{given: source, extent: extent, options: source.Options}
	c.listing, c.close = context.WithCancel(context.Background())
	c.lists, _ = simplelru.NewLRU[reach, *lister](1, nil) // an error would be of the number
	return c
}

// Memory returns the bytes that lists, indexes and blocks take.
func (c *Catalog) Memory() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given != nil { // its memory is its owner's
		return 0
	}
	return c.sizeOfLists() + c.store.Memory()
}

// sizeOfLists is in bytes. c.mu is held.
func (c *Catalog) sizeOfLists() (size int64) {
	for _, l := range c.lists.Values() {
		size += l.size()
	}
	return size
}

// Close ends the lists that are being made, and closes connections to object stores. No other list is made.
func (c *Catalog) Close() {
	c.close()
	c.working.Wait()
	if c.store != nil {
		c.store.Close()
	}
}

// lister returns the one of a reach. Others are dropped if their lists take too much memory.
func (c *Catalog) lister(r reach) *lister {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, known := c.lists.Get(r)
	if !known {
		l = newLister(c.listing, &c.working, func(ctx context.Context) ([]*store.Segment, error) {
			return c.store.Since(ctx, r.since(time.Now()), nil)
		})
		c.lists.Add(r, l)
	}
	for c.lists.Len() > 1 && c.sizeOfLists() > c.listMemory {
		c.lists.RemoveOldest()
	}
	return l
}

// list returns the segments of the partitions since a time, and those of some time before.
func (c *Catalog) list(ctx context.Context, from time.Time) (listing, error) {
	return c.lister(reachOf(from, time.Now())).get(ctx, c.MaxAge)
}

// Live is that of a Store, by a list that may be as old as MaxAge.
func (c *Catalog) Live(ctx context.Context, from, to time.Time, accepts func(group string) bool) ([]*store.Segment, error) {
	list, err := c.list(ctx, from)
	if err != nil {
		return nil, err
	}
	var live []*store.Segment
	accepted := map[string]bool{} // by group
	for _, s := range list.found {
		if !s.Overlaps(from, to) {
			continue
		}
		is, known := accepted[s.Group]
		if !known {
			is = accepts(s.Group)
			accepted[s.Group] = is
		}
		if is {
			live = append(live, s)
		}
	}
	return live, cmp.Or(ctx.Err(), list.failed)
}

// Expire makes the next lists new ones.
func (c *Catalog) Expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lists.Values() {
		l.expire()
	}
}

// Extent is when Profiles start, at the earliest and the latest. It is zero if there are none.
type Extent struct{ First, Last time.Time }

func (e *Extent) add(first, last time.Time) {
	if e.Last.IsZero() || first.Before(e.First) {
		e.First = first
	}
	if last.After(e.Last) {
		e.Last = last
	}
}

// Extent is that of all Profiles, by the names of files: it is to the second, and Last is an end. It lists all files.
func (c *Catalog) Extent(ctx context.Context) (all Extent, err error) {
	if c.given != nil {
		return c.extent, nil
	}
	list, err := c.list(ctx, time.Time{})
	for _, s := range list.found {
		if s.Partial { // its name does not say it
			all.add(s.Partition, time.Now())
		} else {
			all.add(s.Start, s.End)
		}
	}
	return all, err
}

// Visit gets Times by the labels by, and what of them is in the range: nil if nothing is, or if they are a whole. An error ends the scan.
type Visit func(of *query.Times, in *contents.Total) error

// TotalOf returns the total of a summary: of snapshots, those before the latest do not count.
func TotalOf(s *contents.Summary) contents.Total {
	t := s.Total
	if s.Snapshot != 0 {
		t.Start = t.Latest
	}
	return t
}

// within returns the part of p that starts in [from, to), which is estimated unless it is all or nothing.
func within(p *contents.Total, from, to uint64) (part contents.Total, ok bool) {
	part = *p
	start, latest := max(p.Start, from), min(p.Latest, to-1)
	if start > latest {
		return part, false
	}
	if start > p.Start || latest < p.Latest {
		share := float64(latest-start) / float64(p.Latest-p.Start)
		part.Start, part.Latest, part.End = start, latest, min(p.End, to)
		part.Covered = min(uint64(float64(p.Covered)*share), part.End-part.Start)
		part.Sum, part.Samples = int64(float64(p.Sum)*share), int(float64(p.Samples)*share)
		part.Profiles = max(1, int(float64(p.Profiles)*share))
	}
	return part, true
}

// Scan calls visit for the summaries of each selected series by labels, which query.EachProcess reads: also around the range. Of those of
// which a part is in the range it estimates that part. selects says of each series whether it is visited. missed gets what cannot be read.
func (c *Catalog) Scan(ctx context.Context, sel *query.Selection, by []string, selects func(*contents.Key) bool, missed *Missing, visit Visit) error {
	from, to := uint64(max(0, sel.From.UnixNano())), uint64(max(0, sel.To.UnixNano()))
	selected := map[contents.Key]bool{}
	return c.Source(missed).EachProcess(ctx, sel, by, func(of *query.Times) error {
		total := TotalOf(of.Summary)
		in, some := within(&total, from, to)
		isSelected, known := selected[of.Key]
		if !known && some { // only those of the range are offered
			isSelected = selects(&of.Key)
			selected[of.Key] = isSelected
		} else if !known {
			isSelected = true
		}
		switch {
		case !isSelected:
			return nil
		case !some || of.IsWhole:
			return visit(of, nil)
		}
		return visit(of, &in)
	})
}

// Missing is what was not read of a selection.
type Missing struct {
	Failed []error // not all of many
}

// Notes are for the reader.
func (m *Missing) Notes() (notes []string) {
	for _, err := range m.Failed {
		notes = append(notes, "Cannot read "+err.Error())
	}
	return notes
}

// add adds an error, unless there are many or it is known.
func (m *Missing) add(err error) error {
	const most = 20
	if len(m.Failed) < most && !slices.ContainsFunc(m.Failed, func(known error) bool { return known.Error() == err.Error() }) {
		m.Failed = append(m.Failed, err)
	}
	return nil
}

// Source is for queries. missed gets what cannot be read.
func (c *Catalog) Source(missed *Missing) *query.Source {
	if c.given != nil {
		source := *c.given
		source.Failed = missed.add
		return &source
	}
	return &query.Source{Stores: []query.Lister{c}, Options: c.options, Failed: missed.add, Gone: c.Expire}
}

// maxLabelFiles is how many files Labels looks at: those with the latest Profiles.
const maxLabelFiles = 20

// Labels returns attributes of the files that may have selected Profiles, not all of many files.
func (c *Catalog) Labels(ctx context.Context, sel *query.Selection) (*labels.Set, error) {
	if c.given != nil {
		return c.Source(&Missing{}).Labels(ctx, sel) // other parts of the page say the errors
	}
	segments, _ := sel.Live(ctx, c)
	end := func(s *store.Segment) int64 {
		if s.Partial {
			return math.MaxInt64
		}
		return s.End.UnixNano()
	}
	slices.SortStableFunc(segments, func(a, b *store.Segment) int { return cmp.Compare(end(b), end(a)) })
	found, looked := &labels.Set{}, 0
	for _, s := range segments {
		if looked == maxLabelFiles || ctx.Err() != nil {
			break
		}
		x, err := s.Index(ctx)
		if errors.Is(err, store.ErrGone) {
			c.Expire()
			return nil, err
		}
		if err != nil || !slices.ContainsFunc(x.Keys, func(k contents.Key) bool { return sel.MatchesKey(ctx, &k) }) {
			continue
		}
		looked++
		found.Merge(&x.Labels)
	}
	return found, ctx.Err()
}
