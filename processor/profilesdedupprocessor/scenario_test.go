// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

var update = flag.Bool("update", false, "write the results into the scenarios")

// A scenario has sections, each a line "-- name --" and text: config (keys of the
// processor), in (a payload), error (that of the payload before it), later (a time to
// wait), and flush (the payloads of the window). A payload has lines:
//
//	resource key=value ...
//	scope name version
//	profile type/unit time=1 duration=2 id=01 period=type/unit/3 key=value ...
//	root;caller:12;leaf {key=value} = 5
//	root;0x5010@/bin/a[0x5000-0x6000] @ 100 101
//	root @ 100=5 101=7
//
// Frames are root first: an address and its mapping, a function with its line, or
// both with a / between. Numbers are integers, all other values strings.
type section struct{ name, text string }

func readScenario(data string) (sections []section) {
	for line := range strings.Lines(data) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(name, " --") {
			sections = append(sections, section{name: strings.TrimSuffix(name, " --")})
		} else if len(sections) > 0 {
			sections[len(sections)-1].text += line
		} else {
			sections = append(sections, section{name: "comment", text: line})
		}
	}
	return sections
}

func writeScenario(sections []section) string {
	var b strings.Builder
	for _, s := range sections {
		if s.name != "comment" {
			fmt.Fprintf(&b, "-- %s --\n", s.name)
		}
		b.WriteString(s.text)
	}
	return b.String()
}

type scenarioSink struct{ out strings.Builder }

func (s *scenarioSink) consume(ctx context.Context, pd pprofile.Profiles) error {
	metadata := client.FromContext(ctx).Metadata
	line := "payload"
	for _, key := range slices.Sorted(metadata.Keys()) {
		line += fmt.Sprintf(" %s=%s", key, strings.Join(metadata.Get(key), ","))
	}
	s.out.WriteString(line + "\n")
	if violations := conformance.Check(pd).Violations(); len(violations) > 0 {
		fmt.Fprintln(&s.out, "does not conform:", violations)
	}
	expanded, err := expand.Profiles(pd)
	if err != nil {
		return err
	}
	resource, scope := "-", "-"
	at := 0
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for k := range sp.Profiles().Len() {
				e := expanded[at]
				at++
				if text := "resource" + attributesText(e.Resource.Attributes, " "); text != resource {
					fmt.Fprintln(&s.out, text)
					resource, scope = text, "-"
				}
				if text := strings.TrimRight(fmt.Sprintf("scope %s %s", e.Scope.Name, e.Scope.Version), " "); k == 0 || text != scope {
					fmt.Fprintln(&s.out, text)
					scope = text
				}
				s.out.WriteString(profileText(e))
			}
		}
	}
	return nil
}

func profileText(e expand.Profile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "profile %s/%s time=%d duration=%d", e.Type, e.Unit, e.Time, e.Duration)
	if strings.HasSuffix(e.ProfileID, strings.Repeat("0", 20)) { // others are hashes
		fmt.Fprintf(&b, " id=%s", strings.TrimRight(e.ProfileID, "0"))
	}
	if e.PeriodType != "" {
		fmt.Fprintf(&b, " period=%s/%s/%d", e.PeriodType, e.PeriodUnit, e.Period)
	}
	b.WriteString(attributesText(e.Attributes, " "))
	if e.PayloadFormat != "" {
		fmt.Fprintf(&b, " original=%s", e.PayloadFormat)
	}
	b.WriteString("\n")
	for _, s := range e.Samples {
		var frames []string
		for _, f := range slices.Backward(s.Stack) {
			frames = append(frames, frameText(f))
		}
		b.WriteString("  " + strings.Join(frames, ";"))
		if len(s.Attributes) > 0 {
			fmt.Fprintf(&b, " {%s}", attributesText(s.Attributes, "")[1:])
		}
		if len(s.Points) == 0 {
			fmt.Fprintf(&b, " = %s", s.Sum)
		} else {
			b.WriteString(" @")
		}
		for _, p := range s.Points {
			fmt.Fprintf(&b, " %d", p.Timestamp)
			if e.Shape == expand.ShapeBoth {
				fmt.Fprintf(&b, "=%d", p.Value)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func frameText(f *expand.Frame) string {
	var parts []string
	if f.Address != 0 || len(f.Lines) == 0 {
		text := fmt.Sprintf("%#x", f.Address)
		if m := f.Mapping; m.File != "" {
			text += fmt.Sprintf("@%s[%#x-%#x]", m.File, m.Start, m.Limit)
		}
		parts = append(parts, text)
	}
	for _, l := range f.Lines {
		text := l.Function
		if l.Line != 0 {
			text += fmt.Sprintf(":%d", l.Line)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "/")
}

func attributesText(attributes []expand.Attribute, before string) string {
	var b strings.Builder
	for _, a := range attributes {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
	}
	if before == "" && b.Len() == 0 {
		return " "
	}
	return b.String()
}

// parsePayload is the inverse of what scenarioSink writes.
func parsePayload(t *testing.T, text string) pprofile.Profiles {
	t.Helper()
	var all []expand.Profile
	var resource, scope expand.Entity
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 0, 64)
		require.NoError(t, err)
		return n
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case words[0] == "resource":
			resource = expand.Entity{Attributes: parseAttributes(words[1:])}
			scope = expand.Entity{}
		case words[0] == "scope":
			scope = expand.Entity{Name: words[1]}
			if len(words) > 2 {
				scope.Version = words[2]
			}
		case words[0] == "profile":
			e := expand.Profile{Resource: resource, Scope: scope}
			e.Type, e.Unit, _ = strings.Cut(words[1], "/")
			for _, word := range words[2:] {
				key, value, _ := strings.Cut(word, "=")
				switch key {
				case "time":
					e.Time = number(value)
				case "duration":
					e.Duration = number(value)
				case "id":
					e.ProfileID = value + strings.Repeat("0", 32-len(value))
				case "period":
					parts := strings.Split(value, "/")
					e.PeriodType, e.PeriodUnit, e.Period = parts[0], parts[1], int64(number(parts[2]))
				case "original":
					e.PayloadFormat, e.Payload = value, "original"
				default:
					e.Attributes = append(e.Attributes, parseAttributes([]string{word})...)
				}
			}
			all = append(all, e)
		default:
			e := &all[len(all)-1]
			s := &expand.Sample{Sum: new(big.Int)}
			stack, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			for _, frame := range slices.Backward(strings.Split(stack, ";")) {
				s.Stack = append(s.Stack, parseFrame(t, frame, number))
			}
			if strings.HasPrefix(rest, "{") {
				inner, after, _ := strings.Cut(rest[1:], "}")
				s.Attributes, rest = parseAttributes(strings.Fields(inner)), strings.TrimSpace(after)
			}
			values := strings.Fields(rest)
			if values[0] == "=" {
				_, ok := s.Sum.SetString(values[1], 10)
				require.True(t, ok, line)
				e.Shape = expand.ShapeValues
			} else {
				e.Shape = expand.ShapeTimestamps
				for _, word := range values[1:] {
					time, value, both := strings.Cut(word, "=")
					p := expand.Point{Timestamp: number(time), Value: 1}
					if both {
						p.Value, e.Shape = int64(number(value)), expand.ShapeBoth
					}
					s.Points = append(s.Points, p)
				}
			}
			e.Samples = append(e.Samples, s)
		}
	}
	pd, err := expand.Build(all)
	require.NoError(t, err)
	return pd
}

func parseAttributes(words []string) (all []expand.Attribute) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		a := expand.Attribute{Key: key, Value: value}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			a.Value = n
		}
		all = append(all, a)
	}
	return all
}

