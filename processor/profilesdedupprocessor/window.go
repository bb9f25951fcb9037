// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// window is a merge.Window with the Profiles that depend on its outcome. The processor's mutex guards
// it while it is open. Then only its partitions change.
type window struct {
	merged     *merge.Window
	size       int       // bytes retained, and to be retained by its payload, when last measured
	keys       int       // of all partitions
	end        time.Time // when its time ends
	partitions map[string]*partition
	waiting    int           // payloads that wait until the window is closed, as it has no room for them
	closed     chan struct{} // closed with the window
	unsent     []*partition  // after that, in the order of their keys
}

// partition is the part of a window that is sent as one payload: without split_by all of it. Once the
// window is closed, the goroutine that sends it owns it.
type partition struct {
	key    string
	keys   []merge.Key // of its Profiles; after a failure they are removed from seenProfiles
	counts merge.Counts

	window  *window // nil once it was sent in vain
	message []byte  // to send again, as OTLP: it takes less memory than a window, and cannot be changed
	backoff backoff.ExponentialBackOff
	failed  time.Time // when it was first sent in vain
	due     time.Time // when it is to be sent again
	size    int       // bytes that it retains until then

	done chan struct{}
	err  error // valid once done is closed
}

// sampleSize is how many bytes a sample of a window counts, in addition to those that the window retains for it. A third
// of memory_limit is for the payload that is made of a window, in which a sample takes more than in the window: about 200
// bytes while a receiver decodes it, but as few as 8.
const sampleSize = 48

// Estimates of the bytes that these take: the key of a Profile in a window, with its entry in
// seenProfiles while its outcome is pending, and a partition in the retry queue.
const (
	keySize       = 80
	retryOverhead = 256
)

func (p *dedupProcessor) newWindow() *window {
	return &window{
		merged: merge.NewWindow(p.options), end: time.Now().Add(p.cfg.Window),
		partitions: map[string]*partition{}, closed: make(chan struct{}),
	}
}

// register adds the Profiles of payload that are not skipped to their partitions, and their keys to
// seen: as acknowledged, or as pending until the outcome of the partition, which its caller then waits for.
func (w *window) register(payload *merge.Payload, skip []bool, seen *seenProfiles, pending bool, waits partitionSet) {
	for i := range payload.Profiles {
		profile := &payload.Profiles[i]
		if skip[i] {
			continue
		}
		part := w.partitions[profile.Partition]
		if part == nil {
			part = &partition{key: profile.Partition, window: w, done: make(chan struct{})}
			w.partitions[part.key] = part
		}
		if pending {
			waits[part] = true
		}
		switch {
		case profile.Key == merge.Key{}:
			continue
		case pending:
			seen.pending[profile.Key] = part
		default:
			seen.acknowledge(part, profile.Key)
		}
		part.keys = append(part.keys, profile.Key)
		w.keys++
	}
	w.size = w.merged.Size() + sampleSize*w.merged.Samples() + keySize*w.keys
}

// close ends the additions: the partitions are complete and can be sent.
func (w *window) close() {
	w.unsent = slices.SortedFunc(maps.Values(w.partitions), func(a, b *partition) int { return cmp.Compare(a.key, b.key) })
	for _, part := range w.unsent {
		part.counts = w.merged.PartitionCounts(part.key)
	}
	close(w.closed)
}

// partitionSet is a set of partitions, such as those that a caller waits for.
type partitionSet map[*partition]bool

// maxSlots is the number of slots with which the open window is closed early.
const maxSlots = 64

// maxRetained is how many bytes of a window a byte of a payload takes, if the window has nothing of
// it yet: 2.5 in measurements with distinct samples.
const maxRetained = 3

// largestWindow is the size in bytes from which any open window is closed early. As OTLP, a window
// takes less than half of it, so that it stays below the 64 MiB that receivers are configured for.
const largestWindow = 128 << 20

// maxWindow is the size in bytes from which the open window is closed early: a third of the bytes that
// p.seen and the retry queue leave of memory_limit, and at most largestWindow. Only a single
// payload may exceed it. The other two thirds are for the window being exported and the payload
// made of it. The caller holds mu.
func (p *dedupProcessor) maxWindow() int {
	return min((int(p.cfg.MemoryLimit)-p.seen.limit-p.retrySize)/3, largestWindow)
}

// hasRoom reports whether a payload may be sent for the first time: if it is not accepted, the retry
// queue needs room for it. The caller holds mu.
func (p *dedupProcessor) hasRoom() bool {
	return p.stopping || p.retrySize < p.maxWindow()
}

// closeIfDue closes the open window if its time has ended or it is full. The caller holds mu.
func (p *dedupProcessor) closeIfDue() {
	switch w := p.open; {
	case w == nil:
	case p.stopping:
		p.closeWindow(reasonShutdown)
	case w.size >= p.maxWindow() || w.waiting > 0:
		p.closeWindow(reasonMemory)
	case w.merged.Slots() >= maxSlots:
		p.closeWindow(reasonSlots)
	case !time.Now().Before(w.end):
		p.closeWindow(reasonWindow)
	}
}

// closeWindow hands the open window to the export goroutine, if that would start on it now. The
// caller holds mu.
func (p *dedupProcessor) closeWindow(why reason) (closed bool) {
	if p.exporting != nil || !p.hasRoom() {
		return false
	}
	p.telemetry.add(p.telemetry.ProcessorProfilesDedupSaturatedValues, p.open.merged.Counts().Saturated)
	p.open.close()
	p.open, p.exporting = nil, p.open
	p.telemetry.add(p.telemetry.ProcessorProfilesDedupFlushes, 1, why)
	p.wakeUp()
	return true
}

// resolve passes the outcome of a partition to the callers that wait for it. After an error its Profiles are removed from
// p.seen, so that a retry of them is accepted. The caller holds mu.
func (p *dedupProcessor) resolve(part *partition, err error) {
	if err == nil {
		p.seen.accept(part)
	} else {
		p.seen.remove(part)
	}
	part.keys, part.window, part.err = nil, nil, err
	close(part.done)
}

// complete resolves a partition of a closed window, and logs and counts it if it was dropped. The caller holds mu.
func (p *dedupProcessor) complete(part *partition, err error, why reason) {
	p.resolve(part, err)
	p.retrySize -= part.size
	part.message = nil
	t, counts := p.telemetry, part.counts
	t.merged(counts)
	if err == nil {
		return
	}
	log := p.logger.Error
	if p.cfg.Acknowledge == acknowledgeOnFlush { // no caller has got a success
		log = p.logger.Warn
	} else if why == reasonShutdown {
		p.lost++
	}
	log("Dropped payload", append(p.splitFields(part), zap.String("reason", string(why)), zap.Error(err),
		zap.Int("payloads", counts.Payloads), zap.Int("profiles", counts.Profiles), zap.Int("samples", counts.Samples))...)
	t.add(t.ProcessorProfilesDedupDroppedProfiles, counts.Profiles, why)
	t.add(t.ProcessorProfilesDedupDroppedSamples, counts.Samples, why)
}

// splitFields are the values of split_by in part, for logs.
func (p *dedupProcessor) splitFields(part *partition) []zap.Field {
	if len(p.cfg.SplitBy) == 0 {
		return nil
	}
	return []zap.Field{zap.Any("split_by", p.options.Values(part.key))}
}

// retained returns the bytes that memory_limit bounds, an estimate.
func (p *dedupProcessor) retained() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := p.seen.size() + p.retrySize
	for _, w := range []*window{p.open, p.exporting} {
		if w != nil {
			size += w.size
		}
	}
	return int64(size)
}
