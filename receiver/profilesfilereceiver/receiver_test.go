// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/metadata"
)

// writeFiles writes n files of a record each, and returns their numbers.
func writeFiles(t *testing.T, dir string, n int) (numbers []int) {
	for i := range n {
		numbers = append(numbers, i+1)
		writeRecords(t, dir, segment.Proto, "checkout", i+1)
	}
	return numbers
}

func TestReadsFilesOfAllFormats(t *testing.T) {
	dir, stored := t.TempDir(), t.TempDir()
	writeRecords(t, stored, segment.Proto, "checkout", 1, 2)
	writeRecords(t, stored, segment.JSON, "cart", 3, 4)
	n := 4
	// contrib's, and bare messages of other programs.
	write(t, filepath.Join(dir, "contrib.pb"), profiletest.Prefixed(message(t, n+1), message(t, n+2)))
	write(t, filepath.Join(dir, "contrib.pb.zst"), profiletest.Prefixed(profiletest.Zstd(t, message(t, n+3)), profiletest.Zstd(t, message(t, n+4))))
	write(t, filepath.Join(dir, "contrib.json"), append(profiletest.JSON(t, payload(t, n+5)), '\n'))
	write(t, filepath.Join(dir, "async-profiler.otlp"), message(t, n+6))
	// These are not read.
	write(t, filepath.Join(dir, "file.partial"), profiletest.Prefixed(message(t, 99)))
	write(t, filepath.Join(stored, "other"), profiletest.Prefixed(message(t, 99)))
	write(t, filepath.Join(dir, "excluded", "file"), profiletest.Prefixed(message(t, 99)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "growing"), profiletest.Prefixed(message(t, 99)), 0o600))

	var all []int
	for i := range n + 6 {
		all = append(all, i+1)
	}
	var next testConsumer
	r := start(t, fmt.Sprintf("directory: %q\ninclude: [%q]\nexclude: [%q]", stored, dir+"/**", dir+"/excluded/**"), &next)
	r.await(&next, all...)
	assert.Equal(t, map[string]int64{"success": 6}, r.counts("files"))
	assert.Equal(t, map[string]int64{"accepted": int64(n + 6)}, r.counts("records"))
}

// A record is sent until it is accepted, each time as it was read. One that waits holds up no others.
func TestRetriesUntilTheRecordIsAccepted(t *testing.T) {
	dir := t.TempDir()
	numbers := writeFiles(t, dir, 20)
	others := make(chan struct{})
	var next testConsumer
	next.answer = func(_ context.Context, pd pprofile.Profiles) error {
		which, resources := numberOf(pd), pd.ResourceProfiles().Len()
		pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true }) // as a processor may
		assert.Equal(t, 1, resources)
		if which != 1 {
			return nil
		}
		select {
		case <-others:
			return nil
		default: // of two pipelines
			return errors.Join(consumererror.NewPermanent(errors.New("never")), errors.New("later"))
		}
	}
	r := start(t, fmt.Sprintf("directory: %q", dir), &next)
	require.Eventually(t, func() bool {
		return len(next.got()) == 19 && r.counts("records")["retried"] > 5 && r.watcher.Backlog().Files == 1
	}, patience, time.Millisecond)
	close(others)
	r.await(&next, numbers...)
	assert.Equal(t, 1, r.logs.FilterMessage("Record was not accepted; will retry").FilterLevelExact(1).Len())
	profiletest.Injected(t, "1 record that is retried beside 19 others")
}

