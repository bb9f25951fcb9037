// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

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

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Config is the remote section: confighttp's client settings and keys of our own.
type Config struct {
	// HTTP configures the client. Its endpoint is the whole URL of one profile; for
	// several profiles, use Targets. Its timeout limits each scrape from the request to
	// the end of the body. Default: 30s.
	HTTP confighttp.ClientConfig `mapstructure:",squash"`

	// CollectionInterval is the time between two scrapes of a profile. The URL determines when within it. Default:
	// 60s.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`

	// Targets are the processes to scrape.
	Targets []Target `mapstructure:"targets"`

	// Profiles are the profile types to scrape from targets that do not list their own.
	// Default: [cpu, heap, goroutine, mutex, block].
	Profiles []string `mapstructure:"profiles"`

	// CPUDuration is the length of a CPU profile, in whole seconds. 0 means half of the timeout or
	// CollectionInterval, the shorter of them, but 1s to 10s. Execution traces have 1s.
	CPUDuration time.Duration `mapstructure:"cpu_duration"`

	// Delta replaces cumulative values (alloc_*, mutex, block) by their deltas since the
	// previous scrape. Default: true.
	Delta bool `mapstructure:"delta"`

	// MaxDecompressedSize limits a profile, decompressed, and its body. Default: 64MiB.
	MaxDecompressedSize config.Size `mapstructure:"max_decompressed_size"`
}

// Target is a process that serves profiles over HTTP.
type Target struct {
	// Endpoint is the URL of the directory of the profiles. Without a path, it is /debug/pprof.
	Endpoint string `mapstructure:"endpoint"`

	// ResourceAttributes are attributes of the resource.
	ResourceAttributes map[string]string `mapstructure:"resource_attributes"`

	// Profiles are the profile types to scrape, by default those of remote.profiles.
	Profiles []string `mapstructure:"profiles"`
}

const (
	// defaultPprofPath is where net/http/pprof serves.
	defaultPprofPath = "/debug/pprof"

	// secondsParameter is the query parameter for the length of a profile.
	secondsParameter = "seconds"

	// traceDuration is the length of an execution trace. A busy program writes 10 MB and more a second.
	traceDuration = time.Second

	// maxDefaultCPUDuration is the longest default of cpu_duration.
	maxDefaultCPUDuration = 10 * time.Second

	exampleURL = "http://localhost:6060" + defaultPprofPath
)

var defaultProfiles = []string{ingest.ProfileTypeCPU, ingest.ProfileTypeHeap, ingest.ProfileTypeGoroutine, ingest.ProfileTypeMutex, ingest.ProfileTypeBlock}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 30 * time.Second
	return Config{
		HTTP:                client,
		CollectionInterval:  time.Minute,
		Delta:               true,
		MaxDecompressedSize: 64 * config.MiB,
	}
}

// Validate makes the checks that confighttp does not.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.CollectionInterval >= time.Millisecond, "collection_interval", c.CollectionInterval, "at least 1ms")
	checks.That(c.HTTP.Timeout >= time.Millisecond, "timeout", c.HTTP.Timeout, "at least 1ms")
	ingest.CheckMaxDecompressedSize(&checks, c.MaxDecompressedSize)
	sources := c.sources(&checks)
	recordsCPU := slices.ContainsFunc(sources, source.needsSeconds)
	switch {
	case c.CPUDuration < 0 || c.CPUDuration%time.Second != 0:
		checks.That(false, "cpu_duration", c.CPUDuration, "a whole number of seconds (net/http/pprof accepts no fractions)")
	case recordsCPU && c.CPUDuration == 0:
		const must = "longer than 1s, the shortest CPU profile"
		checks.That(c.CollectionInterval < time.Millisecond || c.CollectionInterval > time.Second, "collection_interval", c.CollectionInterval, must)
		checks.That(c.HTTP.Timeout < time.Millisecond || c.HTTP.Timeout > time.Second, "timeout", c.HTTP.Timeout, must)
	case recordsCPU:
		checks.That(c.CPUDuration < c.shorter(), "cpu_duration", c.CPUDuration, "shorter than timeout (%v) and collection_interval (%v)", c.HTTP.Timeout, c.CollectionInterval)
	}
	return checks.Err()
}

// source is a URL that is scraped.
type source struct {
	url        *url.URL
	target     *url.URL // where of names the profile: the directory of url; otherwise url
	of         profileType
	instance   string            // service.instance.id
	attributes map[string]string // of the resource
}

// needsSeconds reports whether the length of the profile has to be added to the URL.
func (s source) needsSeconds() bool {
	return s.of.duration != nil && !s.url.Query().Has(secondsParameter)
}

