// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Types of events that begin a batch, or its data, as internal/trace/tracev2 of Go has them.
const (
	eventBatch        = 1
	stacksBatch       = 2
	stringsBatch      = 4
	samplesBatch      = 6
	frequencyBatch    = 8
	experimentalBatch = 49
	endOfGeneration   = 52

	maxBatch = 64 << 10 // bytes
)

// Bytes of memory that golang.org/x/exp/trace takes at most for a byte of a batch: tables of stacks and strings are maps.
const (
	memoryOfStacks  = 16
	memoryOfStrings = 8
	memoryOfOthers  = 1
	batchMemory     = 256 // for each batch besides
)

// meter accounts for the memory of a translation.
type meter struct {
	allowed int64
	more    func(needed int64) (allowed int64, err error)
}

// need takes so many bytes in all.
func (m *meter) need(bytes int) (err error) {
	needed := int64(bytes)
	if needed <= m.allowed {
		return nil
	}
	if m.more == nil {
		return &LimitError{What: "bytes of memory for the execution trace", Limit: m.allowed}
	}
	m.allowed, err = m.more(needed)
	return err
}

// batches is the content of a trace as golang.org/x/exp/trace reads it, batch by batch. It fails before that takes more
// memory than is allowed.
type batches struct {
	from   *bufio.Reader
	charge func() error
	hash   hash.Hash // of all that was read
	err    error     // of memory or of the file, which golang.org/x/exp/trace would call damage

	pending []byte // of the current batch: what was not passed on
	buffer  []byte

	// memory is what golang.org/x/exp/trace takes for the generation number and the one before, of which it
	// still has the tables.
	number uint64
	memory [2]int
}

func newBatches(from io.Reader, charge func() error) *batches {
	b := &batches{from: bufio.NewReaderSize(from, maxBatch), charge: charge, hash: xxhash.New()}
	b.buffer = make([]byte, headerSize)
	n, _ := io.ReadFull(b.from, b.buffer) // which was read before
	b.pending = b.buffer[:n]
	return b
}

// held is how much memory golang.org/x/exp/trace takes, in bytes.
func (b *batches) held() int { return b.memory[0] + b.memory[1] + cap(b.buffer) + maxBatch }

func (b *batches) Read(p []byte) (int, error) {
	if len(b.pending) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.pending)
	b.pending = b.pending[n:]
	return n, nil
}

// next reads the next batch into pending. Of one that is cut or damaged, that is what there is.
func (b *batches) next() error {
	if b.err != nil {
		return b.err
	}
	header, err := readHeader(b.from, b.buffer[:0])
	size := 0
	if err == nil && header.size <= maxBatch {
		size = int(header.size)
	}
	b.buffer = append(header.bytes, make([]byte, size)...)
	n, readErr := io.ReadFull(b.from, b.buffer[len(header.bytes):])
	b.pending = b.buffer[:len(header.bytes)+n]
	if err = errors.Join(err, readErr); err != nil && !isEnd(err) && !errors.Is(err, errHeader) {
		b.err = err
		return err
	}
	if len(b.pending) == 0 {
		return io.EOF
	}
	_, _ = b.hash.Write(b.pending)
	if header.generation != b.number && header.generation != 0 {
		b.number = header.generation
		b.memory[0], b.memory[1] = b.memory[1], 0
	}
	b.memory[1] += memoryOf(b.buffer[len(header.bytes):], header.kind)
	if b.err = b.charge(); b.err != nil {
		return b.err
	}
	return nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// memoryOf is how much memory golang.org/x/exp/trace takes for the data of a batch, in bytes.
func memoryOf(data []byte, kind byte) int {
	perByte := memoryOfOthers
	if kind == eventBatch && len(data) > 0 {
		switch data[0] {
		case stacksBatch, samplesBatch:
			perByte = memoryOfStacks
		case stringsBatch:
			perByte = memoryOfStrings
		}
	}
	return batchMemory + perByte*len(data)
}

// batchHeader is what precedes the data of a batch.
type batchHeader struct {
	kind                   byte
	generation, time, size uint64
	bytes                  []byte // as read
}

var errHeader = errors.New("a batch of events has no valid header")

// readHeader reads the header of a batch, whose bytes it appends to a buffer. Bytes are set after an error, too.
func readHeader(from io.ByteReader, buffer []byte) (h batchHeader, err error) {
	h.bytes = buffer
	if h.kind, err = from.ReadByte(); err != nil {
		return h, err
	}
	h.bytes = append(h.bytes, h.kind)
	switch h.kind {
	case endOfGeneration:
		return h, nil
	case experimentalBatch:
		experiment, err := from.ReadByte()
		if err != nil {
			return h, err
		}
		h.bytes = append(h.bytes, experiment)
	case eventBatch:
	default:
		return h, errHeader
	}
	var thread uint64
	for _, field := range []*uint64{&h.generation, &thread, &h.time, &h.size} {
		before := len(h.bytes)
		for len(h.bytes) == before || h.bytes[len(h.bytes)-1] >= 0x80 { // a varint ends with a byte below that
			next, err := from.ReadByte()
			if err != nil {
				return h, err
			}
			h.bytes = append(h.bytes, next)
			if len(h.bytes) == before+binary.MaxVarintLen64 {
				break
			}
		}
		value, n := binary.Uvarint(h.bytes[before:])
		if n <= 0 {
			return h, errHeader
		}
		*field = value
	}
	return h, nil
}

// lengthOf is about how long a trace before Go 1.25 is, by the times of its batches. from begins after the header of the
// trace.
func lengthOf(from io.Reader) (time.Duration, error) {
	buffered := bufio.NewReaderSize(from, maxBatch)
	var first, last, perSecond uint64
	data := make([]byte, 1+binary.MaxVarintLen64)
	for {
		header, err := readHeader(buffered, data[:0])
		if err != nil && !isEnd(err) && !errors.Is(err, errHeader) {
			return 0, fmt.Errorf("header of a batch: %w", err)
		}
		if err != nil || header.size > maxBatch {
			break
		}
		head, err := buffered.Peek(int(min(header.size, 1+binary.MaxVarintLen64)))
		if err == nil && len(head) > 1 && head[0] == frequencyBatch {
			perSecond, _ = binary.Uvarint(head[1:])
		}
		if header.time > 0 {
			if first == 0 || header.time < first {
				first = header.time
			}
			last = max(last, header.time)
		}
		_, _ = buffered.Discard(int(header.size)) // the next header finds the end
	}
	if perSecond == 0 || last <= first {
		return 0, nil
	}
	return time.Duration(min(float64(last-first)/float64(perSecond)*1e9, float64(maxLength))), nil
}
