// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRotation(t *testing.T) {
	limits := Rotation{MaxSize: 100, MaxAge: time.Minute, MaxRecords: 3}
	now := newClock().Now()
	file := func(size int64, records int, age time.Duration) *partialFile {
		return &partialFile{ClosedFile: ClosedFile{Size: size, Records: records}, created: now.Add(-age)}
	}
	for _, tt := range []struct {
		name          string
		rotation      Rotation
		file          *partialFile
		next          int64
		before, after Reason
	}{
		{name: "no limits", file: file(1<<40, 1<<30, 1<<60), next: 1 << 40},
		{name: "empty file", rotation: limits, file: file(0, 0, time.Hour), next: 1000},
		{name: "room", rotation: limits, file: file(60, 2, time.Second), next: 40},
		{name: "next too large", rotation: limits, file: file(60, 2, 0), next: 41, before: BySize},
		{name: "full", rotation: limits, file: file(100, 1, 0), next: 1, before: BySize, after: BySize},
		{name: "one large record", rotation: limits, file: file(500, 1, 0), next: 1, before: BySize, after: BySize},
		{name: "records", rotation: limits, file: file(9, 3, 0), next: 1, before: ByRecords, after: ByRecords},
		{name: "age", rotation: limits, file: file(9, 1, time.Minute), next: 1, before: ByAge, after: ByAge},
		{name: "clock went back", rotation: limits, file: file(9, 1, -time.Hour), next: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.before, tt.rotation.due(tt.file, tt.next, now))
			assert.Equal(t, tt.after, tt.rotation.due(tt.file, 1, now))
		})
	}
}
