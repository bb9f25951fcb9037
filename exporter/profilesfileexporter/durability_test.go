// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// manyValues is a profile of a service whose samples have n values of a label, from first on. Each sample is 1.
func manyValues(service string, first, n int) pprofile.Profiles {
	pd := payloadtest.With(payloadtest.Interval(1_700_000_000_000_000_000+uint64(first), 1e9, 1), "service.name", service)
	table, p := pd.Dictionary().AttributeTable(), payloadtest.First(pd)
	if table.Len() == 0 {
		table.AppendEmpty()
	}
	key := pd.Dictionary().StringTable().Len()
	pd.Dictionary().StringTable().Append("request.id")
	for i := range n {
		a := table.AppendEmpty()
		a.SetKeyStrindex(int32(key))
		a.Value().SetStr(fmt.Sprintf("request-%06d", first+i))
		sample := p.Samples().At(0)
		if i > 0 {
			sample = p.Samples().AppendEmpty()
			p.Samples().At(0).CopyTo(sample)
		}
		sample.AttributeIndices().FromRaw([]int32{int32(table.Len() - 1)})
	}
	return pd
}

// storedSum is what a query of all files of a directory answers.
func storedSum(t testing.TB, dir string) (sum int64) {
	t.Helper()
	total := int64(0)
	for _, r := range readStore(t, dir) {
		pd := profiletest.Unmarshal(t, r.data)
		for _, v := range valuesIn(pd) {
			total += v
		}
		if r.entry.Incomplete {
			fresh, err := contents.Describe(pd)
			require.NoError(t, err)
			r.entry = fresh
		}
		for i := range r.entry.Summaries {
			sum += r.entry.Summaries[i].Sum
		}
	}
	require.Equal(t, total, sum, "the indexes say what the files have")
	return sum
}

// TestLabelsOfManyValuesLoseNothing_A1 writes records whose label sets become smaller when they are merged: a label with too many
// values loses them.
func TestLabelsOfManyValuesLoseNothing_A1(t *testing.T) {
	for name, values := range map[string][]int{
		"8 records of 130": {130, 130, 130, 130, 130, 130, 130, 130}, "280 in two": {140, 140}, "250 and more": {250, 30, 1, 500},
	} {
		t.Run(name, func(t *testing.T) {
			e, _, logs := observed(t, newConfig(t))
			require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
			first := 0
			for _, n := range values {
				require.NoError(t, e.consume(t.Context(), manyValues("checkout", first, n)))
				first += n
			}
			require.NoError(t, e.shutdown(t.Context()))
			assert.EqualValues(t, first, storedSum(t, e.config.Directory))
			assert.Zero(t, logs.FilterMessage("Index is missing or incomplete; reading takes longer").Len())
		})
	}
}

// TestPanicsInTheBackgroundAreReported_A11: the process lives, and the work goes on later.
func TestPanicsInTheBackgroundAreReported_A11(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg := newConfig(t)
		cfg.Rotation.MaxAge, cfg.Retention.MaxFiles = 2*time.Second, 1
		e, telemetry, logs := observed(t, cfg)
		var inTick, inMaintain atomic.Bool
		closed := e.options.FileClosed
		e.options.FileClosed = func(f store.ClosedFile) {
			if closed(f); inTick.Load() {
				panic("in Tick")
			}
		}
		e.options.OpenDir = func(path string, group ...string) (layout.Dir, error) {
			if inMaintain.Load() {
				panic("in Maintain")
			}
			return layout.OpenDir(path, group...)
		}
		require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
		inTick.Store(true)
		for range 2 {
			require.NoError(t, e.consume(t.Context(), manyValues("checkout", 0, 1)))
			time.Sleep(3 * time.Second)
			synctest.Wait()
		}
		inTick.Store(false)
		require.Len(t, list(t, cfg.Directory), 2)
		inMaintain.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		inMaintain.Store(false)
		require.Len(t, list(t, cfg.Directory), 2, "retention did not work")
		assert.EqualValues(t, 3, sum(t, telemetry, "errors", "panic"))
		lines := logs.FilterMessage("File operation failed; will retry").All()
		require.Len(t, lines, 1, "the others are counted")
		assert.Contains(t, fmt.Sprint(lines[0].ContextMap()["error"]), "panic: in Tick")
		assert.Contains(t, fmt.Sprint(lines[0].ContextMap()["stack"]), "durability_test.go")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, list(t, cfg.Directory), 1, "retention works again")
		require.NoError(t, e.consume(t.Context(), manyValues("checkout", 0, 1)))
		require.NoError(t, e.shutdown(t.Context()))
		assert.EqualValues(t, 2, storedSum(t, cfg.Directory))
	})
}