// While the next consumer is unavailable, no more than concurrency records are in progress, and the backlog is
// measured.
func TestBacklogWhileTheNextConsumerIsUnavailable(t *testing.T) {
	dir := t.TempDir()
	numbers := writeFiles(t, dir, 30)
	var back atomic.Bool
	var attempts, running atomic.Int64
	next := testConsumer{answer: func(context.Context, pprofile.Profiles) error {
		assert.LessOrEqual(t, running.Add(1), int64(2), "at a time")
		defer running.Add(-1)
		attempts.Add(1)
		if back.Load() {
			return nil
		}
		return errors.New("away")
	}}
	r := start(t, fmt.Sprintf("directory: %q\nconcurrency: 2\nafter_read: delete\nrejected: {directory: %q}", dir, t.TempDir()), &next)
	require.Eventually(t, func() bool { return r.watcher.Backlog().Files == 30 && attempts.Load() > 6 }, patience, time.Millisecond)
	waiting := r.watcher.Backlog()
	assert.Greater(t, waiting.Bytes, int64(30*100))
	assert.False(t, waiting.Oldest.IsZero())

	// Files that retention removes meanwhile are counted.
	names := filesIn(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, names[29])))
	require.NoError(t, os.Remove(filepath.Join(dir, names[28])))
	require.Eventually(t, func() bool { return r.counts("files")["missing"] == 2 }, patience, time.Millisecond)
	assert.Contains(t, fmt.Sprint(r.awaitLog("Files were removed before they were read").ContextMap()["paths"]), names[29])
	back.Store(true)
	r.await(&next, numbers[:28]...)
	assert.Empty(t, filesIn(t, dir))
}

// Permanently rejected records are kept, and can be sent again from the rejected directory.
func TestRejectedRecordsAreKept(t *testing.T) {
	dir, rejected := t.TempDir(), filepath.Join(t.TempDir(), "rejected")
	path := writeRecords(t, dir, segment.Proto, "checkout", 1, 2, 3)
	writeRecords(t, dir, segment.JSON, "checkout", 4, 5)
	next := testConsumer{answer: func(_ context.Context, pd pprofile.Profiles) error {
		switch numberOf(pd) {
		case 2, 4:
			return consumererror.NewPermanent(errors.New("unknown service"))
		case 5:
			panic("of a component")
		}
		return nil
	}}
	r := start(t, fmt.Sprintf("directory: %q\nafter_read: delete\nrejected: {directory: %q}", dir, rejected), &next)
	r.await(&next, 1, 3)
	assert.Empty(t, filesIn(t, dir))
	assert.Equal(t, []int{2, 4, 5}, numbersIn(t, rejected))
	assert.Equal(t, 3, r.logs.FilterMessage("Rejected record permanently").Len())
	assert.Equal(t, 1, r.logs.FilterField(zap.String("path", path)).FilterField(zap.Int("record", 2)).Len())
	assert.Equal(t, map[string]int64{"accepted": 2, "rejected": 3}, r.counts("records"))

	var accepting testConsumer
	start(t, fmt.Sprintf("directory: %q", rejected), &accepting).await(&accepting, 2, 4, 5)
}

// A record is not completed before it is on the disk, and does not hold up others until then.
func TestRejectedRecordWaitsForSpace_R19(t *testing.T) {
	dir, blocked := t.TempDir(), filepath.Join(t.TempDir(), "file")
	writeRecords(t, dir, segment.Proto, "checkout", 1, 2)
	writeRecords(t, dir, segment.Proto, "checkout", 3)
	write(t, blocked, []byte("not a directory"))
	profiletest.Injected(t, "1 directories that cannot be written")
	next := testConsumer{answer: func(_ context.Context, pd pprofile.Profiles) error {
		if numberOf(pd) == 1 {
			return consumererror.NewPermanent(errors.New("unknown service"))
		}
		return nil
	}}
	r := start(t, fmt.Sprintf("directory: %q\nconcurrency: 1\nafter_read: delete\nrejected: {directory: %q}", dir, blocked), &next)
	require.Eventually(t, func() bool { return len(next.got()) == 2 }, patience, time.Millisecond)
	r.awaitLog("Cannot process file; will retry")
	require.Eventually(t, func() bool { return len(filesIn(t, dir)) == 1 }, patience, time.Millisecond)
	require.NoError(t, os.Remove(blocked))
	r.awaitLog("Rejected record permanently")
	require.Eventually(t, func() bool { return len(filesIn(t, dir)) == 0 }, patience, time.Millisecond)
	assert.Equal(t, []int{1}, numbersIn(t, blocked))
	assert.Equal(t, once(2, 3), next.got())
}

