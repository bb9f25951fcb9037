// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime"
	"strings"
)

const (
	// Unset is the directory of records without a value to group by.
	Unset = "_unset"
	// Other is the directory of all groups beyond the limit of their number, however many names they have.
	Other = "_other"

	emptyGroup = "_empty"
	// Longer names are truncated and get a hash, so that they stay unique.
	maxGroupName       = 120
	truncatedGroupName = 75
	hashedBytes        = 20
)

var groupDir = regexp.MustCompile(`^[A-Za-z0-9_%-][A-Za-z0-9._%~-]{0,127}=[A-Za-z0-9_%-][A-Za-z0-9._%~-]{0,127}$`)

// GroupDir returns the directory of a group: value comes from GroupName or TypedGroupName, or is Unset or Other.
func GroupDir(key, value string) string { return GroupName(key) + "=" + value }

// IsGroupDir reports whether GroupDir may return a name.
func IsGroupDir(name string) bool { return groupDir.MatchString(name) }

// foldsCase is set on systems whose file systems usually ignore case.
const foldsCase = runtime.GOOS == "windows" || runtime.GOOS == "darwin" || runtime.GOOS == "ios"

// GroupName returns the name of the directory for a text. Different texts have
// different names, and no name leads out of the directory. Letters, digits, "-", "_" and
// "." stay as they are; other bytes become "%" and two hex digits, and so do "." and "_"
// as the first byte and "." as the last. A name of more than 120 bytes is truncated and
// ends in "~" and a hash of the text.
func GroupName(text string) string {
	if text == "" {
		return emptyGroup
	}
	return truncateName(escape(text, true, foldsCase), text)
}

// TypedGroupName returns the name for a value that is not a string. kind consists of
// lower-case letters. No string has the same name.
func TypedGroupName(kind, value string) string {
	return truncateName("_"+kind+"-"+escape(value, false, foldsCase), kind+"\x00"+value)
}

// reservedName matches the names that Windows takes for devices.
var reservedName = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// escape replaces the bytes that a name cannot have. first is set if the text is the
// start of the name.
func escape(text string, first, foldCase bool) string {
	reserved := first && reservedName.MatchString(text)
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		atStart := first && i == 0
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' ||
			c >= 'A' && c <= 'Z' && !foldCase ||
			c == '_' && !atStart ||
			c == '.' && !atStart && i < len(text)-1
		if plain && !(atStart && reserved) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// truncateName shortens a long name. "~" is in no other name.
func truncateName(name, text string) string {
	if len(name) <= maxGroupName {
		return name
	}
	end := truncatedGroupName
	if i := strings.LastIndexByte(name[:end], '%'); i > end-3 {
		end = i // not within an escape
	}
	hash := sha256.Sum256([]byte(text))
	return name[:end] + "~" + hex.EncodeToString(hash[:hashedBytes])
}
