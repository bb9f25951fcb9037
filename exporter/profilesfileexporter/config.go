// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// Config says where and how the exporter writes.
type Config struct {
	// Directory is where the files are. The exporter creates it if it is missing. Required.
	Directory string `mapstructure:"directory"`
	// Format is "proto", which is compressed, or "json": lines for people who look at them, without compression and index.
	Format string `mapstructure:"format"`
	// Sync says when records are synced to disk: "none" leaves this to the system, "interval" syncs after
	// SyncInterval, "record" before a record is acknowledged.
	Sync string `mapstructure:"sync"`
	// SyncInterval is the longest time until a record is synced, with sync "interval".
	SyncInterval time.Duration `mapstructure:"sync_interval"`
	// Rotation says when a file is closed.
	Rotation RotationConfig `mapstructure:"rotation"`
	// Retention says which closed files are removed.
	Retention RetentionConfig `mapstructure:"retention"`
	// Compact makes one file of those of an hour, and of a day, for a history of weeks. Disabled by default. No profiles_file
	// receiver may read the directory.
	Compact configoptional.Optional[CompactConfig] `mapstructure:"compact"`
	// Parquet writes the samples of each hour, and its processes, as Parquet files for SQL engines when the hour is compacted. Disabled by
	// default.
	Parquet configoptional.Optional[ParquetConfig] `mapstructure:"parquet"`
	// ObjectStorage uploads closed files to a bucket. Disabled by default.
	ObjectStorage configoptional.Optional[ObjectStorageConfig] `mapstructure:"object_storage"`
	// GroupBy lists keys of resource attributes, or otelcol_profiles.type. Each value has a directory, within that of the key
	// before it. A list without keys is one group.
	GroupBy []string `mapstructure:"group_by"`
	// MaxGroups is how many groups may have a directory. Records of further groups go to the group _other.
	MaxGroups int `mapstructure:"max_groups"`
	// MaxOpenFiles is how many files are open. Others stay incomplete, and are opened again when they are written.
	MaxOpenFiles int `mapstructure:"max_open_files"`
	// RetryOnFailure says how file system errors are retried, while the caller waits.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`
}

// RotationConfig limits one file; 0 is no limit.
type RotationConfig struct {
	// MaxSize closes a file at this size. 0 means no limit.
	MaxSize config.Size `mapstructure:"max_size"`
	// MaxAge closes a file this long after it was created. 0 means no limit.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxRecords closes a file at this number of records. 0 means no limit.
	MaxRecords int `mapstructure:"max_records"`
}

// RetentionConfig limits all closed files together; 0 is no limit. While a limit is
// exceeded, the exporter removes the oldest file.
type RetentionConfig struct {
	// MaxFiles removes the oldest files beyond this number. 0 means no limit.
	MaxFiles int `mapstructure:"max_files"`
	// MaxAge removes a file this long after its latest profile ended. 0 means no limit.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxTotalSize removes the oldest files while all files take more than this on disk. 0 means no
	// limit.
	MaxTotalSize config.Size `mapstructure:"max_total_size"`
}

// ObjectStorageConfig says to which bucket closed files are uploaded.
type ObjectStorageConfig struct {
	// Endpoint is the host or the URL of a server with the protocol of S3. Default: that in
	// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, or Amazon S3.
	Endpoint string `mapstructure:"endpoint"`
	// Region is that of the bucket. Default: that in AWS_REGION, or the one that the server tells.
	Region string `mapstructure:"region"`
	// Bucket is the name of the bucket. Required.
	Bucket string `mapstructure:"bucket"`
	// Prefix is the path of the files in the bucket. Collectors may share one, and readers take one.
	Prefix string `mapstructure:"prefix"`
	// Timeout is the longest time of a request.
	Timeout time.Duration `mapstructure:"timeout"`
	// Retention says which objects are removed.
	Retention ObjectRetentionConfig `mapstructure:"retention"`
}

// ObjectRetentionConfig limits the objects.
type ObjectRetentionConfig struct {
	// MaxAge removes an object this long after its latest profile ended. 0 means no limit.
	MaxAge time.Duration `mapstructure:"max_age"`
}