// The rejected directory is bounded. Listing it for each record would take longer the more records it has.
func TestRejectedDirectoryIsBounded(t *testing.T) {
	set := receivertest.NewNopSettings(metadata.Type)
	core, logs := observer.New(zap.WarnLevel)
	set.Logger = zap.New(core)
	telemetry, err := newTelemetry(set, nil)
	require.NoError(t, err)
	data := profiletest.Proto(t, payload(t, 1))
	dir := t.TempDir()
	k := rejected{config: RejectedConfig{Directory: dir, MaxTotalSize: config.Size(3 * sharePerList * len(data))}, logger: set.Logger, telemetry: telemetry}
	options := archive.Options{MaxMemory: 1 << 30}
	keep := func() {
		require.NoError(t, k.keep(options.RecordOf(archive.Record{Encoding: archive.OTLPProto, Data: data})))
	}
	keep()
	old := filepath.Join(dir, "2020/01/01/00/20200101T000000.000Z-000000000001.19700101T000000Z-19700101T000001Z.otlp.pb.zst")
	write(t, old, make([]byte, k.config.MaxTotalSize))
	keep()
	keep()
	assert.FileExists(t, old)
	keep()
	assert.NoFileExists(t, old)
	assert.Equal(t, 1, logs.FilterMessage("Removed rejected file: max_total_size is reached").Len())
	require.NoError(t, k.close())
	assert.Len(t, filesIn(t, dir), 4)
}

// After a partial error, only the failed part is sent again, or rejected.
func TestPartialErrors(t *testing.T) {
	dir, rejected := t.TempDir(), t.TempDir()
	both := payload(t, 1)
	payload(t, 2).ResourceProfiles().MoveAndAppendTo(both.ResourceProfiles())
	data := profiletest.Proto(t, both)
	write(t, filepath.Join(dir, "a"), data)
	write(t, filepath.Join(dir, "b"), data)
	var next testConsumer
	next.answer = func(_ context.Context, pd pprofile.Profiles) error {
		if pd.ResourceProfiles().Len() != 2 {
			if len(next.got()) > 0 { // of the second file
				return consumererror.NewPermanent(errors.New("the rest, never"))
			}
			return nil
		}
		rest := pprofile.NewProfiles()
		pd.CopyTo(rest)
		rest.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
			n, _ := rp.Resource().Attributes().Get(number)
			return n.Int() == 1
		})
		return xconsumererror.NewProfiles(errors.New("the second, later"), rest)
	}
	r := start(t, fmt.Sprintf("include: [%q]\nconcurrency: 1\nafter_read: delete\nrejected: {directory: %q}", dir+"/*", rejected), &next)
	r.await(&next, 2)
	require.Eventually(t, func() bool { return len(filesIn(t, dir)) == 0 }, patience, time.Millisecond)
	assert.Equal(t, []int{2}, numbersIn(t, rejected))
}

// huge is a record of this many strings and samples.
func huge(t *testing.T, n int) []byte {
	pd := payload(t, 99)
	for i := range n {
		pd.Dictionary().StringTable().Append(fmt.Sprint("string ", i))
		pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().AppendEmpty()
	}
	return profiletest.Proto(t, pd)
}