// sources checks and returns the sources to scrape.
func (c *Config) sources(checks *config.Checks) []source {
	switch {
	case c.HTTP.Endpoint == "" && len(c.Targets) == 0:
		checks.Add(errors.New("either endpoint or targets is required (example: endpoint: " + exampleURL + "/heap)"))
		return nil
	case c.HTTP.Endpoint != "" && len(c.Targets) > 0:
		checks.Add(errors.New("endpoint and targets are mutually exclusive; move the endpoint into targets"))
		return nil
	case c.HTTP.Endpoint != "":
		return c.endpointSource(checks)
	}
	return c.targetSources(checks)
}

func (c *Config) endpointSource(checks *config.Checks) []source {
	checks.That(len(c.Profiles) == 0, "profiles", c.Profiles, "unset with endpoint, which is the whole URL of one profile")
	at, err := config.ParseURL("endpoint", c.HTTP.Endpoint, exampleURL)
	if err != nil {
		checks.Add(err)
		return nil
	}
	last := path.Base(at.Path)
	checks.That(last != "pprof" && last != "/" && last != ".", "endpoint", targetName(at),
		"the URL of one profile, such as %s://%s%s/heap; for several profiles, use targets", at.Scheme, at.Host, defaultPprofPath)
	of := profileTypeOfPath(at.Path)
	of.optional = false // the only profile
	if query := at.Query(); query.Has(secondsParameter) {
		seconds, err := strconv.ParseInt(query.Get(secondsParameter), 10, 32)
		checks.That(err == nil && seconds > 0 && time.Duration(seconds)*time.Second < c.shorter(), "endpoint", targetName(at),
			"a URL whose parameter seconds is a whole number above 0, shorter than timeout (%v) and collection_interval (%v)", c.HTTP.Timeout, c.CollectionInterval)
		of.temporality = ingest.Always(sampletypes.Delta) // of any type: events since the last request
		of.sinceLast = false
	}
	return []source{{url: at, target: at, of: of, instance: at.Host}}
}

func (c *Config) targetSources(checks *config.Checks) (sources []source) {
	checkProfiles(checks, "profiles", c.Profiles)
	urls := make([]*url.URL, len(c.Targets)) // nil if invalid
	scraped := map[string]int{}              // the target, by location, ID and profile
	for i, target := range c.Targets {
		key := fmt.Sprintf("targets::%d", i)
		checkProfiles(checks, key+"::profiles", target.Profiles)
		ingest.CheckResourceAttributes(checks, key+"::resource_attributes", target.ResourceAttributes)
		key += "::endpoint"
		at, err := config.ParseURL(key, target.Endpoint, exampleURL)
		if err != nil {
			checks.Add(err)
			continue
		}
		name := targetName(at)
		checks.That(!at.Query().Has(secondsParameter), key, name, "a URL without the parameter seconds: for the length of CPU profiles, use cpu_duration")
		checks.That(!at.Query().Has("debug"), key, name, "a URL without the parameter debug, which asks for text")
		if strings.Trim(at.Path, "/") == "" {
			at.Path = defaultPprofPath
		}
		// One process is scraped once for a profile. The scheme or the query may distinguish processes behind a proxy, which
		// need an ID each; the query may also ask one process for several profiles.
		for _, profile := range c.profilesOf(target) {
			id := locationOf(at) + " " + target.ResourceAttributes[ingest.AttributeServiceInstanceID] + " " + profile
			if first, found := scraped[id]; found && first != i {
				checks.Add(fmt.Errorf("%s is %q: duplicate target: targets::%d already scrapes %q from this host, port and path. If these are different processes behind one address, set %s in the resource_attributes of each",
					key, name, first, profile, ingest.AttributeServiceInstanceID))
				break
			}
			scraped[id] = i
		}
		urls[i] = at
	}
	for i, target := range c.Targets {
		if urls[i] == nil {
			continue
		}
		for _, name := range c.profilesOf(target) {
			of := profileTypes[name]
			sources = append(sources, source{urls[i].JoinPath(of.path), urls[i], of, instanceOf(urls[i], urls), target.ResourceAttributes})
		}
	}
	return sources
}

// instanceOf is the service.instance.id of a target: its host and port, and the path if
// other targets have the same host and port.
func instanceOf(at *url.URL, all []*url.URL) string {
	for _, other := range all {
		if other != nil && strings.EqualFold(at.Host, other.Host) && locationOf(at) != locationOf(other) {
			return locationOf(at)
		}
	}
	return at.Host
}

