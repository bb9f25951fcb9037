// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

const scheme = "s3://"

// IsURL reports whether a path names objects.
func IsURL(path string) bool { return strings.HasPrefix(path, scheme) }

// Location is a directory in a bucket.
type Location struct {
	// Endpoint is a host or the URL of a server, by default that of Amazon S3.
	Endpoint string
	Region   string
	Bucket   string
	// Prefix is the path of the directory in the bucket, without slashes around it; "" is all of the bucket.
	Prefix string
}

// Directory is the prefix of the keys below the location.
func (l *Location) Directory() string {
	if l.Prefix == "" {
		return ""
	}
	return l.Prefix + "/"
}

// URL returns the URL that ParseURL reads.
func (l *Location) URL() string {
	query := url.Values{}
	for key, value := range map[string]string{"endpoint": l.Endpoint, "region": l.Region} {
		if value != "" {
			query.Set(key, value)
		}
	}
	u := url.URL{Scheme: strings.TrimSuffix(scheme, "://"), Host: l.Bucket, Path: l.Prefix, RawQuery: query.Encode()}
	return u.String()
}

const example = "s3://bucket/prefix or s3://bucket/prefix?endpoint=https://minio.example.com:9000&region=eu-west-1"

// ParseURL reads a URL such as s3://bucket/prefix?endpoint=http://localhost:9000&region=eu-west-1. Its errors do not repeat
// the URL, which somebody may have written a secret into.
func ParseURL(text string) (Location, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Location{}, errors.New("the URL is malformed: must be " + example)
	}
	query, err := url.ParseQuery(u.RawQuery)
	switch {
	case err != nil:
		return Location{}, errors.New("the query of the URL is malformed: must be " + example)
	case u.User != nil:
		return Location{}, errors.New("the URL has a user or password: must be in the environment or ~/.aws/credentials")
	case u.Fragment != "":
		return Location{}, errors.New("the URL has a fragment: must be " + example + ", with %23 for #")
	}
	for key, values := range query {
		if !slices.Contains([]string{"endpoint", "region"}, key) || len(values) > 1 {
			return Location{}, fmt.Errorf("the URL has the parameter %q: must be endpoint or region, each once", key)
		}
	}
	l := Location{Endpoint: query.Get("endpoint"), Region: query.Get("region"), Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	return l, errors.Join(CheckBucket("bucket", l.Bucket), CheckEndpoint("endpoint", l.Endpoint))
}

// CheckBucket returns an error if the value of a key cannot be the name of a bucket.
func CheckBucket(key, name string) error {
	if s3utils.CheckValidBucketNameStrict(name) != nil {
		return fmt.Errorf("%s is %q: must be the name of a bucket, of 3 to 63 lower-case letters, digits, dots and hyphens", key, name)
	}
	return nil
}

// CheckEndpoint returns an error if the value of a key is no host and no URL without a path. "" is the default.
func CheckEndpoint(key, text string) error {
	_, err := parseEndpoint(key, text)
	return err
}

func parseEndpoint(key, text string) (*url.URL, error) {
	if text != "" && !strings.Contains(text, "://") {
		text = "https://" + text
	}
	const example = "https://s3.eu-west-1.amazonaws.com"
	u, err := config.ParseURL(key, cmp.Or(text, "https://s3.amazonaws.com"), example)
	if err == nil && (strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "") {
		err = errors.New(key + " has a path or query: must be a host or a URL such as " + example)
	}
	return u, err
}

// withEnvironment takes what is not set from the variables that the tools of S3 read.
func (l Location) withEnvironment() Location {
	l.Endpoint = cmp.Or(l.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	l.Region = cmp.Or(l.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	return l
}
