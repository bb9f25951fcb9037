// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// KeepInterval is how often Set.Keep is to be called.
const KeepInterval = 10 * time.Second

// concurrentTicks is how many groups Tick syncs and finishes the files of at a time.
const concurrentTicks = 8

// SetOptions are those of a Set beyond those of its Writers.
type SetOptions struct {
	// Levels is how many directories lie one inside the other for a group; 0 for no
	// groups.
	Levels int
	// MaxOpen is how many groups may have a file open, 1 or more. Each takes three
	// descriptors.
	MaxOpen int

	Retention Retention
	// Removed, if set, is called for each file that Retention has removed. It must be
	// quick and must not call the Set.
	Removed func(Removed)
}

// Removed tells of a file that was removed because of Retention.
type Removed struct {
	// Group is the path of its directory below that of the Set.
	Group string
	Name  string
	// Size in bytes.
	Size int64
}

// Set writes records into the directories of groups, below one directory. For each
// group in use it has a Writer; of those that exceed MaxOpen it finishes the file of
// the one that was not used for longest. It is safe for concurrent use.
type Set struct {
	path    string
	options Options
	set     SetOptions

	mu      sync.Mutex
	changed sync.Cond // a member was released, or is gone
	closed  bool
	members map[string]*member
	used    uint64 // counts uses

	finished atomic.Bool // files were finished since Retention was applied

	keeping sync.Mutex
	broken  bool            // something could not be repaired
	vacated map[string]bool // directories of groups that Retention may have emptied, and those above
}

// member is a group in use.
type member struct {
	key    string
	group  []string
	ready  chan struct{} // closed when writer or err is set
	writer *Writer
	err    error
	pins   int    // uses that go on
	used   uint64 // the latest use
}

// OpenSet opens the directory at path, which it makes if it is missing, and repairs
// what an earlier process left there and in the groups. No file, and no directory of
// a group, is made before the first record. The error names the option or the path.
//
// The owner calls Tick at least every TickInterval, Keep at least every KeepInterval,
// and Close at the end.
func OpenSet(path string, options Options, set SetOptions) (*Set, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if set.Levels < 0 || set.MaxOpen < 1 {
		return nil, fmt.Errorf("segment: %d levels of groups, %d open: want 0 or more, and 1 or more", set.Levels, set.MaxOpen)
	}
	s := &Set{path: path, options: options, set: set, members: map[string]*member{}, vacated: map[string]bool{}}
	s.changed.L = &s.mu
	s.finished.Store(true)
	tell := options.Finished
	s.options.Finished = func(f Finished) {
		s.finished.Store(true)
		if tell != nil {
			tell(f)
		}
	}
	whole, err := s.repair()
	if err != nil {
		return nil, err
	}
	s.broken = !whole
	if set.Levels == 0 {
		m, err := s.acquire(nil)
		if err != nil {
			return nil, err
		}
		s.release(m)
	}
	return s, nil
}

// TickInterval is how often Tick is to be called.
func (s *Set) TickInterval() time.Duration { return s.options.tickInterval() }

// Append writes one record, as Writer.Append does, into the directory of the group:
// as many names of GroupName, TypedGroupName or Unset as there are levels.
func (s *Set) Append(group []string, record []byte, count Count) error {
	if len(group) != s.set.Levels {
		return fmt.Errorf("segment: group %q: want %d names", group, s.set.Levels)
	}
	if err := s.options.Format.Content.checkRecord(record); err != nil {
		return &InvalidRecordError{Reason: err} // nothing is made for it
	}
	m, err := s.acquire(group)
	if err != nil {
		return err
	}
	defer s.release(m)
	return m.writer.Append(record, count)
}

// acquire gives the member of a group, which stays until it is released.
func (s *Set) acquire(group []string) (*member, error) {
	key := strings.Join(group, "/")
	failed := map[*member]error{}
	s.mu.Lock()
	for {
		if s.closed {
			s.mu.Unlock()
			return nil, ErrClosed
		}
		if m := s.members[key]; m != nil {
			s.pin(m)
			s.mu.Unlock()
			<-m.ready
			if m.err != nil {
				s.release(m)
				return nil, m.err
			}
			return m, nil
		}
		if len(s.members) < s.set.MaxOpen {
			break
		}
		victim, busy := s.victim(failed)
		switch {
		case victim != nil:
			s.pin(victim)
			s.mu.Unlock()
			err := victim.writer.finishAll(ByOpenFiles)
			s.mu.Lock()
			victim.pins--
			if err != nil {
				failed[victim] = err
			} else {
				s.rest(victim)
			}
			s.changed.Broadcast()
		case busy:
			s.changed.Wait()
		default:
			s.mu.Unlock()
			var errs []error
			for _, err := range failed {
				errs = append(errs, err)
			}
			return nil, fmt.Errorf("segment: group %s: %d files are open and cannot be finished: %w", key, len(errs), errs[0])
		}
	}
	m := &member{key: key, group: group, ready: make(chan struct{})}
	s.members[key] = m
	s.pin(m)
	s.mu.Unlock()

	m.writer, m.err = openWriter(s.path, group, s.options)
	close(m.ready)
	if m.err != nil {
		s.mu.Lock()
		delete(s.members, key)
		s.changed.Broadcast()
		s.mu.Unlock()
		s.release(m)
		return nil, m.err
	}
	return m, nil
}

