// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// old is the time of files that are complete.
func old() time.Time { return time.Now().Add(-time.Hour).Truncate(time.Second) }

// collector collects what is accepted: the sums by service and sample type, and how often there was each profile ID.
type collector struct {
	mu   sync.Mutex
	sums map[string]string
	ids  map[string]int
	all  []pprofile.Profiles
}

func (c *collector) add(t *testing.T, pd pprofile.Profiles) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil {
		c.sums, c.ids = map[string]string{}, map[string]int{}
	}
	for _, p := range profiletest.Expand(t, pd) {
		key := expand.Text(p.Resource.Attributes, "service.name") + " " + expand.Text(p.Scope.Attributes, attrkey.ProfileType) + " " + p.Type
		for _, s := range p.Samples {
			c.sums[key] += s.Sum.String() + " "
		}
		c.ids[fmt.Sprint(p.ProfileID)]++
	}
	kept := pprofile.NewProfiles()
	pd.CopyTo(kept)
	c.all = append(c.all, kept)
}

func (c *collector) got() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sorted := map[string]string{}
	for key, values := range c.sums {
		fields := strings.Fields(values)
		slices.Sort(fields)
		sorted[key] = strings.Join(fields, " ")
	}
	return sorted
}

func (c *collector) consumer(t *testing.T, answer func(pprofile.Profiles) error) *testConsumer {
	return &testConsumer{answer: func(_ context.Context, pd pprofile.Profiles) error {
		if answer != nil {
			if err := answer(pd); err != nil {
				return err
			}
		}
		c.add(t, pd)
		return nil
	}}
}

const legacyHeap = "heap profile: 1: 2048 [3: 8192] @ heap_v2/524288\n 1: 2048 [3: 8192] @ 0x401000 0x402000\n"

// jfrChunk is a chunk with a parked thread of 5 ticks, that starts so many times 10^18 ns after the epoch.
func jfrChunk(start int64) *jfrwriter.Chunk {
	c := jfrwriter.New()
	c.Start = start * 1e18
	c.Class("jdk.ThreadPark", jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread, jfrwriter.Stack)
	c.Event("jdk.ThreadPark", 1000, 5, 0, 0)
	return c
}

const perfScript = "a 1 100.000000: cycles:\n\t1 f (/bin/a)\n\na 1 100.000001: cycles:\n\t1 f (/bin/a)\n\n"

// Each format gets the service of its path, and profile IDs, which are the same when the file is read again.
func TestFilesOfOtherFormats_R17(t *testing.T) {
	dir, rejected := t.TempDir(), t.TempDir()
	pprof := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 7))
	for name, content := range map[string][]byte{
		"go/a.pb.gz":        profiletest.Gzip(t, pprof),
		"plain/a.pb":        pprof,
		"zstd/a.pb.zst":     profiletest.Zstd(t, pprof),
		"legacy/a.heap":     []byte(legacyHeap),
		"folded/a.txt":      []byte("main;work 3\nmain 4\n"),
		"java/a.jfr":        append(jfrChunk(1).Bytes(), jfrChunk(2).Bytes()...),
		"javagz/a.jfr.gz":   profiletest.Gzip(t, append(jfrChunk(1).Bytes(), jfrChunk(2).Bytes()...)),
		"trace/a.trace":     profiletest.GoTrace(t),
		"tracegz/a.gz":      profiletest.Gzip(t, profiletest.GoTrace(t)),
		"perf/a.txt":        []byte(perfScript),
		"perfgz/a.txt.gz":   profiletest.Gzip(t, []byte(perfScript)),
		"text/a.log":        []byte("no profile\x01"),
		"otlp/of-others.pb": message(t, 1),
	} {
		profiletest.WriteAt(t, filepath.Join(dir, name), content, old())
	}
	yaml := fmt.Sprintf("include: [%q]\npath_attributes: '(?P<service_name>[^/]+)/[^/]+$'\nrejected: {directory: %q}", dir+"/*/*", rejected)
	var first, second collector
	r := start(t, yaml, first.consumer(t, nil))
	r.awaitLog("Read all files")
	got := first.got()
	value := got["go  samples"]
	require.NotEmpty(t, value)
	for _, service := range []string{"plain", "zstd"} {
		assert.Equal(t, value, got[service+"  samples"], service)
	}
	assert.Equal(t, "3 4", got["folded  samples"])
	assert.Equal(t, "2", got["perf cycles samples"])
	assert.Equal(t, map[string]int64{"success": 12, "damaged": 1}, r.counts("files"))
	assert.Equal(t, int64(13), r.counts("records")["accepted"], "2 chunks, and each other file is a record")
	for key, sum := range got {
		service, rest, _ := strings.Cut(key, " ")
		switch service {
		case "java", "javagz":
			assert.Equal(t, got["java "+rest], sum)
		case "go", "plain", "zstd", "legacy", "folded":
		default:
			assert.NotContains(t, []string{"text", "otlp"}, service, "OTLP keeps its resource")
		}
	}
	start(t, yaml, second.consumer(t, nil)).awaitLog("Read all files")
	assert.Equal(t, got, second.got())
	assert.Equal(t, first.ids, second.ids)
}

