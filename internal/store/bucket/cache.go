// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// blockSize is the unit of the cache in bytes. The last block of an object is shorter.
const blockSize = 32 << 10

// blockKey identifies the content of a block: objects of one ETag are equal.
type blockKey struct {
	bucket *Bucket
	key    string
	etag   string
	number int64
}

// size is the memory of a block with its place in the cache.
func (k *blockKey) size(data []byte) int64 { return int64(len(data)+len(k.key)+len(k.etag)) + 256 }

// cache holds the blocks that were used last.
type cache struct {
	limit int64

	mu     sync.Mutex
	blocks *simplelru.LRU[blockKey, []byte]
	size   int64
}

func newCache(limit int64) *cache {
	c := &cache{limit: limit}
	c.blocks, _ = simplelru.NewLRU(math.MaxInt, func(key blockKey, data []byte) { c.size -= key.size(data) }) // an error would be of the size
	return c
}

func (c *cache) memory() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

func (c *cache) get(key blockKey) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, _ := c.blocks.Get(key)
	return data
}

// put takes over data.
func (c *cache) put(key blockKey, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks.Remove(key)
	c.blocks.Add(key, data)
	c.size += key.size(data)
	for c.size > c.limit {
		c.blocks.RemoveOldest()
	}
}
