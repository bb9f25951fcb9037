// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGovulncheckFailsOnFinding runs govulncheck, as make builds it, on itself, with databases of one
// vulnerability. The real database cannot be part of a test: it changes every day.
func TestGovulncheckFailsOnFinding(t *testing.T) {
	command(t, "make", "--directory=..", "--silent", "bin/govulncheck")
	program := filepath.Join("..", "bin", "govulncheck")
	for symbol, want := range map[string]int{"Compare": 3, "Missing": 0} {
		check := exec.CommandContext(t.Context(), program, "-db=file://"+vulnerable(t, "golang.org/x/mod", "golang.org/x/mod/semver", symbol), "-mode=binary", program)
		out, err := check.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := check.ProcessState.ExitCode(); got != want || strings.Contains(string(out), "semver."+symbol) != (want != 0) {
			t.Errorf("a vulnerability of %s: exit code %d, want %d\n%s", symbol, got, want, out)
		}
	}
}

// vulnerable writes a database that has all versions of a function of a module as vulnerable. Its
// format is https://go.dev/doc/security/vuln/database.
func vulnerable(t *testing.T, module, path, symbol string) string {
	t.Helper()
	const id, modified = "GO-2000-0001", "2000-01-01T00:00:00Z"
	type object map[string]any
	directory := t.TempDir()
	for name, content := range map[string]any{
		"index/db":      object{"modified": modified},
		"index/modules": []object{{"path": module, "vulns": []object{{"id": id, "modified": modified}}}},
		"ID/" + id: object{
			"schema_version": "1.3.1", "id": id, "modified": modified, "published": modified,
			"database_specific": object{"url": "https://pkg.go.dev/vuln/" + id},
			"affected": []object{{
				"package":            object{"name": module, "ecosystem": "Go"},
				"ranges":             []object{{"type": "SEMVER", "events": []object{{"introduced": "0"}}}},
				"ecosystem_specific": object{"imports": []object{{"path": path, "symbols": []string{symbol}}}},
			}},
		},
	} {
		text, err := json.Marshal(content)
		require.NoError(t, err)
		file := filepath.Join(directory, name+".json")
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	return directory
}
