// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// optionalSections enables each optional section of our components.
const optionalSections = `yaml:{receivers: {pprof: {
  server: {}, remote: {endpoint: 'http://localhost:6060/debug/pprof/heap'}, self: {}}},
exporters: {profiles_file: {directory: a, compact: {}}},
service: {pipelines: {profiles: {receivers: [pprof], exporters: [profiles_file]}}}}`

func TestNullTurnsAnOptionalSectionOff(t *testing.T) {
	printed := func(args ...string) *confmap.Conf {
		out := succeeds(t, append([]string{"print-config", "--validate=false", "--config=" + strings.ReplaceAll(optionalSections, "\n", "")}, args...)...)
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(out))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err, out)
		return conf
	}
	sections := []string{"receivers.pprof.server", "receivers.pprof.remote", "receivers.pprof.self", "exporters.profiles_file.compact"}
	var off []string
	for _, section := range sections {
		off = append(off, "--set="+section+"=null")
	}
	all, none := printed(), printed(off...)
	for _, section := range sections {
		key := strings.ReplaceAll(section, ".", confmap.KeyDelimiter)
		assert.NotNil(t, all.Get(key), section)
		assert.Nil(t, none.Get(key), section)
	}
}

// The output of print-config, which has null for sections that are off, is a configuration.
func TestPrintedConfigIsValid(t *testing.T) {
	printed := succeeds(t, "print-config", "--set=extensions=null", "--set=service.extensions=[]")
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(printed), 0o600))
	succeeds(t, "validate", "--config="+file)
}

// requireRejected requires that validation rejects a changed default configuration with one line.
func requireRejected(t *testing.T, set, want string) {
	t.Helper()
	out := fails(t, "validate", "--set="+set)
	assert.Contains(t, out, want)
	assert.Equal(t, 1, strings.Count(out, "\n"), "one line: %s", out)
}

// The error has the kind and the name of the component, the path of the key in it, its value and what is allowed.
func TestErrorsNameComponentKeyAndValue_D3(t *testing.T) {
	for set, want := range map[string][]string{
		"receivers.pprof.server.endpont=a":      {`'receivers' error reading configuration for "pprof":`, "unknown key server::endpont: must be one of "},
		"receivers.pprof/two.server.endpont=a":  {`"pprof/two":`, "unknown key server::endpont: must be one of "},
		"receivers.pprof.server=localhost:4040": {`server is "localhost:4040": must be a section with keys of its own`},
		"processors.profiles_dedup.window=10":   {`"profiles_dedup":`, "window is 10: must be a duration with a unit, such as 30s"},
		"exporters.profiles_file.path=a":        {`"profiles_file":`, "unknown key path: must be one of compact, "},
		"extensions.profiles_view.directry=a":   {`"profiles_view":`, "unknown key directry: must be one of "},

		"exporters.profiles_file.rotation.max_size=1.5":                          {`'rotation.max_size' is "1.5": must be a whole number of bytes`},
		"exporters.profiles_file.rotation.max_size=-5":                           {`'rotation.max_size' is "-5": must be a whole number of bytes`},
		"exporters.profiles_file.max_groups=1.5":                                 {"max_groups is 1.5: must be a whole number"},
		"receivers.pprof.server.cors={allowed_origin: [x]}":                      {"unknown key server::cors::allowed_origin: must be one of "},
		"receivers.pprof.remote={targets: [{endpoint: 'http://a:1', label: x}]}": {"unknown key remote::targets::0::label: must be one of "},
		"exporters.profiles_file.compact={aftr: 1h}":                             {"unknown key compact::aftr: must be one of "},
	} {
		for _, out := range []string{fails(t, "validate", "--set="+set), fails(t, "--set="+set)} {
			for _, part := range want {
				assert.Contains(t, out, part)
			}
		}
	}
}

func TestReferencesToMissingExtensionsAreRejected(t *testing.T) {
	const missing = `: extension "nope" does not start: define it under extensions and list it in service::extensions`
	for set, want := range map[string]string{
		"exporters.otlp_http={endpoint: 'http://a:1', sending_queue: {storage: nope}}": "exporters::otlp_http::sending_queue::storage" + missing,
		"exporters.otlp_http={endpoint: 'http://a:1', auth: {authenticator: nope}}":    "exporters::otlp_http::auth::authenticator" + missing,
		"receivers.pprof.server.auth.authenticator=nope":                               "receivers::pprof::server::auth::authenticator" + missing,
		"receivers.pprof.server.middlewares=[{id: nope}]":                              "receivers::pprof::server::middlewares" + missing,
		"receivers.profiles_file={include: [/a], storage: nope}":                       "receivers::profiles_file::storage" + missing,
		"receivers.otlp.protocols.grpc.auth.authenticator=nope":                        "receivers::otlp::protocols::grpc::auth::authenticator" + missing,
		"receivers.profiles_file/x={include: [/a], storage: nope/x}":                   `receivers::profiles_file/x::storage: extension "nope/x" does not start`,
	} {
		requireRejected(t, set, want)
	}
	defined := []string{"validate", "--set=exporters.otlp_http={endpoint: 'http://a:1', sending_queue: {storage: file_storage}}", "--set=extensions.file_storage={directory: .}"}
	assert.Contains(t, fails(t, defined...), `exporters::otlp_http::sending_queue::storage: extension "file_storage" does not start: define it under extensions and list it in service::extensions`)
	for _, valid := range [][]string{
		append(defined, "--set=service.extensions=[file_storage]"),
		{"validate", "--set=exporters.otlp_http={endpoint: 'http://a:1', sending_queue: {enabled: false, storage: nope}}"},
		{"validate", "--set=receivers.pprof.resource_attributes={storage: nope}"},
	} {
		succeeds(t, valid...)
	}
}