// A damaged file is named, its rest is sent, and it is kept. A closed file of the exporter is never empty. Other empty
// files, and incomplete ones, may be written soon.
func TestDamagedFilesAreKept(t *testing.T) {
	tooLarge, tooMuch := huge(t, 200_000), huge(t, 100_000)
	for _, afterRead := range []string{"delete", "move\nmove_to: /nowhere", "keep"} {
		dir, stored, rejected := t.TempDir(), t.TempDir(), t.TempDir()
		damaged := writeRecords(t, stored, segment.Proto, "checkout", 1, 2, 3)
		whole, err := os.ReadFile(damaged)
		require.NoError(t, err)
		second := bytes.Index(whole[4:], []byte{0x28, 0xb5, 0x2f, 0xfd}) + 4
		whole[second+40] ^= 0xff
		write(t, damaged, whole)
		empty := writeRecords(t, stored, segment.Proto, "empty", 1)
		write(t, empty, nil)
		at := func(name string) string { return filepath.Join(dir, name) }
		write(t, at("other"), profiletest.Gzip(t, []byte("no profile\x01")))
		write(t, at("large"), profiletest.Prefixed(tooLarge, message(t, 4)))
		write(t, at("much"), profiletest.Prefixed(tooMuch, message(t, 5)))
		write(t, at("log.jsonl"), bytes.Repeat([]byte("{\"level\":\"info\"}\n"), 100)) // each line is a part that cannot be read
		mayGrow := []string{at("empty.otlp.pb"), damaged + ".partial"}
		for _, path := range mayGrow {
			write(t, path, nil)
		}

		var next testConsumer
		r := start(t, fmt.Sprintf("directory: %q\ninclude: [%q]\nafter_read: %s\nrejected: {directory: %q}\nmax_in_flight: 16MiB", stored, dir+"/**", afterRead, rejected), &next)
		r.await(&next, 1, 3, 4, 5)
		r.awaitLog("Read all files")
		assert.Equal(t, map[string]int64{"damaged": 6}, r.counts("files"))
		skipped := r.logs.FilterMessage("Skipped an unreadable part of the file")
		for path, text := range map[string]string{
			damaged: "record 2 at byte", empty: "the file is empty", at("other"): "", at("large"): "has 3.1 MiB, more than 2.0 MiB: raise max_in_flight", at("much"): "raise max_in_flight",
		} {
			logged := skipped.FilterField(zap.String("path", path)).All()
			require.Len(t, logged, 1, path)
			assert.Contains(t, logged[0].ContextMap()["error"], text)
			assert.NotContains(t, logged[0].ContextMap()["error"], path)
		}
		lines := skipped.FilterField(zap.String("path", at("log.jsonl")))
		assert.Equal(t, maxLoggedDamages, lines.FilterLevelExact(zap.ErrorLevel).Len())
		assert.Equal(t, 100-maxLoggedDamages, lines.FilterLevelExact(zap.DebugLevel).Len())
		for _, path := range mayGrow {
			assert.FileExists(t, path)
		}
		kept, keptStored := filepath.Join(rejected, damagedDir), filepath.Join(rejected, damagedDir)
		if afterRead == "keep" {
			kept, keptStored = dir, stored
		} else {
			assert.NoFileExists(t, damaged)
			assert.Empty(t, numbersIn(t, rejected), "they are no rejected records")
		}
		content, err := os.ReadFile(filepath.Join(keptStored, strings.TrimPrefix(damaged, stored)))
		require.NoError(t, err)
		assert.Equal(t, whole, content)
		assert.FileExists(t, filepath.Join(keptStored, strings.TrimPrefix(empty, stored)))
		for _, name := range []string{"other", "large", "much", "log.jsonl"} {
			assert.FileExists(t, filepath.Join(kept, name))
		}
	}
}

// The index of a file is not needed: damage there costs nothing.
func TestDamagedIndex(t *testing.T) {
	dir := t.TempDir()
	path := writeRecords(t, dir, segment.Proto, "checkout", 1, 2)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	whole[len(whole)-20] ^= 0xff
	write(t, path, whole)
	var next testConsumer
	r := start(t, fmt.Sprintf("directory: %q\nafter_read: delete\nrejected: {directory: %q}", dir, t.TempDir()), &next)
	r.await(&next, 1, 2)
	require.Eventually(t, func() bool { return len(filesIn(t, dir)) == 0 }, patience, time.Millisecond)
	assert.Equal(t, map[string]int64{"success": 1}, r.counts("files"))
}

// A directory that is compacted is not sent: its files would be sent again under other names.
func TestDirectoryThatIsCompactedIsNotSent(t *testing.T) {
	dir := t.TempDir()
	writeRecords(t, dir, segment.Proto, "checkout", 1)
	claim, err := store.ClaimDirectory(dir, store.Compacts)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig(fmt.Sprintf("directory: %q", dir), cfg))
	var next testConsumer
	r, err := newReceiver(receivertest.NewNopSettings(metadata.Type), cfg, &next)
	require.NoError(t, err)
	require.EqualError(t, r.Start(t.Context(), componenttest.NewNopHost()), fmt.Sprintf(
		"directory: directory %s: a process that compacts its files runs: must not be a directory whose files this process sends", dir))
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, claim.Close())

	sending := start(t, fmt.Sprintf("directory: %q", dir), &next)
	sending.await(&next, 1)
	_, err = store.ClaimDirectory(dir, store.Compacts)
	var inUse *store.InUseError
	require.ErrorAs(t, err, &inUse)
	require.NoError(t, sending.Shutdown(t.Context()))
	claim, err = store.ClaimDirectory(dir, store.Compacts)
	require.NoError(t, err)
	require.NoError(t, claim.Close())
}