var (
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

const (
	formatProto  = "proto"
	formatJSON   = "json"
	syncNone     = "none"
	syncInterval = "interval"
	syncRecord   = "record"
)

// maxGroupKeys bounds how deep directories go.
const maxGroupKeys = 8

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	// Callers wait, and a local disk bears frequent retries.
	retry.InitialInterval = 200 * time.Millisecond
	retry.MaxInterval = time.Second
	retry.MaxElapsedTime = 10 * time.Second
	return &Config{
		Compact:       configoptional.Default(defaultCompact()),
		Parquet:       configoptional.Default(ParquetConfig{}),
		ObjectStorage: configoptional.Default(ObjectStorageConfig{Timeout: 5 * time.Minute}),

		Format:       formatProto,
		Sync:         syncInterval,
		SyncInterval: time.Second,
		Rotation: RotationConfig{
			MaxSize: 64 * config.MiB,
			MaxAge:  time.Minute,
		},
		GroupBy:        []string{"service.name"},
		MaxGroups:      1000,
		MaxOpenFiles:   100,
		RetryOnFailure: retry,
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return config.Unmarshal(conf, c) }

// pprofReplacement is for configurations that wrote pprof, or one record a file.
const pprofReplacement = "for single pprof files use otelprof convert, or /api/profile of profiles_view"

// minDuration is the shortest duration of a key.
const minDuration = time.Millisecond

// Validate returns an error for each invalid key.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.Directory != "" && !strings.ContainsRune(c.Directory, 0), "directory", c.Directory, "the path of the directory of the files")
	checks.Path("directory", c.Directory)
	checks.That(c.Format == formatProto || c.Format == formatJSON, "format", c.Format, "proto or json (%s)", pprofReplacement)
	checks.OneOf("sync", c.Sync, syncNone, syncInterval, syncRecord)
	checks.That(c.SyncInterval >= minDuration || c.SyncInterval == 0 && c.Sync != syncInterval, "sync_interval", c.SyncInterval, "%v or more", minDuration)
	notNegative(&checks, "rotation::max_size", c.Rotation.MaxSize)
	notNegative(&checks, "rotation::max_records", c.Rotation.MaxRecords)
	zeroOrDuration(&checks, "rotation::max_age", c.Rotation.MaxAge)
	c.checkRetention(&checks)
	if c.Compact.HasValue() {
		c.Compact.Get().check(&checks)
	}
	c.checkParquet(&checks)
	c.checkObjectStorage(&checks)
	c.checkGroups(&checks)
	if retry := c.RetryOnFailure; retry.Enabled {
		checks.That(retry.InitialInterval >= minDuration, "retry_on_failure::initial_interval", retry.InitialInterval, "%v or more", minDuration)
		checks.That(retry.MaxInterval >= minDuration, "retry_on_failure::max_interval", retry.MaxInterval, "%v or more", minDuration)
		zeroOrDuration(&checks, "retry_on_failure::max_elapsed_time", retry.MaxElapsedTime)
	}
	return checks.Err()
}

func (c *Config) checkRetention(checks *config.Checks) {
	notNegative(checks, "retention::max_files", c.Retention.MaxFiles)
	notNegative(checks, "retention::max_total_size", c.Retention.MaxTotalSize)
	zeroOrDuration(checks, "retention::max_age", c.Retention.MaxAge)
	if age, rotation := c.Retention.MaxAge, c.Rotation.MaxAge; age >= minDuration {
		checks.That(age >= rotation, "retention::max_age", age, "rotation::max_age, which is %v, or more (a file would be removed once it is closed)", rotation)
	}
	if size, rotation := c.Retention.MaxTotalSize, c.Rotation.MaxSize; size > 0 {
		checks.That(rotation != 0, "rotation::max_size", rotation, "more than 0 with a retention::max_total_size (a larger file would be removed once it is closed)")
		checks.That(size >= rotation, "retention::max_total_size", size, "rotation::max_size, which is %v, or more", rotation)
	}
}

