// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/filewatch"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// TestFiles* and the tests of row R17 in the package of the receiver run a Reader.

func TestOutcomes(t *testing.T) {
	retry := func(err error) error { return &filewatch.RetryError{Err: err} }
	for want, errs := range map[string][]error{
		"success":    {nil},
		"unreadable": {retry(fs.ErrNotExist), retry(&fs.PathError{Op: "read", Err: fs.ErrPermission})},
		"panic":      {retry(&ingest.PanicError{Value: "boom"})},
		"too_large":  {&pproftranslator.LimitError{What: "size in bytes", Limit: 1, Got: 2}, fmt.Errorf("gzip: %w", &pproftranslator.LimitError{})},
		// An error of the pipeline has nothing to do with the file, whatever it wraps.
		"rejected":  {&ingest.PipelineError{Err: consumererror.NewPermanent(&fs.PathError{Op: "write", Err: fs.ErrPermission})}},
		"malformed": {errors.New("no pprof")},
	} {
		for _, err := range errs {
			assert.Equal(t, want, outcomeOf(err), "%v", err)
		}
	}
}

func TestConfigLimitsTheSize(t *testing.T) {
	config := DefaultConfig()
	config.Watch.Include = []string{"/a/*"}
	assert.NoError(t, config.Validate())
	for _, size := range []bytesize.Size{0, ingest.MaxPayload + 1} {
		config.MaxDecompressedSize = size
		assert.ErrorContains(t, config.Validate(), "max_decompressed_size is ")
	}
}
