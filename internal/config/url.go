// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/url"
)

// ParseURL reads the URL of a server. Errors do not hold its query or user, which may be secret.
func ParseURL(key, text, example string) (*url.URL, error) {
	at, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New(key + " is empty: must be a URL such as " + example)
	case err != nil: // the error of url.Parse holds the whole URL
		return nil, errors.New(key + " is not a URL: must be one such as " + example)
	case at.User != nil:
		return nil, errors.New(key + " has a user or password: must be in headers or auth, which are kept secret")
	case at.Scheme != "http" && at.Scheme != "https":
		return nil, fmt.Errorf("%s is a URL with the scheme %q: must be http or https, such as %s", key, at.Scheme, example)
	case at.Host == "":
		return nil, errors.New(key + " is a URL without a host: must be one such as " + example)
	}
	return at, nil
}

// WithoutURL unwraps the errors of net/http that hold the URL: its user or query may be secret.
func WithoutURL(err error) error {
	for wrapped := (*url.Error)(nil); errors.As(err, &wrapped); {
		err = wrapped.Err
	}
	return err
}