// A part of a directory is not sent: whether it is compacted is known of the whole only.
func TestPartOfADirectoryIsNotSent(t *testing.T) {
	dir := t.TempDir()
	writeRecords(t, dir, segment.Proto, "checkout", 1)
	for _, inside := range []string{"service.name=checkout", time.Now().UTC().Format("service.name=checkout/2006")} {
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, profiletest.LoadConfig(fmt.Sprintf("directory: %q", filepath.Join(dir, inside)), cfg))
		r, err := newReceiver(receivertest.NewNopSettings(metadata.Type), cfg, &testConsumer{})
		require.NoError(t, err)
		require.EqualError(t, r.Start(t.Context(), componenttest.NewNopHost()), fmt.Sprintf(
			"directory: directory %s: is a part of the files in %s: must be that directory", filepath.Join(dir, inside), dir))
		require.NoError(t, r.Shutdown(t.Context()))
	}
}

// A directory may come into being later. Empty hours that are over go, and that of now stays for the exporter.
func TestDirectoryThatComesLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	old := filepath.Join(dir, "service.name=old", "2020", "01", "02", "03")
	var next testConsumer
	r := start(t, fmt.Sprintf("directory: %q\nafter_read: delete\nrejected: {directory: %q}", dir, t.TempDir()), &next)
	r.awaitLog("Read all files")
	assert.NoDirExists(t, dir)
	require.NoError(t, os.MkdirAll(old, 0o700))
	path := writeRecords(t, dir, segment.Proto, "checkout", 1)
	r.await(&next, 1)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Dir(filepath.Dir(filepath.Dir(old))))
		return os.IsNotExist(err) && len(filesIn(t, dir)) == 0
	}, patience, time.Millisecond)
	assert.DirExists(t, filepath.Dir(path))
}

func TestAfterRead(t *testing.T) {
	for _, test := range []struct {
		yaml        string
		left, moved int
	}{
		{"", 1, 0}, {"after_read: delete", 0, 0}, {"after_read: move\nmove_to: %q", 0, 1},
	} {
		dir, to := t.TempDir(), t.TempDir()
		path := writeRecords(t, dir, segment.Proto, "checkout", 1, 2)
		if strings.Contains(test.yaml, "%q") {
			to = dir + `/do*n\e` // within the globs
			test.yaml = fmt.Sprintf(test.yaml, to)
		}
		var next testConsumer
		r := start(t, fmt.Sprintf("directory: %q\n%s\nrejected: {directory: %q}", dir, test.yaml, t.TempDir()), &next)
		r.await(&next, 1, 2)
		r.awaitLog("Read all files")
		require.NoError(t, r.Shutdown(t.Context()))
		_, err := os.Stat(path)
		assert.Equal(t, test.left == 0, os.IsNotExist(err), test.yaml)
		if test.moved > 0 {
			assert.Equal(t, []string{strings.TrimPrefix(path, dir+"/")}, filesIn(t, to))
			assert.Equal(t, []int{1, 2}, numbersIn(t, to), "it is again a directory of an exporter")
		}
	}
}

// If a file cannot be moved, nothing of it is sent again until it can.
func TestFileThatCannotBeMoved(t *testing.T) {
	dir, blocked := t.TempDir(), filepath.Join(t.TempDir(), "file")
	path := writeRecords(t, dir, segment.Proto, "checkout", 1, 2)
	write(t, blocked, []byte("not a directory"))
	var next testConsumer
	r := start(t, fmt.Sprintf("directory: %q\nafter_read: move\nmove_to: %q", dir, blocked), &next)
	r.awaitLog("Cannot process file")
	assert.FileExists(t, path)
	require.NoError(t, os.Remove(blocked))
	require.Eventually(t, func() bool { return len(filesIn(t, dir)) == 0 }, patience, time.Millisecond)
	r.await(&next, 1, 2)
}