// A pipeline that reads what it writes would never end.
func TestLoopsOverFilesAreRejected_D6(t *testing.T) {
	dir, links := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(dir, filepath.Join(links, "link")))
	for _, test := range []struct {
		include, groupBy, receiver string
		loops                      bool
	}{
		{include: dir + "/**", loops: true},
		{include: dir + "/**", groupBy: "[service.name, otelcol_profiles.type]", loops: true},
		{include: dir + "/*/*/*/*/*.zst", loops: true},
		{include: dir + "/2026/**/*.zst", loops: true},
		{include: dir + "/missing/../**/*.zst", loops: true},
		{include: links + "/link/**/*.zst", loops: true},
		{include: filepath.Dir(dir) + "/*/*/*/*/*/{a,2026}*", loops: true},
		{include: dir + "/service.name=checkout/**/*.pb.*", groupBy: "[service.name]", loops: true},
		{include: dir + "/*/*/*/*/*.zst", groupBy: "[service.name]"},
		{include: dir + "/*/*/*/*.zst", groupBy: "[service.name], compact: {}", loops: true},
		{include: dir + "/*/*/*.zst", groupBy: "[], compact: {}", loops: true},
		{include: dir + "/*/*/*.zst"},
		{include: dir + "/**/*.jsonl"},
		{include: dir + "x/**"},
		{include: dir + "/**", receiver: "exclude: ['" + dir + "/**/*.otlp.pb.zst'], "},
	} {
		config := fmt.Sprintf(`yaml:{receivers: {profiles_file: {%sinclude: ['%s']}, otlp: {protocols: {grpc: {}}}}, exporters: {profiles_file: {directory: '%s', group_by: %s}, debug: {}},
 service: {pipelines: {profiles/store: {receivers: [otlp], exporters: [profiles_file]}, profiles/forward: {receivers: [profiles_file], exporters: [debug%s]}}}}`,
			test.receiver, test.include, dir, cmp.Or(test.groupBy, "[]"), "%s")
		succeeds(t, "validate", "--config="+fmt.Sprintf(config, "")) // forwarding is no loop
		out, err := program(t, "validate", "--config="+fmt.Sprintf(config, ", profiles_file"))
		assert.Equal(t, test.loops, err != nil, "%s: %s", config, out)
		if test.loops {
			assert.Contains(t, out, "service::pipelines::profiles/forward never ends: receivers::profiles_file must read no file that exporters::profiles_file writes, such as "+dir)
		}
	}
}

// An exporter would compact and remove the files of one whose directory is in its own.
func TestDirectoriesInsideOfOthersAreRejected_D6(t *testing.T) {
	dir, links := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "there"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(dir, "there"), filepath.Join(links, "link")))
	for _, test := range []struct {
		first, second string
		rejected      string // the exporter
	}{
		{dir, dir + "/env=prod", "profiles_file/second"},
		{dir + "/a/b", dir, "profiles_file"},
		{dir + "/there/", links + "/link/missing/..//a", "profiles_file/second"},
		{"a", "./a/../a/b", "profiles_file/second"},
		{first: dir, second: dir},
		{first: dir + "/a", second: dir + "/ab"},
		{first: dir + "/a", second: dir + "/..a"},
		{first: links, second: links + "/link"},
	} {
		config := fmt.Sprintf(`yaml:{receivers: {otlp: {protocols: {grpc: {}}}}, exporters: {profiles_file: {directory: '%s'}, profiles_file/second: {directory: '%s'}},
 service: {pipelines: {profiles: {receivers: [otlp], exporters: [profiles_file]}, profiles/b: {receivers: [otlp], exporters: [%s]}}}}`, test.first, test.second, "%s")
		succeeds(t, "validate", "--config="+fmt.Sprintf(config, "profiles_file")) // the second does not start
		out, err := program(t, "validate", "--config="+fmt.Sprintf(config, "profiles_file/second"))
		assert.Equal(t, test.rejected != "", err != nil, "%s: %s", config, out)
		if test.rejected == "" {
			continue
		}
		other := map[string]string{"profiles_file": "profiles_file/second", "profiles_file/second": "profiles_file"}[test.rejected]
		assert.Regexp(t, "exporters::"+test.rejected+"::directory is .+: must not be in that of exporters::"+other+", which is .", out)
	}
}

func TestSecretsInURLsAreNotPrinted_R16(t *testing.T) {
	const secrets = `yaml:{receivers: {pprof: {remote: {targets: [{endpoint: 'http://a:1/debug/pprof?token=s3cret&x="s3cret'}]}}},
 exporters: {otlp_http: {endpoint: 'https://user:s3cret@b:2/?key=s3cret'}, otlp_http/two: {endpoint: 'https://s3cret@c'}},
 service: {pipelines: {profiles: {receivers: [pprof], exporters: [otlp_http, otlp_http/two]}}}}`
	out := succeeds(t, "print-config", "--config="+strings.ReplaceAll(secrets, "\n", ""))
	assert.NotContains(t, out, "s3cret")
	for _, url := range []string{"http://a:1/debug/pprof?REDACTED", "https://REDACTED@b:2/?REDACTED", "https://REDACTED@c\n"} {
		assert.Contains(t, out, url)
	}
	out = succeeds(t, "print-config", "--mode=unredacted", "--config="+strings.ReplaceAll(secrets, "\n", ""))
	assert.Contains(t, out, "https://user:s3cret@b:2/?key=s3cret")
}
