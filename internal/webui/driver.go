// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// driverMutex guards driver.PProf, which keeps its settings in variables of the process.
var driverMutex sync.Mutex

// defaultNodes lets pprof choose the number of functions. Its settings stay from one call to
// the next, so each call states all that another may have changed.
const defaultNodes = -1

// Printable returns text as a terminal can show it: control characters other than tabs, which symbols of the kernel have,
// and invalid bytes are escaped as in Go.
func Printable(text string) string {
	quoted := strconv.Quote(text)
	return unquote.Replace(quoted[1 : len(quoted)-1])
}

var unquote = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\t`, "\t")

// Top writes the functions of p by flat or cumulative value, as go tool pprof -top does. nodes is how many; 0 is pprof's
// default. It makes the text of p printable.
func Top(w io.Writer, p *profile.Profile, nodes int, cumulative bool) error {
	sort := "-flat"
	if cumulative {
		sort = "-cum"
	}
	count := strconv.Itoa(cmp.Or(nodes, defaultNodes))
	NameFunctions(p)
	replaceTexts(p, Printable)
	return run(p, []string{"-top", "-output=top", sort, "-nodecount=" + count}, &driver.Options{Writer: writer{w}})
}

// NameFunctions gives the functions of p the names by which they are shown.
func NameFunctions(p *profile.Profile) {
	for _, f := range p.Function {
		f.Name = sampletypes.FunctionName(f.Name, f.SystemName)
	}
}

// replaceTexts replaces all texts that a report or a graph may show.
func replaceTexts(p *profile.Profile, replace func(string) string) {
	texts := []*string{&p.DefaultSampleType}
	for i := range p.Comments {
		texts = append(texts, &p.Comments[i])
	}
	for _, t := range append(p.SampleType, cmp.Or(p.PeriodType, &profile.ValueType{})) {
		texts = append(texts, &t.Type, &t.Unit)
	}
	for _, m := range p.Mapping {
		texts = append(texts, &m.File, &m.BuildID)
	}
	for _, f := range p.Function {
		texts = append(texts, &f.Name, &f.SystemName, &f.Filename)
	}
	for _, text := range texts {
		*text = replace(*text)
	}
}

// run calls pprof with flags.
func run(p *profile.Profile, flags []string, options *driver.Options) error {
	driverMutex.Lock()
	defer driverMutex.Unlock()
	if _, err := os.UserConfigDir(); err != nil { // pprof reads its settings there
		if err := os.Setenv("XDG_CONFIG_HOME", os.TempDir()); err != nil {
			return err
		}
	}
	ui := &messages{}
	flagSet := &flagSet{FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError), args: append(flags, "-symbolize=none", "profile")}
	flagSet.SetOutput(io.Discard)
	options.Flagset = flagSet
	options.Fetch, options.Obj, options.UI = fetcher{p}, noBinaries{}, ui
	err := driver.PProf(options)
	if err != nil && len(ui.errors) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.Join(ui.errors, "; "))
	}
	return err
}

// flagSet passes fixed arguments to pprof.
type flagSet struct {
	*flag.FlagSet
	args []string
}

func (f *flagSet) StringList(name, value, usage string) *[]*string {
	return &[]*string{f.String(name, value, usage)}
}

func (*flagSet) ExtraUsage() string   { return "" }
func (*flagSet) AddExtraUsage(string) {}

func (f *flagSet) Parse(usage func()) []string {
	if err := f.FlagSet.Parse(f.args); err != nil {
		usage()
		return nil
	}
	return f.Args()
}

// fetcher returns the profile for any source. It names none: pprof would save a copy.
type fetcher struct{ p *profile.Profile }

func (f fetcher) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return f.p.Copy(), "", nil
}

// noBinaries opens no file.
type noBinaries struct{}

var errNoBinaries = errors.New("binaries are not opened")

func (noBinaries) Open(string, uint64, uint64, uint64, string) (driver.ObjFile, error) {
	return nil, errNoBinaries
}

func (noBinaries) Disasm(string, uint64, uint64, bool) ([]driver.Inst, error) {
	return nil, errNoBinaries
}

// messages is a UI without a user.
type messages struct {
	mu     sync.Mutex
	errors []string
}

func (*messages) ReadLine(string) (string, error) { return "", io.EOF }
func (*messages) Print(...any)                    {}

func (m *messages) PrintErr(args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	const most = 10
	if len(m.errors) < most {
		m.errors = append(m.errors, strings.TrimSpace(fmt.Sprintln(args...)))
	}
}

func (*messages) IsTerminal() bool                    { return false }
func (*messages) WantBrowser() bool                   { return false }
func (*messages) SetAutoComplete(func(string) string) {}

// writer writes the output of pprof under any name.
type writer struct{ io.Writer }

func (w writer) Open(string) (io.WriteCloser, error) { return w, nil }
func (writer) Close() error                          { return nil }