var framePattern = regexp.MustCompile(`^(0x[0-9a-f]+)?(?:@([^[]+)\[(0x[0-9a-f]+)-(0x[0-9a-f]+)\])?/?(?:([^:/]+)(?::(\d+))?)?$`)

func parseFrame(t *testing.T, text string, number func(string) uint64) *expand.Frame {
	m := framePattern.FindStringSubmatch(text)
	require.NotNil(t, m, text)
	f := &expand.Frame{}
	if m[1] != "" {
		f.Address = number(m[1])
	}
	if m[2] != "" {
		f.Mapping = expand.Mapping{File: m[2], Start: number(m[3]), Limit: number(m[4])}
	}
	if m[5] != "" {
		l := expand.Line{Function: m[5]}
		if m[6] != "" {
			l.Line = int64(number(m[6]))
		}
		f.Lines = append(f.Lines, l)
	}
	return f
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			sections := readScenario(string(data))
			synctest.Test(t, func(t *testing.T) { runScenario(t, sections) })
			if got := writeScenario(sections); *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			} else {
				require.Equal(t, string(data), got)
			}
		})
	}
}

// runScenario writes the results into the sections.
func runScenario(t *testing.T, sections []section) {
	cfg := createDefaultConfig().(*Config)
	for _, s := range sections {
		if s.name == "config" {
			retrieved, err := confmap.NewRetrievedFromYAML([]byte(s.text))
			require.NoError(t, err)
			conf, err := retrieved.AsConf()
			require.NoError(t, err)
			require.NoError(t, conf.Unmarshal(cfg))
		}
	}
	require.NoError(t, confmap.Validate(cfg))
	var sink scenarioSink
	p, err := newDedupProcessor(nopSettings(), cfg, nextFunc(sink.consume))
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	rejection := ""
	for i := range sections {
		s := &sections[i]
		switch s.name {
		case "in":
			rejection = ""
			if err := p.ConsumeProfiles(t.Context(), parsePayload(t, s.text)); err != nil {
				rejection = err.Error() + "\n"
			}
			if rejection != "" && (i+1 == len(sections) || sections[i+1].name != "error") {
				t.Errorf("a payload is rejected: %s", rejection)
			}
		case "error":
			s.text = rejection
		case "flush":
			time.Sleep(cfg.Window)
			synctest.Wait()
			s.text = sink.out.String()
			sink.out.Reset()
		case "later":
			wait, err := time.ParseDuration(strings.TrimSpace(s.text))
			require.NoError(t, err)
			time.Sleep(wait)
		case "config", "comment":
		default:
			t.Errorf("there is no section %q", s.name)
		}
	}
	require.NoError(t, p.Shutdown(t.Context()))
	require.Empty(t, sink.out.String(), "a scenario ends with a flush")
}
