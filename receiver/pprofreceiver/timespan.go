// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// parseTime reads a time since 1970 as Pyroscope's clients write it: by the number
// of digits in seconds (up to 10), milliseconds (13), microseconds (16) or
// nanoseconds (19). An empty text is 0, unknown.
func parseTime(text string) (pcommon.Timestamp, error) {
	unit := time.Duration(0)
	switch digits := len(text); {
	case digits == 0:
		return 0, nil
	case digits <= 10:
		unit = time.Second
	case digits == 13:
		unit = time.Millisecond
	case digits == 16:
		unit = time.Microsecond
	case digits == 19:
		unit = time.Nanosecond
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || unit == 0 || n > math.MaxInt64/uint64(unit) {
		return 0, errors.New("not a time, want seconds since 1970, or 13 digits of milliseconds, 16 of microseconds, 19 of nanoseconds")
	}
	return pcommon.Timestamp(n) * pcommon.Timestamp(unit), nil
}
