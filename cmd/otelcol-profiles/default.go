// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import _ "embed"

//go:embed default-config.yaml
var embeddedConfig string

func init() { defaultConfig = embeddedConfig }
