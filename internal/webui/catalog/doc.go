// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog knows what profiles a store has, by lists of its files and their indexes. It serves the pages, and is the
// [query.Lister] of their queries.
//
// A list reaches as far back as a request needs, within a factor of two. A list of many files takes long, so that it is made beside the
// requests, which use the last one meanwhile. If a file of a list is gone when it is read, the request fails with store.ErrGone, the lists
// expire, and the request starts again: see [query.Repeat].
//
// Lists take a bounded part of memory, apart from the last one that was used, and so do indexes, which the store caches.
package catalog
