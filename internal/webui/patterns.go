// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
)

// patternParameters are those that pprof compiles, and tagParameters those of which it compiles each part: KEY=PART,PART.
var (
	patternParameters = []string{"f", "i", "h", "s", "sf", "prunefrom", "ts", "th"}
	tagParameters     = []string{"tf", "ti"}
)

// checkPatterns rejects parameters that pprof would make too large programs of. It compiles them without a limit.
func checkPatterns(query url.Values) error {
	left := labels.MaxInstructions
	check := func(key, expression string) error {
		size, err := labels.CheckPattern(expression, left)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		left -= size
		return nil
	}
	for _, key := range patternParameters {
		if text := query.Get(key); text != "" {
			if err := check(key, text); err != nil {
				return err
			}
		}
	}
	for _, key := range tagParameters {
		_, text, found := strings.Cut(query.Get(key), "=")
		if !found {
			text = query.Get(key)
		}
		for part := range strings.SplitSeq(text, ",") {
			if err := check(key, part); err != nil {
				return err
			}
		}
	}
	return nil
}
