// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// baseline is the scrape that the next delta starts from.
type baseline struct {
	body   []byte            // as the target sent it; nil if the target computes deltas
	target pcommon.Timestamp // by the clock of the target
	at     time.Time         // by the clock of the collector
}

var mergeOptions = &merge.Options{DropZeroSamples: true}

// deltaScrape is a scrape from its fetch until the pipeline has answered.
type deltaScrape struct {
	*Scraper
	job  *job
	held *ingest.Reservation
	body []byte
	at   time.Time

	next      *baseline // nil if the profile has nothing cumulative
	isDelta   bool
	restarted bool // the target; reported
}

// payload makes the payload of a scrape.
func (j *job) payload(data []byte, at time.Time) ingest.Payload {
	return ingest.Payload{
		Data:        data,
		Resource:    j.resource,
		ProfileType: j.of.profileType,
		Temporality: j.of.temporality,
		Arrived:     at,
		Sender:      j.target,
	}
}

// ingest passes a scrape on. If the next consumer rejects a delta temporarily, the next
// delta includes it; everything else is lost with an error. within is ctx with the timeout of the
// scrape, which does not limit the next consumer.
func (d *deltaScrape) ingest(ctx, within context.Context) error {
	payload := d.job.payload(d.body, d.at)
	switch {
	case d.job.cumulative:
		payload.Temporality = ingest.Deltas(d.job.of.temporality)
		payload.Transform = d.subtractBaseline
	case d.job.of.sinceLast:
		payload.Transform = d.setInterval
	}
	prepared, err := d.ingester.Prepare(within, payload, d.held)
	if err == nil {
		err = d.ingester.Pass(ctx, prepared)
	}
	_, rejected := errors.AsType[*ingest.PipelineError](err)
	switch {
	case err != nil && !rejected:
		d.job.lost(d.at)
	case d.job.cumulative && d.isDelta && ingest.IsRetryable(err):
	case d.next != nil:
		d.held.FreeWork()
		return errors.Join(err, d.advance(ctx))
	}
	return err
}

// advance makes the scrape the baseline. Without room for its body there is none.
func (d *deltaScrape) advance(ctx context.Context) error {
	inFlight := d.settings.InFlight
	d.job.forget(inFlight)
	if d.job.cumulative {
		size := int64(len(d.body))
		err := inFlight.Baseline(ctx, size)
		if errors.Is(err, ingest.ErrInFlightLimit) {
			return failed(ingest.OutcomeTooLarge, "no room for a delta baseline of %d bytes: all baselines take at most a quarter of max_in_flight", size)
		}
		if err != nil {
			return err
		}
		d.next.body = slices.Clone(d.body)
	}
	d.job.baseline = d.next
	return nil
}

// forget drops the baseline, if there is one.
func (j *job) forget(inFlight *ingest.InFlight) {
	if j.baseline != nil {
		inFlight.FreeBaseline(int64(len(j.baseline.body)))
		j.baseline = nil
	}
}

// lost records that the target answered at this time but the answer was lost. If the
// target computes deltas, its next one starts at this time.
func (j *job) lost(at time.Time) {
	if j.of.sinceLast && j.baseline != nil {
		j.baseline = &baseline{at: at}
	}
}

func sampleTypeOf(pd pprofile.Profiles, p pprofile.Profile) string {
	return pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
}

// without drops the Profiles of some sample types from a translated pprof of this memory in bytes.
func (d *deltaScrape) without(drop func(sampleType string) bool, pd pprofile.Profiles, bytes int) (pprofile.Profiles, error) {
	keep := func(p pprofile.Profile) bool { return !drop(sampleTypeOf(pd, p)) }
	return ingest.Keep(pd, bytes, mergeOptions, keep, d.held.Resize)
}

func (d *deltaScrape) isCumulative(sampleType string) bool {
	return d.job.of.temporality(sampleType) == sampletypes.Cumulative
}

// subtractBaseline replaces the cumulative Profiles of pd by their deltas. Without a
// baseline of the same process it drops them. empty is the number of Profiles that are
// left out because nothing has changed.
func (d *deltaScrape) subtractBaseline(pd pprofile.Profiles, bytes int) (result pprofile.Profiles, empty int, err error) {
	for p := range ingest.ProfilesOf(pd) {
		sampleType := sampleTypeOf(pd, p)
		if !d.isCumulative(sampleType) {
			continue
		}
		d.next = &baseline{body: d.body, target: p.Time(), at: d.at}
		p.SetDurationNano(0)
		for _, sample := range p.Samples().All() {
			for _, v := range sample.Values().All() {
				if v < 0 {
					return pd, 0, fmt.Errorf("negative value %d for cumulative sample type %s", v, sampleType)
				}
			}
		}
	}
	if d.next == nil {
		return pd, 0, nil
	}
	if d.job.baseline != nil {
		count := pd.ProfileCount()
		result, err = d.delta(pd, bytes)
		if err == nil {
			d.isDelta = true
			return result, max(0, count-result.ProfileCount()), nil
		}
		if !errors.Is(err, merge.ErrRestarted) {
			return result, 0, err
		}
		d.reportRestart(err)
		if pd, bytes, err = d.translate(d.next, d.held.Resize); err != nil { // delta has released it
			return pd, 0, err
		}
	}
	result, err = d.without(d.isCumulative, pd, bytes)
	return result, 0, err
}

