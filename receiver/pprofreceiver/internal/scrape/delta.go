// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
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
	job   *job
	lease *budget.Lease
	body  []byte // of a cumulative scrape until it is the baseline, otherwise until it is translated
	at    time.Time

	// The following are of the last attempt to translate it.
	next      *baseline // nil if the profile has nothing cumulative
	isDelta   bool
	restarted error // wraps merge.ErrRestarted if the baseline is of another process
}

// ingest passes a scrape on. If the next consumer rejects a delta temporarily, the next
// delta includes it; everything else is lost with an error. within is ctx with the timeout of the
// scrape, which does not limit the next consumer.
func (d *deltaScrape) ingest(ctx, within context.Context) error {
	var t *ingest.Result
	err := d.lease.Within(within, func() (err error) {
		d.next, d.isDelta, d.restarted = nil, false, nil
		t, err = d.translate(within)
		return err
	})
	if d.restarted != nil {
		d.job.logger.Debug("Target restarted; delta baseline reset", zap.Error(d.restarted))
		d.settings.Metrics.ReceiverPprofBaselineResets.Add(ctx, 1, d.settings.Metrics.Attributes(d.job.attributes...))
	}
	if err == nil {
		if !d.job.cumulative {
			d.body = nil
		}
		d.lease.ShrinkBody(0) // of a cumulative scrape, it counts as work
		err = d.ingester.Pass(ctx, t)
	}
	_, rejected := errors.AsType[*ingest.PipelineError](err)
	switch {
	case err != nil && !rejected:
		d.job.lost(d.at)
	case d.job.cumulative && d.isDelta && ingest.IsRetryable(err):
	case d.next != nil:
		return errors.Join(err, d.advance())
	}
	return err
}

// advance makes the scrape the baseline. Without room for its body there is none.
func (d *deltaScrape) advance() error {
	d.job.forget(d.settings.InFlight)
	if d.job.cumulative {
		size := int64(len(d.body))
		if !d.lease.KeepBaseline(size) {
			return failed(ingest.OutcomeTooLarge, "no room for a delta baseline of %d bytes: all baselines take at most a quarter of max_in_flight", size)
		}
		d.next.body = slices.Clone(d.body)
	}
	d.job.baseline = d.next
	return nil
}

// forget drops the baseline, if there is one.
func (j *job) forget(inFlight *budget.Budget) {
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

// translate translates a scrape, and turns what it counts since the start of its process into deltas.
func (d *deltaScrape) translate(ctx context.Context) (*ingest.Result, error) {
	payload := ingest.Payload{
		Data:        d.body,
		Resource:    d.job.resource,
		ProfileType: d.job.of.profileType,
		Temporality: d.job.of.temporality,
		Arrived:     d.at,
		Sender:      d.job.target,
	}
	if !d.job.cumulative {
		t, err := d.ingester.NewBatch(d.lease).TranslateOne(ctx, payload)
		if err == nil && d.job.of.sinceLast {
			err = d.setInterval(t)
		}
		return t, err
	}
	if err := d.lease.Take(int64(len(d.body))); err != nil { // until the next scrape, perhaps
		return nil, err
	}
	payload.Temporality = ingest.Deltas(d.job.of.temporality)
	payloads := []ingest.Payload{payload}
	if d.job.baseline != nil {
		payload.Data, payload.Arrived = d.job.baseline.body, d.job.baseline.at
		payloads = append(payloads, payload)
	}
	all, err := d.ingester.NewBatch(d.lease).Translate(ctx, len(payloads)*int(d.config.MaxDecompressedSize), payloads)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t.Err != nil {
			return nil, t.Err
		}
	}
	t := all[0]
	if err := d.checkCumulative(t.Profiles); err != nil {
		return nil, err
	}
	if d.next != nil && len(all) > 1 {
		err := d.subtract(t, all[1])
		switch {
		case err == nil:
			d.isDelta = true
		case errors.Is(err, merge.ErrRestarted):
			d.restarted = err
		default:
			return nil, err
		}
		d.lease.Free(int64(all[1].Bytes))
	}
	if d.next != nil && !d.isDelta {
		instant := func(p pprofile.Profile) bool { return !d.isCumulative(sampleTypeOf(t.Profiles, p)) }
		if err := t.Keep(instant, mergeOptions); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkCumulative finds out whether a scrape has cumulative Profiles, which make it the next baseline.
func (d *deltaScrape) checkCumulative(pd pprofile.Profiles) error {
	for p := range sampletypes.ProfilesOf(pd) {
		sampleType := sampleTypeOf(pd, p)
		if !d.isCumulative(sampleType) {
			continue
		}
		d.next = &baseline{body: d.body, target: p.Time(), at: d.at}
		p.SetDurationNano(0)
		for _, sample := range p.Samples().All() {
			for _, v := range sample.Values().All() {
				if v < 0 {
					return fmt.Errorf("negative value %d for cumulative sample type %s", v, sampleType)
				}
			}
		}
	}
	return nil
}

func (d *deltaScrape) isCumulative(sampleType string) bool {
	return d.job.of.temporality(sampleType) == sampletypes.Cumulative
}

// subtract subtracts the translated baseline from a scrape. The error wraps merge.ErrRestarted if they are of different
// processes; then the scrape has not changed.
func (d *deltaScrape) subtract(t, before *ingest.Result) error {
	// What is merged takes at most as much as the scrape. The delta takes the place of the baseline, which has no other reference.
	bytes := int64(t.Bytes)
	if err := d.lease.Take(bytes); err != nil {
		return err
	}
	defer d.lease.Free(bytes)
	start, _ := interval(d.job.baseline, d.next)
	for p := range sampletypes.ProfilesOf(before.Profiles) {
		p.SetTime(start)
		p.SetDurationNano(0)
	}
	earlier := before.Profiles
	before.Profiles = pprofile.NewProfiles()
	delta, err := merge.Delta(t.Profiles, earlier, d.isCumulative)
	if err == nil {
		t.Profiles = delta
	}
	return err
}

// setInterval sets the interval of deltas that the target computes: it responds with the values of the time
// since the previous request. The first answer has no known start and is dropped.
func (d *deltaScrape) setInterval(t *ingest.Result) error {
	pd := t.Profiles
	isDelta := func(p pprofile.Profile) bool {
		return d.job.of.temporality(sampleTypeOf(pd, p)) == sampletypes.Delta
	}
	d.next = &baseline{at: d.at}
	for p := range sampletypes.ProfilesOf(pd) {
		d.next.target = p.Time()
	}
	if d.job.baseline == nil {
		return t.Keep(func(p pprofile.Profile) bool { return !isDelta(p) }, mergeOptions)
	}
	start, duration := interval(d.job.baseline, d.next)
	for p := range sampletypes.ProfilesOf(pd) {
		if isDelta(p) {
			p.SetTime(start)
			p.SetDurationNano(duration)
		}
	}
	return nil
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
