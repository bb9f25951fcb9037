// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// dedupProcessor merges payloads in an open window. Its export goroutine sends closed windows,
// and payloads from the retry queue, to the next consumer.
type dedupProcessor struct {
	cfg       *Config
	options   *merge.Options
	next      xconsumer.Profiles
	logger    *zap.Logger
	telemetry *telemetry

	mu        sync.Mutex // guards all until stopping
	seen      *seenProfiles
	open      *window       // nil if nothing is in it
	pending   []*window     // closed, in order; the export goroutine works on the first
	retrySize int           // bytes of the retry queue
	room      chan struct{} // closed when a window has been exported; nil unless payloads wait for it
	stopping  bool

	retries []*retry      // used only by the export goroutine
	wake    chan struct{} // signals the export goroutine that a field guarded by mu has changed
	lost    atomic.Int64  // partitions with acknowledged payloads, dropped at the end of the shutdown timeout
	stopped chan struct{} // closed when the export goroutine has ended; nil unless it was started
	ctx     context.Context
	cancel  context.CancelFunc // ends the shutdown timeout
}

// maxSlots is the number of slots with which the open window is closed early.
const maxSlots = 64

// roomTimeout is how long a payload waits for room in the open window.
const roomTimeout = time.Second

// patience is how long a canceled call of the next consumer may take without a warning and, if the
// Collector's shutdown deadline has passed, at all.
const patience = time.Second

var (
	errMemoryLimit = errors.New("profiles_dedup: memory_limit reached: earlier windows are not exported yet; retry later")
	errTooLarge    = errors.New("profiles_dedup: payload exceeds memory_limit")
	errStopping    = errors.New("profiles_dedup: shutting down")
)

func newDedupProcessor(set processor.Settings, cfg *Config, next xconsumer.Profiles) (*dedupProcessor, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	p := &dedupProcessor{
		cfg: cfg, options: cfg.mergeOptions(), next: next, logger: set.Logger, telemetry: telemetry,
		seen: newSeenProfiles(cfg.DuplicateTTL, int(cfg.MemoryLimit)/8),
		wake: make(chan struct{}, 1),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Capabilities says that payloads are only read.
func (p *dedupProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start starts the export goroutine.
func (p *dedupProcessor) Start(context.Context, component.Host) error {
	if p.cfg.Window == 0 {
		return nil
	}
	p.stopped = make(chan struct{})
	go p.export()
	return nil
}

// expire closes w, whose time has ended, unless it is closed already.
func (p *dedupProcessor) expire(w *window) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == w {
		w.overdue = reasonWindow
		p.closeOverdue()
	}
}

// ConsumeProfiles merges pd, which it only reads. An error is permanent if pd itself is
// invalid. Without a window it returns the answer of the next consumer.
func (p *dedupProcessor) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	bytes := sizeOf(pd)
	if p.cfg.Window > 0 { // before a part of it is copied
		if err := p.checkSize(bytes, maxRetained*bytes); err != nil {
			return p.reject(err)
		}
	}
	payload, err := p.prepare(pd)
	if err != nil {
		return p.reject(err)
	}
	if len(payload.Profiles) == 0 {
		return nil
	}
	if p.cfg.Window == 0 {
		defer payload.Release()
		return p.consumeImmediately(ctx, payload, bytes)
	}
	waits, err := p.addWhenRoom(ctx, payload, bytes)
	payload.Release() // the caller may wait long
	if err != nil {
		return p.reject(err)
	}
	return p.await(ctx, waits)
}

// openWindow returns the merged part of the open window, which may be closed at any time, or nil.
func (p *dedupProcessor) openWindow() *merge.Window {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return nil
	}
	return p.open.merged
}

