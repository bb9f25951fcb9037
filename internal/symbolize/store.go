// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/httpguard"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

// Options of a Store. Sizes are in bytes.
type Options struct {
	// Directories have debug files below .build-id, or any ELF files.
	Directories []string
	// ByPath: if a mapping has no build ID, its file is taken from the directories by its path, as if each were the root of
	// the file system. The file may be another version than the one that was profiled.
	ByPath bool
	// Servers are the URLs of debuginfod servers, and Client sends the requests to them. What it adds to requests stays with
	// the server: a redirect to another host is followed without, and to public addresses only.
	Servers []string
	Client  *http.Client
	// Cache is the directory of the tables, and of temporary files. CacheSize limits the tables.
	Cache     string
	CacheSize int64
	// MaxFileSize limits a file that is downloaded, and the sections of a file, decompressed.
	MaxFileSize int64
	// MaxMemory limits the memory of reading a file, one at a time, and of what one payload gets.
	MaxMemory int64
	// Built is called when the search for a file has ended: the error is nil, ErrNotFound, an *IncompleteError if there is
	// a table all the same, or says what is wrong with the file. It is called by several goroutines.
	Built func(buildID string, err error)
}

// ErrNotFound says that no file has a build ID.
var ErrNotFound = errors.New("no file with this build ID")

// IncompleteError says that parts of the debug information are missing, so that only the symbol table is read.
type IncompleteError struct {
	file, altID string
	cause       error
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%s: only its symbol table is read, as it shares debug information with the file of build ID %s: %v", e.file, e.altID, e.cause)
}

const (
	maxKnown = 10_000 // build IDs whose outcome is remembered
	maxBusy  = 8      // files that are searched for at a time
	// After these times, a file that was not found or not read is searched for again.
	retryNotFound = time.Hour
	retryFailed   = 5 * time.Minute
)

// validID are build IDs, which become parts of paths and URLs.
var validID = regexp.MustCompile(`^[0-9a-f]{8,128}$`)

// Store has symbol tables by build ID, as files. It is safe for concurrent use.
type Store struct {
	options     Options
	directories directories
	ctx         context.Context
	stop        context.CancelFunc
	builds      sync.WaitGroup
	building    chan struct{} // one file is read at a time

	mu    sync.Mutex
	known map[string]*entry
	busy  int
}

// entry is what is known of a build ID.
type entry struct {
	done chan struct{} // closed when the search has ended
	// These are set when done is closed, and from then on guarded by mu.
	path    string            // of the table
	hashes  map[string]string // of executables, by path
	err     error
	expires time.Time // zero if the table is complete
}

// NewStore creates the directory of the cache, and removes what earlier processes have left in it unfinished.
func NewStore(o Options) (*Store, error) {
	if err := os.MkdirAll(o.Cache, 0o700); err != nil {
		return nil, err
	}
	if o.Client != nil {
		client := *o.Client
		httpguard.FollowInPublic(&client)
		o.Client = &client
	}
	s := &Store{options: o, known: map[string]*entry{}, building: make(chan struct{}, 1)}
	s.directories.roots = o.Directories
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, s.limitCache()
}

// Close ends all searches.
func (s *Store) Close() {
	s.stop()
	s.builds.Wait()
	if s.options.Client != nil {
		s.options.Client.CloseIdleConnections()
	}
}

