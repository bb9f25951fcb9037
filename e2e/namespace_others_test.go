// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

import (
	"errors"
	"testing"
)

func againInNamespace(*testing.T) (output string, err error) { return "", errors.ErrUnsupported }

func loopbackUp() error { return errors.ErrUnsupported }
