// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"runtime"
	"strings"
)

const (
	// Unset is the name of the directory of what has no value to be grouped by.
	Unset = "_unset"

	emptyGroup = "_empty"
	// Longer names are cut, and made one of a kind by a hash.
	maxGroupName = 120
	cutGroupName = 75
	hashedBytes  = 20

	hexDigits = "0123456789ABCDEF"
)

// groupName matches the names that GroupName and TypedGroupName give.
var groupName = regexp.MustCompile(`^[A-Za-z0-9_%][A-Za-z0-9._%~-]{0,254}$`)

// foldsCase is set where file systems usually take a name and the same in capitals
// for one.
const foldsCase = runtime.GOOS == "windows" || runtime.GOOS == "darwin" || runtime.GOOS == "ios"

// GroupName gives the name of the directory for a text. Different texts have
// different names, and none that leads anywhere else. Letters, digits, "-", "_" and
// "." stay as they are; other bytes become "%" and two hex digits, as do "." and "_"
// as the first byte and "." as the last. A name of more than 120 bytes is cut, and
// has behind "~" a hash of the text.
func GroupName(text string) string {
	if text == "" {
		return emptyGroup
	}
	return cutName(escape(text, true, foldsCase), text)
}

// TypedGroupName gives the name for a value that is no text. The kind has lower-case
// letters only; no text has the same name.
func TypedGroupName(kind, value string) string {
	return cutName("_"+kind+"-"+escape(value, false, foldsCase), kind+"\x00"+value)
}

func escape(text string, first, foldCase bool) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' ||
			c >= 'A' && c <= 'Z' && !foldCase ||
			c == '_' && (i > 0 || !first) ||
			c == '.' && (i > 0 || !first) && i < len(text)-1
		if plain && !(first && i == 0 && reserved(text)) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

var reservedNames = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// reserved says whether Windows takes the name for a device.
func reserved(text string) bool { return reservedNames.MatchString(text) }

// cutName makes a long name short. "~" is in no name that was not cut.
func cutName(name, of string) string {
	if len(name) <= maxGroupName {
		return name
	}
	end := cutGroupName
	if i := strings.LastIndexByte(name[:end], '%'); i > end-3 {
		end = i // not within an escape
	}
	hash := sha256.Sum256([]byte(of))
	return name[:end] + "~" + hex.EncodeToString(hash[:hashedBytes])
}

// isGroupName says whether a directory may be that of a group.
func isGroupName(name string) bool { return groupName.MatchString(name) }