// prepare starts the search for the files of build IDs, and waits until all have ended, or ctx is done.
func (s *Store) prepare(ctx context.Context, buildIDs []string) {
	for _, id := range buildIDs {
		s.start(id)
	}
	for _, id := range buildIDs { // those that could not start above start when others have ended
		done := s.start(id)
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// start returns a channel that is closed when the search has ended, nil if it cannot start now.
func (s *Store) start(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[id]
	if e != nil && !(ended(e) && !e.expires.IsZero() && time.Now().After(e.expires)) {
		return e.done
	}
	if s.busy == maxBusy || s.ctx.Err() != nil {
		return nil
	}
	if len(s.known) >= maxKnown {
		for other := range s.known {
			s.forget(other)
		}
	}
	e = &entry{done: make(chan struct{})}
	s.known[id] = e
	s.busy++
	s.builds.Go(func() {
		var path string
		var hashes map[string]string
		err := panics.Guarded(func() (err error) { // of a damaged file, which fails alone
			if path, err = s.build(id); path != "" {
				hashes = s.hashesOf(id)
			}
			return err
		})()
		if s.ctx.Err() == nil {
			s.options.Built(id, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
		e.path, e.hashes = path, hashes
		_, incomplete := errors.AsType[*IncompleteError](err)
		switch {
		case incomplete:
			e.expires = time.Now().Add(retryNotFound)
		case errors.Is(err, ErrNotFound):
			e.err, e.expires = err, time.Now().Add(retryNotFound)
		case err != nil:
			e.err, e.expires = err, time.Now().Add(retryFailed)
		}
		close(e.done)
	})
	return e.done
}

func ended(e *entry) bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// forget drops the outcome of a search that has ended, so that the table is made again when it is needed.
func (s *Store) forget(id string) {
	if e := s.known[id]; e != nil && ended(e) {
		delete(s.known, id)
	}
}

// Outcome says what became of a location.
type Outcome string

// The outcomes.
const (
	Symbolized Outcome = "symbolized"
	Unknown    Outcome = "unknown"     // the file has no symbol there
	NotFound   Outcome = "not_found"   // there is no file with the build ID
	Pending    Outcome = "pending"     // the file is being searched for or read
	Failed     Outcome = "failed"      // the file cannot be read, or the payload has got too much
	NoBuildID  Outcome = "no_build_id" // the mapping has no GNU build ID, or there is no mapping
	BadMapping Outcome = "bad_mapping" // the mapping does not lead into the code of the file
)

// with calls f with the table of a build ID, unless the outcome is another one than Symbolized. One table is open at a time. A
// table that cannot be read is removed, so that it is made again.
func (s *Store) with(id string, f func(*symbols.Table) error) Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[id]
	switch {
	case e == nil || !ended(e):
		return Pending
	case errors.Is(e.err, ErrNotFound):
		return NotFound
	case e.err != nil:
		return Failed
	}
	outcome := Failed
	table, err := symbols.Open(e.path)
	if err == nil {
		defer table.Close()
		now := time.Now()
		_ = os.Chtimes(e.path, now, now) // the cache drops the tables that were not used for longest
		err, outcome = f(table), Symbolized
	}
	if err != nil {
		e.err, e.expires = errors.Join(err, os.Remove(e.path)), time.Now()
	}
	return outcome
}

// build makes the table of a build ID unless it is in the cache, and returns its path.
func (s *Store) build(id string) (path string, err error) {
	path = filepath.Join(s.options.Cache, id+tableSuffix)
	if symbols.Check(path) == nil {
		return path, nil
	}
	found, err := s.find(id)
	if err != nil {
		return "", err
	}
	defer found.close()
	select {
	case s.building <- struct{}{}:
		defer func() { <-s.building }()
	case <-s.ctx.Done():
		return "", s.ctx.Err()
	}
	table, err := os.CreateTemp(s.options.Cache, temporaryPrefix)
	if err != nil {
		return "", err
	}
	defer os.Remove(table.Name())
	o := symbols.Options{Directory: s.options.Cache, MaxMemory: s.options.MaxMemory, MaxFileSize: s.options.MaxFileSize}
	err = errors.Join(symbols.Build(s.ctx, found.Files, o, table), table.Close())
	if err != nil {
		if err = fmt.Errorf("%s: %w", found, err); found.missing != nil {
			err = fmt.Errorf("%w; %s", err, found.missing.Error())
		}
		return "", err
	}
	if found.missing != nil {
		path = filepath.Join(s.options.Cache, id+partialSuffix+tableSuffix)
	}
	if err := errors.Join(os.Rename(table.Name(), path), s.limitCache()); err != nil {
		return "", err
	}
	return path, found.missing
}
