// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package boltcheck finds damage in a bbolt database before bbolt opens it.
//
// bbolt trusts its files: damage is a panic in a goroutine of its own, a fault of the memory
// map, or endless recursion, and none of these can be recovered. This package reads
// the file without a memory map, in little memory, and checks the structures that bbolt follows: meta pages,
// the pages of all buckets, their order, and the free list. Values have no checksum.
//
// The format is that of bbolt's internal/common, version 2, in the machine's byte order.
package boltcheck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// ErrDamaged means that the file is not a database, or a damaged one.
var ErrDamaged = errors.New("damaged database")

const (
	magic   = 0xED0CDAED
	version = 2

	minPageSize, maxPageSize = 1 << 10, 1 << 24

	pageHeader  = 16
	elementSize = 16 // of a page's table
	metaSize    = 64
	bucketSize  = 16 // the value of a bucket: its root page and a sequence number

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01 // of an element of a leaf page

	firstPage  = 2 // after the meta pages
	noFreelist = ^uint64(0)

	maxKey   = 32768
	maxDepth = 64 // of a tree; a page has more than one child
)

var order = binary.NativeEndian

// Check returns ErrDamaged with the reason, or an error from reading the file. size is not 0.
func Check(file io.ReaderAt, size int64) error {
	c := &checker{file: file, size: size}
	m, err := c.meta()
	if err != nil {
		return err
	}
	c.pageSize, c.pages = int64(m.pageSize), m.pages
	if most := uint64(size / c.pageSize); c.pages > most {
		return damaged("file has %d bytes: too short for its %d pages of %d bytes", size, c.pages, c.pageSize)
	}
	c.used = make([]uint64, c.pages/64+1)
	if err := c.page(m.root, true, keyRange{}, 0); err != nil {
		return err
	}
	if m.freelist == noFreelist {
		return nil
	}
	return c.freelist(m.freelist)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

type checker struct {
	file     io.ReaderAt
	size     int64
	pageSize int64
	pages    uint64   // how many the database has
	used     []uint64 // a bit for each page that was reached
}

// read returns n bytes at an offset.
func (c *checker) read(offset int64, n int) ([]byte, error) {
	b := make([]byte, n)
	if got, err := c.file.ReadAt(b, offset); got < n {
		if errors.Is(err, io.EOF) {
			return nil, damaged("file ends before byte %d", offset+int64(n))
		}
		return nil, err
	}
	return b, nil
}

// meta is the state after a transaction. A database has two: transactions take turns.
type meta struct {
	pageSize                           uint32
	root, freelist, pages, transaction uint64
}

// meta returns the newer one of the two metas. One may be damaged: then that transaction
// was not completed.
func (c *checker) meta() (newest meta, err error) {
	first, found, err := c.metaAt(0)
	if err != nil {
		return meta{}, err
	}
	pageSize := int64(minPageSize)
	if found {
		newest, pageSize = first, int64(first.pageSize)
	}
	for ; pageSize <= maxPageSize; pageSize *= 2 {
		second, secondFound, err := c.metaAt(pageSize)
		if err != nil {
			return meta{}, err
		}
		if secondFound && int64(second.pageSize) == pageSize && (!found || second.transaction > newest.transaction) {
			return second, nil
		}
		if found {
			return newest, nil
		}
	}
	return meta{}, damaged("no valid meta page")
}

func (c *checker) metaAt(page int64) (m meta, valid bool, err error) {
	if page+pageHeader+metaSize > c.size {
		return meta{}, false, nil
	}
	b, err := c.read(page+pageHeader, metaSize)
	if err != nil {
		return meta{}, false, err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	m = meta{
		pageSize: order.Uint32(b[8:]), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]),
		pages: order.Uint64(b[40:]), transaction: order.Uint64(b[48:]),
	}
	valid = order.Uint32(b) == magic && order.Uint32(b[4:]) == version && order.Uint64(b[56:]) == sum.Sum64() &&
		m.pageSize >= minPageSize && m.pageSize <= maxPageSize
	return m, valid, nil
}

// reach returns the header of a page, and the end of the pages it takes, after it marked these.
func (c *checker) reach(id uint64) (header []byte, end int64, err error) {
	if id < firstPage || id >= c.pages {
		return nil, 0, damaged("page %d is none of its %d pages", id, c.pages)
	}
	at := int64(id) * c.pageSize
	if header, err = c.read(at, pageHeader); err != nil {
		return nil, 0, err
	}
	if own := order.Uint64(header); own != id {
		return nil, 0, damaged("page %d says that it is page %d", id, own)
	}
	overflow := uint64(order.Uint32(header[12:]))
	if overflow >= c.pages-id {
		return nil, 0, damaged("page %d continues for %d pages, beyond the last page", id, overflow)
	}
	for i := id; i <= id+overflow; i++ {
		if !c.mark(i) {
			return nil, 0, damaged("page %d is used twice", i)
		}
	}
	return header, at + (int64(overflow)+1)*c.pageSize, nil
}

// mark returns false if the page was marked before.
func (c *checker) mark(page uint64) bool {
	bit := uint64(1) << (page % 64)
	marked := c.used[page/64]&bit != 0
	c.used[page/64] |= bit
	return !marked
}

// keyRange has the bounds from the pages above: the first key, and one that is beyond the last. nil is
// unknown. bbolt finds a page in the one above by its first key.
type keyRange struct{ first, beyond []byte }