// A shutdown cancels calls of the next consumer. After a restart, the receiver sends what was not
// accepted, also of a file of which later records were.
func TestRestartSendsTheRest(t *testing.T) {
	dir, h := t.TempDir(), &profiletest.Storage{}
	writeRecords(t, dir, segment.Proto, "checkout", 1, 2, 3, 4, 5, 6)
	writeRecords(t, dir, segment.Proto, "checkout", 7)
	var first, second testConsumer
	first.answer = func(ctx context.Context, pd pprofile.Profiles) error {
		switch numberOf(pd) {
		case 2, 5:
			<-ctx.Done()
			return ctx.Err()
		case 6:
			return errors.New("later")
		}
		return nil
	}
	yaml := fmt.Sprintf("directory: %q\nstorage: file_storage", dir)
	r := startOn(t, h.Host(), yaml, &first)
	require.Eventually(t, func() bool { return len(first.got()) == 4 }, patience, time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Equal(t, once(1, 3, 4, 7), first.got())
	r = startOn(t, h.Host(), yaml, &second)
	r.await(&second, 2, 5, 6)
	require.NoError(t, r.Shutdown(t.Context()))

	var third testConsumer
	r = startOn(t, h.Host(), yaml, &third)
	require.Eventually(t, func() bool { return r.logs.FilterMessage("Read all files").Len() > 0 }, patience, time.Millisecond)
	assert.Empty(t, third.got())
}

// A file that the exporter still closes, or that retention removes, is locked.
func TestLockedFileIsReadLater(t *testing.T) {
	dir := t.TempDir()
	path := writeRecords(t, dir, segment.Proto, "checkout", 1)
	f, err := os.Open(path)
	require.NoError(t, err)
	other, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	locked, err := regularfile.TryLock(f)
	require.NoError(t, err)
	require.True(t, locked)
	if again, err := regularfile.TryLock(other); err != nil || again {
		t.Skip("no locks here")
	}
	var next testConsumer
	r := start(t, fmt.Sprintf("directory: %q", dir), &next)
	writeRecords(t, dir, segment.Proto, "checkout", 2)
	require.Eventually(t, func() bool { return len(next.got()) == 1 }, patience, time.Millisecond)
	require.NoError(t, f.Close())
	r.await(&next, 1, 2)
}

func TestStartAtEndSkipsExistingFiles(t *testing.T) {
	dir := t.TempDir()
	writeRecords(t, dir, segment.Proto, "checkout", 1)
	var next testConsumer
	r := start(t, fmt.Sprintf("directory: %q\nstart_at: end", dir), &next)
	r.awaitLog("Read all files")
	writeRecords(t, dir, segment.Proto, "checkout", 2)
	r.await(&next, 2)
}

// The next consumer accepts two records, and takes long for the others.
func TestReplayLogsItsPosition(t *testing.T) {
	dir := t.TempDir()
	first := writeRecords(t, dir, segment.Proto, "checkout", 1, 2, 3)
	writeRecords(t, dir, segment.Proto, "checkout", 4)
	for _, replays := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			next := testConsumer{answer: func(ctx context.Context, pd pprofile.Profiles) error {
				if numberOf(pd) > 2 {
					<-ctx.Done()
				}
				return ctx.Err()
			}}
			r := start(t, fmt.Sprintf("directory: %q\nonce: %v", dir, replays), &next)
			time.Sleep(positionEvery - time.Second)
			synctest.Wait()
			require.Equal(t, once(1, 2), next.got())
			logged := func() []observer.LoggedEntry { return r.logs.FilterMessage("Replay goes on").All() }
			require.Empty(t, logged())
			time.Sleep(positionEvery + time.Second)
			synctest.Wait()
			if !replays {
				require.Empty(t, logged())
				return
			}
			require.Len(t, logged(), 2)
			fields := logged()[1].ContextMap()
			assert.Contains(t, []any{int64(1), int64(2)}, fields["record"], "they are sent at once")
			delete(fields, "record")
			assert.Positive(t, fields["waiting_bytes"])
			delete(fields, "waiting_bytes")
			assert.Equal(t, map[string]any{
				"files": int64(0), "damaged_files": int64(0), "records": int64(2), "rejected_records": int64(0), "path": first, "waiting_files": int64(2),
			}, fields)
		})
	}
}

