// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pprofile"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Marshal marshals a copy of pd: pdata's marshaler changes the resource and scope
// strings of its argument.
func Marshal(pd pprofile.Profiles) ([]byte, error) {
	dup := pprofile.NewProfiles()
	pd.CopyTo(dup)
	return (&pprofile.ProtoMarshaler{}).MarshalProfiles(dup)
}

// InvalidString is a string that is not valid UTF-8. Those after the first maxFindings are empty.
type InvalidString struct{ Path, Content string }

// Unmarshal reads message with protobuf-go, which rejects a whole message for one string
// that is not UTF-8. Unmarshal repairs such strings and returns them.
func Unmarshal(message []byte) (data *profilespb.ProfilesData, invalid []InvalidString, err error) {
	data = &profilespb.ProfilesData{}
	if err = proto.Unmarshal(message, data); err == nil {
		return data, nil, nil
	}
	repaired := repairStrings(data.ProtoReflect().Descriptor(), message, nil, &invalid)
	if len(invalid) == 0 {
		return nil, nil, err
	}
	data = &profilespb.ProfilesData{}
	if err := proto.Unmarshal(repaired, data); err != nil {
		return nil, invalid, err
	}
	return data, invalid, nil
}

// place is a field of a message at another place, nil for the whole one. A message may nest without end: a path is
// made for invalid strings only.
type place struct {
	around *place
	field  protoreflect.FieldDescriptor
	index  int // in a list
}

func (p *place) String() string {
	var names []string
	for ; p != nil; p = p.around {
		name := string(p.field.Name())
		if p.field.IsList() {
			name = fmt.Sprintf("%s[%d]", name, p.index)
		}
		names = append(names, name)
	}
	slices.Reverse(names)
	return strings.Join(names, ".")
}

// repairStrings returns message, which is of type desc and at the place around, with valid
// strings. It appends the others to invalid. It leaves malformed fields as they are, for
// protobuf-go to reject. It copies only what contains an invalid string.
func repairStrings(desc protoreflect.MessageDescriptor, message []byte, around *place, invalid *[]InvalidString) []byte {
	var out []byte
	copied := 0 // bytes of message that are in out
	seen := map[protowire.Number]int{}
	for at := 0; at < len(message); {
		start := at
		num, typ, tagLen := protowire.ConsumeTag(message[at:])
		if tagLen < 0 {
			break
		}
		valueLen := protowire.ConsumeFieldValue(num, typ, message[at+tagLen:])
		if valueLen < 0 {
			break
		}
		at += tagLen + valueLen
		fd := desc.Fields().ByNumber(num)
		if fd == nil || typ != protowire.BytesType || (fd.Kind() != protoreflect.StringKind && fd.Kind() != protoreflect.MessageKind) {
			continue
		}
		content, _ := protowire.ConsumeBytes(message[start+tagLen : at])
		here := &place{around, fd, seen[num]}
		seen[num]++
		before := len(*invalid)
		if fd.Kind() == protoreflect.MessageKind {
			content = repairStrings(fd.Message(), content, here, invalid)
		} else if !utf8.Valid(content) {
			found := InvalidString{}
			if before < maxFindings {
				found = InvalidString{here.String(), string(content)}
			}
			*invalid = append(*invalid, found)
			content = []byte(Repaired(string(content)))
		}
		if len(*invalid) > before {
			out = append(out, message[copied:start]...)
			out = protowire.AppendBytes(protowire.AppendTag(out, num, typ), content)
			copied = at
		}
	}
	if copied == 0 {
		return message
	}
	return append(out, message[copied:]...)
}

// Repaired returns s with each byte that is not of UTF-8 written as \xff.
func Repaired(s string) string {
	var valid strings.Builder
	for i, r := range s {
		switch {
		case r != utf8.RuneError || strings.HasPrefix(s[i:], string(utf8.RuneError)):
			valid.WriteRune(r)
		default:
			fmt.Fprintf(&valid, `\x%02x`, s[i])
		}
	}
	return valid.String()
}
