// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gunzip

import (
	"encoding/binary"
	"errors"
	"io"
)

var errCorrupt = errors.New("corrupt input")

const (
	maxMatch     = 258                        // bytes
	maxMatchBits = maxCode + 5 + maxCode + 13 // of the codes of a match and their extra bits

	// slack is how many bytes of output one turn of the loop in codes writes at most: two
	// literals and a match in steps of 8 bytes.
	slack = 2 + maxMatch + 8

	// Bits that index the first tables.
	litlenBits, distanceBits, lengthBits = 10, 8, 7
)

// decoder decompresses blocks of deflate. The input's next bits are in acc, the first of them
// lowest. pos counts the bytes that are in acc, too. After the input's end acc gets zeros, and pos
// counts on: whether too much was read is checked once for many codes.
type decoder struct {
	in  []byte
	pos int
	acc uint64
	n   uint // bits of acc

	out     []byte // room
	size    int    // bytes of output
	limit   int
	reserve func(bytes int64) error

	litlen, distance, lengths table
	codeLengths               [288 + 32]uint8
}

// inflate decompresses the blocks of a member.
func (d *decoder) inflate() error {
	d.acc, d.n = 0, 0
	for final := uint(0); final == 0; {
		header, err := d.bits(3)
		if err != nil {
			return err
		}
		final = header & 1
		switch header >> 1 {
		case 0:
			err = d.stored()
		case 1:
			d.fixedCodes()
			err = d.codes()
		case 2:
			if err = d.dynamicCodes(); err == nil {
				err = d.codes()
			}
		default:
			err = errCorrupt
		}
		if err != nil {
			return err
		}
	}
	return d.align()
}

// align returns to the input what acc has of it in whole bytes, and drops the rest of a byte.
func (d *decoder) align() error {
	d.pos -= int(d.n / 8)
	d.acc, d.n = 0, 0
	if d.pos > len(d.in) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// bits returns the next count bits, at most 16.
func (d *decoder) bits(count uint) (uint, error) {
	if d.n < count {
		if err := d.refill(); err != nil {
			return 0, err
		}
	}
	v := uint(d.acc & (1<<count - 1))
	d.acc >>= count
	d.n -= count
	return v, nil
}

// refill makes acc hold at least 56 bits.
func (d *decoder) refill() error {
	if d.pos-int(d.n/8) > len(d.in) {
		return io.ErrUnexpectedEOF
	}
	for ; d.n <= 56; d.n += 8 {
		if d.pos < len(d.in) {
			d.acc |= uint64(d.in[d.pos]) << d.n
		}
		d.pos++
	}
	return nil
}

func (d *decoder) stored() error {
	if err := d.align(); err != nil {
		return err
	}
	header, err := d.next(4)
	if err != nil {
		return err
	}
	length := binary.LittleEndian.Uint16(header)
	if length != ^binary.LittleEndian.Uint16(header[2:]) {
		return errCorrupt
	}
	content, err := d.next(int(length))
	if err != nil {
		return err
	}
	if len(d.out)-d.size < len(content) {
		if err := d.grow(len(content)); err != nil {
			return err
		}
	}
	d.size += copy(d.out[d.size:], content)
	return nil
}

// grow makes room for so many bytes more, or for less if the limit does not allow it.
func (d *decoder) grow(more int) error {
	return d.allocate(max(4*len(d.out), d.size+more))
}

func (d *decoder) fixedCodes() {
	lengths := &d.codeLengths
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		case i < 288:
			lengths[i] = 8
		default:
			lengths[i] = 5
		}
	}
	d.litlen.build(lengths[:288], litlenSymbols[:], litlenBits)
	d.distance.build(lengths[288:], distanceSymbols[:], distanceBits)
}

// lengthOrder is the order in which a block states the lengths of the codes of lengths.
var lengthOrder = [...]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

