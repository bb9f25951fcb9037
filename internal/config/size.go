// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.opentelemetry.io/collector/confmap"
)

var _ confmap.ScalarUnmarshaler = (*Size)(nil)

// Size is a number of bytes. It is written as a whole number with an optional unit: B, KiB, MiB,
// GiB, TiB (powers of 1024) or KB, MB, GB, TB (powers of 1000), exactly so, or as % of
// [MemoryLimit]. Fractions and negative sizes are rejected, never rounded.
type Size int64

// Units of sizes.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// units are those that a size may be written in, the largest first, and so "B" last.
var units = []struct {
	suffix string
	size   Size
}{{"TiB", TiB}, {"TB", 1e12}, {"GiB", GiB}, {"GB", 1e9}, {"MiB", MiB}, {"MB", 1e6}, {"KiB", KiB}, {"KB", 1e3}, {"B", 1}}

// ParseSize reads a size such as `64MiB`, `500 KB`, `25%` or `1048576`. The error
// reads on after the name of a key: `is "64mib": must be ...`.
func ParseSize(text string) (Size, error) {
	number, unit := strings.TrimSpace(text), Size(1)
	for _, u := range units {
		if rest, found := strings.CutSuffix(number, u.suffix); found {
			number, unit = rest, u.size
			break
		}
	}
	number, isShare := strings.CutSuffix(number, "%")
	number = strings.TrimRight(number, " ")
	// ParseUint also takes a sign, and digits above 63 bits are too large below.
	if number == "" || strings.Trim(number, "0123456789") != "" || isShare && unit != 1 {
		return 0, fmt.Errorf("is %q: must be a whole number of bytes, a size with a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB) such as 64MiB, or a percentage of the memory limit such as 25%%", text)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case isShare && (err != nil || n > 100):
		return 0, fmt.Errorf("is %q: must be at most 100%%", text)
	case err != nil || n > math.MaxInt64/int64(unit):
		return 0, fmt.Errorf("is %q: must be at most %d bytes", text, int64(math.MaxInt64))
	case isShare:
		limit := MemoryLimit()
		return limit/100*Size(n) + limit%100*Size(n)/100, nil
	}
	return Size(n) * unit, nil
}

// UnmarshalScalar implements confmap.ScalarUnmarshaler: it reads texts as ParseSize does, and numbers exactly.
func (s *Size) UnmarshalScalar(value confmap.ScalarValue) (err error) {
	var text string
	switch raw := value.GetRaw().(type) {
	case Size: // read and marshalled before
		*s = raw
		return nil
	case float64: // 1e6
		text = strconv.FormatFloat(raw, 'f', -1, 64)
	default:
		text = fmt.Sprint(raw)
	}
	*s, err = ParseSize(text)
	return err
}

// MarshalText implements encoding.TextMarshaler as String does.
func (s Size) MarshalText() ([]byte, error) {
	return []byte(s.String()), nil
}

// String writes the size with the unit that makes the smallest number: 64MiB,
// 100KB, 1025B. ParseSize reads it back.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.suffix
		}
	}
	return "0B"
}

// MemoryLimit is the memory that this process may use: the least of GOMEMLIMIT,
// the limit of its cgroup, and the physical memory, as far as each is known.
func MemoryLimit() Size {
	limit := uint64(debug.SetMemoryLimit(-1))
	for _, source := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if found, err := source(); err == nil && found > 0 {
			limit = min(limit, found)
		}
	}
	return Size(min(limit, math.MaxInt64))
}