func (c *Config) checkObjectStorage(checks *config.Checks) {
	if !c.ObjectStorage.HasValue() {
		return
	}
	s := c.ObjectStorage.Get()
	checks.Add(bucket.CheckBucket("object_storage::bucket", s.Bucket), bucket.CheckEndpoint("object_storage::endpoint", s.Endpoint))
	clean := strings.TrimPrefix(path.Clean("/"+s.Prefix), "/")
	checks.That(strings.Trim(s.Prefix, "/") == clean, "object_storage::prefix", s.Prefix, "a path such as prod/profiles")
	checks.Path("object_storage::prefix", s.Prefix)
	checks.That(s.Timeout >= time.Second, "object_storage::timeout", s.Timeout, "1s or more")
	age, rotation := s.Retention.MaxAge, c.Rotation.MaxAge
	checks.That(age == 0 || age >= max(time.Minute, rotation), "object_storage::retention::max_age", age, "0 (no limit), or at least 1m and rotation::max_age, which is %v", rotation)
	const largest = 5 * config.GiB // of S3, for one request
	checks.That(c.Rotation.MaxSize > 0 && c.Rotation.MaxSize <= largest, "rotation::max_size", c.Rotation.MaxSize, "more than 0 and at most %v with object_storage", largest)
}

func (c *Config) checkGroups(checks *config.Checks) {
	checks.That(len(c.GroupBy) <= maxGroupKeys, "group_by", c.GroupBy, "at most %d keys", maxGroupKeys)
	for i, key := range c.GroupBy {
		at := fmt.Sprintf("group_by[%d]", i)
		checks.That(key != "", at, key, "otelcol_profiles.type or the key of a resource attribute, such as service.name")
		checks.That(key == "" || !slices.Contains(c.GroupBy[:i], key), at, key, "different from the keys before it")
	}
	checks.That(c.MaxGroups >= 1, "max_groups", c.MaxGroups, "1 or more")
	checks.That(c.MaxOpenFiles >= 1, "max_open_files", c.MaxOpenFiles, "1 or more")
}

func notNegative[T int | config.Size](checks *config.Checks, key string, value T) {
	checks.That(value >= 0, key, value, "0 (no limit) or more")
}

func zeroOrDuration(checks *config.Checks, key string, value time.Duration) {
	checks.That(value == 0 || value >= minDuration, key, value, "0 (no limit), or %v or more", minDuration)
}

// SamplePaths returns absolute paths of files that the exporter could write, with * for the directories of groups and times.
func (c *Config) SamplePaths() ([]string, error) {
	directory, err := filepath.Abs(c.Directory)
	const bounds = ".20261128T135959Z-20261128T140100Z."
	base := filepath.Join(directory, strings.Repeat("*/", len(c.GroupBy)))
	format := string(c.storeOptions().Format)
	paths := []string{filepath.Join(base, "*/*/*/*", "20261128T140000.000Z-0123456789ab"+bounds+format)}
	if c.Compact.HasValue() {
		compacted := bounds + string(segment.Proto)
		paths = append(paths, filepath.Join(base, "*/*/*", "14_0123456789ab"+compacted), filepath.Join(base, "*/*", "28_0123456789ab"+compacted))
	}
	return paths, err
}

// storeOptions translates a valid configuration.
func (c *Config) storeOptions() store.Options {
	return store.Options{
		Directory: c.Directory,
		Format:    map[string]segment.Format{formatProto: segment.Proto, formatJSON: segment.JSON}[c.Format],
		Rotation: store.Rotation{
			MaxSize:    int64(c.Rotation.MaxSize),
			MaxAge:     c.Rotation.MaxAge,
			MaxRecords: c.Rotation.MaxRecords,
		},
		Sync:         map[string]store.Sync{syncInterval: store.SyncInterval, syncRecord: store.SyncRecord}[c.Sync],
		SyncInterval: c.SyncInterval,
		MaxGroups:    c.MaxGroups,
		MaxOpen:      c.MaxOpenFiles,
		Retention: store.Retention{
			MaxFiles:     c.Retention.MaxFiles,
			MaxAge:       c.Retention.MaxAge,
			MaxTotalSize: int64(c.Retention.MaxTotalSize),
		},
	}
}
