// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import "bytes"

const (
	digits    = "0123456789"
	hexDigits = digits + "abcdef"
)

// numbered are the names of classes that a JVM numbers.
var numbered = map[string]bool{
	"$Proxy": true, "GeneratedMethodAccessor": true, "GeneratedConstructorAccessor": true,
	"GeneratedSerializationConstructorAccessor": true, "LambdaForm$MH": true, "LambdaForm$DMH": true, "LambdaForm$BMH": true,
}

var (
	lambda    = []byte("$$Lambda$")
	script    = []byte("script1") // of Groovy, with the time in milliseconds
	separator = []byte("$$")
	// hashed are followed by a hash: CGLIB's and Spring's names, and Guice's.
	hashed = [][]byte{[]byte("CGLIB$$"), []byte("FastClass$$"), []byte("ByGuice$$")}
	// last are followed by what differs alone: Byte Buddy's and Javassist's names, and those of JFR itself.
	last = [][]byte{
		[]byte("$HibernateProxy$"), []byte("$MockitoMock$"), []byte("$ByteBuddy$"), []byte("_$$_jvst"), []byte("_$$_javassist"),
		[]byte("jdk/jfr/internal/handlers/EventHandler"),
	}
)

// normalizeClass returns the name of a class that a JVM or a library made, without the numbers, hashes and addresses that
// differ between processes. Other names stay. It may change name. Most names leave it early: with all checks, the
// translation of a recording took up to 16 % longer.
func normalizeClass(name []byte) []byte {
	for at := hiddenSuffix(name); at > 0; at = hiddenSuffix(name) {
		name = name[:at]
	}
	dollar := bytes.IndexByte(name, '$')
	if dollar < 0 && len(trimDigits(name)) == len(name) {
		return name
	}
	if at := bytes.Index(name, script); at == 0 || at > 0 && name[at-1] == '/' {
		const fewestDigits = 13
		start := at + len(script) - 1
		if rest := bytes.TrimLeft(name[start:], digits); len(name)-start-len(rest) >= fewestDigits {
			return append(name[:start], rest...)
		}
	}
	if dollar < 0 || bytes.IndexByte(name[dollar+1:], '$') >= 0 {
		for _, text := range last {
			if at := bytes.Index(name, text); at >= 0 {
				return bytes.TrimRight(name[:at+len(text)], "$")
			}
		}
		name = withoutHashes(name)
	}
	return withoutNumber(name)
}

// hiddenSuffix returns where the last part of the name of a hidden class starts, which is a number, such as both of
// Cart$$Lambda$14+0x00007f8dac015000/363988129. It is 0 without such a part, which no name has that a person wrote.
func hiddenSuffix(name []byte) int {
	decimal, at := true, len(name)
	for ; at > 0 && (isDigit(name[at-1]) || 'a' <= name[at-1] && name[at-1] <= 'f'); at-- {
		decimal = decimal && isDigit(name[at-1])
	}
	if at == len(name) {
		return 0
	}
	if before, found := bytes.CutSuffix(name[:at], []byte("0x")); found {
		decimal, at = true, len(before)
	}
	if decimal && at > 1 && (name[at-1] == '/' || name[at-1] == '.' || name[at-1] == '+') {
		return at - 1
	}
	return 0
}

// withoutHashes removes $$ and a hash: Cart$$EnhancerBySpringCGLIB$$1a2b3c.
func withoutHashes(name []byte) []byte {
	const mostLayers = 4 // of generated classes
	for _, text := range hashed {
		for range mostLayers {
			at := bytes.LastIndex(name, text)
			if at < 0 {
				break
			}
			hash := at + len(text)
			rest := bytes.TrimLeft(name[hash:], hexDigits+"_")
			if len(rest) > 0 && !bytes.HasPrefix(rest, separator) {
				break
			}
			name = append(name[:hash-len(separator)], rest...)
		}
	}
	return name
}

// withoutNumber removes the number at the end of a name that a JVM made, and that of the package of a proxy.
func withoutNumber(name []byte) []byte {
	base := trimDigits(name)
	if len(base) == len(name) {
		return name
	}
	if bytes.HasSuffix(base, lambda) {
		return base[:len(base)-1]
	}
	simple := bytes.LastIndexAny(base, "/.") + 1
	if !numbered[string(base[simple:])] {
		return name
	}
	if inPackage := trimDigits(base[:max(simple-1, 0)]); bytes.HasSuffix(inPackage, []byte("jdk/proxy")) {
		return append(inPackage, base[simple-1:]...) // jdk/proxy2/$Proxy12
	}
	return base
}

func trimDigits(name []byte) []byte {
	for len(name) > 0 && isDigit(name[len(name)-1]) {
		name = name[:len(name)-1]
	}
	return name
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
