// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

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

// Marshal marshals a copy of pd: pdata's marshaler changes the resource and scope
// strings of its argument.
func Marshal(pd pprofile.Profiles) ([]byte, error) {
	dup := pprofile.NewProfiles()
	pd.CopyTo(dup)
	return (&pprofile.ProtoMarshaler{}).MarshalProfiles(dup)
}

// InvalidString is a string that is not valid UTF-8.
type InvalidString struct{ Path, Content string }

// Unmarshal reads message with protobuf-go, which rejects a whole message for one string
// that is not UTF-8. Unmarshal repairs such strings with U+FFFD and returns them.
func Unmarshal(message []byte) (data *profilespb.ProfilesData, invalid []InvalidString, err error) {
	data = &profilespb.ProfilesData{}
	if err = proto.Unmarshal(message, data); err == nil {
		return data, nil, nil
	}
	repaired := repairStrings(data.ProtoReflect().Descriptor(), message, "", &invalid)
	if len(invalid) == 0 {
		return nil, nil, err
	}
	data = &profilespb.ProfilesData{}
	if err := proto.Unmarshal(repaired, data); err != nil {
		return nil, invalid, err
	}
	return data, invalid, nil
}

// repairStrings returns message, which is of type desc and found at path, with valid
// strings. It appends the others to invalid. It leaves malformed fields as they are, for
// protobuf-go to reject.
func repairStrings(desc protoreflect.MessageDescriptor, message []byte, path string, invalid *[]InvalidString) []byte {
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
		at := path + string(fd.Name())
		if fd.IsList() {
			at = fmt.Sprintf("%s[%d]", at, seen[num])
			seen[num]++
		}
		if fd.Kind() == protoreflect.MessageKind {
			content = repairStrings(fd.Message(), content, at+".", invalid)
		} else if !utf8.Valid(content) {
			*invalid = append(*invalid, InvalidString{at, string(content)})
			content = []byte(strings.ToValidUTF8(string(content), "\uFFFD"))
		}
		out = protowire.AppendTag(out, num, typ)
		out = protowire.AppendBytes(out, content)
	}
	return out
}