func checkProfiles(checks *config.Checks, key string, names []string) {
	for i, name := range names {
		of, known := profileTypes[name]
		checks.That(known, key, name, "one of %s", strings.Join(slices.Sorted(maps.Keys(profileTypes)), ", "))
		for _, other := range names[:i] {
			checks.That(other != name, key, name, "listed once")
			checks.That(other == name || !known || profileTypes[other].profileType != of.profileType, key, name, "listed without %q: it would be counted twice", other)
		}
	}
}

// locationOf is host, port and path of a target in one spelling.
func locationOf(at *url.URL) string {
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(at.Hostname()), port) + path.Clean("/"+at.Path)
}

// targetName is a target in logs, metrics and errors: without its query, which may hold
// secrets.
func targetName(at *url.URL) string {
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String()
}

// profilesOf are the profile types that a target is scraped for.
func (c *Config) profilesOf(target Target) []string {
	switch {
	case len(target.Profiles) > 0:
		return target.Profiles
	case len(c.Profiles) > 0:
		return c.Profiles
	}
	return defaultProfiles
}

// shorter is the limit for the duration of CPU profiles.
func (c *Config) shorter() time.Duration { return min(c.HTTP.Timeout, c.CollectionInterval) }

// cpuDuration is CPUDuration or its default.
func (c *Config) cpuDuration() time.Duration {
	if c.CPUDuration > 0 {
		return c.CPUDuration
	}
	return max(min(maxDefaultCPUDuration, (c.shorter()/2).Truncate(time.Second)), time.Second)
}

func (*Config) traceDuration() time.Duration { return traceDuration }

// profileType is a profile that targets serve.
type profileType struct {
	path        string // in the directory of the target
	profileType string // otelcol_profiles.type
	temporality ingest.TemporalityFunc

	// duration is the length of the profile, if that is a parameter, and nil otherwise.
	duration func(*Config) time.Duration

	// sinceLast: the target answers with the delta since it was last asked, as
	// godeltaprof does.
	sinceLast bool

	optional bool // targets without it answer 404
}

// profileTypes are the values of the key profiles.
var profileTypes = map[string]profileType{
	"cpu":           {path: "profile", profileType: ingest.ProfileTypeCPU, temporality: ingest.Always(sampletypes.Delta), duration: (*Config).cpuDuration},
	"heap":          {path: "heap", profileType: ingest.ProfileTypeHeap, temporality: ingest.HeapTemporality},
	"allocs":        {path: "allocs", profileType: ingest.ProfileTypeAllocs, temporality: ingest.HeapTemporality},
	"goroutine":     {path: "goroutine", profileType: ingest.ProfileTypeGoroutine, temporality: ingest.Always(sampletypes.Instant)},
	"goroutineleak": {path: "goroutineleak", profileType: ingest.ProfileTypeGoroutineLeak, temporality: ingest.Always(sampletypes.Instant), optional: true},
	"threadcreate":  {path: "threadcreate", profileType: ingest.ProfileTypeThreadCreate, temporality: ingest.Always(sampletypes.Instant)},
	"mutex":         {path: "mutex", profileType: ingest.ProfileTypeMutex, temporality: ingest.Always(sampletypes.Cumulative)},
	"block":         {path: "block", profileType: ingest.ProfileTypeBlock, temporality: ingest.Always(sampletypes.Cumulative)},
	"delta_heap":    {path: "delta_heap", profileType: ingest.ProfileTypeHeap, temporality: ingest.Deltas(ingest.HeapTemporality), sinceLast: true},
	"delta_mutex":   {path: "delta_mutex", profileType: ingest.ProfileTypeMutex, temporality: ingest.Always(sampletypes.Delta), sinceLast: true},
	"trace":         {path: "trace", profileType: ingest.ProfileTypeGoroutineTime, temporality: ingest.Always(sampletypes.Delta), duration: (*Config).traceDuration},
	"delta_block":   {path: "delta_block", profileType: ingest.ProfileTypeBlock, temporality: ingest.Always(sampletypes.Delta), sinceLast: true},
}

// profileTypeOfPath is the profile type that the last part of a URL's path names: one of
// ours, fgprof's, or an unknown one.
func profileTypeOfPath(urlPath string) profileType {
	last := path.Base(urlPath)
	for _, of := range profileTypes {
		if of.path == last {
			return of
		}
	}
	if last == "fgprof" {
		return profileType{profileType: last, temporality: ingest.Always(sampletypes.Delta), duration: (*Config).cpuDuration}
	}
	return profileType{temporality: ingest.Always("")}
}

// isCumulative reports whether values of this type count from the start of the process.
func (p profileType) isCumulative() bool {
	return p.temporality("alloc_space") == sampletypes.Cumulative // as any type of mutex and block
}
