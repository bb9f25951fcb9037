// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// This command generates the Go code of a file of protobuf definitions, as protoc with protoc-gen-go does, beside it and into
// the package of its directory. Its dependencies are those of internal/tools.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	dir, name := filepath.Split(path)
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil {
		return err
	}
	file := protodesc.ToFileDescriptorProto(files[0])
	file.Name = proto.String("otelcol_profiles/" + name) // a program has one file of each name
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file.GetName()},
		ProtoFile:      []*descriptorpb.FileDescriptorProto{file},
		Parameter:      proto.String("paths=source_relative,M" + file.GetName() + "=./;" + filepath.Base(filepath.Clean(dir))),
	})
	if err != nil {
		return err
	}
	internal_gengo.GenerateFile(plugin, plugin.Files[0])
	response := plugin.Response()
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	generated := filepath.Join(dir, "generated_"+strings.TrimSuffix(name, ".proto")+".pb.go")
	return os.WriteFile(generated, []byte(response.File[0].GetContent()), 0o644) // #nosec G306 -- source
}
