// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden holds the bytes that the components make of fixed inputs, as
// hashes, so that a change of them is always deliberate.
//
// After a deliberate change: go test ./golden -update, and say in the commit what
// changed and why.
package golden

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

var update = flag.Bool("update", false, "write testdata/golden.txt")

const goldenFile = "testdata/golden.txt"

// input is a pprof profile or a JFR recording that is pushed.
type input struct {
	name string
	data []byte
}

// inputs are pprof profiles made here, and those of the corpus where there is one.
func inputs(t *testing.T) (made, corpus []input) {
	for seed := range 6 {
		made = append(made, input{fmt.Sprintf("made/%d", seed), encode(t, generate(uint64(seed)))})
	}
	t.Run("corpus", func(t *testing.T) {
		for _, file := range profiletest.Corpus(t) {
			corpus = append(corpus, input{"corpus/" + file.Name, withTime(t, file.Data)})
		}
	})
	return made, corpus
}

// fromFiles are a goroutineleak profile of Go 1.26, and recordings of JVMs, which are in the module of jfr-parser.
func fromFiles(t *testing.T) (leaks, recordings []input) {
	t.Helper()
	leaks = []input{{"go/goroutineleak", profiletest.ReadPlain(t, "../../receiver/pprofreceiver/testdata/goroutineleak.pb.gz")}}
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/grafana/jfr-parser").Output()
	require.NoError(t, err)
	for _, name := range []string{"dd-trace-java", "nativemem", "new_spancontext", "object-allocation-sample", "traceid", "wall_tick_sample"} {
		path := filepath.Join(strings.TrimSpace(string(module)), "parser", "testdata", name+".jfr.gz")
		recordings = append(recordings, input{"jfr/" + name, profiletest.ReadPlain(t, path)})
	}
	return leaks, recordings
}

// withTime gives a profile without a time one: the receiver would take that of its arrival.
func withTime(t *testing.T, data []byte) []byte {
	t.Helper()
	const timeNanos = 9 // of pprof's Profile
	parsed, err := profile.ParseData(data)
	require.NoError(t, err)
	if parsed.TimeNanos != 0 {
		return data
	}
	data, err = pproftranslator.Decompress(data, 1<<30)
	require.NoError(t, err)
	return protowire.AppendVarint(protowire.AppendTag(slices.Clip(data), timeNanos, protowire.VarintType), 1_700_000_000_000_000_000)
}

// random is a small generator that no library can change.
type random uint64

func (r *random) below(n int) int {
	*r = *r*6364136223846793005 + 1442695040888963407
	return int(uint64(*r)>>33) % n
}