// A profile without a time gets the modification time of its file, so that one that is read again has the same profile IDs.
func TestFilesFromBeforeProtobuf(t *testing.T) {
	dir, modified := t.TempDir(), old()
	profiletest.WriteAt(t, filepath.Join(dir, "b.prof"), profiletest.Gzip(t, []byte(legacyHeap)), modified)
	var got collector
	start(t, fmt.Sprintf("include: [%q]", dir+"/*.prof"), got.consumer(t, nil)).awaitLog("Read all files")
	want, err := profile.ParseData([]byte(legacyHeap))
	require.NoError(t, err)
	require.Len(t, got.all, 1)
	profiles := profiletest.Expand(t, got.all[0])
	require.Len(t, profiles, len(want.SampleType))
	sums, wanted := map[string]string{}, map[string]string{}
	for i, p := range profiles {
		sums[p.Type] = p.Samples[0].Sum.String()
		wanted[want.SampleType[i].Type] = fmt.Sprint(want.Sample[0].Value[i])
	}
	assert.Equal(t, wanted, sums)
	assert.Equal(t, modified.UnixNano(), int64(got.all[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Time()))
}

// Files that cannot be read do not block others, and links do not lead out of the directory.
func TestOddFiles_R17(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	pprof := func(value int64) []byte {
		return profiletest.Gzip(t, profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", value)))
	}
	profiletest.WriteAt(t, filepath.Join(outside, "secret.pb.gz"), pprof(666), old())
	profiletest.WriteAt(t, filepath.Join(dir, "target"), pprof(2), old())
	if runtime.GOOS != "windows" {
		require.NoError(t, exec.CommandContext(t.Context(), "mkfifo", filepath.Join(dir, "fifo.pb.gz")).Run())
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "directory.pb.gz"), 0o700))
	for name, to := range map[string]string{
		"out.pb.gz": filepath.Join(outside, "secret.pb.gz"), "out-dir": outside, "dangling.pb.gz": "nowhere", "self.pb.gz": "self.pb.gz",
		"circle": ".", "inside.pb.gz": "target",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	for name, content := range map[string][]byte{
		"empty.pb.gz": nil, "text.pb.gz": []byte("no profile"), "bomb.pb.gz": profiletest.Gzip(t, make([]byte, 1<<20+1)),
		"half.pb.gz": pprof(9)[:40], "x.pb.gz.tmp": []byte("x"), "good.pb.gz": pprof(1),
	} {
		profiletest.WriteAt(t, filepath.Join(dir, name), content, old())
	}
	// The same below the directory of an exporter.
	stored := t.TempDir()
	hour := filepath.Dir(writeRecords(t, stored, segment.Proto, "checkout", 3))
	name := filepath.Join(hour, "20260101T000000.000Z-00000000000%d.19700101T000000Z-20261128T000000Z.otlp.pb.zst")
	if runtime.GOOS != "windows" {
		require.NoError(t, exec.CommandContext(t.Context(), "mkfifo", fmt.Sprintf(name, 1)).Run())
	}
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.pb.gz"), fmt.Sprintf(name, 2)))
	require.NoError(t, os.Mkdir(fmt.Sprintf(name, 3), 0o700))

	var got collector
	r := start(t, fmt.Sprintf("directory: %q\ninclude: [%q]\nmax_in_flight: 8MiB", stored, dir+"/**/*.gz"), got.consumer(t, nil))
	r.awaitLog("Read all files")
	assert.Equal(t, map[string]int64{"success": 3, "damaged": 3}, r.counts("files"), "each once")
	assert.Len(t, got.all, 3)
	assert.Zero(t, r.logs.FilterMessage("Cannot list directory; will retry").Len(), "the directory can be listed")
	assert.NotContains(t, fmt.Sprint(got.got()), "666")

	// A skipped file is read when it changes.
	profiletest.WriteAt(t, filepath.Join(dir, "half.pb.gz"), pprof(9), old().Add(time.Minute))
	require.Eventually(t, func() bool { return r.counts("files")["success"] == 4 }, patience, time.Millisecond)
	profiletest.Account(t, "16 odd files, links and directories", 4, len(got.all), 0)
}

func TestPathAttributes(t *testing.T) {
	for _, test := range []struct {
		expression, path string
		want             map[string]string
	}{
		{"", "/x/a.pb", map[string]string{}},
		{"^/x/(?P<service_name>[^/]+)/(?P<service_instance_id>[^/]+)/", "/x/checkout/7/a.pb.gz", map[string]string{"service.name": "checkout", "service.instance.id": "7"}},
		{`(?P<service_name>[^/]+)-(?P<host_name>[^/-]+)[.](?P<profile_type>[^/.]+)[.]pb$`, "/x/a/b/check-out-h1.cpu.pb", map[string]string{"service.name": "check-out", "host.name": "h1", attrkey.ProfileType: "cpu"}},
		{"(?P<restart__count>[0-9]+)", "/x/5", map[string]string{"restart_count": "5"}},
		{"/(?:a/(?P<service_name>[^/]+)|b/(?P<host_name>[^/]+))/", "/b/h/x", map[string]string{"host.name": "h"}},
		{"^/y/(?P<service_name>[^/]+)", "/x/5", map[string]string{}},
		{"^/x/(?P<service_name>[^/]+)", "/x/a\xff", map[string]string{"service.name": "a\ufffd"}},
	} {
		core, logs := observer.New(zap.WarnLevel)
		a := pathAttributes{expression: regexp.MustCompile(test.expression), logger: zap.New(core)}
		assert.Equal(t, test.want, a.of(test.path), test.expression)
		a.of(test.path)
		want := 0
		if strings.HasPrefix(test.expression, "^/y") {
			want = 1
		}
		assert.Equal(t, want, logs.Len(), test.expression)
	}
}

// A chunk is read once, when its JVM has finished it, or long after the JVM was killed.
func TestRecordingsOfJVMsThatStillWriteAreReadOnce_J3(t *testing.T) {
	dir := t.TempDir()
	recently := func() time.Time { return time.Now().Add(-quietTime - time.Second) }
	finished, second := jfrChunk(1).Bytes(), jfrChunk(2).Bytes()
	unfinished, open := bytes.Clone(finished), bytes.Clone(second)
	unfinished[64] = 1                          // as the JVM marks it
	binary.BigEndian.PutUint64(open[8:], 1<<30) // as async-profiler does
	for name, content := range map[string][]byte{
		"jvm.jfr": unfinished, "async.jfr": open, "after.jfr": append(bytes.Clone(finished), open...), "header.jfr": append(bytes.Clone(finished), open[:67]...),
	} {
		profiletest.WriteAt(t, filepath.Join(dir, name), content, recently())
	}
	profiletest.WriteAt(t, filepath.Join(dir, "killed.jfr"), unfinished, old())
	var got collector
	r := start(t, fmt.Sprintf("include: [%q]", dir+"/*.jfr"), got.consumer(t, nil))
	require.Eventually(t, func() bool { return r.counts("files")["success"] == 1 }, patience, time.Millisecond)
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, map[string]int64{"success": 1}, r.counts("files"))
	two := append(bytes.Clone(finished), second...)
	for name, content := range map[string][]byte{"jvm.jfr": finished, "async.jfr": finished, "after.jfr": two, "header.jfr": two} {
		path := filepath.Join(dir, name)
		profiletest.WriteAt(t, path+".tmp", content, recently())
		require.NoError(t, os.Rename(path+".tmp", path))
	}
	require.Eventually(t, func() bool { return r.counts("files")["success"] == 5 }, patience, time.Millisecond)
	assert.Equal(t, int64(1+1+1+2+2), r.counts("records")["accepted"])
}

