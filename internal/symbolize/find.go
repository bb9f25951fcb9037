// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

// files are those with one build ID, which are open until close.
type files struct {
	symbols.Files

	opened  []*os.File
	hasCode bool   // one of them has: that of Debug may
	altID   string // of the file that should be Alt
	missing error  // says that Alt is, and why
	from    []string
}

func (f *files) close() {
	for _, file := range f.opened {
		file.Close()
	}
}

func (f *files) String() string { return strings.Join(f.from, ", ") }

// add keeps a file if it has the build ID, and is of a kind that is missing. It closes others.
func (f *files) add(file *os.File, from, id string) error {
	info, err := symbols.ReadInfo(file)
	switch {
	case err != nil:
		err = fmt.Errorf("%s is not an ELF file: %w", from, err)
	case info.BuildID != id:
		err = fmt.Errorf("%s: its build ID is %q; expected %s", from, info.BuildID, id)
	case info.HasDWARF && f.Debug == nil:
		f.Debug, f.hasCode, f.altID = file, f.hasCode || info.HasCode, info.AltID
		f.opened, f.from = append(f.opened, file), append(f.from, from)
		return nil
	case info.HasCode && f.Program == nil:
		f.Program, f.hasCode = file, true
		f.opened, f.from = append(f.opened, file), append(f.from, from)
		return nil
	}
	file.Close()
	return err
}

// find opens the files of a build ID. The error is ErrNotFound if there are none.
func (s *Store) find(id string) (*files, error) {
	found, err := s.search(id, "debuginfo", "executable")
	if err != nil || found.altID == "" {
		return found, err
	}
	if alt, err := s.findAlt(found.altID); err == nil {
		found.Alt, found.opened = alt.Debug, append(found.opened, alt.opened...)
	} else {
		found.missing = &IncompleteError{found.String(), found.altID, err}
	}
	return found, nil
}

// findAlt opens the file that .gnu_debugaltlink names.
func (s *Store) findAlt(id string) (*files, error) {
	if !validID.MatchString(id) {
		return nil, ErrNotFound
	}
	found, err := s.search(id, "debuginfo")
	if err == nil && found.Debug == nil {
		found.close()
		return nil, ErrNotFound
	}
	return found, err
}

// search opens the files of a build ID, of the kinds that debuginfod has.
func (s *Store) search(id string, kinds ...string) (*files, error) {
	found := &files{}
	var failed error
	for _, path := range s.directories.paths(id) {
		file, err := regularfile.Open(path)
		if err == nil {
			err = found.add(file, path, id)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	for _, kind := range kinds {
		if found.Debug != nil && (kind == "debuginfo" || found.hasCode) {
			continue
		}
		for _, server := range s.options.Servers {
			file, host, err := s.download(server, id, kind)
			if err == nil {
				err = found.add(file, kind+" of "+host, id)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, ErrNotFound) {
				failed = errors.Join(failed, err)
			}
		}
	}
	if found.Debug == nil && found.Program == nil {
		if failed == nil {
			failed = ErrNotFound
		}
		return nil, failed
	}
	return found, nil
}

// download gets a file from a debuginfod server, and returns the host of its URL, whose other parts may be secret. See
// https://sourceware.org/elfutils/Debuginfod.html for its paths.
func (s *Store) download(server, id, kind string) (file *os.File, host string, err error) {
	address, err := url.JoinPath(server, "buildid", id, kind)
	if err != nil {
		return nil, "", err
	}
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	file, err = s.get(request)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("GET %s%s: %w", request.URL.Host, request.URL.Path, config.WithoutURL(err))
	}
	return file, request.URL.Host, err
}

// get returns the body of a response as a file without a name.
func (s *Store) get(request *http.Request) (*os.File, error) {
	response, err := s.options.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, ErrNotFound
	case response.StatusCode != http.StatusOK:
		return nil, errors.New(response.Status)
	case response.ContentLength > s.options.MaxFileSize:
		return nil, fmt.Errorf("the file has %d bytes; max_file_size allows %d", response.ContentLength, s.options.MaxFileSize)
	}
	file, err := os.CreateTemp(s.options.Cache, temporaryPrefix)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(file, io.LimitReader(response.Body, s.options.MaxFileSize+1))
	if err == nil && n > s.options.MaxFileSize {
		err = fmt.Errorf("the file has more bytes than max_file_size allows, %d", s.options.MaxFileSize)
	}
	if err = errors.Join(err, os.Remove(file.Name())); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

const (
	maxIndexed  = 100_000 // ELF files of directories
	rescanAfter = 5 * time.Minute
)

// directories knows the ELF files below directories by their build ID.
type directories struct {
	roots []string

	mu      sync.Mutex
	scanned time.Time
	found   map[string][]string
}

// paths returns files that may have a build ID. It reads the directories again if that was long ago.
func (d *directories) paths(id string) (paths []string) {
	if len(d.roots) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.scanned) > rescanAfter {
		d.scan()
		d.scanned = time.Now()
	}
	for _, root := range d.roots {
		path := filepath.Join(root, ".build-id", id[:2], id[2:])
		paths = append(paths, path+".debug", path)
	}
	return append(paths, d.found[id]...)
}

// buildIDOf returns the build ID of a file with a path as the profiled system has it, or "" if it is unknown.
func (s *Store) buildIDOf(path string) string {
	if !s.options.ByPath || path == "" {
		return ""
	}
	for _, root := range s.options.Directories {
		file, err := regularfile.Open(filepath.Join(root, path))
		if err != nil {
			continue
		}
		info, err := symbols.ReadInfo(file)
		file.Close()
		if err == nil && info.BuildID != "" {
			return info.BuildID
		}
	}
	return ""
}

// hashesOf returns the hashes of the files in the directories that have the build ID and code, by path.
func (s *Store) hashesOf(id string) map[string]string {
	hashes := map[string]string{}
	for _, path := range s.directories.paths(id) {
		file, err := regularfile.Open(path)
		if err != nil {
			continue
		}
		if info, err := symbols.ReadInfo(file); err == nil && info.BuildID == id && info.HasCode {
			if stat, err := file.Stat(); err == nil {
				hashes[path], _ = symbols.FileHash(file, stat.Size()) // "" with an error
			}
		}
		file.Close()
	}
	return hashes
}

// hashOf returns the hash of the file of a mapping, if that is the executable that was profiled: the directories had it under
// the path that the profile says when the build ID was searched for. An unstripped copy has that build ID, but another hash.
func (s *Store) hashOf(path, id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[id]
	if path == "" || e == nil || !ended(e) {
		return ""
	}
	path = filepath.Clean(path)
	if hash := e.hashes[path]; hash != "" {
		return hash
	}
	for _, root := range s.options.Directories {
		if hash := e.hashes[filepath.Join(root, path)]; hash != "" {
			return hash
		}
	}
	return ""
}

// scan reads the build IDs of all files. What cannot be read is left out: it may be of any kind.
func (d *directories) scan() {
	d.found = map[string][]string{}
	count := 0
	for _, root := range d.roots {
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil
			}
			file, err := regularfile.Open(path)
			if err != nil {
				return nil
			}
			defer file.Close()
			if info, err := symbols.ReadInfo(file); err == nil && info.BuildID != "" {
				d.found[info.BuildID] = append(d.found[info.BuildID], path)
				if count++; count >= maxIndexed {
					return fs.SkipAll
				}
			}
			return nil
		})
	}
}
