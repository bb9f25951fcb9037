// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// viewedLabel is a value of a label; key is that of its name and kind.
type viewedLabel struct{ key, whole identity }

func (b *viewBuilder) readSamples() error {
	types := len(b.types)
	b.view.samples = make([]identity, 0, len(b.sampleFields))
	for i, sample := range b.sampleFields {
		id, err := b.readSample(sample)
		if err != nil {
			return fmt.Errorf("sample[%d]: %w", i, err)
		}
		b.view.samples = append(b.view.samples, id)
		if got := len(b.view.values); got != (i+1)*types {
			return fmt.Errorf("sample[%d]: it has %d values for %d sample types", i, got-i*types, types)
		}
	}
	return nil
}

func (b *viewBuilder) readSample(sample []byte) (identity, error) {
	b.labels = b.labels[:0]
	b.numbers = b.numbers[:0]
	var err error
	for f, ferr := range wireFields(sample) {
		if ferr != nil {
			return identity{}, ferr
		}
		switch f.number {
		case 1:
			b.numbers, err = f.appendRepeated(b.numbers, maxViewDepth)
		case 3:
			err = b.readLabel(f.bytes)
		}
		if err != nil {
			return identity{}, err
		}
	}
	stack := len(b.numbers)
	b.writeNumber(uint64(stack))
	for _, id := range b.numbers {
		location, err := entryOf(b.locations, "location", id)
		if err != nil {
			return identity{}, err
		}
		b.writeIdentity(location)
	}
	// Labels are a set, but the values of one keep their order.
	slices.SortStableFunc(b.labels, func(a, b viewedLabel) int { return a.key.compare(b.key) })
	for _, label := range b.labels {
		b.writeIdentity(label.whole)
	}
	id := b.sum()

	b.numbers = b.numbers[:0]
	for f := range knownFields(sample) {
		if f.number == 2 {
			if b.numbers, err = f.appendRepeated(b.numbers, len(b.types)); err != nil {
				return identity{}, err
			}
		}
	}
	for _, value := range b.numbers {
		b.view.values = append(b.view.values, int64(value))
	}
	return id, nil
}

func (b *viewBuilder) readLabel(label []byte) error {
	var fields [5]uint64
	if err := scalars(label, fields[:]); err != nil {
		return err
	}
	if len(b.labels) == maxViewDepth {
		return &pproftranslator.LimitError{What: "labels", Limit: maxViewDepth}
	}
	if err := b.writeString(int64(fields[1])); err != nil {
		return err
	}
	if fields[2] != 0 { // a string, not a number
		b.writeNumber(1)
	}
	viewed := viewedLabel{key: b.sum()}
	b.writeIdentity(viewed.key)
	if err := errors.Join(b.writeString(int64(fields[2])), b.writeString(int64(fields[4]))); err != nil {
		return err
	}
	b.writeNumber(fields[3])
	viewed.whole = b.sum()
	b.labels = append(b.labels, viewed)
	return nil
}
