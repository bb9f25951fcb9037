// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/page"
)

func (a *app) view() *cobra.Command {
	c := &cobra.Command{
		Use:   "view PATH...",
		Short: "Show profiles over time, flame graphs and tables in a browser",
		Long: `Show the page of the profiles_view extension for files and directories, which
are read for each page. The flags select what is shown first. The page is for
this computer only, unless --http names another address.`,
		Example: `  otelprof view --service checkout --type cpu ./profiles
  otelprof view --type cpu --no-browser --http localhost:8080 ./profiles`,
		Args: paths,
	}
	compared := a.addComparison(c.Flags())
	shown := url.Values{}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if key := strings.ReplaceAll(f.Name, "-", "_"); slices.Contains(page.Parameters, key) {
			f.Value = &recorded{f.Value, key, shown}
		}
	})
	address := c.Flags().String("http", "localhost:0", "`ADDRESS` to listen at")
	noBrowser := c.Flags().Bool("no-browser", false, "do not open a browser")
	c.RunE = func(c *cobra.Command, args []string) error {
		host, _, err := net.SplitHostPort(*address)
		if err != nil {
			return fmt.Errorf("--http is %q: must be HOST:PORT", *address)
		}
		spooled, err := spool(args)
		defer spooled.remove()
		if err != nil {
			return err
		}
		defer compared.symbolize.close(a)
		source, baseSource, err := a.sources(c.Context(), spooled.paths, compared)
		if err != nil {
			return err
		}
		p, err := a.page(c.Context(), strings.Join(args, " "), source, baseSource, compared, shown)
		if err != nil {
			return err
		}
		defer p.Close()
		start := shown.Encode()
		handler := webui.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" && r.URL.RawQuery == "" {
				http.Redirect(w, r, "/?"+start, http.StatusFound)
				return
			}
			p.ServeHTTP(w, r)
		}), page.IsRPC, host)
		return a.serve(c.Context(), *address, start, handler, !*noBrowser)
	}
	return c
}

// page returns the page of a source, and adds to shown the range of its profiles and the service, if it has only one.
func (a *app) page(ctx context.Context, name string, source, baseSource *query.Source, compared *comparison, shown url.Values) (*page.Page, error) {
	services := map[string]bool{}
	extentOf := func(s *query.Source, of *query.Selection, prefix string) (all catalog.Extent, err error) {
		s.Options = page.Options(a.limit, "--max-memory")
		s.Options.Stats = &a.stats
		rows, err := s.List(ctx, of)
		switch {
		case err != nil:
			return all, err
		case len(rows) == 0:
			return all, query.ErrEmpty
		}
		first, last := rows[0].Start, rows[0].End
		for _, r := range rows {
			first, last = min(first, r.Start), max(last, r.Start+1, r.End)
			if prefix == "" {
				services[r.Service] = true
			}
		}
		all.First, all.Last = query.TimeOf(first), query.TimeOf(last)
		if !shown.Has(prefix+"from") && !shown.Has(prefix+"to") {
			shown.Set(prefix+"from", all.First.UTC().Format(time.RFC3339Nano))
			shown.Set(prefix+"to", all.Last.UTC().Format(time.RFC3339Nano))
		}
		return all, nil
	}
	extent, err := extentOf(source, compared.Selection, "")
	if err != nil {
		return nil, err
	}
	settings := page.Settings{Directory: name, Given: catalog.Given(source, extent), MaxMemory: a.limit}
	if len(compared.base) > 0 {
		if extent, err = extentOf(baseSource, compared.ofBase(), "base_"); err != nil {
			return nil, fmt.Errorf("the base: %w", err)
		}
		settings.Base = catalog.Given(baseSource, extent)
	}
	for service := range services {
		if len(services) == 1 && !shown.Has("service") {
			shown.Set("service", service)
		}
	}
	return page.New(settings)
}

// recorded is a flag whose texts are also parameters of the page.
type recorded struct {
	pflag.Value

	key    string
	values url.Values
}

// Set sets the flag.
func (r *recorded) Set(text string) error {
	err := r.Value.Set(text)
	if err == nil {
		r.values.Add(r.key, text)
	}
	return err
}

// spooled are paths of which standard input is a file: pages read it several times.
type spooled struct {
	paths []string
	file  string // "" if there is none
}

func spool(paths []string) (spooled, error) {
	s := spooled{paths: slices.Clone(paths)}
	i := slices.Index(paths, archive.Stdin)
	if i < 0 {
		return s, nil
	}
	file, err := os.CreateTemp("", "otelprof-stdin-*")
	if err != nil {
		return s, err
	}
	s.paths[i], s.file = file.Name(), file.Name()
	_, err = io.Copy(file, os.Stdin)
	return s, errors.Join(err, file.Close())
}

func (s *spooled) remove() {
	if s.file != "" {
		_ = os.Remove(s.file)
	}
}

// serve runs an HTTP server until ctx ends.
func (a *app) serve(ctx context.Context, address, query string, handler http.Handler, openPage bool) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	a.progress.stop()
	url := "http://" + listener.Addr().String() + "/?" + query
	if _, err := fmt.Fprintln(a.stdout, "Serving at "+url+" (stop with Ctrl-C)"); err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if openPage {
		if err := openBrowser(ctx, url); err != nil {
			a.note("cannot open a browser: %v", err)
		}
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func openBrowser(ctx context.Context, url string) error {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return exec.CommandContext(ctx, command[0], append(command[1:], url)...).Start() // #nosec G204 -- the address that serve listens at
}
