// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pprofile"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// marshalCopy marshals a copy of pd: the marshaller rewrites the resource and
// scope strings of what it is given.
func marshalCopy(pd pprofile.Profiles) ([]byte, error) {
	dup := pprofile.NewProfiles()
	pd.CopyTo(dup)
	return (&pprofile.ProtoMarshaler{}).MarshalProfiles(dup)
}

// decode reads message with protobuf-go. protobuf-go refuses a whole message
// for one string that is not UTF-8; such strings are repaired (bad bytes become
// U+FFFD) and their places returned, so that the rest can still be looked at.
func decode(message []byte) (data *profilespb.ProfilesData, badStrings []string, err error) {
	data = &profilespb.ProfilesData{}
	err = proto.Unmarshal(message, data)
	if err == nil {
		return data, nil, nil
	}
	repaired := repairStrings(data.ProtoReflect().Descriptor(), message, "", &badStrings)
	if len(badStrings) == 0 {
		return nil, nil, err
	}
	data = &profilespb.ProfilesData{}
	if err := proto.Unmarshal(repaired, data); err != nil {
		return nil, badStrings, err
	}
	return data, badStrings, nil
}

// repairStrings returns message, which is of type desc and found at path, with
// each string made valid UTF-8. It appends to bad where a string was not. What
// is not well-formed is kept as it is, for protobuf-go to refuse.
func repairStrings(desc protoreflect.MessageDescriptor, message []byte, path string, bad *[]string) []byte {
	out := make([]byte, 0, len(message))
	seen := map[protowire.Number]int{}
	for rest := message; len(rest) > 0; {
		num, typ, tagLen := protowire.ConsumeTag(rest)
		if tagLen < 0 {
			return append(out, rest...)
		}
		valueLen := protowire.ConsumeFieldValue(num, typ, rest[tagLen:])
		if valueLen < 0 {
			return append(out, rest...)
		}
		field := rest[:tagLen+valueLen]
		rest = rest[len(field):]
		fd := desc.Fields().ByNumber(num)
		if fd == nil || typ != protowire.BytesType || (fd.Kind() != protoreflect.StringKind && fd.Kind() != protoreflect.MessageKind) {
			out = append(out, field...)
			continue
		}
		content, _ := protowire.ConsumeBytes(field[tagLen:])
		place := path + string(fd.Name())
		if fd.IsList() {
			place = fmt.Sprintf("%s[%d]", place, seen[num])
			seen[num]++
		}
		if fd.Kind() == protoreflect.MessageKind {
			content = repairStrings(fd.Message(), content, place+".", bad)
		} else if !utf8.Valid(content) {
			*bad = append(*bad, fmt.Sprintf("%s is %q", place, content))
			content = []byte(strings.ToValidUTF8(string(content), "\uFFFD"))
		}
		out = protowire.AppendTag(out, num, typ)
		out = protowire.AppendBytes(out, content)
	}
	return out
}