// generate makes a profile with inlined lines, labels of all kinds, links, equal
// identities, zero values, and, for odd seeds, timestamps.
func generate(seed uint64) *profile.Profile {
	r := random(seed*77 + 1)
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: 524288,
		TimeNanos: 1_700_000_000_000_000_000 + int64(seed)*1e9, DurationNanos: int64(seed%3) * 1e9,
		Comments: []string{"made"}, DropFrames: "drop", DocURL: "https://example.com/doc",
	}
	if seed%2 == 0 {
		p.SampleType = []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}
		p.PeriodType, p.Period, p.DurationNanos = &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, 10_000_000, 10_000_000_000
	}
	for i := range 3 {
		p.Mapping = append(p.Mapping, &profile.Mapping{
			ID: uint64(i + 1), Start: uint64(0x400000 * (i + 1)), Limit: uint64(0x400000*(i+1) + 0x200000), Offset: uint64(0x1000 * i),
			File: fmt.Sprintf("/usr/lib/file%d.so", i), BuildID: fmt.Sprintf("%040x", i), HasFunctions: i == 0, HasInlineFrames: i == 1,
		})
	}
	for i := range 40 {
		p.Function = append(p.Function, &profile.Function{
			ID: uint64(i + 1), Name: fmt.Sprintf("pkg%d.function%d", i%5, i), SystemName: fmt.Sprintf("_function%d", i),
			Filename: fmt.Sprintf("file%d.go", i%7), StartLine: int64(i * 3),
		})
	}
	for i := range 80 {
		l := &profile.Location{ID: uint64(i + 1), Mapping: p.Mapping[i%3], Address: p.Mapping[i%3].Start + uint64(16*i), IsFolded: i%9 == 0}
		for n := range r.below(4) {
			l.Line = append(l.Line, profile.Line{Function: p.Function[r.below(40)], Line: int64(10*i + n), Column: int64(n)})
		}
		p.Location = append(p.Location, l)
	}
	for i := range 120 {
		s := &profile.Sample{Label: map[string][]string{}, NumLabel: map[string][]int64{}, NumUnit: map[string][]string{}}
		for range 1 + r.below(12) {
			s.Location = append(s.Location, p.Location[r.below(30+10*r.below(5))])
		}
		for range p.SampleType {
			s.Value = append(s.Value, int64(r.below(4)*r.below(1000)))
		}
		if i%3 == 0 {
			s.Label["thread"] = []string{fmt.Sprint("worker-", r.below(4))}
		}
		if i%5 == 0 {
			s.NumLabel["bytes"], s.NumUnit["bytes"] = []int64{int64(r.below(3) * 512)}, []string{"bytes"}
		}
		if i%11 == 0 {
			s.Label["several"] = []string{"a", "b"}
		}
		if i%7 == 0 {
			s.Label["trace_id"], s.Label["span_id"] = []string{fmt.Sprintf("%032x", 1+r.below(5))}, []string{fmt.Sprintf("%016x", 1+r.below(9))}
		}
		if seed%4 == 3 && i%2 == 0 {
			s.NumLabel["end_timestamp_ns"] = []int64{p.TimeNanos + int64(r.below(1e9))}
		}
		p.Sample = append(p.Sample, s)
		if i%10 == 0 { // an equal identity
			p.Sample = append(p.Sample, s)
		}
	}
	return p
}

func encode(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	require.NoError(t, p.CheckValid())
	return profiletest.Pprof(t, p)
}

// configured returns the default configuration of a component with yaml over it.
func configured(t *testing.T, factory component.Factory, yaml string) component.Config {
	t.Helper()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, profiletest.LoadConfig(yaml, cfg))
	return cfg
}

// received is what the receiver hands on for each input.
func received(t *testing.T, all []input) []pprofile.Profiles {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	sink := new(consumertest.ProfilesSink)
	factory := pprofreceiver.NewFactory().(xreceiver.Factory)
	set := receivertest.NewNopSettings(factory.Type())
	set.BuildInfo.Version = "golden"
	cfg := configured(t, factory, "server: {endpoint: "+address+", max_decompressed_size: 256MiB}")
	r, err := factory.CreateProfiles(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	var out []pprofile.Profiles
	for _, in := range all {
		response, err := http.Post("http://"+address+"/v1/pprof?service.name=golden", "application/octet-stream", bytes.NewReader(in.data))
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusNoContent, response.StatusCode, "%s: %s", in.name, body)
		got := sink.AllProfiles()
		require.NotEmpty(t, got, in.name)
		out = append(out, got[len(got)-1])
		sink.Reset()
	}
	return out
}

// merged is what the processor hands on of all, added to one window.
func merged(t *testing.T, yaml string, all []pprofile.Profiles) []pprofile.Profiles {
	t.Helper()
	sink := new(consumertest.ProfilesSink)
	factory := profilesdedupprocessor.NewFactory().(xprocessor.Factory)
	p, err := factory.CreateProfiles(t.Context(), processortest.NewNopSettings(factory.Type()),
		configured(t, factory, yaml+"\nmemory_limit: 1GiB"), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	consumeAll(t, p, all)
	require.NoError(t, p.Shutdown(context.Background()))
	outputs := sink.AllProfiles()
	if strings.Contains(yaml, "split_by") { // sent side by side
		slices.SortFunc(outputs, func(a, b pprofile.Profiles) int {
			x, y := executable(a), executable(b)
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		})
	}
	return outputs
}

// executable is the attribute of the first resource by which processorModes split.
func executable(pd pprofile.Profiles) string {
	if name, ok := pd.ResourceProfiles().At(0).Resource().Attributes().Get("process.executable.name"); ok {
		return name.AsString()
	}
	return ""
}

func consumeAll(t *testing.T, to xconsumer.Profiles, all []pprofile.Profiles) {
	t.Helper()
	for _, pd := range all {
		require.NoError(t, to.ConsumeProfiles(t.Context(), copied(pd)))
	}
}

// written is the content of all files that the exporter makes of all, decompressed.
func written(t *testing.T, yaml string, all []pprofile.Profiles) [][]byte {
	t.Helper()
	factory := profilesfileexporter.NewFactory().(xexporter.Factory)
	dir := t.TempDir()
	e, err := factory.CreateProfiles(t.Context(), exportertest.NewNopSettings(factory.Type()),
		configured(t, factory, yaml+"\ndirectory: "+dir))
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	consumeAll(t, e, all)
	require.NoError(t, e.Shutdown(context.Background()))
	var contents [][]byte
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		contents = append(contents, profiletest.ReadPlain(t, path))
		return nil
	}))
	slices.SortFunc(contents, bytes.Compare)
	return contents
}

