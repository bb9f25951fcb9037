// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// family numbers the sample identities of a scope. Its series share the numbers,
// the rows, because the Profiles of a scope mostly have the same samples.
type family struct {
	samples dictionary.Samples
}

func (f *family) row(stack, set, link int32) int32 { return f.samples.Number(stack, set, link) }

// shape is which of values and timestamps the samples of a Profile have. A
// Profile that mixes them becomes several.
type shape uint8

const (
	shapeValues shape = iota
	shapeTimes
	shapeBoth
	shapes
)

// series is a merged Profile.
type series struct {
	key   seriesKey
	place int // the least index in its ScopeProfiles that it came at

	sources  int
	id       pprofile.ProfileID // of the only source
	start    uint64             // nanoseconds since the epoch, 0 for unknown
	end      uint64
	duration uint64 // the longest, for when no time is known
	dropped  uint32
	format   string
	payload  []byte
	verbatim verbatim // where there is an original payload, in place of what follows
	column   column
	events   []event
}

// event is a timestamp of a sample and, where there are values, its value.
type event struct {
	row   int32
	time  uint64
	value int64
}

// include takes in the header of p.
func (s *series) include(p pprofile.Profile, place int) {
	s.place = min(s.place, place)
	s.sources++
	s.id = p.ProfileID()
	s.duration = max(s.duration, p.DurationNano())
	if start := uint64(p.Time()); start != 0 {
		if s.start == 0 || start < s.start {
			s.start = start
		}
		end := start + p.DurationNano()
		if end < start {
			end = math.MaxUint64
		}
		s.end = max(s.end, end)
	}
	if n := p.DroppedAttributesCount(); n > math.MaxUint32-s.dropped {
		s.dropped = math.MaxUint32
	} else {
		s.dropped += n
	}
	if s.key.original != 0 {
		s.format = valid(p.OriginalPayloadFormat())
		s.payload = p.OriginalPayload().AsRaw()
	}
}

// timeRange is the time and the duration of the merged Profile.
func (s *series) timeRange() (start, duration uint64) {
	if s.start == 0 || s.key.original != 0 {
		return s.start, s.duration
	}
	return s.start, s.end - s.start
}

// addValues adds the total of values.
func (s *series) addValues(row int32, values pcommon.Int64Slice) {
	for i := range values.Len() {
		s.column.add(row, values.At(i))
	}
}

func (s *series) addTimes(row int32, values pcommon.Int64Slice, times pcommon.UInt64Slice) {
	for i := range times.Len() {
		e := event{row: row, time: times.At(i)}
		if values.Len() > 0 {
			e.value = values.At(i)
		}
		s.events = append(s.events, e)
	}
}

func (s *series) retained() int {
	const eventSize = 24
	return s.column.retained() + eventSize*cap(s.events) + len(s.payload) + s.verbatim.retained()
}

// column holds the sums of a series by position, in 128 bits: sums[i] + carry[i] *
// 2^64, and which row of the family each is of.
type column struct {
	rows  []int32
	sums  []int64
	carry map[int32]int64
	// The position plus one by row: dense as far as rows have come without large gaps,
	// so that a series with few rows of a large family stays small.
	dense  []int32
	sparse map[int32]int32
}

func (c *column) add(row int32, v int64) {
	i := c.position(row)
	old := c.sums[i]
	sum := old + v
	c.sums[i] = sum
	if v >= 0 && sum < old {
		c.carryOver(i, 1)
	} else if v < 0 && sum > old {
		c.carryOver(i, -1)
	}
}

// position is where row is, which is added if it is new.
func (c *column) position(row int32) int32 {
	if int(row) < len(c.dense) && c.dense[row] != 0 {
		return c.dense[row] - 1
	}
	if i, ok := c.sparse[row]; ok {
		return i
	}
	i := int32(len(c.rows))
	c.rows, c.sums = append(c.rows, row), append(c.sums, 0)
	switch {
	case int(row) < len(c.dense):
		c.dense[row] = i + 1
	case int(row) < 4*len(c.rows)+64:
		c.dense = append(c.dense, make([]int32, int(row)+1-len(c.dense))...)
		c.dense[row] = i + 1
	default:
		if c.sparse == nil {
			c.sparse = map[int32]int32{}
		}
		c.sparse[row] = i
	}
	return i
}

func (c *column) carryOver(i int32, by int64) {
	if c.carry == nil {
		c.carry = map[int32]int64{}
	}
	if c.carry[i] += by; c.carry[i] == 0 {
		delete(c.carry, i)
	}
}

func (c *column) isZero(i int32) bool {
	return c.sums[i] == 0 && (len(c.carry) == 0 || c.carry[i] == 0)
}

func (c *column) retained() int {
	const mapEntrySize = 32
	return 4*cap(c.rows) + 8*cap(c.sums) + 4*cap(c.dense) + mapEntrySize*(len(c.carry)+len(c.sparse))
}

// addSum adds position i of another column.
func (c *column) addSum(row int32, from *column, i int32) {
	c.add(row, from.sums[i])
	if carry := from.carry[i]; carry != 0 {
		c.carryOver(c.position(row), carry)
	}
}

// sum is carry*2^64 + rest.
func (c *column) sum(i int32) (carry, rest int64) {
	if len(c.carry) > 0 {
		carry = c.carry[i]
	}
	return carry, c.sums[i]
}

// parts splits the sum at position i into values that int64 holds, in as few as
// there can be; the first is the largest.
func (c *column) parts(i int32, dst []int64) []int64 {
	carry, rest := c.sum(i)
	if carry == 0 {
		return append(dst, rest)
	}
	// The sum is carry*2^64 + rest: take whole MaxInt64 or MinInt64 out of it
	// until what is left fits.
	for carry != 0 {
		whole := int64(math.MaxInt64)
		if carry < 0 {
			whole = math.MinInt64
		}
		dst = append(dst, whole)
		left := rest - whole
		if whole > 0 && left > rest {
			carry-- // it wrapped below MinInt64
		} else if whole < 0 && left < rest {
			carry++
		}
		rest = left
	}
	if rest != 0 {
		dst = append(dst, rest)
	}
	return dst
}
