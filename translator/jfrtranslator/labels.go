// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// labels are the labels that Pyroscope's agent sends beside a recording, as the protobuf
// message LabelsSnapshot: by context id, as indices into strings.
type labels struct {
	contexts map[int64][]label
	strings  map[int64]string
}

type label struct{ key, value int64 }

// mapSize is about the memory of an entry of a map, in bytes.
const mapSize = 80

// readLabels reads a LabelsSnapshot: {map<int64, Context> contexts = 1; map<int64, string> strings = 2}.
func (d *decoder) readLabels(data []byte) error {
	d.labels = labels{map[int64][]label{}, map[int64]string{}}
	c := wire.New(data)
	for c.Next() {
		if c.Type != wire.BytesType || c.Field > 2 {
			continue
		}
		isString, start := c.Field == 2, c.Start
		if !d.Take(mapSize + dictionary.ValidSize(data[c.Start:c.Stop])) {
			return d.Err
		}
		entry := c.Message()
		key, _, value, err := readEntry(&entry)
		if err == nil && isString {
			d.labels.strings[key] = dictionary.ValidUTF8(string(value.Data[value.At:value.End]))
			continue
		}
		for err == nil && value.Next() { // of a Context: {map<int64, int64> labels = 1}
			if value.Field != 1 || value.Type != wire.BytesType {
				continue
			}
			if !d.Take(mapSize) {
				return d.Err
			}
			var l label
			pair := value.Message()
			l.key, l.value, _, err = readEntry(&pair)
			d.labels.contexts[key] = append(d.labels.contexts[key], l)
		}
		if err == nil {
			err = value.Err
		}
		if err != nil {
			return fmt.Errorf("labels: byte %d: %w", start, err)
		}
	}
	if c.Err != nil {
		return fmt.Errorf("labels: byte %d: %w", c.At, c.Err)
	}
	return nil
}

// readEntry reads an entry of a map, whose values are integers, strings or messages.
func readEntry(c *wire.Cursor) (key, number int64, message wire.Cursor, err error) {
	for c.Next() {
		switch {
		case c.Field == 1 && c.Type == wire.VarintType:
			key = int64(c.Value)
		case c.Field == 2 && c.Type == wire.VarintType:
			number = int64(c.Value)
		case c.Field == 2 && c.Type == wire.BytesType:
			message = c.Message()
		}
	}
	return key, number, message, c.Err
}
