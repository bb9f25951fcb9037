// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// RemoteConfig says what is scraped over HTTP: confighttp's client configuration
// and keys of our own, all in one section.
type RemoteConfig struct {
	// HTTP is how each target is talked to. Its endpoint is one whole URL, which
	// is scraped as it is; for more, there are Targets. Its timeout bounds each
	// scrape from the request to the end of the body. Default: 30s.
	HTTP confighttp.ClientConfig `mapstructure:",squash"`

	// CollectionInterval is the time from one scrape of a profile to the next.
	// The first comes within it, at a moment that the URL decides. Default: 60s.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`

	// Targets are scraped for each of their Profiles.
	Targets []TargetConfig `mapstructure:"targets"`

	// Profiles are the kinds that each of the Targets is scraped for, unless it
	// has its own. Default: cpu, heap, goroutine, mutex and block.
	Profiles []string `mapstructure:"profiles"`

	// CPUDuration is how long a target profiles its CPU, in whole seconds. It is
	// shorter than the timeout and CollectionInterval. 0, the default, is the
	// smaller of 10s and half of the shorter one, and at least 1s.
	CPUDuration time.Duration `mapstructure:"cpu_duration"`

	// Delta turns values that a target counts from its start (alloc_*, mutex,
	// block) into their differences from the scrape before. Default: true.
	Delta bool `mapstructure:"delta"`

	// MaxDecompressedSize bounds one profile, after decompression through all
	// its layers, and its body. Default: 64MiB.
	MaxDecompressedSize bytesize.Size `mapstructure:"max_decompressed_size"`

	// MaxInFlight bounds the bytes of large bodies that are arriving, and again
	// those of all profiles being worked on. Default: 256MiB.
	MaxInFlight bytesize.Size `mapstructure:"max_in_flight"`
}

// TargetConfig is a process that serves profiles over HTTP.
type TargetConfig struct {
	// Endpoint is the URL below which the profiles are, as in
	// http://localhost:6060/debug/pprof. Without a path, it is /debug/pprof.
	Endpoint string `mapstructure:"endpoint"`

	// ResourceAttributes go on the resource of its profiles, over those of the
	// receiver.
	ResourceAttributes map[string]string `mapstructure:"resource_attributes"`

	// Profiles are the kinds to scrape. Default: those of the section.
	Profiles []string `mapstructure:"profiles"`
}

var _ confmap.Validator = (*RemoteConfig)(nil)

const (
	// defaultPprofPath is where net/http/pprof serves.
	defaultPprofPath = "/debug/pprof"

	// secondsParameter is how a target is told how long to profile.
	secondsParameter = "seconds"
)

// defaultProfiles are what a target is scraped for unless configured.
var defaultProfiles = []string{ingest.ProfileTypeCPU, ingest.ProfileTypeHeap, ingest.ProfileTypeGoroutine, ingest.ProfileTypeMutex, ingest.ProfileTypeBlock}

func defaultRemoteConfig() RemoteConfig {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 30 * time.Second
	return RemoteConfig{
		HTTP:                client,
		CollectionInterval:  time.Minute,
		Delta:               true,
		MaxDecompressedSize: 64 * bytesize.MiB,
		MaxInFlight:         256 * bytesize.MiB,
	}
}

// Validate checks what confighttp does not.
func (rc *RemoteConfig) Validate() error {
	var errs []error
	if rc.CollectionInterval < shortestDuration {
		errs = append(errs, fmt.Errorf("collection_interval: %v, must be at least %v, with a unit as in 60s", rc.CollectionInterval, shortestDuration))
	}
	if rc.HTTP.Timeout < shortestDuration {
		errs = append(errs, fmt.Errorf("timeout: %v, must be at least %v, with a unit as in 30s", rc.HTTP.Timeout, shortestDuration))
	}
	if rc.MaxDecompressedSize <= 0 || rc.MaxDecompressedSize > largestPayload {
		errs = append(errs, fmt.Errorf("max_decompressed_size: %v, must be above 0 and at most %v", rc.MaxDecompressedSize, largestPayload))
	}
	if rc.MaxInFlight < rc.MaxDecompressedSize || rc.MaxInFlight > largestInFlight {
		errs = append(errs, fmt.Errorf("max_in_flight: %v, must be at least max_decompressed_size (%v) and at most %v", rc.MaxInFlight, rc.MaxDecompressedSize, largestInFlight))
	}
	errs = append(errs, rc.validateTargets()...)
	if rc.CPUDuration < 0 || rc.CPUDuration%time.Second != 0 {
		errs = append(errs, fmt.Errorf("cpu_duration: %v, must be whole seconds: targets know no others", rc.CPUDuration))
	} else if duration := rc.cpuDuration(); rc.profilesCPU() && duration >= min(rc.HTTP.Timeout, rc.CollectionInterval) {
		errs = append(errs, fmt.Errorf("cpu_duration: %v, must be shorter than timeout (%v) and collection_interval (%v)", duration, rc.HTTP.Timeout, rc.CollectionInterval))
	}
	return errors.Join(errs...)
}