func marshalled(t *testing.T, all []pprofile.Profiles) (out [][]byte) {
	t.Helper()
	for _, pd := range all {
		out = append(out, profiletest.Proto(t, copied(pd)))
	}
	return out
}

// line is one line of the golden file.
func line(name string, outputs [][]byte) string {
	sum, size := sha256.New(), 0
	for _, output := range outputs {
		fmt.Fprintf(sum, "%d\n", len(output))
		sum.Write(output)
		size += len(output)
	}
	return fmt.Sprintf("%s: %d outputs, %d bytes, %.16x", name, len(outputs), size, sum.Sum(nil))
}

var processorModes = []string{
	"window: 1h",
	"window: 0s",
	"window: 1h\nsnapshots: latest",
	"window: 1h\nsnapshots: sum",
	"window: 1h\ntimestamps: drop",
	"window: 1h\ndrop_zero_samples: false",
	"window: 1h\ngranularity: line",
	"window: 1h\ngranularity: function",
	"window: 1h\ndrop_sample_attributes: [bytes, thread]",
	"window: 1h\ndrop_resource_attributes: [process.executable.name]",
	"window: 1h\nsplit_by: [process.executable.name]",
}

var exporterModes = []string{
	"format: proto",
	"format: proto\ngroup_by: []",
	"format: json",
	"format: proto\ngroup_by: [process.executable.name]",
}

func TestOutputIsAsRecorded(t *testing.T) {
	var got []string
	made, corpus := inputs(t)
	leaks, recordings := fromFiles(t)
	for _, set := range []struct {
		name string
		all  []input
	}{{"made", made}, {"jfr", recordings}, {"go", leaks}, {"corpus", corpus}} {
		if len(set.all) == 0 {
			continue
		}
		payloads := received(t, set.all)
		for i, pd := range payloads {
			got = append(got, line("receiver "+set.all[i].name, marshalled(t, []pprofile.Profiles{pd})))
		}
		for _, mode := range processorModes {
			got = append(got, line("processor "+oneLine(mode)+" "+set.name, marshalled(t, merged(t, mode, payloads))))
		}
		window := merged(t, processorModes[0], payloads)
		for _, mode := range exporterModes {
			got = append(got, line("exporter "+oneLine(mode)+" "+set.name, written(t, mode, window)))
			got = append(got, line("exporter, without windows, "+oneLine(mode)+" "+set.name, written(t, mode, payloads)))
		}
	}
	if *update {
		require.NotEmpty(t, corpus, "the corpus is needed to write the golden file")
		require.NoError(t, os.WriteFile(goldenFile, []byte(strings.Join(got, "\n")+"\n"), 0o644))
	}
	recorded, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	want := strings.Split(strings.TrimSpace(string(recorded)), "\n")
	if len(corpus) == 0 {
		want = slices.DeleteFunc(want, func(l string) bool { return strings.Contains(l, "corpus") })
	}
	require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
}

func copied(pd pprofile.Profiles) pprofile.Profiles {
	out := pprofile.NewProfiles()
	pd.CopyTo(out)
	return out
}

func oneLine(mode string) string { return "{" + strings.ReplaceAll(mode, "\n", ", ") + "}" }
