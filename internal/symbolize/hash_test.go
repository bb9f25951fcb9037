// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

// The mapping gets the hash of the executable only where the directories have it under the path that the profile says: the
// file of debug information, and a copy of the program, have its build ID, too.
func TestMappingsGetTheHashOfTheProfiledExecutable(t *testing.T) {
	n := compile(t)
	data, err := os.ReadFile(n.program)
	require.NoError(t, err)
	want, err := symbols.FileHash(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	root := t.TempDir()
	profiletest.WriteAt(t, filepath.Join(root, "srv", "program"), data, time.Now())
	inDir, _ := newStore(t, func(o *symbolize.Options) { o.Directories = []string{n.dir} })
	inRoot, _ := newStore(t, func(o *symbolize.Options) { o.Directories = []string{root} })
	hashOf := func(store *symbolize.Store, path, before string) string {
		pd := n.payload(t, n.buildID)
		d, m := pd.Dictionary(), pd.Dictionary().MappingTable().At(1)
		file, err := pprofile.SetString(d.StringTable(), path)
		require.NoError(t, err)
		m.SetFilenameStrindex(file)
		if before != "" {
			attribute := d.AttributeTable().AppendEmpty()
			d.StringTable().Append(hashKey)
			attribute.SetKeyStrindex(int32(d.StringTable().Len() - 1))
			attribute.Value().SetStr(before)
			m.AttributeIndices().Append(int32(d.AttributeTable().Len() - 1))
		}
		outcomes := symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
		require.Equal(t, map[symbolize.Outcome]int{symbolize.Symbolized: 2}, outcomes)
		profiletest.RequireConforms(t, pd)
		attributes, err := pprofile.FromAttributeIndices(d.AttributeTable(), m, d)
		require.NoError(t, err)
		hash, _ := attributes.AsRaw()[hashKey].(string)
		return hash
	}
	assert.Equal(t, want, hashOf(inDir, n.program, ""))
	assert.Equal(t, want, hashOf(inDir, n.program, ""), "it is known")
	assert.Equal(t, want, hashOf(inRoot, "/srv/program", ""))
	assert.Equal(t, want, hashOf(inRoot, "/../srv/./program", ""))
	assert.Equal(t, "theirs", hashOf(inRoot, "/srv/program", "theirs"))
	for _, path := range []string{"", "program", "/opt/program", n.debug} {
		assert.Empty(t, hashOf(inDir, path, ""), path)
	}
	data[len(data)-1] ^= 1 // another file with this build ID
	require.NoError(t, os.WriteFile(filepath.Join(root, "srv", "program"), append(data, 0), 0o700))
	changed, err := symbols.FileHash(bytes.NewReader(append(data, 0)), int64(len(data)+1))
	require.NoError(t, err)
	assert.Equal(t, want, hashOf(inRoot, "/srv/program", ""), "of the file that was searched for")
	cache := t.TempDir()
	open := func() *symbolize.Store {
		store, _ := newStore(t, func(o *symbolize.Options) { o.Directories, o.Cache = []string{root}, cache })
		return store
	}
	assert.Equal(t, changed, hashOf(open(), "/srv/program", ""))
	assert.Equal(t, changed, hashOf(open(), "/srv/program", ""), "the table is in the cache")
	profiletest.WriteAt(t, filepath.Join(root, "srv", "program"), []byte("a script"), time.Now())
	assert.Empty(t, hashOf(open(), "/srv/program", ""), "replaced since")
}

const hashKey = "process.executable.build_id.htlhash"