func (rc *RemoteConfig) validateTargets() (errs []error) {
	switch {
	case rc.HTTP.Endpoint == "" && len(rc.Targets) == 0:
		return []error{errors.New("one of endpoint and targets must be there, as in endpoint: http://localhost:6060/debug/pprof/heap")}
	case rc.HTTP.Endpoint != "" && len(rc.Targets) > 0:
		return []error{errors.New("endpoint and targets exclude each other: put all into targets")}
	case rc.HTTP.Endpoint != "":
		if len(rc.Profiles) > 0 {
			errs = append(errs, errors.New("profiles: is for targets; endpoint is the whole URL of one profile"))
		}
		at, err := parseTarget(rc.HTTP.Endpoint)
		if err != nil {
			return append(errs, fmt.Errorf("endpoint: %w", err))
		}
		if name := path.Base(at.Path); name == "pprof" || name == "/" || name == "." {
			errs = append(errs, fmt.Errorf("endpoint: %s is not the URL of one profile, as in %s://%s%s/heap; for several profiles, use targets", targetName(at), at.Scheme, at.Host, defaultPprofPath))
		}
		if at.Query().Has(secondsParameter) {
			seconds, err := strconv.ParseInt(at.Query().Get(secondsParameter), 10, 32)
			longest := min(rc.HTTP.Timeout, rc.CollectionInterval)
			switch {
			case err != nil || seconds <= 0:
				errs = append(errs, errors.New("endpoint: seconds, in its query, must be a whole number above 0: targets know no others"))
			case time.Duration(seconds)*time.Second >= longest:
				errs = append(errs, fmt.Errorf("endpoint: seconds=%d, in its query, must be shorter than timeout (%v) and collection_interval (%v)", seconds, rc.HTTP.Timeout, rc.CollectionInterval))
			}
		}
		return errs
	}
	errs = append(errs, validateKinds("profiles", rc.Profiles)...)
	var seen []*url.URL // nil where it is wrong
	for i, target := range rc.Targets {
		key := fmt.Sprintf("targets::%d", i)
		at, err := parseTarget(target.Endpoint)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s::endpoint: %w", key, err))
			seen = append(seen, nil)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(wrongParameters)) {
			if at.Query().Has(name) {
				errs = append(errs, fmt.Errorf("%s::endpoint: must not have %q in its query: %s", key, name, wrongParameters[name]))
			}
		}
		errs = append(errs, rc.validateTwice(i, at, seen)...)
		seen = append(seen, at)
		errs = append(errs, validateKinds(key+"::profiles", target.Profiles)...)
		for _, name := range slices.Sorted(maps.Keys(target.ResourceAttributes)) {
			if name == "" || !utf8.ValidString(name) || !utf8.ValidString(target.ResourceAttributes[name]) {
				errs = append(errs, fmt.Errorf("%s::resource_attributes: %q must not be empty, and it and its value must be valid UTF-8", key, name))
			}
		}
	}
	return errs
}

// wrongParameters are those that make something else of the profiles of a target
// than their kinds say, and why that is not wanted.
var wrongParameters = map[string]string{
	secondsParameter: "how long a CPU profile takes is cpu_duration, and of the others the differences are made here; one profile as Go makes it is for endpoint",
	"debug":          "it makes text of a profile",
}

