// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command otelprof lists, checks, converts, compares and shows profile files: OTLP, pprof, JFR, execution
// traces of Go, the output of perf script and folded stacks.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// Exit codes.
const (
	exitOK    = 0
	exitWrong = 1 // something is wrong with the files, or nothing is selected
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// app is one run of the program.
type app struct {
	stdout, stderr io.Writer
	now            time.Time // that relative times refer to
	maxMemory      string
	limit          int64 // maxMemory in bytes
	strict         bool
	showStats      bool
	stats          archive.Stats
	toRead         atomic.Int64            // bytes of the files that were found
	progress       *progress               // nil without a terminal
	stores         map[string]*store.Store // by location
	storeStats     bucket.Stats
	reading        bool // the command line was right
	isStdin        bool // standard input is read
	wrong          bool // an error was reported, or a rule is violated
	worse          bool // diff found what --fail-above names
	exitError      int  // exit code if files cannot be read or nothing is selected
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr, now: time.Now(), exitError: exitWrong}
	if isTerminal(stderr) {
		a.progress = startProgress(stderr, a.progressText)
		a.stdout, a.stderr = a.progress.over(stdout), a.progress.over(stderr)
	}
	root := a.command()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	a.progress.stop()
	for _, s := range a.stores {
		s.Close()
	}
	if a.showStats {
		a.note("Read %d bytes, with %s to object stores", a.read(), plural(int(a.storeStats.Requests.Load()), "request"))
	}
	switch {
	case err == nil && !a.wrong && !a.worse:
		return exitOK
	case err == nil && !a.wrong:
		return exitWrong
	case err == nil, errors.Is(err, query.ErrEmpty) && a.wrong: // the reason was reported
		return a.exitError
	}
	if errors.Is(err, query.ErrEmpty) && a.isStdin && a.read() == 0 {
		err = errors.New("standard input is empty: must be a profile")
	}
	a.note("%v", err)
	types, isTypes := errors.AsType[*query.TypesError](err)
	switch {
	case isTypes:
		a.note("select one with --%s", types.Parameter)
		return exitUsage
	case !a.reading:
		a.note("run '%s --help' for usage", command.CommandPath())
		return exitUsage
	case errors.Is(err, query.ErrEmpty) && command.Name() != "ls":
		a.note("otelprof ls lists the services, types and times that there are")
	}
	return a.exitError
}

// note prints a remark that is not part of the output. It may have several lines.
func (a *app) note(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf("otelprof: "+format, args...), "\n") {
		_, _ = fmt.Fprintln(a.stderr, webui.Printable(line))
	}
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "otelprof",
		Short: "Read, check, convert and compare profile files",
		Long: `otelprof reads profile files of any program: OTLP protobuf and OTLP/JSON,
as the profiles_file exporter, contrib's file exporter and SDKs write them,
pprof, JFR, execution traces of Go, perf script and folded stacks; plain, gzip
or zstd. It recognizes them by content. A directory stands for the files below
it, without those that the exporter has replaced by others; s3://bucket/prefix
for what an exporter has uploaded; and - for standard input.

Exit codes: 0; 1 if a file cannot be read or breaks a rule, or nothing is
selected; 2 for a wrong command line. Those of diff differ.`,
		Version:       versions(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return fmt.Errorf("--%s is %.200q: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
		}
		return err
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80")) // columns
	root.PersistentFlags().StringVar(&a.maxMemory, "max-memory", "50%", "memory to use at most, a `SIZE` such as 512MiB, or a percentage of the memory of this computer")
	root.PersistentFlags().BoolVar(&a.strict, "strict", false, "stop at the first file or record that cannot be read")
	root.PersistentFlags().BoolVar(&a.showStats, "stats", false, "print how many bytes were read, and how many requests were sent to object stores")
	root.AddCommand(a.ls(), a.top(), a.grew(), a.view(), a.mcp(), a.check(), a.convert(), a.cat(), a.diff(), a.pgo())
	return root
}

// version is set by the linker, in make build.
var version string

// versions returns the versions of this program and of Go. Without make it is that of the
// module, as go install builds it.
func versions() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version
	}
	return v + " " + runtime.Version()
}

