// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/objectstore"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// Catalog knows the files of a directory.
type Catalog struct {
	// ReadingTime is how long Refresh may read files.
	ReadingTime time.Duration
	// MaxAge is how old the list of files may be, if it takes little time.
	MaxAge time.Duration

	objects   *objectstore.Reader
	maxMemory int64 // of all details
	options   archive.Options

	mu      *semaphore.Weighted // guards the following; a request whose client has left does not wait for it
	lists   lister
	files   map[string]*file                // by path
	failed  []error                         // of the last listing
	used    *simplelru.LRU[*file, struct{}] // those with details
	details atomic.Int64                    // bytes of details
	entries atomic.Int64                    // bytes of files without their details
}

// New returns the catalog of a directory or of the URL of one in an object store, which may not exist yet. The details of its
// files take maxMemory bytes, and the cache of an object store cacheMemory bytes. options say how to read them.
func New(directory string, maxMemory, cacheMemory int64, options archive.Options) *Catalog {
	maxAge := time.Second
	if objectstore.IsURL(directory) {
		maxAge = 30 * time.Second // lists cost time and money
	}
	used, _ := simplelru.NewLRU[*file, struct{}](math.MaxInt, nil) // an error would be of the number
	c := &Catalog{
		ReadingTime: time.Second / 20, MaxAge: maxAge, objects: objectstore.NewReader(cacheMemory, &archive.Stats{}), maxMemory: maxMemory, options: options,
		mu: semaphore.NewWeighted(1), files: map[string]*file{}, used: used,
	}
	c.lists = newLister(func(ctx context.Context) ([]archive.File, []error) { return c.objects.Find(ctx, []string{directory}) })
	return c
}

// Memory returns the bytes that files, their details and the cache take. It does not wait for a Scan.
func (c *Catalog) Memory() int64 { return c.entries.Load() + c.details.Load() + c.objects.Memory() }

// Close ends the listing that runs, and closes connections to object stores.
func (c *Catalog) Close() {
	c.lists.close()
	c.objects.Close()
}

// Refresh takes the latest list of the files, and reads further files for a short time. Other
// methods use that list, so that all parts of a page show the same.
func (c *Catalog) Refresh(ctx context.Context) error {
	if err := c.mu.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.mu.Release(1)
	if l := c.lists.next(ctx, c.MaxAge); l != nil {
		c.take(l)
	}
	c.readFurther(ctx, time.Now().Add(c.ReadingTime))
	return ctx.Err()
}

// take replaces the files by those of a list. If a store did not answer, the last list stays. c.mu is held.
func (c *Catalog) take(l *listing) {
	c.failed = l.failed
	if l.isIncomplete() {
		return
	}
	c.failed = slices.DeleteFunc(l.failed, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })
	seen, size := make(map[string]*file, len(l.found)), int64(0)
	for _, f := range l.found {
		known, before := c.files[f.Path], c.files[f.Path+recordfile.PartialSuffix]
		switch {
		case known != nil && known.Size == f.Size && known.Modified == f.Modified:
			known.File = f
		case known != nil && known.continues(&f):
			known.File, known.grown = f, true
		case known == nil && before != nil && before.continues(&f) && before.readEnd == f.Size:
			closed := *before // and so renamed: it keeps the details
			closed.File, closed.partial, closed.grown = f, false, false
			known, before.details, before.labels = &closed, nil, nil
			c.used.Remove(before)
			c.used.Add(known, struct{}{})
		default:
			known = newFile(f)
		}
		seen[f.Path] = known
		size += known.entrySize()
	}
	for path, known := range c.files {
		if seen[path] != known {
			c.drop(known)
		}
	}
	c.files = seen
	c.entries.Store(size)
}

// readFurther reads at least one of the files that were not read, those that were written last first, until the
// deadline. Of a file with an index it reads only of which time the Profiles are. c.mu is held.
func (c *Catalog) readFurther(ctx context.Context, deadline time.Time) {
	pending := c.pending()
	slices.SortFunc(pending, func(a, b *file) int { return cmp.Or(cmp.Compare(b.Modified, a.Modified), cmp.Compare(a.Path, b.Path)) })
	for i, f := range pending {
		if ctx.Err() != nil || i > 0 && time.Now().After(deadline) {
			return
		}
		c.fetchIndexes(ctx, pending, i)
		if f.grown || !f.readTimes(ctx, &c.options) {
			if _, err := c.use(ctx, f, deadline); err != nil {
				return // requests that need the file have the error
			}
		}
	}
}

// pending returns the files of which some was not read. c.mu is held.
func (c *Catalog) pending() (files []*file) {
	for _, f := range c.files {
		if f.pending() {
			files = append(files, f)
		}
	}
	return files
}

