// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

// numbers numbers the entries of a table from 0 in the order they come. The entries
// are kept elsewhere.
//
// The part of an entry is an index that few others have in the same place, or
// noPart. The first entry of each part is in firsts (its number plus one) and not in
// index: as indices grow by one, that is where it was last, in the cache.
type numbers struct {
	count  int32
	firsts []int32
	index  index
}

// noPart is the part of an entry that has none.
const noPart = -1

// number returns the number of an entry, and whether it is new; -1 if it would be
// new and there are limit entries already. equals tells whether it is the one with
// that number.
func (t *numbers) number(part int32, limit int, hash func() uint32, equals func(number int32) bool) (n int32, added bool) {
	if part >= 0 {
		if int(part) >= len(t.firsts) {
			t.firsts = append(t.firsts, make([]int32, int(part)+1-len(t.firsts))...)
		}
		first := &t.firsts[part]
		if *first == 0 {
			if int(t.count) >= limit {
				return -1, false
			}
			t.count++
			*first = t.count
			return t.count - 1, true
		}
		if n = *first - 1; equals(n) {
			return n, false
		}
	}
	h := hash()
	n, slot := t.index.find(h, equals)
	if n >= 0 {
		return n, false
	}
	if int(t.count) >= limit {
		return -1, false
	}
	n = t.count
	t.count++
	t.index.insert(slot, h, n)
	return n, true
}

// removeLast forgets the newest entry. It never displaced an earlier one, so that
// freeing its slot leaves every other probe intact.
func (t *numbers) removeLast(part int32, hash func() uint32) {
	n := t.count - 1
	if part >= 0 && t.firsts[part] == t.count {
		t.firsts[part] = 0
	} else {
		_, slot := t.index.find(hash(), func(other int32) bool { return other == n })
		t.index.remove(slot)
	}
	t.count = n
}

func (t *numbers) reset() {
	t.count, t.firsts = 0, t.firsts[:0]
	t.index.reset()
}

// grow makes room for n more entries, which mostly have parts or have none.
func (t *numbers) grow(n int, parts bool) {
	if parts {
		t.firsts = roomy(t.firsts, n)
		n /= 2 // as many are the first of their part
	}
	t.index.grow(n, int(t.count))
}

func (t *numbers) len() int { return int(t.count) }

func (t *numbers) retained() int { return t.index.retained() + 4*cap(t.firsts) }

// roomy is s with room for exactly n more elements, or what it has beyond that.
func roomy[E any](s []E, n int) []E {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(make([]E, 0, len(s)+n), s...)
}