// page checks a page and all below it. top is set for the root bucket, whose entries are buckets.
func (c *checker) page(id uint64, top bool, keys keyRange, depth int) error {
	if depth > maxDepth {
		return damaged("page %d is %d levels deep", id, depth)
	}
	header, end, err := c.reach(id)
	if err != nil {
		return err
	}
	t := table{checker: c, name: fmt.Sprintf("page %d", id), start: int64(id) * c.pageSize, end: end, keys: keys}
	return t.check(header, top, depth)
}

// table is the elements of a page, or of a bucket that is small enough for the value of its
// element.
type table struct {
	*checker
	name       string
	start, end int64
	count      int
	keys       keyRange
}

// element is an entry of a table.
type element struct {
	key       []byte
	child     uint64 // of a branch page
	bucket    bool
	value     int64 // its offset
	valueSize uint32
}

func (t *table) check(header []byte, top bool, depth int) error {
	flags := order.Uint16(header[8:])
	t.count = int(order.Uint16(header[10:]))
	isBranch := flags == branchPage
	if !isBranch && flags != leafPage {
		return damaged("%s has the flags %#x, and is no branch or leaf", t.name, flags)
	}
	if t.count == 0 && (isBranch || t.keys.first != nil) {
		return damaged("%s is empty", t.name)
	}
	if t.start+pageHeader+int64(t.count)*elementSize > t.end {
		return damaged("%s has no place for %d elements", t.name, t.count)
	}
	var next element
	var err error
	for i := range t.count {
		e := next
		if i == 0 {
			if e, err = t.element(0, isBranch); err != nil {
				return err
			}
		}
		if i == 0 && t.keys.first != nil && !bytes.Equal(e.key, t.keys.first) || t.keys.beyond != nil && bytes.Compare(e.key, t.keys.beyond) >= 0 {
			return damaged("%s has a key that contradicts the page above", t.name)
		}
		beyond := t.keys.beyond
		if i+1 < t.count {
			if next, err = t.element(i+1, isBranch); err != nil {
				return err
			}
			if bytes.Compare(next.key, e.key) <= 0 {
				return damaged("%s has keys in the wrong order", t.name)
			}
			beyond = next.key
		}
		switch {
		case isBranch:
			err = t.page(e.child, top, keyRange{first: e.key, beyond: beyond}, depth+1)
		case e.bucket:
			err = t.bucket(e, depth)
		case top:
			err = damaged("%s has a key outside of all buckets", t.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *table) element(i int, isBranch bool) (e element, err error) {
	at := t.start + pageHeader + int64(i)*elementSize
	b, err := t.read(at, elementSize)
	if err != nil {
		return element{}, err
	}
	var position, keySize uint32
	if isBranch {
		position, keySize, e.child = order.Uint32(b), order.Uint32(b[4:]), order.Uint64(b[8:])
	} else {
		e.bucket = order.Uint32(b)&bucketFlag != 0
		position, keySize, e.valueSize = order.Uint32(b[4:]), order.Uint32(b[8:]), order.Uint32(b[12:])
	}
	key := at + int64(position)
	e.value = key + int64(keySize)
	if key < t.start+pageHeader+int64(t.count)*elementSize || keySize > maxKey || e.value+int64(e.valueSize) > t.end {
		return element{}, damaged("%s: element %d lies outside of it", t.name, i)
	}
	e.key, err = t.read(key, int(keySize))
	return e, err
}

// bucket checks the bucket of an element.
func (t *table) bucket(e element, depth int) error {
	if e.valueSize < bucketSize {
		return damaged("%s has a bucket of %d bytes", t.name, e.valueSize)
	}
	b, err := t.read(e.value, bucketSize)
	if err != nil {
		return err
	}
	if root := order.Uint64(b); root != 0 {
		return t.page(root, false, keyRange{}, depth+1)
	}
	inline := table{checker: t.checker, name: t.name + ", inline bucket", start: e.value + bucketSize, end: e.value + int64(e.valueSize)}
	if inline.start+pageHeader > inline.end {
		return damaged("%s is too short", inline.name)
	}
	header, err := t.read(inline.start, pageHeader)
	if err != nil {
		return err
	}
	if order.Uint16(header[8:]) != leafPage {
		return damaged("%s is no leaf", inline.name)
	}
	return inline.check(header, false, depth+1)
}

// freelist checks that the free pages exist, and that none of them is used.
func (c *checker) freelist(id uint64) error {
	header, end, err := c.reach(id)
	if err != nil {
		return err
	}
	if flags := order.Uint16(header[8:]); flags != freelistPage {
		return damaged("page %d has the flags %#x, and is no free list", id, flags)
	}
	at, count := int64(id)*c.pageSize+pageHeader, uint64(order.Uint16(header[10:]))
	if count == 0xFFFF { // the first entry is the count
		b, err := c.read(at, 8)
		if err != nil {
			return err
		}
		at, count = at+8, order.Uint64(b)
	}
	if count > uint64(end-at)/8 {
		return damaged("free list has no place for %d pages", count)
	}
	for range count {
		b, err := c.read(at, 8)
		if err != nil {
			return err
		}
		if page := order.Uint64(b); page < firstPage || page >= c.pages || !c.mark(page) {
			return damaged("page %d is on the free list, but in use or not in the file", page)
		}
		at += 8
	}
	return nil
}
