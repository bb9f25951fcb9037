// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"io/fs"
	"reflect"
	"syscall"
)

// version identifies the content of a file without reading it. Its fields are exported only
// for gob, which encodes checkpoints.
type version struct {
	Size    int64
	ModTime int64 // nanoseconds since the epoch

	// 0 on systems that do not have them.
	Device     uint64
	Inode      uint64
	ChangeTime int64 // last status change, in nanoseconds since the epoch
}

func versionOf(info fs.FileInfo) version {
	v := version{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	stat := reflect.Indirect(reflect.ValueOf(info.Sys())) // a syscall.Stat_t on Unix
	if stat.Kind() != reflect.Struct {
		return v
	}
	if inode := stat.FieldByName("Ino"); inode.IsValid() {
		v.Inode = inode.Uint()
	}
	switch device := stat.FieldByName("Dev"); {
	case !device.IsValid():
	case device.CanInt(): // on macOS
		v.Device = uint64(device.Int())
	default:
		v.Device = device.Uint()
	}
	for _, name := range []string{"Ctim", "Ctimespec"} { // on Linux, and on macOS and BSD
		if field := stat.FieldByName(name); field.IsValid() {
			changed := field.Interface().(syscall.Timespec)
			v.ChangeTime = changed.Nano()
		}
	}
	return v
}

// identity is the part of a version that stays when its file is renamed. A rename sets the change time.
type identity struct {
	device, inode uint64
	size, modTime int64
}

func (v version) identity() identity { return identity{v.Device, v.Inode, v.Size, v.ModTime} }

// sameContent reports whether two versions have the same content. A file that replaces
// another has another inode and another change time. One difference alone proves nothing:
// some file systems renumber inodes with each mount, ext4 reuses the inode of a file that
// was just removed, and a new link or new permissions set the change time.
func (v version) sameContent(other version) bool {
	if v.Size != other.Size || v.ModTime != other.ModTime {
		return false
	}
	return v.ChangeTime == 0 || other.ChangeTime == 0 || v.ChangeTime == other.ChangeTime || v.Inode == other.Inode
}
