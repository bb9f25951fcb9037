// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package segment

import "os"

// syncDir does nothing: directories cannot be synced here.
func syncDir(*os.File) error { return nil }
