// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

// Shape is the way a sample records its data.
type Shape int

// The shapes that the format knows.
const (
	shapeNone       Shape = iota
	ShapeValues           // one value, without timestamps
	ShapeTimestamps       // timestamps, each of which stands for the value 1
	ShapeBoth             // as many values as timestamps
)

func shapeOfCounts(values, timestamps int) Shape {
	switch {
	case values > 0 && timestamps > 0:
		return ShapeBoth
	case values > 0:
		return ShapeValues
	case timestamps > 0:
		return ShapeTimestamps
	default:
		return shapeNone
	}
}

func (s Shape) String() string {
	switch s {
	case ShapeValues:
		return "values only"
	case ShapeTimestamps:
		return "timestamps only"
	case ShapeBoth:
		return "values and timestamps"
	default:
		return "no data"
	}
}
