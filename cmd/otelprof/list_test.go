// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

func TestTableTellsPeriodTypesApart(t *testing.T) {
	row := func(service, period string) query.Row {
		return query.Row{Kind: query.Kind{Service: service, Type: "cpu", SampleType: "cpu", Unit: "nanoseconds", PeriodType: period}}
	}
	var sampleTypes []string
	for _, line := range tableOf([]query.Row{row("cart", "cpu"), row("checkout", ""), row("checkout", "cpu")})[1:] {
		sampleTypes = append(sampleTypes, line[2])
	}
	assert.Equal(t, []string{"cpu", "cpu per -", "cpu per cpu"}, sampleTypes)
}