// once ends the Collector in order when all files were read.
func TestOnceStopsTheCollector(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program cannot send itself SIGTERM")
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	defer signal.Stop(terminated)
	dir := t.TempDir()
	writeRecords(t, dir, segment.Proto, "checkout", 1, 2, 3)
	var next testConsumer
	r := start(t, fmt.Sprintf("directory: %q\ninclude: [%q]\nonce: true", dir, dir+"/**"), &next) // each file once
	<-terminated
	r.await(&next, 1, 2, 3)
	entry := r.awaitLog("Read all files")
	assert.Equal(t, map[string]any{"files": int64(1), "damaged_files": int64(0), "records": int64(3), "rejected_records": int64(0)}, entry.ContextMap())
}

// A file that another program replaced, wrote anew or added to while its records were sent is not deleted or
// moved before the new content was sent, once: what was found first ends where it ended then. One that was renamed is sent once, and
// stays under its new name. The receiver has not read the end when the file changes: its second record waits for the first.
func TestFileThatChangesWhileItIsSent_R17(t *testing.T) {
	const polls = 50 * time.Millisecond
	found, added := profiletest.Prefixed(message(t, 1), message(t, 2)), profiletest.Prefixed(message(t, 3))
	for what, test := range map[string]struct {
		change   func(path string)
		accepted map[int]int
		left     []string // also with delete and move
	}{
		"replaced": {func(path string) {
			write(t, path+".tmp", added)
			require.NoError(t, os.Rename(path+".tmp", path))
		}, once(1, 2, 3), nil},
		"written anew": {func(path string) { write(t, path, slices.Concat(found, added)) }, map[int]int{1: 2, 2: 2, 3: 1}, nil},
		"added to":     {func(path string) { add(t, path, added) }, map[int]int{1: 2, 2: 2, 3: 1}, nil},
		"renamed":      {func(path string) { require.NoError(t, os.Rename(path, path+".old")) }, once(1, 2), []string{"file.old"}},
	} {
		for _, after := range []string{"keep", "delete", "move\nmove_to: " + t.TempDir()} {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			write(t, path, found)
			reached, changed := make(chan struct{}, 10), make(chan struct{})
			next := testConsumer{answer: func(context.Context, pprofile.Profiles) error {
				reached <- struct{}{}
				<-changed
				return nil
			}}
			r := start(t, fmt.Sprintf("include: [%q]\nconcurrency: 1\nafter_read: %s\nrejected: {directory: %q}", dir+"/*", after, t.TempDir()), &next)
			<-reached
			test.change(path)
			time.Sleep(polls)
			close(changed)
			left := test.left
			if left == nil && after == "keep" {
				left = []string{"file"}
			}
			require.Eventually(t, func() bool { return maps.Equal(test.accepted, next.got()) && slices.Equal(left, filesIn(t, dir)) },
				patience, time.Millisecond, "%s, %s", what, after)
			time.Sleep(polls)
			assert.Equal(t, test.accepted, next.got(), "%s, %s", what, after)
			require.NoError(t, r.Shutdown(t.Context()))
			profiletest.Injected(t, "1 file "+what)
		}
	}
}

func TestProgressOfRecords(t *testing.T) {
	var p progress
	for _, n := range []int{5, 2, 3, 2} {
		p.add(n)
	}
	assert.Equal(t, progress{Last: 5, Except: []int{1, 4}}, p)
	p.add(1)
	assert.Equal(t, progress{Last: 5, Except: []int{4}}, p)
	for n, want := range map[int]bool{1: true, 3: true, 4: false, 5: true, 6: false} {
		assert.Equal(t, want, p.has(n), n)
	}
}
