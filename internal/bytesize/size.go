// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package bytesize reads and writes sizes in bytes as our configuration has
// them: `64MiB`, or a whole number of bytes.
//
// A size is a whole number with an optional unit: B, KiB, MiB, GiB, TiB (powers
// of 1024) or KB, MB, GB, TB (powers of 1000), written exactly so. Fractions
// and negative sizes are refused, never rounded.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// Size is a number of bytes, never negative when it was read by this package.
type Size int64

// The units that a size may be written in.
const (
	B   Size = 1
	KiB      = 1024 * B
	MiB      = 1024 * KiB
	GiB      = 1024 * MiB
	TiB      = 1024 * GiB
	KB       = 1000 * B
	MB       = 1000 * KB
	GB       = 1000 * MB
	TB       = 1000 * GB
)

// units are ordered so that Parse finds the longer suffix before "B".
var units = []struct {
	suffix string
	size   Size
}{
	{"TiB", TiB},
	{"GiB", GiB},
	{"MiB", MiB},
	{"KiB", KiB},
	{"TB", TB},
	{"GB", GB},
	{"MB", MB},
	{"KB", KB},
	{"B", B},
}

const want = "want a whole number of bytes, or one with a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB) as in 64MiB"

var (
	_ confmap.ScalarUnmarshaler = (*Size)(nil)
	_ fmt.Stringer              = Size(0)
)

// Parse reads a size such as `64MiB`, `500 KB` or `1048576`.
// The error names the text and what is allowed.
func Parse(text string) (Size, error) {
	number, unit := strings.TrimSpace(text), B
	for _, u := range units {
		if rest, found := strings.CutSuffix(number, u.suffix); found {
			number, unit = strings.TrimRight(rest, " "), u.size
			break
		}
	}
	// ParseInt takes a sign; a size has none.
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return 0, notWhole(strconv.Quote(text))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return 0, tooLarge(strconv.Quote(text))
	}
	return Size(n) * unit, nil
}

// UnmarshalText implements encoding.TextUnmarshaler as Parse does.
func (s *Size) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// UnmarshalScalar implements confmap.ScalarUnmarshaler. Without it confmap
// would quietly cut 1.5 to 1.
func (s *Size) UnmarshalScalar(value confmap.ScalarValue) error {
	switch v := value.GetRaw().(type) {
	case *Size: // what confmap made with UnmarshalText
		*s = *v
		return nil
	case string:
		return s.UnmarshalText([]byte(v))
	case int:
		return s.setInt(int64(v))
	case int64:
		return s.setInt(v)
	case uint64:
		if v > math.MaxInt64 {
			return tooLarge(v)
		}
		return s.setInt(int64(v))
	case float64: // how some sources write every number
		if v != math.Trunc(v) || v < 0 {
			return notWhole(v)
		}
		if v >= math.MaxInt64 {
			return tooLarge(v)
		}
		return s.setInt(int64(v))
	default:
		return fmt.Errorf("invalid size %v (%T): %s", v, v, want)
	}
}

func (s *Size) setInt(bytes int64) error {
	if bytes < 0 {
		return notWhole(bytes)
	}
	*s = Size(bytes)
	return nil
}

func notWhole(found any) error {
	return fmt.Errorf("invalid size %v: %s", found, want)
}

func tooLarge(found any) error {
	return fmt.Errorf("invalid size %v: more than %d bytes", found, int64(math.MaxInt64))
}

// MarshalText implements encoding.TextMarshaler as String does.
func (s Size) MarshalText() ([]byte, error) {
	return []byte(s.String()), nil
}

// String writes the size with the unit that makes the smallest number: 64MiB,
// 100KB, 1025B. Parse reads it back.
func (s Size) String() string {
	best := units[len(units)-1]
	for _, u := range units {
		if s != 0 && s%u.size == 0 && u.size > best.size {
			best = u
		}
	}
	return strconv.FormatInt(int64(s/best.size), 10) + best.suffix
}
