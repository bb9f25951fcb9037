// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "fmt"

// LimitError says that data in some format are over a limit of what reads them.
type LimitError struct {
	What  string // what was counted, and where
	Limit int64
	Got   int64 // 0 where counting stopped at the limit
}

func (e *LimitError) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("%s: more than the limit of %d", e.What, e.Limit)
	}
	return fmt.Sprintf("%s: %d, more than the limit of %d", e.What, e.Got, e.Limit)
}
