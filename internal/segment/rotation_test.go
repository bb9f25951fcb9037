// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRotation(t *testing.T) {
	limits := Rotation{MaxSize: 100, MaxAge: time.Minute, MaxRecords: 3}
	for _, tt := range []struct {
		name          string
		rotation      Rotation
		usage         usage
		next          int64
		before, after Reason
	}{
		{name: "no limits", usage: usage{size: 1 << 40, records: 1 << 30, age: 1 << 60}, next: 1 << 40},
		{name: "empty file", rotation: limits, usage: usage{age: time.Hour}, next: 1000},
		{name: "room", rotation: limits, usage: usage{size: 60, records: 2, age: time.Second}, next: 40},
		{name: "next too large", rotation: limits, usage: usage{size: 60, records: 2}, next: 41, before: BySize},
		{name: "full", rotation: limits, usage: usage{size: 100, records: 1}, next: 1, before: BySize, after: BySize},
		{name: "one large record", rotation: limits, usage: usage{size: 500, records: 1}, next: 1, before: BySize, after: BySize},
		{name: "records", rotation: limits, usage: usage{size: 9, records: 3}, next: 1, before: ByRecords, after: ByRecords},
		{name: "age", rotation: limits, usage: usage{size: 9, records: 1, age: time.Minute}, next: 1, before: ByAge, after: ByAge},
		{name: "clock went back", rotation: limits, usage: usage{size: 9, records: 1, age: -time.Hour}, next: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, full := tt.rotation.before(tt.usage, tt.next)
			assert.Equal(t, tt.before, before)
			assert.Equal(t, tt.before != "", full)
			after, full := tt.rotation.after(tt.usage)
			assert.Equal(t, tt.after, after)
			assert.Equal(t, tt.after != "", full)
		})
	}
}
