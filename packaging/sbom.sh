#!/bin/sh
# Writes the SBOM of a program: sbom.sh VERSION DOCUMENT PROGRAM
#
# go.mod of cmd/otelcol-profiles replaces our own module by its directory, so that the program
# names it ../.. without a version. The SBOM has its name and version.
set -e
module=github.com/otelcol-profiles/otelcol-profiles
cyclonedx-gomod bin -json -std -noserial -notimestamp -version "v$1" -output "$2.replaced" "$3"
sed -e "s|golang/\.\./\.\.@(devel)|golang/$module@v$1|" \
	-e "s|\"name\": \"\.\./\.\.\"|\"name\": \"$module\"|" \
	-e "s|\"version\": \"(devel)\"|\"version\": \"v$1\"|" "$2.replaced" >"$2"
rm "$2.replaced"
