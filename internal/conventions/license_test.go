// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"bytes"
	"testing"
)

const header = `// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

`

func TestLicenseHeaders(t *testing.T) {
	for _, name := range files(t, isGo) {
		content := read(t, name)
		if !isGenerated(content) && !bytes.HasPrefix(content, []byte(header)) {
			t.Errorf("%s does not begin with the license header, want\n%s", name, header)
		}
	}
}
