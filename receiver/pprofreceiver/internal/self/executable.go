// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"os"
	"runtime"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

// executable is the file that runs.
type executable struct{ path, hash string }

// ownExecutable returns the file that runs, without a hash if it cannot be read.
var ownExecutable = sync.OnceValue(func() (own executable) {
	path, err := os.Executable()
	if err != nil {
		return own
	}
	own.path = path
	if runtime.GOOS == "linux" {
		path = "/proc/self/exe" // another file may be under the path since
	}
	file, err := regularfile.Open(path)
	if err != nil {
		return own
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		own.hash, _ = symbols.FileHash(file, info.Size()) // empty with an error
	}
	return own
})

// setFileHash gives the mapping of the own executable its build ID that is made of the file.
func setFileHash(dictionary pprofile.ProfilesDictionary) {
	own := ownExecutable()
	if own.hash == "" {
		return
	}
	for _, mapping := range dictionary.MappingTable().All() {
		if dictionary.StringTable().At(int(mapping.FilenameStrindex())) != own.path {
			continue
		}
		key, err := pprofile.SetString(dictionary.StringTable(), string(semconv.ProcessExecutableBuildIDHtlhashKey))
		if err != nil {
			return // the table is full
		}
		attribute := pprofile.NewKeyValueAndUnit()
		attribute.SetKeyStrindex(key)
		attribute.Value().SetStr(own.hash)
		if index, err := pprofile.SetAttribute(dictionary.AttributeTable(), attribute); err == nil {
			mapping.AttributeIndices().Append(index)
		}
	}
}