// victim gives the member that was not used for longest, of those that nobody uses
// and that did not fail. busy says whether there is one that may be free later.
func (s *Set) victim(failed map[*member]error) (victim *member, busy bool) {
	for _, m := range s.members {
		switch {
		case m.pins > 0:
			busy = true
		case failed[m] == nil && (victim == nil || m.used < victim.used):
			victim = m
		}
	}
	return victim, busy
}

func (s *Set) pin(m *member) {
	s.used++
	m.used = s.used
	m.pins++
}

func (s *Set) release(m *member) {
	s.mu.Lock()
	m.pins--
	s.changed.Broadcast()
	s.mu.Unlock()
}

// rest closes the Writer of a member that nobody uses and that has no file. s.mu is
// held: such a Writer has no I/O to do.
func (s *Set) rest(m *member) {
	if m.pins > 0 || s.members[m.key] != m || !m.writer.idle() {
		return
	}
	delete(s.members, m.key)
	if err := m.writer.Close(); err != nil {
		s.options.trouble(err)
	}
}

// pinned gives all members that are ready, each to be released.
func (s *Set) pinned() []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*member
	for _, m := range s.members {
		select {
		case <-m.ready:
			if m.err == nil {
				m.pins++ // this is no use
				all = append(all, m)
			}
		default:
		}
	}
	return all
}

// Tick does what is due in each group, in several at a time, and closes those that
// have no file.
func (s *Set) Tick() {
	due := make(chan *member)
	var ticking sync.WaitGroup
	all := s.pinned()
	for range min(len(all), concurrentTicks) {
		ticking.Go(func() {
			for m := range due {
				m.writer.Tick()
				s.mu.Lock()
				m.pins--
				if s.set.Levels > 0 {
					s.rest(m)
				}
				s.changed.Broadcast()
				s.mu.Unlock()
			}
		})
	}
	for _, m := range all {
		due <- m
	}
	close(due)
	ticking.Wait()
}

// Keep removes files that Retention does not keep, and repairs what could not be
// repaired before. It may take long.
func (s *Set) Keep() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	if s.broken {
		if whole, err := s.repair(); err != nil {
			s.options.trouble(err)
		} else {
			s.broken = !whole
		}
	}
	finished := s.finished.Swap(false)
	if s.set.Retention.enabled() && (finished || s.set.Retention.MaxAge > 0) {
		s.retain()
	}
}

// Close finishes all files and ends the Set. With an error, a file may be left with
// its partial name, for the next OpenSet to finish. Calling it again does nothing.
func (s *Set) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, m := range s.members {
		for m.pins > 0 {
			s.changed.Wait()
		}
	}
	members := s.members
	s.members = nil
	s.mu.Unlock()
	var errs []error
	for _, m := range members {
		errs = append(errs, m.writer.Close())
	}
	s.Keep()
	return errors.Join(errs...)
}

// walk visits the directory and those of all groups, with the one above first.
// Faults in one do not keep it from the others; they go to Options.Trouble, and
// whole is false. The error is that of the first directory.
func (s *Set) walk(visit func(dir Dir, group []string) error) (whole bool, err error) {
	dir, err := s.options.OpenDir(s.path)
	if err != nil {
		return false, fmt.Errorf("segment: %w", err)
	}
	whole, err = s.walkInto(dir, nil, visit)
	return whole, errors.Join(err, dir.Close())
}

func (s *Set) walkInto(dir Dir, group []string, visit func(dir Dir, group []string) error) (whole bool, err error) {
	if err := visit(dir, group); err != nil {
		return false, err
	}
	if len(group) == s.set.Levels {
		return true, nil
	}
	list, err := dir.List()
	if err != nil {
		return false, fmt.Errorf("segment: list directory %s: %w", s.pathOf(group), err)
	}
	whole = true
	for _, name := range list {
		if !isGroupName(name) {
			continue
		}
		info, err := dir.Lstat(name)
		if err == nil && !info.IsDir() {
			continue
		}
		var into Dir
		if err == nil {
			into, err = dir.Enter(name)
		}
		if err == nil {
			var all bool
			all, err = s.walkInto(into, append(group[:len(group):len(group)], name), visit)
			whole = whole && all
			_ = into.Close() // nothing was written through it that was not synced
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be gone
			whole = false
			s.options.trouble(err)
		}
	}
	return whole, nil
}

