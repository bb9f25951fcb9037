// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

func (a *app) view() *cobra.Command {
	c := &cobra.Command{
		Use:   "view PATH...",
		Short: "Show flame graph, graph and tables in a browser",
		Long: `Show the profiles in pprof's web UI: flame graph, graph, tables. The page is for
this computer only, unless --http names another address.`,
		Example: `  otelprof view --service checkout --type cpu ./profiles
  otelprof view --type cpu --no-browser --http localhost:8080 ./profiles`,
		Args: paths,
	}
	compared := a.addComparison(c.Flags())
	address := c.Flags().String("http", "localhost:0", "`ADDRESS` to listen at")
	noBrowser := c.Flags().Bool("no-browser", false, "do not open a browser")
	c.RunE = func(c *cobra.Command, args []string) error {
		host, _, err := net.SplitHostPort(*address)
		if err != nil {
			return fmt.Errorf("--http is %q: must be HOST:PORT", *address)
		}
		result, err := a.compare(c.Context(), args, compared)
		if err != nil {
			return err
		}
		p, err := result.Pprof(true)
		if err == nil {
			err = query.CheckTotals(p)
		}
		if err != nil {
			return err
		}
		pruned, lost, err := webui.Prune(p, a.limit/webui.RenderingFactor)
		switch {
		case err != nil:
			return err
		case lost == 1: // nothing is left
			return errors.New("the page takes more memory than --max-memory: select less, by service, type or time")
		case lost > 0:
			a.note("To fit into --max-memory, the smallest samples are left out: %.2g %% of the values", lost*100)
		}
		handler, err := webui.Handler(pruned, webui.Options{})
		if err != nil {
			return err
		}
		return a.serve(c.Context(), *address, webui.Protect(handler, func(*http.Request) bool { return false }, host), !*noBrowser)
	}
	return c
}

// serve runs an HTTP server until ctx ends.
func (a *app) serve(ctx context.Context, address string, handler http.Handler, openPage bool) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	a.progress.stop()
	url := "http://" + listener.Addr().String()
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