// source finds the files of paths, which the caller reads.
func (a *app) source(paths []string) (*query.Source, error) {
	limit, err := config.ParseSize(a.maxMemory)
	if err != nil {
		return nil, fmt.Errorf("--max-memory %w", err)
	}
	const least = 16 << 20
	if limit < least {
		return nil, fmt.Errorf("--max-memory is %s: must be at least 16MiB", limit)
	}
	a.reading, a.limit = true, int64(limit)
	a.isStdin = a.isStdin || slices.Contains(paths, archive.Stdin)
	// So that garbage is collected in time. The runtime does not count the pages of the program itself.
	debug.SetMemoryLimit(a.limit / 8 * 7)
	stores, files, failed := a.find(paths)
	for _, err := range failed {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = fmt.Errorf("%s: %w", e.Path, e.Err)
		}
		if err := a.failed(err); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		a.toRead.Add(file.Size)
		if isEmpty(file, paths) {
			if err := a.failed(fmt.Errorf("%s: is empty: must be a profile", file.Path)); err != nil {
				return nil, err
			}
		}
	}
	if len(files)+len(stores) == 0 && len(failed) == 0 {
		return nil, fmt.Errorf("no files in %s", strings.Join(paths, ", "))
	}
	return &query.Source{
		Stores:  stores,
		Files:   files,
		Options: archive.Options{MaxMemory: a.limit, Setting: "--max-memory", Stats: &a.stats},
		Failed:  a.failed,
	}, nil
}

// isEmpty reports whether a path names an empty file. In a directory, one may belong to a program that has not written yet.
func isEmpty(file archive.File, paths []string) bool {
	if file.Size > 0 || !slices.Contains(paths, file.Path) {
		return false
	}
	info, err := os.Stat(file.Path)
	return err == nil && info.Mode().IsRegular()
}

// find returns the directories and prefixes of exporters, and the files of others.
func (a *app) find(paths []string) (stores []query.Lister, files []archive.File, failed []error) {
	inside := map[string][]string{} // by the location of a store: "" is all of it
	var locations, urls, others []string
	add := func(location, name string) {
		if inside[location] == nil {
			locations = append(locations, location)
		}
		inside[location] = append(inside[location], name)
	}
	for _, path := range paths {
		if bucket.IsURL(path) {
			urls = append(urls, path)
		} else {
			others = append(others, path)
		}
	}
	roots, names := store.RootsOf(urls)
	for i, root := range roots {
		add(root, names[i])
	}
	found := map[string]bool{} // directories of exporters
	files, notFound := archive.Find(others, func(directory string) bool {
		absolute, err := filepath.Abs(directory)
		if err != nil {
			failed = append(failed, err)
			return true
		}
		if found[filepath.Dir(absolute)] && store.IsOwnDirectory(filepath.Base(absolute)) {
			return true
		}
		root, name := store.RootOf(absolute)
		if name != "" || store.HasFiles(absolute) {
			found[absolute] = true
			add(root, name)
		}
		return store.IsPartition(name) // another directory may have files of others, too
	})
	for _, location := range locations {
		names := inside[location]
		if slices.Contains(names, "") {
			names = nil
		}
		s, err := a.openStore(location, names)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		stores = append(stores, s)
	}
	return stores, files, append(failed, notFound...)
}

// openStore opens a directory or prefix, or directories inside of it, once, so that it has one cache.
func (a *app) openStore(location string, inside []string) (*store.Store, error) {
	key := strings.Join(append([]string{location}, inside...), "\x00")
	if s := a.stores[key]; s != nil {
		return s, nil
	}
	s, err := store.Open(location, store.ReadOptions{
		MaxRecord: a.limit / 8, MaxDecoded: a.limit / 4, Cache: a.limit / 8, Stats: &a.storeStats, Inside: inside,
	})
	if err != nil {
		return nil, err
	}
	if a.stores == nil {
		a.stores = map[string]*store.Store{}
	}
	a.stores[key] = s
	return s, nil
}

// read is how many bytes were read.
func (a *app) read() int64 { return a.stats.Bytes.Load() + a.storeStats.Bytes.Load() }

// failed reports an error of reading. It returns the error if reading must stop.
func (a *app) failed(err error) error {
	if a.strict {
		return err
	}
	a.wrong = true
	a.note("%s", webui.Printable(err.Error())) // on one line
	return nil
}

// paths accepts one or more arguments.
func paths(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no PATH: name files or directories, or - for standard input")
	}
	return nil
}