// fetchIndexes fetches the indexes of the next files together, before the first of them is used.
func (c *Catalog) fetchIndexes(ctx context.Context, files []*file, i int) {
	if i%archive.FilesAhead != 0 {
		return
	}
	var needed []archive.File
	for _, f := range files[i:min(len(files), i+archive.FilesAhead)] {
		if f.details == nil {
			needed = append(needed, f.File)
		}
	}
	c.options.FetchIndexes(ctx, needed)
}

// useNext uses the file at i, in a loop over the files. c.mu is held.
func (c *Catalog) useNext(ctx context.Context, files []*file, i int) (details, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.fetchIndexes(ctx, files, i)
	return c.use(ctx, files[i], time.Time{})
}

// drop forgets the details of a file. c.mu is held.
func (c *Catalog) drop(f *file) {
	c.details.Add(-f.size())
	f.details, f.labels = nil, nil
	c.used.Remove(f)
}

// use loads the details of a file, until the deadline if there is one, and drops those that were used least recently if all take too
// much memory. It returns nil if the file is gone. An error is that of an object store. c.mu is held.
func (c *Catalog) use(ctx context.Context, f *file, deadline time.Time) (details, error) {
	if f.details != nil && !f.grown {
		c.used.Get(f)
		return f.details, nil
	}
	c.details.Add(-f.size())
	switch err := f.load(ctx, &c.options, deadline); {
	case errors.Is(err, fs.ErrNotExist):
		f.details, f.labels = nil, nil
		c.used.Remove(f)
		delete(c.files, f.Path)
		c.entries.Add(-f.entrySize())
		return nil, nil
	case err != nil:
		*f = *newFile(f.File)
		c.used.Remove(f)
		return nil, err
	}
	c.details.Add(f.size())
	c.used.Add(f, struct{}{})
	loaded := f.details
	for c.details.Load() > c.detailsMemory() && c.used.Len() > 0 {
		oldest, _, _ := c.used.GetOldest()
		c.drop(oldest)
	}
	return loaded, nil
}

// detailsMemory is what details may take: what files leave, but at least a half.
func (c *Catalog) detailsMemory() int64 { return max(c.maxMemory-c.entries.Load(), c.maxMemory/2) }

// between returns the files that may have Profiles in [from, to), by path, and with written those that were
// written then. c.mu is held.
func (c *Catalog) between(from, to int64, written bool) []*file {
	var selected []*file
	for _, f := range c.files {
		if f.mayStartIn(from, to) || written && f.writtenIn(from, to) {
			selected = append(selected, f)
		}
	}
	slices.SortFunc(selected, func(a, b *file) int { return cmp.Compare(a.Path, b.Path) })
	return selected
}

// Extent is how many Profiles there are, and when.
type Extent struct {
	Profiles int
	// First and Last are the earliest and the latest start, in nanoseconds since the epoch.
	First, Last uint64
}

func (e *Extent) add(of Extent) {
	if e.Profiles == 0 || of.Profiles > 0 && of.First < e.First {
		e.First = of.First
	}
	e.Last = max(e.Last, of.Last)
	e.Profiles += of.Profiles
}

// Found has the results of Scan besides the Profiles that it visited.
type Found struct {
	// All are the Profiles of all files, selected or not. Files that were not read count with one Profile each.
	All Extent
	// Odd are selected Profiles in files that were written in the range, but start long before or after that.
	Odd Extent
	// Errors are those of reading the files that were written in the range.
	Errors []error
	// Pending is how many files are still to be read, by the next calls of Refresh. They were written at other times than
	// the range, but may have Profiles of it.
	Pending int
}

// Extent is that of all Profiles. Of files that were not read, it is estimated.
func (c *Catalog) Extent(ctx context.Context) (all Extent, err error) {
	if err := c.mu.Acquire(ctx, 1); err != nil {
		return all, err
	}
	defer c.mu.Release(1)
	for _, f := range c.files {
		all.add(f.extent())
	}
	return all, nil
}

// Visit gets Profiles of a series, sorted by their start. No further ones of the series start before next. An error ends the scan.
type Visit func(key *recordfile.Key, profiles []recordfile.Total, next uint64) error

