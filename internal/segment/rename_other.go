// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package segment

func (d *osDir) renameNoReplace(from, to string) error { return d.linkAndRemove(from, to) }