// validateTwice checks target i against those before it. One URL is one target. At
// one host and path, queries may tell several processes apart (behind a proxy), which
// need an id each, or ask one process for several kinds.
func (rc *RemoteConfig) validateTwice(i int, at *url.URL, before []*url.URL) []error {
	target := rc.Targets[i]
	for j, other := range before {
		if other == nil || locationOf(at) != locationOf(other) {
			continue
		}
		if at.Scheme == other.Scheme && at.Query().Encode() == other.Query().Encode() {
			return []error{fmt.Errorf("targets::%d::endpoint: %s is that of targets::%d too", i, targetName(at), j)}
		}
		first := rc.Targets[j]
		if target.ResourceAttributes[ingest.AttributeServiceInstanceID] != first.ResourceAttributes[ingest.AttributeServiceInstanceID] {
			continue
		}
		for _, kind := range rc.kindsOf(target) {
			if slices.Contains(rc.kindsOf(first), kind) {
				return []error{fmt.Errorf("targets::%d::endpoint: %s is scraped for %q by targets::%d too, apart from the query: if these are two processes, give each its %s in resource_attributes",
					i, targetName(at), kind, j, ingest.AttributeServiceInstanceID)}
			}
		}
	}
	return nil
}

// locationOf is host, port and path of a target, however they are spelled.
func locationOf(at *url.URL) string {
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(at.Hostname()), port) + targetPath(at)
}

// targetPath is below where the profiles of a target are.
func targetPath(at *url.URL) string {
	if trimmed := strings.TrimRight(path.Clean("/"+at.Path), "/"); trimmed != "" {
		return trimmed
	}
	return defaultPprofPath
}

// parseTarget reads the URL of a target. Errors do not hold its query or user.
func parseTarget(endpoint string) (*url.URL, error) {
	at, err := url.Parse(endpoint)
	switch {
	case endpoint == "":
		return nil, errors.New("must not be empty, want a URL as in http://localhost:6060/debug/pprof")
	case err != nil: // the error of url.Parse holds the whole URL
		return nil, errors.New("is not a URL, want one as in http://localhost:6060/debug/pprof")
	case at.Scheme != "http" && at.Scheme != "https":
		return nil, fmt.Errorf("scheme %q, must be http or https, as in http://localhost:6060/debug/pprof", at.Scheme)
	case at.Host == "":
		return nil, errors.New("has no host, want a URL as in http://localhost:6060/debug/pprof")
	case at.User != nil:
		return nil, errors.New("must not hold a user or password: set headers or auth, which are kept secret")
	}
	return at, nil
}

// targetName is how logs, metrics and errors call a target: without its query,
// which may hold secrets.
func targetName(at *url.URL) string {
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String()
}

func validateKinds(key string, names []string) (errs []error) {
	for i, name := range names {
		kind, known := scrapeKinds[name]
		if !known {
			errs = append(errs, fmt.Errorf("%s: %q is unknown, want some of %q", key, name, slices.Sorted(maps.Keys(scrapeKinds))))
			continue
		}
		for _, other := range names[:i] {
			switch {
			case other == name:
				errs = append(errs, fmt.Errorf("%s: %q is there more than once", key, name))
			case scrapeKinds[other].profileType == kind.profileType:
				errs = append(errs, fmt.Errorf("%s: %q and %q would be counted twice, want one of them", key, other, name))
			}
		}
	}
	return errs
}

// kindsOf are the kinds that a target is scraped for.
func (rc *RemoteConfig) kindsOf(target TargetConfig) []string {
	for _, kinds := range [][]string{target.Profiles, rc.Profiles} {
		if len(kinds) > 0 {
			return kinds
		}
	}
	return defaultProfiles
}

// profilesCPU tells whether a CPU profile is scraped whose duration we set.
func (rc *RemoteConfig) profilesCPU() bool {
	if at, err := url.Parse(rc.HTTP.Endpoint); err == nil && rc.HTTP.Endpoint != "" {
		return kindOfPath(at.Path).lasting && !at.Query().Has(secondsParameter)
	}
	return slices.ContainsFunc(rc.Targets, func(target TargetConfig) bool {
		return slices.Contains(rc.kindsOf(target), ingest.ProfileTypeCPU)
	})
}

// cpuDuration is CPUDuration with its default put in.
func (rc *RemoteConfig) cpuDuration() time.Duration {
	if rc.CPUDuration > 0 {
		return rc.CPUDuration
	}
	half := min(rc.HTTP.Timeout, rc.CollectionInterval) / 2
	return max(min(maxCPUDuration, half.Truncate(time.Second)), time.Second)
}