// addWhenRoom is add. If the open window has no room, it waits for at most roomTimeout until the
// window before it is exported: a client that retries has to send everything again.
func (p *dedupProcessor) addWhenRoom(ctx context.Context, payload *merge.Payload, bytes int) (partitionSet, error) {
	var timeout <-chan time.Time
	for {
		waits, room, err := p.add(payload, bytes)
		if room == nil {
			return waits, err
		}
		if timeout == nil {
			timer := time.NewTimer(roomTimeout)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-room:
		case <-timeout:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
		for i := range payload.Profiles {
			payload.Profiles[i].Skip = false // a pending duplicate may have failed
		}
	}
}

// reject counts a payload that is not accepted, and returns the error for its sender.
func (p *dedupProcessor) reject(err error) error {
	switch {
	case errors.Is(err, errStopping):
		p.telemetry.rejected(reasonShutdown)
	case errors.Is(err, errMemoryLimit):
		p.telemetry.rejected(reasonMemory)
	case errors.Is(err, errTooLarge):
		p.telemetry.rejected(reasonTooLarge)
		return consumererror.NewPermanent(&clientError{err})
	case errors.Is(err, errMergePanicked):
		p.telemetry.rejected(reasonPanic)
		return consumererror.NewPermanent(err)
	default:
		p.telemetry.rejected(reasonInvalid)
		return consumererror.NewPermanent(&clientError{err})
	}
	return err
}

// clientError is an error of a payload itself. To other permanent errors the otlp receiver responds that
// the server failed.
type clientError struct{ error }

func (e *clientError) Unwrap() error { return e.error }

// GRPCStatus is the response of the otlp receiver: 400 over HTTP.
func (e *clientError) GRPCStatus() *status.Status {
	return status.New(codes.InvalidArgument, e.Error())
}

// await returns the outcome of all partitions, or the error of ctx. The caller is among their
// waiters.
func (p *dedupProcessor) await(ctx context.Context, waits partitionSet) (err error) {
	if len(waits) == 0 {
		return nil
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for part := range waits {
			part.waiters--
		}
		p.wakeExport() // it drops retries without waiters
	}()
	for part := range waits {
		select {
		case <-part.done:
			err = preferRetryable(err, part.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return withoutPart(err)
}

// preferRetryable returns one of two results for the same caller: an error before nil, and a
// retryable error before a permanent one.
func preferRetryable(a, b error) error {
	if a == nil || b != nil && isPermanent(a) {
		return b
	}
	return a
}

// add merges a payload into the open window, without its duplicates, and returns the
// partitions that its caller waits for. If there is no room, it returns errMemoryLimit and a
// channel that is closed when there may be.
func (p *dedupProcessor) add(payload *merge.Payload, bytes int) (waits partitionSet, room <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.updateRetainedMetric() // runs after closeOverdue, whose result it measures
	defer p.closeOverdue()         // evicted IDs may have made room
	if p.stopping {
		return nil, nil, errStopping
	}
	needed := maxRetained*bytes + payload.Repeated
	if err := p.checkSize(bytes, needed); err != nil {
		return nil, nil, err
	}
	profiles, samples := p.seen.skip(payload, &waits)
	if profiles > 0 {
		err := p.merge(payload, needed)
		if errors.Is(err, errMemoryLimit) {
			if p.room == nil {
				p.room = make(chan struct{})
			}
			return nil, p.room, err
		}
		if err != nil {
			return nil, nil, err
		}
		touched := p.register(p.open, payload)
		if p.cfg.Acknowledge == acknowledgeOnFlush {
			for part := range touched {
				waits.add(part)
			}
		}
		p.open.measure()
		switch {
		case p.open.size >= p.maxWindow():
			p.closeIfRoom(reasonMemory)
		case p.open.merged.Slots() >= maxSlots && p.open.overdue == "":
			p.open.overdue = reasonSlots // closeOverdue follows
		}
	}
	p.telemetry.accepted(payload, profiles, samples, bytes)
	for part := range waits {
		part.waiters++
	}
	return waits, nil, nil
}

// checkSize rejects a payload that may need more bytes than memory_limit.
func (p *dedupProcessor) checkSize(bytes, needed int) error {
	if limit := p.cfg.MemoryLimit; needed > int(limit) {
		return fmt.Errorf("%w (%v): it has %d bytes of OTLP and may need %d bytes", errTooLarge, limit, bytes, needed)
	}
	return nil
}

// merge adds payload to the open window, which it opens or, if the window may become too large with
// needed more bytes, replaces.
func (p *dedupProcessor) merge(payload *merge.Payload, needed int) error {
	if p.open != nil && p.open.size+needed > p.maxWindow() && !p.closeIfRoom(reasonMemory) {
		return errMemoryLimit
	}
	for {
		w := p.open
		if w == nil {
			w = newWindow(p.options)
		}
		superseded := w.merged.Counts().Superseded
		err := p.addTo(w, payload)
		if errors.Is(err, errMergePanicked) && p.open != nil {
			p.dropOpen()
		}
		if _, overflow := errors.AsType[*dictionary.OverflowError](err); overflow && p.open != nil {
			if !p.closeIfRoom(reasonOverflow) {
				return errMemoryLimit
			}
			continue
		}
		if err != nil {
			return err
		}
		p.telemetry.superseded(w.merged.Counts().Superseded - superseded)
		if p.open == nil {
			p.open = w
			w.timer = time.AfterFunc(p.cfg.Window, func() { p.expire(w) })
		}
		return nil
	}
}

// register records in w and in p.seen the Profiles of payload that are not skipped: as
// acknowledged, or as pending until the outcome of their partition. It returns the partitions
// that payload goes into. The caller holds mu.
func (p *dedupProcessor) register(w *window, payload *merge.Payload) (touched partitionSet) {
	for i := range payload.Profiles {
		profile := &payload.Profiles[i]
		if profile.Skip {
			continue
		}
		part := w.partition(profile.Partition)
		touched.add(part)
		switch {
		case profile.Key == merge.Key{}:
			continue
		case p.acknowledgesLater():
			p.seen.pending[profile.Key] = part
			w.addKey(part, profile.Key)
		default:
			w.addKey(part, profile.Key)
			part.acknowledgedAt = p.seen.acknowledge(part.keys[len(part.keys)-1:])
		}
	}
	return touched
}

// acknowledgesLater reports whether callers get the outcome of the next consumer.
func (p *dedupProcessor) acknowledgesLater() bool {
	return p.cfg.Window == 0 || p.cfg.Acknowledge == acknowledgeOnFlush
}

// complete passes the outcome of a partition to the callers that wait for it. After a failure
// its Profiles are removed from p.seen, so that a retry of them is accepted.
func (p *dedupProcessor) complete(part *partition, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.completeLocked(part, err)
}

// completeLocked is complete for a caller that holds mu.
func (p *dedupProcessor) completeLocked(part *partition, err error) {
	if err != nil {
		p.seen.remove(part)
	} else if p.acknowledgesLater() {
		p.seen.acknowledge(part.keys)
	}
	part.err = err
	close(part.done)
}

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
	return min(int(p.cfg.MemoryLimit)-p.seen.size()-p.retrySize, 3*largestWindow) / 3
}

// hasRoom reports whether a payload may be sent: if it is not accepted, the retry queue needs
// room for it. The caller holds mu.
func (p *dedupProcessor) hasRoom() bool { return p.retrySize == 0 || p.retrySize < p.maxWindow() }

// closeIfRoom closes the open window if the export goroutine would start on it now. The
// caller holds mu.
func (p *dedupProcessor) closeIfRoom(why reason) bool {
	if len(p.pending) > 0 || !p.hasRoom() {
		return false
	}
	p.closeWindow(why)
	return true
}

// closeOverdue closes the open window if it is overdue and there is room now. The caller holds mu.
func (p *dedupProcessor) closeOverdue() {
	if p.open != nil && p.open.overdue != "" {
		p.seen.evict() // expired IDs may take its room
		p.closeIfRoom(p.open.overdue)
	}
}

// closeWindow hands the open window to the export goroutine. The caller holds mu.
func (p *dedupProcessor) closeWindow(why reason) {
	if p.open == nil {
		return
	}
	p.open.timer.Stop()
	p.telemetry.flushed(why)
	p.open.close()
	p.pending = append(p.pending, p.open)
	p.open = nil
	p.wakeExport()
}

func (p *dedupProcessor) wakeExport() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// updateRetainedMetric updates the metric of retained bytes. The caller holds mu.
func (p *dedupProcessor) updateRetainedMetric() {
	size := p.seen.size() + p.retrySize
	if p.open != nil {
		size += p.open.size
	}
	for _, w := range p.pending {
		size += w.size
	}
	p.telemetry.retained.Store(int64(size))
}

// Shutdown closes the open window and waits until everything is accepted, at most until
// shutdown_timeout or ctx ends. Then it cancels the call of the next consumer and drops the rest.
// It does not return before the next consumer has, unless ctx ends: the Collector shuts down the
// next consumer after it. The error says what was dropped.
func (p *dedupProcessor) Shutdown(ctx context.Context) error {
	defer p.telemetry.shutdown()
	defer p.cancel()
	p.mu.Lock()
	p.stopping = true
	p.closeWindow(reasonShutdown)
	p.mu.Unlock()
	if p.stopped == nil {
		return nil
	}
	p.wakeExport()

	limit := "the Collector's shutdown deadline"
	timeout, cancel := context.WithTimeout(ctx, p.cfg.ShutdownTimeout)
	defer cancel()
	select {
	case <-p.stopped:
	case <-timeout.Done():
		if ctx.Err() == nil {
			limit = fmt.Sprintf("shutdown_timeout (%v)", p.cfg.ShutdownTimeout)
		}
		p.cancel()
		if !p.awaitStopped(ctx) {
			return fmt.Errorf("profiles_dedup: next consumer did not return within %s and is still running", limit)
		}
	}
	if lost := p.lost.Load(); lost > 0 {
		return fmt.Errorf("profiles_dedup: dropped %d payloads that the next consumer did not accept within %s", lost, limit)
	}
	return nil
}

// awaitStopped waits until the export goroutine has ended. It returns false if ctx ended before,
// and patience has passed.
func (p *dedupProcessor) awaitStopped(ctx context.Context) bool {
	select {
	case <-p.stopped:
		return true
	case <-time.After(patience):
	}
	p.logger.Warn("Waiting for the next consumer to return")
	select {
	case <-p.stopped:
		return true
	case <-ctx.Done():
		return false
	}
}