// TestIncompleteIndexesAreCountedAndLoggedOnce: groups that are written at once share the memory for indexes.
func TestIncompleteIndexesAreCountedAndLoggedOnce(t *testing.T) {
	cfg := newConfig(t, "service.name")
	cfg.Sync, cfg.MaxOpenFiles = syncNone, 500
	e, telemetry, logs := observed(t, cfg)
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	const services, values = 400, 200
	for i := range services {
		pd := manyValues(fmt.Sprint("service-", i), 0, values)
		for k := range 200 { // the values of resources count as well
			pd.ResourceProfiles().At(0).Resource().Attributes().PutStr(fmt.Sprintf("label-%03d-%0200d", k, k), "value")
		}
		require.NoError(t, e.consume(t.Context(), pd))
	}
	require.NoError(t, e.shutdown(t.Context()))
	lines := logs.FilterMessage("Index is missing or incomplete; reading takes longer").All()
	require.Len(t, lines, 1)
	assert.Equal(t, contents.ErrMemory.Error(), lines[0].ContextMap()["error"])
	assert.EqualValues(t, services*values, storedSum(t, cfg.Directory))
	complete := 0
	for _, r := range readStore(t, cfg.Directory) {
		if !r.entry.Incomplete {
			complete++
		}
	}
	assert.Greater(t, complete, services/2, "what fits is kept")
	missing := sum(t, telemetry, "incomplete_indexes", "")
	assert.Positive(t, missing)
	assert.Less(t, missing, int64(services/2))
}

// TestMoreGroupsThanOpenFiles_A10: 160 services in 8 windows have a file each, not one for each record.
func TestMoreGroupsThanOpenFiles_A10(t *testing.T) {
	const services, windows = 160, 8
	cfg := newConfig(t, "service.name")
	cfg.MaxOpenFiles = 50
	e, telemetry, _ := observed(t, cfg)
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	for window := range windows {
		for service := range services {
			require.NoError(t, e.consume(t.Context(), manyValues(fmt.Sprint("service-", service), window, 1)))
		}
	}
	require.NoError(t, e.shutdown(t.Context()))
	assert.EqualValues(t, services, sum(t, telemetry, "files", ""))
	assert.Equal(t, services, len(closedIn(t, cfg.Directory))) //nolint:testifylint // Len would print all files
	assert.EqualValues(t, services*windows, storedSum(t, cfg.Directory))
}

// With groups, a payload is written in parts that the reader with the least memory reads.
func TestRecordsThatReadersRead(t *testing.T) {
	const services, values = 12, 4000
	for _, oneService := range []bool{false, true} {
		pd := pprofile.NewProfiles()
		for i := range services {
			name := "checkout"
			if !oneService {
				name = fmt.Sprint("service-", i)
			}
			part := payloadtest.With(manyValues(name, i*values, values), "service.instance.id", fmt.Sprint("pod-", i))
			require.NoError(t, part.MergeTo(pd))
		}
		e, _, _ := observed(t, newConfig(t, "service.name"))
		require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, e.consume(t.Context(), pd))
		require.NoError(t, e.shutdown(t.Context()))
		assert.EqualValues(t, services*values, storedSum(t, e.config.Directory))
		least := archive.Options{MaxMemory: 16 << 20 / 8 * 3} // a query of a page with 16 MiB
		records := readStore(t, e.config.Directory)
		for _, r := range records {
			_, err := least.RecordOf(archive.Record{Encoding: archive.OTLPProto, Data: r.data}).Profiles()
			require.NoError(t, err)
			assert.LessOrEqual(t, store.DecodedSize(segment.Proto, r.data), int64(segment.MaxRecordMemory))
		}
		assert.Greater(t, len(records), 1)
		assert.LessOrEqual(t, len(records), services)
	}
}

// BenchmarkGroupsBeyondTheOpenFiles writes records of 160 services in turn, with room for all files and for 50 (A10: at least half as many
// records a second).
func BenchmarkGroupsBeyondTheOpenFiles(b *testing.B) {
	const services = 160
	payloads := make([]pprofile.Profiles, services)
	for i := range payloads {
		payloads[i] = manyValues(fmt.Sprint("service-", i), 0, 200)
		payloads[i].MarkReadOnly()
	}
	for _, open := range []int{services, 50} {
		b.Run(fmt.Sprint("open=", open), func(b *testing.B) {
			cfg := newConfig(b, "service.name")
			cfg.MaxOpenFiles = open
			e, telemetry, _ := observed(b, cfg)
			require.NoError(b, e.start(b.Context(), componenttest.NewNopHost()))
			n := 0
			for b.Loop() {
				if err := e.consume(b.Context(), payloads[n%services]); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.StopTimer()
			require.NoError(b, e.shutdown(b.Context()))
			b.ReportMetric(float64(sum(b, telemetry, "files", "")), "files")
		})
	}
}

// TestRecordsFarAheadAreWrittenAndReported: a wrong clock of a sender costs no record.
func TestRecordsFarAheadAreWrittenAndReported(t *testing.T) {
	e, telemetry, logs := observed(t, newConfig(t, "service.name"))
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	ahead := time.Now().Add(25 * time.Hour).UTC()
	for _, end := range []time.Time{time.Now(), time.Now().Add(23 * time.Hour), ahead, ahead} {
		pd := payloadtest.With(payloadtest.Interval(uint64(end.Add(-time.Second).UnixNano()), uint64(time.Second), 1), "service.name", "checkout")
		require.NoError(t, e.consume(t.Context(), pd))
	}
	require.NoError(t, e.shutdown(t.Context()))
	assert.EqualValues(t, 2, sum(t, telemetry, "ahead_records", ""))
	lines := logs.FilterMessage("Profiles end more than 24 hours ahead; queries of their time do not find them").All()
	require.Len(t, lines, 1, "the others are counted")
	assert.Equal(t, "profiles end at "+ahead.Format(time.RFC3339), lines[0].ContextMap()["error"])
	assert.Equal(t, "service.name=checkout", lines[0].ContextMap()["group"])
	assert.EqualValues(t, 4, storedSum(t, e.config.Directory))
}
