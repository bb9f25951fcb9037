// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// labels are the labels that Pyroscope's agent sends beside a recording, as the protobuf
// message LabelsSnapshot: by context id, as indices into strings.
type labels struct {
	contexts map[int64][]label
	strings  map[int64]string
}

type label struct{ key, value int64 }

// Fields of LabelsSnapshot and Context, and of the entries of their maps.
const (
	snapshotContexts = 1
	snapshotStrings  = 2
	contextLabels    = 1
	entryKey         = 1
	entryValue       = 2
)

// labelSize is about what an entry of a map takes, in bytes.
const labelSize = 80

// readLabels reads a LabelsSnapshot.
func (d *decoder) readLabels(data []byte) error {
	d.labels = labels{}
	if len(data) == 0 {
		return nil
	}
	d.labels = labels{contexts: map[int64][]label{}, strings: map[int64]string{}}
	c := wire.New(data)
	for c.Next() {
		if c.Type != wire.BytesType || c.Field != snapshotContexts && c.Field != snapshotStrings {
			continue
		}
		if err := d.Memory.Take(labelSize + c.Stop - c.Start); err != nil {
			return err
		}
		field := c.Field
		entry := c.Message()
		key, value, err := readEntry(&entry)
		if err != nil {
			return fmt.Errorf("labels: byte %d: %w", c.Start, err)
		}
		if field == snapshotStrings {
			d.labels.strings[key] = dictionary.ValidUTF8(string(value.Data[value.At:value.End]))
			continue
		}
		for value.Next() {
			if value.Field != contextLabels || value.Type != wire.BytesType {
				continue
			}
			if err := d.Memory.Take(labelSize); err != nil {
				return err
			}
			pair := value.Message()
			l, err := readPair(&pair)
			if err != nil {
				return fmt.Errorf("labels: context %d: %w", key, err)
			}
			d.labels.contexts[key] = append(d.labels.contexts[key], l)
		}
		if value.Err != nil {
			return fmt.Errorf("labels: context %d: %w", key, value.Err)
		}
	}
	if c.Err != nil {
		return fmt.Errorf("labels: byte %d: %w", c.At, c.Err)
	}
	return nil
}

// readEntry reads an entry of a map whose values are strings or messages.
func readEntry(c *wire.Cursor) (key int64, value wire.Cursor, err error) {
	for c.Next() {
		switch {
		case c.Field == entryKey && c.Type == wire.VarintType:
			key = c.Int()
		case c.Field == entryValue && c.Type == wire.BytesType:
			value = c.Message()
		}
	}
	return key, value, c.Err
}

// readPair reads an entry of a map whose values are integers.
func readPair(c *wire.Cursor) (l label, err error) {
	for c.Next() {
		if c.Type == wire.VarintType {
			switch c.Field {
			case entryKey:
				l.key = c.Int()
			case entryValue:
				l.value = c.Int()
			}
		}
	}
	return l, c.Err
}