// Each chunk of a recording is a record. One that is retried, damaged or rejected permanently does not affect the others, and after a
// restart only those are sent that were not accepted.
func TestRecordingsOfJVMsAreSentChunkByChunk_R17(t *testing.T) {
	damaged := jfrChunk(2)
	damaged.Raw([]byte{0})
	var recording []byte
	for _, c := range []*jfrwriter.Chunk{jfrChunk(1), damaged, jfrChunk(3), jfrChunk(4), jfrChunk(5)} {
		recording = append(recording, c.Bytes()...)
	}
	dir, rejected, h := t.TempDir(), t.TempDir(), &profiletest.Storage{}
	profiletest.WriteAt(t, filepath.Join(dir, "cart.jfr"), recording, old())
	timeOf := func(pd pprofile.Profiles) uint64 {
		return uint64(pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Time()) / 1e18
	}
	times := func(c *collector) (all []uint64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, pd := range c.all {
			all = append(all, timeOf(pd))
		}
		slices.Sort(all)
		return all
	}
	yaml := fmt.Sprintf("include: [%q]\nstorage: file_storage\nafter_read: delete\nrejected: {directory: %q}", dir+"/*.jfr", rejected)
	var first, second collector
	r := startOn(t, h.Host(), yaml, first.consumer(t, func(pd pprofile.Profiles) error {
		switch timeOf(pd) {
		case 3:
			return errors.New("later")
		case 4:
			return consumererror.NewPermanent(errors.New("never"))
		}
		return nil
	}))
	require.Eventually(t, func() bool { return len(times(&first)) == 2 && r.counts("records")["rejected"] == 1 }, patience, time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Equal(t, []uint64{1, 5}, times(&first))
	r = startOn(t, h.Host(), yaml, second.consumer(t, nil))
	require.Eventually(t, func() bool { return r.counts("files")["damaged"] == 1 }, patience, time.Millisecond)
	assert.Equal(t, []uint64{3}, times(&second))
	assert.Len(t, numbersIn(t, rejected), 1)
	assert.FileExists(t, filepath.Join(rejected, damagedDir, "cart.jfr"))
	assert.NoFileExists(t, filepath.Join(dir, "cart.jfr"))
}
