// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// outcomeUnreadable is that of a file which cannot be opened or read; it is tried
// again. The others are those of scrapes.
const outcomeUnreadable = "unreadable"

// errChanged: a file is not the one that was seen.
var errChanged = errors.New("it changes while it is read")

// unreadableError: a file cannot be opened or read. It has a type of its own since
// the pipeline has errors of file systems, too.
type unreadableError struct{ err error }

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// fileReader reads the files of a file section, one after the other, from start to
// stop.
type fileReader struct {
	id                 component.ID
	config             FileConfig
	patterns           []*pathPattern
	exclude            []string
	resourceAttributes map[string]string
	intake             *ingest.Ingester
	logger             *zap.Logger
	telemetry          *telemetry

	limit      int // bytes of a payload
	budget     *ingest.InFlight
	checkpoint *checkpoint
	waiting    map[string]version // files seen that may still grow
	warned     map[string]string  // outcome of files that are tried again
	troubled   map[string]bool    // directories that cannot be looked through

	firstRetry, longestRetry time.Duration

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// foundFile is a file that matches a pattern.
type foundFile struct {
	path       string // absolute
	root       *os.Root
	relative   string // to root
	version    version
	attributes map[string]string
	kind       string
}

func newFileReader(id component.ID, config FileConfig, resourceAttributes map[string]string, in *ingest.Ingester, logger *zap.Logger, telemetry *telemetry) (*fileReader, error) {
	r := &fileReader{
		id:                 id,
		config:             config,
		resourceAttributes: resourceAttributes,
		intake:             in,
		logger:             logger,
		telemetry:          telemetry,
		limit:              int(config.MaxDecompressedSize),
		// Files are read one at a time, so none waits for another.
		budget:       ingest.NewInFlight(largestInFlightBytes, 0),
		waiting:      map[string]version{},
		warned:       map[string]string{},
		troubled:     map[string]bool{},
		firstRetry:   time.Second,
		longestRetry: 30 * time.Second,
	}
	for i, text := range config.Include {
		pattern, err := parsePathPattern(text)
		if err != nil {
			return nil, fmt.Errorf("include::%d: %q %w", i, text, err)
		}
		r.patterns = append(r.patterns, pattern)
	}
	for i, text := range config.Exclude {
		absolute, err := filepath.Abs(filepath.FromSlash(text))
		if err != nil {
			return nil, fmt.Errorf("exclude::%d: %w", i, err)
		}
		r.exclude = append(r.exclude, filepath.ToSlash(absolute))
	}
	return r, nil
}

const largestInFlightBytes = int64(largestInFlight)

// start loads what has been read before, and begins to look for files.
func (r *fileReader) start(ctx context.Context, host component.Host) error {
	client, err := r.storageClient(ctx, host)
	if err != nil {
		return fmt.Errorf("file: storage: %w", err)
	}
	r.checkpoint = newCheckpoint(client)
	if err := r.checkpoint.load(ctx); err != nil {
		r.logger.Warn("what is stored of the files that were read cannot be used; those files are read again", zap.Error(err))
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.running.Go(func() {
		ticker := time.NewTicker(r.config.PollInterval)
		defer ticker.Stop()
		for {
			r.poll(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return nil
}

func (r *fileReader) storageClient(ctx context.Context, host component.Host) (storage.Client, error) {
	if r.config.Storage == nil {
		return nil, nil
	}
	found, ok := host.GetExtensions()[*r.config.Storage]
	if !ok {
		return nil, fmt.Errorf("the extension %q is not there: define it, and list it in service::extensions", r.config.Storage)
	}
	extension, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("the extension %q stores nothing, want one as file_storage", r.config.Storage)
	}
	return extension.GetClient(ctx, component.KindReceiver, r.id, "files")
}

// stop ends after the file that is being handed on, or at once when the pipeline
// gives it back.
func (r *fileReader) stop(ctx context.Context) error {
	if r.cancel == nil { // not started
		return nil
	}
	r.cancel()
	r.running.Wait()
	r.cancel = nil
	return r.checkpoint.close(ctx)
}

// poll reads the files that are finished and have not been read, oldest first.
func (r *fileReader) poll(ctx context.Context) {
	files, closeRoots := r.find()
	defer closeRoots()
	now := time.Now()
	there := make(map[string]bool, len(files))
	waiting := map[string]version{}
	var ready []foundFile
	for _, file := range files {
		there[file.path] = true
		switch {
		case file.version.Size == 0, r.checkpoint.has(file.path, file.version):
		case r.waiting[file.path] == file.version, now.Sub(time.Unix(0, file.version.ModTime)) >= r.config.PollInterval:
			ready = append(ready, file)
		default:
			waiting[file.path] = file.version
		}
	}
	slices.SortFunc(ready, func(a, b foundFile) int {
		return cmp.Or(cmp.Compare(a.version.ModTime, b.version.ModTime), strings.Compare(a.path, b.path))
	})
	for _, file := range ready {
		err := r.take(ctx, file)
		if err != nil && ctx.Err() != nil {
			return
		}
		if errors.Is(err, errChanged) {
			continue // it is seen anew, and waits
		}
		// What was accepted is noted, even while everything stops.
		r.settle(context.WithoutCancel(ctx), file, err)
		if ctx.Err() != nil {
			return
		}
	}
	r.waiting = waiting
	for path := range r.warned {
		if !there[path] {
			delete(r.warned, path)
		}
	}
	if err := r.checkpoint.forget(ctx, there, now); err != nil && ctx.Err() == nil {
		r.logger.Warn("storing which files were read failed", zap.Error(err))
	}
}

// settle notes how taking a file ended. What cannot be taken for good is not read
// again until it changes; what could not be read, and what something panicked at,
// is tried with the next poll.
func (r *fileReader) settle(ctx context.Context, file foundFile, err error) {
	outcome := outcomeOf(err)
	if _, unreadable := errors.AsType[*unreadableError](err); unreadable {
		outcome = outcomeUnreadable
	}
	r.telemetry.ReceiverPprofFiles.Add(ctx, 1, r.telemetry.with(attribute.String("outcome", outcome)))
	switch outcome {
	case outcomeUnreadable, outcomePanic:
		if r.warned[file.path] != outcome {
			r.warned[file.path] = outcome
			r.logger.Warn("a file cannot be taken now, it is tried again", zap.String("path", file.path), zap.String("outcome", outcome), zap.Error(err))
		}
		return
	case outcomeSuccess:
		r.logger.Debug("read a file", zap.String("path", file.path))
	default:
		r.logger.Warn("a file is left out until it changes", zap.String("path", file.path), zap.String("outcome", outcome), zap.Error(err))
	}
	delete(r.warned, file.path)
	if err := r.checkpoint.put(ctx, file.path, file.version); err != nil {
		r.logger.Warn("storing which files were read failed", zap.Error(err))
	}
}

// find returns the regular files that match, once each, and what to call when they
// are done with.
func (r *fileReader) find() (files []foundFile, closeRoots func()) {
	var roots []*os.Root
	seen := map[string]bool{}
	for _, pattern := range r.patterns {
		root, err := os.OpenRoot(pattern.base)
		if err != nil {
			r.trouble(pattern.base, err)
			continue
		}
		roots = append(roots, root)
		matches, err := pattern.find(root)
		r.trouble(pattern.base, err)
		for _, relative := range matches {
			path := filepath.Join(pattern.base, filepath.FromSlash(relative))
			if seen[path] || isTemporary(relative) || r.excluded(path) {
				continue
			}
			attributes, kind, ok := pattern.parts(relative)
			if !ok {
				continue
			}
			// Through root, so that no link leads out of it.
			info, err := root.Stat(filepath.FromSlash(relative))
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			seen[path] = true
			files = append(files, foundFile{
				path: path, root: root, relative: filepath.FromSlash(relative),
				version:    versionOf(info),
				attributes: attributes, kind: kind,
			})
		}
	}
	return files, func() {
		for _, root := range roots {
			_ = root.Close()
		}
	}
}

// trouble warns of a directory that cannot be looked through, once until it can.
func (r *fileReader) trouble(base string, err error) {
	if err != nil && !r.troubled[base] {
		r.logger.Warn("a directory cannot be looked through, it is tried again", zap.String("path", base), zap.Error(err))
	}
	r.troubled[base] = err != nil
}

// find returns what matches below root, and the first error: what can be looked
// through is, whatever else there is. Links to directories are not followed: they
// may lead in circles.
func (p *pathPattern) find(root *os.Root) ([]string, error) {
	options := []doublestar.GlobOption{doublestar.WithNoFollow(), doublestar.WithNoHidden()}
	matches, err := doublestar.Glob(root.FS(), p.glob, append(options, doublestar.WithFailOnIOErrors())...)
	if err == nil {
		return matches, nil
	}
	matches, globErr := doublestar.Glob(root.FS(), p.glob, options...)
	return matches, cmp.Or(globErr, err)
}

func versionOf(info fs.FileInfo) version {
	v := version{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	v.Inode, v.Changed = identityOf(info)
	return v
}

// temporarySuffixes are of names that programs give to files which they have not
// finished. (Hidden ones are not found at all.)
var temporarySuffixes = []string{".tmp", ".temp", ".partial", ".part", ".swp", "~"}

func isTemporary(path string) bool {
	for _, suffix := range temporarySuffixes {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}

func (r *fileReader) excluded(path string) bool {
	return slices.ContainsFunc(r.exclude, func(pattern string) bool {
		return doublestar.MatchUnvalidated(pattern, filepath.ToSlash(path))
	})
}

// take reads a file and hands it on. After errChanged, an *unreadableError or a
// panic it is worth another try; any other error is for good.
func (r *fileReader) take(ctx context.Context, file foundFile) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = failed(outcomePanic, "panic: %v", fault)
		}
	}()
	held := r.budget.Reserve()
	defer held.Release()
	payload, err := r.read(ctx, file, held)
	if err != nil {
		return err
	}
	resource := pcommon.NewMap()
	ingest.PutStrings(resource, r.resourceAttributes)
	ingest.PutStrings(resource, file.attributes)
	return r.handOn(ctx, file, ingest.Payload{Data: payload, Resource: resource, ProfileType: file.kind})
}

// handOn offers the profile until the pipeline takes it or refuses it for good.
func (r *fileReader) handOn(ctx context.Context, file foundFile, a ingest.Payload) error {
	waits := backoff.ExponentialBackOff{
		InitialInterval: r.firstRetry, MaxInterval: r.longestRetry,
		RandomizationFactor: backoff.DefaultRandomizationFactor, Multiplier: backoff.DefaultMultiplier,
	}
	waits.Reset()
	for {
		err := r.intake.Ingest(ctx, a, nil)
		var pipeline *ingest.PipelineError
		if !errors.As(err, &pipeline) || consumererror.IsPermanent(pipeline) {
			return err
		}
		a.Resent = true // and is translated anew, since who has it may change it
		wait := waits.NextBackOff()
		r.logger.Debug("the pipeline cannot take a file now, it is offered again", zap.String("path", file.path), zap.Duration("after", wait), zap.Error(err))
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// read returns what a file holds, without its compression. Nothing that is put in
// its place since it was found is waited for.
func (r *fileReader) read(ctx context.Context, file foundFile, held *ingest.Reservation) ([]byte, error) {
	opened, err := file.root.OpenFile(file.relative, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, &unreadableError{err}
	}
	defer opened.Close()
	unchanged := func() error {
		info, err := opened.Stat()
		switch {
		case err != nil:
			return &unreadableError{err}
		case !info.Mode().IsRegular() || versionOf(info) != file.version:
			return errChanged
		}
		return nil
	}
	if err := unchanged(); err != nil {
		return nil, err
	}
	if file.version.Size > int64(r.limit) {
		return nil, &pproftranslator.LimitError{What: "size in bytes", Limit: int64(r.limit), Got: file.version.Size}
	}
	content, err := ingest.ReadAll(ctx, opened, file.version.Size, held)
	if _, failed := errors.AsType[*fs.PathError](err); failed {
		err = &unreadableError{err}
	}
	if err != nil {
		return nil, err
	}
	if err := unchanged(); err != nil {
		return nil, err
	}
	if int64(len(content)) != file.version.Size {
		return nil, errChanged
	}
	payload, err := ingest.Decompress(ctx, content, r.limit, held)
	if err == nil && ingest.IsJFR(payload) {
		err = ingest.ErrJFR
	}
	return payload, err
}