// reportRestart logs and counts that the target is another process, once: the work on a scrape
// that waits for memory starts again.
func (d *deltaScrape) reportRestart(err error) {
	if d.restarted {
		return
	}
	d.restarted = true
	d.job.logger.Debug("Target restarted; delta baseline reset", zap.Error(err))
	d.settings.Metrics.ReceiverPprofBaselineResets.Add(context.Background(), 1, d.settings.Metrics.Attributes(d.job.attributes...))
}

// translate translates a cumulative scrape.
func (d *deltaScrape) translate(of *baseline, reserve func(bytes int64) error) (pprofile.Profiles, int, error) {
	payload := d.job.payload(of.body, of.at)
	payload.Temporality = ingest.Deltas(payload.Temporality)
	return d.ingester.Translate(payload, reserve)
}

// delta is pd minus the baseline. It releases pd once that is in a window, before it
// translates the baseline. The error wraps merge.ErrRestarted if they are of different
// processes.
func (d *deltaScrape) delta(pd pprofile.Profiles, bytes int) (result pprofile.Profiles, err error) {
	held := int64(2 * endSize * pd.Dictionary().MappingTable().Len())
	reserve := func(bytes int64) error { return d.held.Resize(held + bytes) }
	if err := reserve(int64(bytes)); err != nil {
		return pprofile.NewProfiles(), err
	}
	ends := endsOf(pd.Dictionary())
	window, err := ingest.Merge(pd, bytes, mergeOptions, func(pprofile.Profile) bool { return true }, reserve)
	if err == nil {
		held += int64(window.Size())
		err = d.subtract(window, ends, reserve)
	}
	if err != nil {
		return pprofile.NewProfiles(), err
	}
	return ingest.Emit(window, bytes, d.held.Resize)
}

// subtract subtracts the baseline from a window with the scrape, whose mappings have these
// ends.
func (d *deltaScrape) subtract(window *merge.Window, ends map[mapping]uint64, reserve func(bytes int64) error) error {
	before, bytes, err := d.translate(d.job.baseline, reserve)
	if err == nil {
		err = reserve(2 * int64(bytes)) // as ingest.Merge
	}
	if err != nil {
		return err
	}
	start, _ := interval(d.job.baseline, d.next)
	for p := range ingest.ProfilesOf(before) {
		p.SetTime(start)
		p.SetDurationNano(0)
	}
	extendMappings(before.Dictionary(), ends)
	earlier, err := merge.Check(before, mergeOptions)
	if err != nil {
		return err
	}
	return window.Subtract(earlier, d.isCumulative)
}

// setInterval sets the interval of deltas that the target computes: it responds with the values of the time
// since the previous request. The first answer has no known start and is dropped.
func (d *deltaScrape) setInterval(pd pprofile.Profiles, bytes int) (result pprofile.Profiles, empty int, err error) {
	isDelta := func(sampleType string) bool { return d.job.of.temporality(sampleType) == sampletypes.Delta }
	d.next = &baseline{at: d.at}
	for p := range ingest.ProfilesOf(pd) {
		d.next.target = p.Time()
	}
	if d.job.baseline == nil {
		result, err = d.without(isDelta, pd, bytes)
		return result, 0, err
	}
	start, duration := interval(d.job.baseline, d.next)
	for p := range ingest.ProfilesOf(pd) {
		if isDelta(sampleTypeOf(pd, p)) {
			p.SetTime(start)
			p.SetDurationNano(duration)
		}
	}
	return pd, 0, nil
}

// clockTolerance is how much more time may pass between two scrapes by the target's clock than by the
// collector's: responses are not equally late.
const clockTolerance = pcommon.Timestamp(time.Minute)

// interval is the time between two scrapes, by the clock of the target unless that is
// unknown or was set.
func interval(last, next *baseline) (start pcommon.Timestamp, nanoseconds uint64) {
	elapsed := pcommon.Timestamp(max(next.at.Sub(last.at), 0))
	if last.target > 0 && next.target > last.target && next.target-last.target <= elapsed+clockTolerance {
		return last.target, uint64(next.target - last.target)
	}
	end := next.target
	if end == 0 {
		end = pcommon.NewTimestampFromTime(next.at)
	}
	return max(end, elapsed+1) - elapsed, uint64(elapsed)
}

// mapping is where a file is mapped. The end may be 0, for any.
type mapping struct {
	start, end uint64
	file       string
}

func mappingOf(d pprofile.ProfilesDictionary, m pprofile.Mapping) mapping {
	return mapping{m.MemoryStart(), m.MemoryLimit(), d.StringTable().At(int(m.FilenameStrindex()))}
}

// endSize is about the memory of an end in a map, in bytes.
const endSize = 128

// endsOf returns the ends of mappings, by mapping and by start and file alone.
func endsOf(d pprofile.ProfilesDictionary) map[mapping]uint64 {
	ends := map[mapping]uint64{}
	for _, m := range d.MappingTable().All() {
		key := mappingOf(d, m)
		key.file = strings.Clone(key.file) // without the other strings of d
		ends[key] = key.end
		ends[mapping{start: key.start, file: key.file}] = key.end
	}
	return ends
}

// extendMappings gives each mapping of before that is not in the scrape after it the end that
// it has there: the mappings of a process may grow.
func extendMappings(before pprofile.ProfilesDictionary, ends map[mapping]uint64) {
	for _, m := range before.MappingTable().All() {
		key := mappingOf(before, m)
		if _, same := ends[key]; same {
			continue
		}
		if end, found := ends[mapping{start: key.start, file: key.file}]; found {
			m.SetMemoryLimit(end)
		}
	}
}
