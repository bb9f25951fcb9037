// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
)

// Errors of a Meter. After one, it does not read on.
var (
	ErrTooDeep   = errors.New("lists in attribute values nest deeper than 64 levels")
	ErrMalformed = errors.New("the message is not OTLP protobuf")
	ErrLimit     = errors.New("the message takes too much memory")
)

// Meter adds up the memory that a message in protobuf takes, from its bytes in order. It rejects as malformed what
// pdata rejects in the structure of messages, and also groups, which OTLP does not have. The zero value is ready for
// use.
type Meter struct {
	Limit int64 // in bytes, of the memory and of the message itself; more is ErrLimit. 0 means no limit.
	Size  int64 // in bytes, of the message so far
	Err   error

	at     int64   // in the message
	open   []frame // the messages around the next field; the first is the whole one
	state  state
	value  uint64 // the bits so far of a varint
	shift  uint   // their number
	field  int32
	toSkip int64 // bytes of the current field
}

// frame is a message that has started.
type frame struct {
	*message
	stop  int64 // where it ends
	lists int   // around the next value, with this one
}

// state is the part of a field that the next byte belongs to.
type state uint8

const (
	stateTag state = iota
	stateVarint
	stateLength
)

// end of the whole message, which is not known
const end = 1<<63 - 1

// Write reads further bytes of the message. n is the length of p, or 0 with the Meter's error.
func (m *Meter) Write(p []byte) (n int, err error) {
	if m.open == nil {
		m.open = append(m.open, frame{message: profilesData, stop: end})
		m.Size += profilesData.size
	}
	for rest := p; len(rest) > 0 && m.Err == nil; {
		if m.toSkip > 0 {
			skipped := min(m.toSkip, int64(len(rest)))
			rest, m.toSkip, m.at = rest[skipped:], m.toSkip-skipped, m.at+skipped
			continue
		}
		if m.state == stateTag && m.shift == 0 {
			for m.at == m.open[len(m.open)-1].stop {
				m.open = m.open[:len(m.open)-1]
			}
		}
		b := rest[0]
		rest, m.at = rest[1:], m.at+1
		if m.shift >= 64 || m.at > m.open[len(m.open)-1].stop {
			m.Err = ErrMalformed
			break
		}
		m.value |= uint64(b&0x7f) << m.shift
		if b >= 0x80 {
			m.shift += 7
			continue
		}
		value := m.value
		m.value, m.shift = 0, 0
		m.read(value)
		if m.Err == nil && m.Limit > 0 && max(m.Size, m.at) > m.Limit {
			m.Err = ErrLimit
		}
	}
	if m.Err != nil {
		return 0, m.Err
	}
	return len(p), nil
}

// read takes a varint: the tag of a field, its value or its length.
func (m *Meter) read(value uint64) {
	of := m.state
	m.state = stateTag
	switch of {
	case stateTag:
		m.startField(int32(value>>3), uint8(value&7))
	case stateLength:
		m.startContent(value)
	}
}

// startField starts a field with the number that pdata reads: the lower 32 bits.
func (m *Meter) startField(field int32, wireType uint8) {
	switch {
	case field <= 0:
		m.Err = ErrMalformed
		return
	case field < fields:
		m.field = field
	default:
		m.field = 0 // has no meaning
	}
	if wireType != BytesType {
		m.Size += m.open[len(m.open)-1].packed[m.field] // of a repeated number that is not packed
	}
	switch wireType {
	case VarintType:
		m.state = stateVarint
	case Fixed64Type:
		m.skip(8)
	case Fixed32Type:
		m.skip(4)
	case BytesType:
		m.state = stateLength
	default:
		m.Err = ErrMalformed
	}
}

// skip leaves out the next bytes, which must be in the innermost message.
func (m *Meter) skip(n uint64) {
	if n > uint64(m.open[len(m.open)-1].stop-m.at) {
		m.Err = ErrMalformed
		return
	}
	m.toSkip = int64(n)
}

// startContent starts a field of the given length: a message, a string, bytes or packed numbers.
func (m *Meter) startContent(length uint64) {
	around := m.open[len(m.open)-1]
	nested := around.nested[m.field]
	switch {
	case length > uint64(around.stop-m.at):
		m.Err = ErrMalformed
	case nested == nil:
		m.Size += header + int64(length)*max(1, around.packed[m.field])
		m.skip(length)
	case nested.isList && around.lists == maxLists:
		m.Err = ErrTooDeep
	default:
		lists := around.lists
		if nested.isList {
			lists++
		}
		m.Size += nested.size
		m.open = append(m.open, frame{nested, m.at + int64(length), lists})
	}
}
