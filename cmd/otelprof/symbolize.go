// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
)

// symbolizer gives functions, files and lines to native frames, from debug files.
type symbolizer struct {
	directories []string

	store    *symbolize.Store // nil until a source uses it
	tables   string           // a temporary directory
	outcomes map[symbolize.Outcome]int
}

// use makes a source symbolize the selected profiles. The caller closes the symbolizer.
func (s *symbolizer) use(ctx context.Context, a *app, source *query.Source) (err error) {
	if len(s.directories) == 0 {
		return nil
	}
	if s.store == nil {
		if err = s.open(a); err != nil {
			return err
		}
	}
	source.Change = func(pd pprofile.Profiles) {
		for outcome, n := range symbolize.Profiles(ctx, s.store, pd, symbolize.DemangleShort) {
			s.outcomes[outcome] += n
		}
	}
	return nil
}

func (s *symbolizer) open(a *app) (err error) {
	for _, directory := range s.directories {
		if info, err := os.Stat(directory); err != nil || !info.IsDir() {
			return fmt.Errorf("--symbolize is %q: must be a directory with debug files", directory)
		}
	}
	if s.tables, err = os.MkdirTemp("", "otelprof-symbols-"); err != nil {
		return err
	}
	const cacheSize, maxFileSize = 1 << 40, 8 << 30 // they are removed in the end
	s.outcomes = map[symbolize.Outcome]int{}
	s.store, err = symbolize.NewStore(symbolize.Options{
		Directories: s.directories, ByPath: true, Cache: s.tables, CacheSize: cacheSize, MaxFileSize: maxFileSize, MaxMemory: a.limit / 4,
		Built: func(_ string, err error) {
			if err != nil && !errors.Is(err, symbolize.ErrNotFound) {
				a.note("cannot read all symbols: %v", err)
			}
		},
	})
	return err
}

// close says how many locations were symbolized, and removes the tables.
func (s *symbolizer) close(a *app) {
	if s.store != nil {
		s.store.Close()
	}
	if s.tables != "" {
		_ = os.RemoveAll(s.tables) // what is left is in the directory of temporary files
	}
	if s.store != nil { // last, as a closed pipe ends the program
		a.note("%s", summaryOf(s.outcomes))
	}
}

// summaryOf counts locations without lines. One that is in several records counts in each.
func summaryOf(outcomes map[symbolize.Outcome]int) string {
	total := 0
	var others []string
	for _, of := range []struct {
		outcome symbolize.Outcome
		text    string
	}{
		{symbolize.Symbolized, ""}, {symbolize.NotFound, "have no debug file"}, {symbolize.NoBuildID, "have neither a build ID nor a file"},
		{symbolize.Unknown, "are in no function"}, {symbolize.BadMapping, "are not in the code of their file"}, {symbolize.Failed, "have a file that cannot be read"},
		{symbolize.Pending, "were not read"},
	} {
		n := outcomes[of.outcome]
		total += n
		if n > 0 && of.text != "" {
			others = append(others, fmt.Sprintf("%d %s", n, of.text))
		}
	}
	return strings.Join(append([]string{fmt.Sprintf("symbolized %d of %d locations without lines", outcomes[symbolize.Symbolized], total)}, others...), "; ")
}
