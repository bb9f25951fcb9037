// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"cmp"
	"encoding/binary"
)

// identity tells stacks with their labels apart, by all that they consist of: the
// first 16 bytes of a SHA-256, in which the hashes of the parts are. The zero
// value is that of a part which is not there.
type identity struct{ high, low uint64 }

func (a identity) compare(b identity) int {
	return cmp.Or(cmp.Compare(a.high, b.high), cmp.Compare(a.low, b.low))
}

// The write methods add to the hash, each part so that it cannot run into the
// next one.

func (b *viewBuilder) writeNumber(n uint64) {
	binary.BigEndian.PutUint64(b.number[:], n)
	b.hash.Write(b.number[:])
}

func (b *viewBuilder) writeIdentity(id identity) {
	b.writeNumber(id.high)
	b.writeNumber(id.low)
}

func (b *viewBuilder) writeString(index int64) error {
	s, err := b.stringAt(index)
	if err != nil {
		return err
	}
	b.writeNumber(uint64(len(s)))
	b.hash.Write(s)
	return nil
}

// sum takes the identity of what has been written, and begins anew.
func (b *viewBuilder) sum() identity {
	b.text = b.hash.Sum(b.text[:0])
	b.hash.Reset()
	return identity{binary.BigEndian.Uint64(b.text), binary.BigEndian.Uint64(b.text[8:])}
}
