// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
)

// openWindow takes payloads. The processor's mutex guards it.
type openWindow struct {
	merged   *merge.Window
	size     int                 // bytes retained, and to be retained by its payload, when last measured
	keys     int                 // of all outcomes
	end      time.Time           // when its time ends
	timer    *time.Timer         // closes it then
	outcomes map[string]*outcome // by the key of the partition
	waiting  int                 // payloads that wait until the window is closed, as it has no room for them
	closed   chan struct{}       // closed with the window
}

// outcome is what becomes of a partition. Callers wait for it, and seenProfiles refers to it. The processor's mutex guards
// keys and err.
type outcome struct {
	keys []merge.Key   // of the Profiles; after a failure they are removed from seenProfiles
	done chan struct{} // closed by resolve
	err  error         // valid once done is closed
}

// outcomeSet is a set of outcomes, such as those that a caller waits for.
type outcomeSet map[*outcome]bool

// closedWindow only makes payloads, for several goroutines.
type closedWindow struct {
	size int // bytes, as in openWindow

	// The processor's mutex guards these.
	unsent  int // partitions that have not been sent once
	largest int // bytes of the largest payload that was made; 0 if none was
	samples int // of that payload, more than 0

	mu     sync.Mutex // guards the following
	merged *merge.Window
}

// estimate is about how many bytes the payload of a partition with so many samples takes: as many as the window, until the
// first payload was made. Afterwards it is as large as the largest one, as it may have the same dictionary, or larger if it
// has more samples.
func (w *closedWindow) estimate(samples int) int {
	if w.largest == 0 {
		return w.size
	}
	return min(w.size, w.largest*max(samples, w.samples)/w.samples)
}

// measure records the size of a payload that was made.
func (w *closedWindow) measure(size, samples int) {
	if size > w.largest {
		w.largest, w.samples = size, max(samples, 1)
	}
}

// sampleSize is how many bytes a sample of a window counts, in addition to those that the window retains for it. A third
// of memory_limit is for the payload that is made of a window, in which a sample takes more than in the window: about 200
// bytes while a receiver decodes it, but as few as 8.
const sampleSize = 48

// Estimates of the bytes that these take: the key of a Profile in a window, with its entry in
// seenProfiles while its outcome is pending, and a partition with its goroutine.
const (
	keySize       = 80
	partitionSize = 4 << 10
)

func (p *dedupProcessor) newWindow() *openWindow {
	return &openWindow{
		merged: merge.NewWindow(p.options), end: time.Now().Add(p.cfg.Window),
		outcomes: map[string]*outcome{}, closed: make(chan struct{}),
	}
}

// register adds the Profiles of payload that are not skipped to the outcomes of their partitions, and their keys to
// seen: as acknowledged, or as pending until the outcome, which its caller then waits for.
func (w *openWindow) register(payload *merge.Payload, skip []bool, seen *seenProfiles, pending bool, waits outcomeSet) {
	for i := range payload.Profiles {
		profile := &payload.Profiles[i]
		if skip[i] {
			continue
		}
		result := w.outcomes[profile.Partition]
		if result == nil {
			result = &outcome{done: make(chan struct{})}
			w.outcomes[profile.Partition] = result
		}
		if pending {
			waits[result] = true
		}
		switch {
		case profile.Key == merge.Key{}:
			continue
		case pending:
			seen.pending[profile.Key] = result
		default:
			seen.acknowledge(result, profile.Key)
		}
		result.keys = append(result.keys, profile.Key)
		w.keys++
	}
	w.size = w.merged.Size() + sampleSize*w.merged.Samples() + keySize*w.keys + partitionSize*len(w.outcomes)
}

// close ends the additions. It returns the partitions, which are complete, and in no order.
func (w *openWindow) close() []*partition {
	if w.timer != nil {
		w.timer.Stop()
	}
	close(w.closed)
	from := &closedWindow{size: w.size, unsent: len(w.outcomes), merged: w.merged}
	parts := make([]*partition, 0, len(w.outcomes))
	for key, result := range w.outcomes {
		parts = append(parts, &partition{
			key: key, outcome: result, counts: w.merged.PartitionCounts(key), source: &windowPart{from, key},
		})
	}
	return parts
}

// windowPart makes the payload of a partition that was not sent yet.
type windowPart struct {
	window *closedWindow
	key    string
}

func (s *windowPart) payload() (pprofile.Profiles, error) {
	s.window.mu.Lock()
	defer s.window.mu.Unlock()
	return s.window.merged.Emit(s.key), nil
}

// maxSlots is the number of slots with which the open window is closed early.
const maxSlots = 64

// maxRetained is how many bytes of a window a byte of a payload takes, if the window has nothing of
// it yet: 2.5 in measurements with distinct samples.
const maxRetained = 3

// closeIfDue closes the open window if its time has ended or it is full. The caller holds mu.
func (p *dedupProcessor) closeIfDue() {
	switch w := p.open; {
	case w == nil:
	case p.stopping:
		p.closeWindow(reasonShutdown)
	case w.size >= p.admission.maxWindow() || w.waiting > 0:
		p.closeWindow(reasonMemory)
	case w.merged.Slots() >= maxSlots:
		p.closeWindow(reasonSlots)
	case !time.Now().Before(w.end):
		p.closeWindow(reasonWindow)
	}
}

// closeWindow closes the open window, if there is memory to send it, and starts a goroutine for each partition. If there is
// none, the window is closed when another one has left. The caller holds mu.
func (p *dedupProcessor) closeWindow(why reason) (closed bool) {
	w := p.open
	if !p.admission.mayClose(w.size) {
		return false
	}
	p.telemetry.add(p.telemetry.ProcessorProfilesDedupSaturatedValues, w.merged.Counts().Saturated)
	p.telemetry.add(p.telemetry.ProcessorProfilesDedupFlushes, 1, why)
	p.open = nil
	p.admission.windowClosed(w.size)
	for _, part := range w.close() {
		p.sending.Go(func() { p.deliver(part) })
	}
	return true
}