func (s *Set) pathOf(group []string) string {
	return filepath.Join(append([]string{s.path}, group...)...)
}

// repair finishes what earlier processes left, everywhere.
func (s *Set) repair() (whole bool, err error) {
	allRepaired := true
	whole, err = s.walk(func(dir Dir, group []string) error {
		options := s.options
		if options.Repaired != nil {
			options.Repaired = func(r Repaired) {
				r.Group = filepath.Join(group...)
				s.options.Repaired(r)
			}
		}
		repaired, err := repairDir(dir, s.pathOf(group), options)
		if err == nil && len(group) < s.set.Levels {
			// A crash may have left directories that are not on the disk yet.
			if err := dir.Sync(); err != nil {
				repaired = false
				s.options.trouble(fmt.Errorf("segment: sync directory %s: %w", s.pathOf(group), err))
			}
		}
		allRepaired = allRepaired && repaired
		return err
	})
	return whole && allRepaired, err
}

// retain removes the files that Retention does not keep, and directories of groups
// that are empty then. What fails is tried again at the next Keep.
func (s *Set) retain() {
	var files []kept
	whole, err := s.walk(func(dir Dir, group []string) error {
		list, err := dir.List()
		if err != nil {
			return fmt.Errorf("segment: list directory %s: %w", s.pathOf(group), err)
		}
		for _, label := range list {
			name, ok := ParseName(label)
			if !ok || name.Partial {
				continue
			}
			if info, err := dir.Lstat(label); err == nil && info.Mode().IsRegular() {
				files = append(files, kept{group: filepath.Join(group...), label: label, name: name, size: info.Size()})
			}
		}
		return nil
	})
	s.retainAgain(whole, err)
	byGroup := map[string][]kept{}
	for _, f := range s.set.Retention.surplus(files, s.options.Now()) {
		byGroup[f.group] = append(byGroup[f.group], f)
	}
	if len(byGroup) > 0 {
		whole, err = s.walk(func(dir Dir, group []string) error {
			s.removeFrom(dir, group, byGroup[filepath.Join(group...)])
			return nil // what cannot be removed here keeps nothing from being removed below
		})
		s.retainAgain(whole, err)
	}
	if len(s.vacated) > 0 {
		s.removeEmpty()
	}
}

// retainAgain sees to it that Retention is applied again if it could not be everywhere.
func (s *Set) retainAgain(whole bool, err error) {
	if err != nil {
		s.options.trouble(err)
	}
	if err != nil || !whole {
		s.finished.Store(true)
	}
}

func (s *Set) removeFrom(dir Dir, group []string, files []kept) {
	for _, f := range files {
		err := dir.Remove(f.label)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.retainAgain(false, fmt.Errorf("segment: remove old file %s: %w", filepath.Join(s.path, f.group, f.label), err))
			continue
		}
		for i := range group {
			s.vacated[strings.Join(group[:i+1], "/")] = true
		}
		if err == nil && s.set.Removed != nil {
			s.set.Removed(Removed{Group: f.group, Name: f.label, Size: f.size})
		}
	}
}

// removeEmpty removes those of the vacated directories that are empty and not in use.
func (s *Set) removeEmpty() {
	dir, err := s.options.OpenDir(s.path)
	if err != nil {
		s.options.trouble(fmt.Errorf("segment: %w", err))
		return
	}
	s.removeEmptyIn(dir, nil)
	_ = dir.Close() // removals need not be on the disk
	s.mu.Lock()
	maps.DeleteFunc(s.vacated, func(key string, _ bool) bool { return !s.inUse(key) })
	s.mu.Unlock()
}

func (s *Set) removeEmptyIn(dir Dir, group []string) {
	if len(group) == s.set.Levels {
		return
	}
	list, err := dir.List()
	if err != nil {
		return // the walk before has told
	}
	for _, name := range list {
		below := append(group[:len(group):len(group)], name)
		key := strings.Join(below, "/")
		if info, err := dir.Lstat(name); !s.vacated[key] || err != nil || !info.IsDir() {
			continue
		}
		if into, err := dir.Enter(name); err == nil {
			s.removeEmptyIn(into, below)
			_ = into.Close()
		}
		s.mu.Lock()
		if !s.inUse(key) {
			_ = dir.Remove(name) // it fails unless it is empty
		}
		s.mu.Unlock()
	}
}

// inUse says whether a group at or below the key has a member.
func (s *Set) inUse(key string) bool {
	for other := range s.members {
		if other == key || strings.HasPrefix(other, key+"/") {
			return true
		}
	}
	return false
}