// Scan calls visit for the Profiles of each selected series of a file that start in [from, to). Of those of
// which a part is in the range it estimates that part.
func (c *Catalog) Scan(ctx context.Context, from, to time.Time, selects func(*recordfile.Key) bool, visit Visit) (*Found, error) {
	if err := c.mu.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.mu.Release(1)
	start, end := from.UnixNano(), to.UnixNano()
	found := &Found{Errors: slices.Clone(c.failed)}
	files := c.between(start, end, true)
	unread := slices.DeleteFunc(slices.Clone(files), func(f *file) bool { return !f.pending() })
	for i := range unread { // so that it is known when the Profiles start
		if _, err := c.useNext(ctx, unread, i); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(files, func(a, b *file) int { return cmp.Compare(a.profiles.First, b.profiles.First) })
	for i, f := range files {
		next := uint64(math.MaxUint64)
		if i+1 < len(files) {
			next = files[i+1].profiles.First
		}
		has, err := c.useNext(ctx, files, i)
		if err != nil {
			return nil, err
		}
		for key, all := range has {
			if !selects(&key) {
				continue
			}
			var profiles []recordfile.Total
			for _, p := range all {
				if in, ok := within(&p, uint64(max(0, start)), uint64(max(0, end))); ok {
					profiles = append(profiles, in)
				} else if f.writtenIn(start, end) && f.isOdd(&p) {
					found.Odd.add(Extent{p.Profiles, p.Start, p.Start})
				}
			}
			if len(profiles) > 0 {
				slices.SortStableFunc(profiles, func(a, b recordfile.Total) int { return cmp.Compare(a.Start, b.Start) })
				if err := visit(&key, profiles, next); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, f := range c.files {
		found.All.add(f.extent())
		if f.writtenIn(start, end) {
			found.Errors = append(found.Errors, f.errs...)
		}
	}
	found.Pending = len(c.pending())
	slices.SortFunc(found.Errors, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return found, ctx.Err()
}

// Missing is what was not read of a selection.
type Missing struct {
	Failed  []error // not all of many
	Pending int     // files: see Found
}

// Notes are for the reader. The last one is of Pending, if there are such files.
func (m *Missing) Notes() (notes []string) {
	for _, err := range m.Failed {
		notes = append(notes, "Cannot read "+err.Error())
	}
	if m.Pending > 0 {
		notes = append(notes, webui.Count(m.Pending, "file")+" may have profiles of this range, but will be read by the next requests: retry")
	}
	return notes
}

// Source returns the files that may have selected Profiles, by path. A file of the range of which a part cannot be read may
// have them. missed gets what cannot be read, now or of the source.
func (c *Catalog) Source(ctx context.Context, sel *query.Selection, missed *Missing) (*query.Source, error) {
	if err := c.mu.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.mu.Release(1)
	const most = 5
	failed := func(err error) error {
		if len(missed.Failed) < most {
			missed.Failed = append(missed.Failed, err)
		}
		return nil
	}
	for _, err := range c.failed { // also files that may count twice
		if !slices.ContainsFunc(missed.Failed, func(known error) bool { return known.Error() == err.Error() }) {
			_ = failed(err) // it returns nil
		}
	}
	source := &query.Source{Options: c.options, Failed: failed}
	from, to := sel.From.UnixNano(), sel.To.UnixNano()
	files := c.between(from, to, true)
	matches := func(k *recordfile.Key) bool { return sel.MatchesKey(ctx, k) }
	for i, f := range files {
		all, err := c.useNext(ctx, files, i)
		if err != nil {
			return nil, err
		}
		if all.has(matches) && f.mayStartIn(from, to) || len(f.errs) > 0 && f.writtenIn(from, to) {
			source.Files = append(source.Files, f.File)
		}
	}
	missed.Pending = len(c.pending())
	return source, ctx.Err() // after its end, files may be missing
}

// maxLabelFiles is how many files Labels looks at: those that were written last.
const maxLabelFiles = 20

// Labels returns attributes of the files that may have selected Profiles, not all of many files.
func (c *Catalog) Labels(ctx context.Context, sel *query.Selection) (*labels.Set, error) {
	if err := c.mu.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.mu.Release(1)
	files := c.between(sel.From.UnixNano(), sel.To.UnixNano(), false)
	slices.SortStableFunc(files, func(a, b *file) int { return cmp.Compare(b.Modified, a.Modified) })
	found, looked := &labels.Set{}, 0
	for i, f := range files {
		if looked == maxLabelFiles {
			break
		}
		has, err := c.useNext(ctx, files, i)
		if err != nil {
			return nil, err
		}
		if !has.has(func(k *recordfile.Key) bool { return sel.MatchesKey(ctx, k) }) {
			continue
		}
		looked++
		if f.labels == nil && f.details != nil {
			if x := c.options.StoredIndex(ctx, f.File); x != nil {
				f.labels = &x.Labels
				c.details.Add(f.labels.Size())
			}
		}
		found.Merge(f.labels)
	}
	return found, ctx.Err()
}