func (d *decoder) dynamicCodes() error {
	header, err := d.bits(14)
	if err != nil {
		return err
	}
	litlens, distances, ordered := int(header&31)+257, int(header>>5&31)+1, int(header>>10)+4
	if litlens > 286 || distances > 30 {
		return errCorrupt
	}
	var lengths [19]uint8
	for _, i := range lengthOrder[:ordered] {
		length, err := d.bits(3)
		if err != nil {
			return err
		}
		lengths[i] = uint8(length)
	}
	if !d.lengths.build(lengths[:], lengthSymbols[:], lengthBits) {
		return errCorrupt
	}
	all := d.codeLengths[:litlens+distances]
	if err := d.readLengths(all); err != nil {
		return err
	}
	if !d.litlen.build(all[:litlens], litlenSymbols[:], litlenBits) || !d.distance.build(all[litlens:], distanceSymbols[:], distanceBits) {
		return errCorrupt
	}
	return nil
}

// readLengths reads the lengths of codes, which are themselves encoded.
func (d *decoder) readLengths(lengths []uint8) error {
	for i := 0; i < len(lengths); {
		if err := d.refill(); err != nil {
			return err
		}
		e := d.lengths.entries[d.acc&(1<<lengthBits-1)]
		if e == kindInvalid {
			return errCorrupt
		}
		if _, err := d.bits(e.length()); err != nil {
			return err
		}
		if e.value() < 16 {
			lengths[i] = uint8(e.value())
			i++
			continue
		}
		length, repeat, extra := uint8(0), 3, uint(3)
		switch e.value() {
		case 16:
			if i == 0 {
				return errCorrupt
			}
			length, extra = lengths[i-1], 2
		case 18:
			repeat, extra = 11, 7
		}
		more, err := d.bits(extra)
		if err != nil {
			return err
		}
		repeat += int(more)
		if repeat > len(lengths)-i {
			return errCorrupt
		}
		for range repeat {
			lengths[i] = length
			i++
		}
	}
	return nil
}

// codes decompresses the codes of a block. It is the loop that takes the time, so its state is in
// local variables, and the usual case of refill is repeated here.
func (d *decoder) codes() error {
	in, pos, acc, n := d.in, d.pos, d.acc, d.n
	out, size := d.out, d.size
	litlens, distances := (*[1 << litlenBits]entry)(d.litlen.entries), (*[1 << distanceBits]entry)(d.distance.entries)
	for {
		if pos+8 <= len(in) && len(out)-size >= slack {
			acc |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
			pos += int((63 - n) >> 3)
			n |= 56
		} else {
			d.pos, d.acc, d.n, d.size = pos, acc, n, size
			if err := d.refill(); err != nil {
				return err
			}
			if len(out)-size < slack {
				if err := d.grow(slack); err != nil {
					return err
				}
			}
			pos, acc, n, out = d.pos, d.acc, d.n, d.out
		}
		e := litlens[acc&(1<<litlenBits-1)]
		if e&kindMask == kindLiteral {
			acc >>= e.length()
			n -= e.length()
			out[size] = byte(e.value())
			size++
			if n < maxMatchBits {
				continue
			}
			e = litlens[acc&(1<<litlenBits-1)]
		}
		if e&kindMask == kindLong {
			acc >>= litlenBits
			n -= litlenBits
			e = d.litlen.entries[e.value()+int(acc&(1<<d.litlen.second-1))]
		}
		acc >>= e.length()
		n -= e.length()
		if e&kindMask != kindMatch {
			switch e & kindMask {
			case kindLiteral:
				out[size] = byte(e.value())
				size++
				continue
			case kindEnd:
				d.acc, d.n, d.pos, d.size = acc, n, pos, size
				return nil
			}
			return errCorrupt
		}
		length := e.value() + int(acc&(1<<e.extra()-1))
		acc >>= e.extra()
		n -= e.extra()

		e = distances[acc&(1<<distanceBits-1)]
		if e&kindMask == kindLong {
			acc >>= distanceBits
			n -= distanceBits
			e = d.distance.entries[e.value()+int(acc&(1<<d.distance.second-1))]
		}
		distance := e.value() + int(acc>>e.length()&(1<<e.extra()-1))
		acc >>= e.length() + e.extra()
		n -= e.length() + e.extra()
		if e&kindMask != kindMatch || distance > size {
			return errCorrupt
		}
		from, to := out[size-distance:], out[size:size+maxMatch+8]
		size += length
		if distance < 8 { // the match repeats what it writes
			for i := range length {
				to[i] = from[i]
			}
			continue
		}
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
		}
	}
}
