# All targets work in a fresh clone with only Go and make. Tools are built from
# internal/tools, at the versions in its go.mod.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The race detector needs cgo, which go enables if it finds a C compiler.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# A collector has about 2,000 packages. All commands use the same flags, so that they are compiled
# once, and a second time for the race detector. Builds must work without git, and in a repository of
# another owner.
export CGO_ENABLED := 0
export GOFLAGS     := $(GOFLAGS) -buildvcs=false -trimpath

ROOT     := $(CURDIR)
BIN      := bin/otelcol-profiles
KAFKA    := bin/otelcol-profiles-kafka
NODE     := bin/otelcol-profiles-node
EBPF     := bin/otelcol-profiles-ebpf
CLICKHOUSE := bin/otelcol-profiles-clickhouse
OTELPROF := bin/otelprof
LINT     := $(ROOT)/bin/golangci-lint run --config $(ROOT)/.golangci.yml
MODULES  := . cmd/otelcol-profiles $(patsubst %/go.mod,%,$(wildcard e2e/go.mod deploy/go.mod packaging/go.mod))

# What --version prints: the version of the distribution and, if git knows it, the commit.
VERSION  ?= $(shell awk '$$1 == "version:" {print $$2}' builder-config.yaml)$(addprefix +,$(shell git rev-parse --short=12 HEAD 2>/dev/null))

# Options for the program and for the tests:
#   make run ARGS=--set=exporters.profiles_file.directory=/tmp/profiles
#   make test TESTFLAGS='-run TestRoundTrip -v'
#   make soak SOAK=10m ROWS='P8|E[0-9]+'
#   make snapshot SYSTEMS=linux
ARGS      ?=
TESTFLAGS ?=
BENCH     ?= .
FUZZTIME  ?= 10s
SOAK      ?= 1
# The database of known vulnerabilities. Without access to it, use a copy: VULNDB=file:///path
VULNDB    ?= https://vuln.go.dev
# Rows of docs/reliability.md.
ROWS      ?= [A-Z][0-9]+

# The targets that `make` lists.
COMMON    := run build test test-unit e2e check fix generate bench snapshot clean help-all

.PHONY: help
help:
	@awk -v common=" $(COMMON) " 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / && index(common, " " $$1 " ") {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: help-all
help-all: ## List all targets
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##@ Running

.PHONY: run
run: build ## Build and run the default configuration (ARGS=... for options)
	exec $(BIN) $(ARGS)

# $(call go-build,DIRECTORY,PROGRAM)
go-build = @cd $(1) && go build -ldflags='-s -w -X main.version=$(VERSION)' -o $(ROOT)/$(2) .

.PHONY: build
build: build-otelprof ## Build bin/otelcol-profiles and bin/otelprof
	$(call go-build,cmd/otelcol-profiles,$(BIN))

.PHONY: build-otelprof
build-otelprof:
	$(call go-build,cmd/otelprof,$(OTELPROF))

# ocb runs on this machine, also if GOOS and GOARCH name another one.
OCB = GOOS= GOARCH= go tool -modfile=$(ROOT)/internal/tools/go.mod builder --skip-compilation --config
# $(call own-command,DIRECTORY): the main of ocb has the version and the command line of command.go.
own-command = cd $(1) && sed -e 's/^\(\t\tVersion: *\)".*",$$/\1version,/' -e 's/otelcol\.NewCommand(/newCommand(/' main.go >main.go.new && mv main.go.new main.go
COMMAND    = $(addprefix cmd/otelcol-profiles/,command.go defaults.go pipelines.go quiet.go)

.PHONY: build-kafka
build-kafka: ## Build bin/otelcol-profiles-kafka, with Kafka in and out (config/kafka)
	@mkdir -p bin; rm -f bin/kafka/*.go
	$(OCB) config/kafka/builder-config.yaml
	@cp $(COMMAND) bin/kafka && $(call own-command,bin/kafka)
	$(call go-build,bin/kafka,$(KAFKA))

.PHONY: build-node
build-node: ## Build bin/otelcol-profiles-node, which finds pods, and filters, changes and enriches profiles (config/node)
	@mkdir -p bin; rm -f bin/node/*.go
	$(OCB) config/node/builder-config.yaml
	@cp $(COMMAND) bin/node && $(call own-command,bin/node)
	$(call go-build,bin/node,$(NODE))

.PHONY: build-clickhouse
build-clickhouse: ## Build bin/otelcol-profiles-clickhouse, which writes rows into ClickHouse (config/clickhouse)
	@mkdir -p bin; rm -f bin/clickhouse/*.go
	$(OCB) config/clickhouse/builder-config.yaml
	@cp $(COMMAND) bin/clickhouse && $(call own-command,bin/clickhouse)
	$(call go-build,bin/clickhouse,$(CLICKHOUSE))

.PHONY: build-ebpf
build-ebpf: ## Build bin/otelcol-profiles-ebpf, with the eBPF profiler (config/ebpf; Linux)
	@# ocb also downloads modules that the build does not need, and not every proxy has them. go.sum
	@# shows that it has resolved the others.
	@mkdir -p bin; rm -f bin/ebpf/go.sum bin/ebpf/*.go
	$(OCB) config/ebpf/builder-config.yaml || test -s bin/ebpf/go.sum
	@cp $(COMMAND) bin/ebpf && $(call own-command,bin/ebpf)
	$(call go-build,bin/ebpf,$(EBPF))

##@ Testing

# Each suite leaves its events in bin/events for the table of fault-injection tests.
FORMAT   = $(if $(filter -v,$(TESTFLAGS)),standard-verbose,pkgname)
# $(call suite,NAME,DIRECTORY,FLAGS OF GO TEST,PACKAGES)
suite    = (cd $(2) && $(ROOT)/bin/gotestsum --format=$(FORMAT) --format-hide-empty-pkg --hide-summary=skipped \
	--jsonfile=$(ROOT)/bin/events/$(1).json -- $(3) $(TESTFLAGS) $(or $(4),./...)) || failed=1
SUITES   = rm -rf bin/events; mkdir -p bin/events; failed=0
# These have a mutex at most. With the race detector they take ten times as long; it watches them in the tests of the
# components.
PLAIN    = internal/profiles/conformance|internal/profiles/dictionary|internal/profiles/merge|internal/profiletest|internal/symbolize/symbols|internal/profiles/wire|translator
UNIT     = $(call suite,plain,.,-timeout=20m,$$(go list ./... | grep -E '/($(PLAIN))(/|$$)')); \
	export CGO_ENABLED=$(if $(RACE),1,0); $(call suite,unit,.,-timeout=20m $(RACE),$$(go list ./... | grep -vE '/($(PLAIN))(/|$$)')); export CGO_ENABLED=0
PROGRAM  = $(call suite,program,cmd/otelcol-profiles)
E2E      = export OTELCOL_PROFILES_BIN=$(ROOT)/$(BIN) OTELCOL_PROFILES_KAFKA_BIN=$(ROOT)/$(KAFKA) OTELCOL_PROFILES_NODE_BIN=$(ROOT)/$(NODE) OTELPROF_BIN=$(ROOT)/$(OTELPROF); \
	$(call suite,e2e,e2e,-timeout=30m -count=1 -parallel=6); $(call suite,deploy,deploy,-timeout=30m -count=1)
REPORT   = go run ./internal/profiletest/faulttable bin/events/*.json; exit $$failed

.PHONY: test
test: build build-kafka build-node bin/gotestsum bin/axe.min.js bin/duckdb bin/chdb bin/node-clients ## Run all tests: packages, program, end to end
	@$(SUITES); $(UNIT); $(PROGRAM); $(E2E); $(REPORT)

.PHONY: test-unit
test-unit: bin/gotestsum ## Run the tests of the packages, with the race detector
	@$(SUITES); $(UNIT); $(PROGRAM); $(REPORT)

.PHONY: e2e
e2e: build build-kafka build-node bin/gotestsum bin/axe.min.js bin/duckdb bin/chdb bin/node-clients ## Run the end-to-end tests of the programs
	@$(SUITES); $(E2E); $(REPORT)

# axe-core checks the accessibility of the pages. Without npm, its checks are skipped.
AXE        = axe-core@4.10.3
AXE_SHA256 = 880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb
bin/axe.min.js:
	@mkdir -p bin/axe && cd bin/axe && npm pack --silent $(AXE) && tar -xzf axe-core-*.tgz package/axe.min.js && \
	echo "$(AXE_SHA256)  package/axe.min.js" | sha256sum -c --quiet && mv package/axe.min.js .. || echo "no $(AXE): its checks of the pages are skipped"

# Clients for Node.js, of Pyroscope and Datadog. Without npm, their test is skipped.
NODE_CLIENTS = @pyroscope/nodejs@0.6.4 dd-trace@6.21.0
bin/node-clients:
	@npm install --silent --no-audit --no-fund --prefix bin/node-clients.new $(NODE_CLIENTS) && mv bin/node-clients.new bin/node-clients || echo "no $(NODE_CLIENTS): they are not run"

# DuckDB runs the queries of docs/sql.md. Without npm, their test is skipped.
DUCKDB = @duckdb/node-api@1.5.6-r.1
bin/duckdb:
	@npm install --silent --no-audit --no-fund --prefix bin/duckdb.new $(DUCKDB) && mv bin/duckdb.new bin/duckdb || echo "no $(DUCKDB): the queries of docs/sql.md are not run"

# ClickHouse's engine runs them too (550 MB). Without npm, its tests are skipped.
CHDB = chdb@3.4.0
bin/chdb:
	@npm install --silent --no-audit --no-fund --prefix bin/chdb.new $(CHDB) && mv bin/chdb.new bin/chdb || echo "no $(CHDB): the queries of docs/sql.md are not run in ClickHouse"

# A server of object stores, for tests only. Without it, its tests are skipped: a small server in the tests has their other half.
MINIO = github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
bin/minio: ## Build a server of object stores for the tests (150 MB, 2 minutes)
	GOBIN=$(ROOT)/bin go install -ldflags='-s -w' $(MINIO)

.PHONY: test-objectstore
test-objectstore: bin/minio ## Run the tests of object stores, also against a real server
	go test -count=1 -run 'Object|Upload|Replace|MinIO' $(TESTFLAGS) ./internal/store/... ./cmd/otelprof ./exporter/profilesfileexporter ./internal/webui/page

.PHONY: false-positives
false-positives: ## Measure how often otelprof diff finds a change between equal sides: synthetic ones, and RUNS=400 real ones (7 minutes)
	go test -count=1 -v -run 'TestFalsePositives$$|TestSlowdown' ./cmd/otelprof/internal/regression
	OTELPROF_RUNS=$(or $(RUNS),400) go test -count=1 -v -timeout 60m -run TestFalsePositivesOfRealRuns ./cmd/otelprof

.PHONY: test-ebpf
test-ebpf: build-ebpf ## Run the tests of config/ebpf, which profile this machine if they may
	export OTELCOL_PROFILES_EBPF_BIN=$(ROOT)/$(EBPF); (cd e2e && go test -count=1 -v -run "^TestEBPF" $(TESTFLAGS) .) && cd deploy && go test -count=1 -run "^TestEBPF" $(TESTFLAGS) .

.PHONY: test-clickhouse
test-clickhouse: build-clickhouse bin/chdb ## Run the tests of config/clickhouse
	export OTELCOL_PROFILES_CLICKHOUSE_BIN=$(ROOT)/$(CLICKHOUSE); cd e2e && go test -count=1 -v -run "^TestClickHouse" $(TESTFLAGS) .

.PHONY: cover
cover: ## Print the coverage of each package by the tests of all packages, and write bin/coverage.html
	@rm -rf bin/coverage; mkdir -p bin/coverage
	@go test -timeout=20m -coverpkg=./... $(TESTFLAGS) ./... -args -test.gocoverdir=$(ROOT)/bin/coverage >bin/coverage.log || { cat bin/coverage.log; exit 1; }
	@go tool covdata percent -i=bin/coverage
	@go tool covdata textfmt -i=bin/coverage -o=bin/coverage.out
	@go tool cover -html=bin/coverage.out -o=bin/coverage.html

.PHONY: soak
soak: FORMAT = testname
soak: build bin/gotestsum ## Run the fault-injection tests in full, for hours; SOAK=10m bounds the rows that run for a given time, ROWS='P8|E[0-9]+' selects rows
	@export SOAK=$(SOAK) OTELCOL_PROFILES_BIN=$(ROOT)/$(BIN) OTELPROF_BIN=$(ROOT)/$(OTELPROF); rows='_($(ROWS))(_|$$)'; \
	$(SUITES); $(call suite,unit,.,-timeout=24h -count=1 -p=1 -run="$$rows"); $(call suite,e2e,e2e,-timeout=24h -count=1 -run="$$rows"); $(REPORT)
	$(if $(filter file,$(origin ROWS)),$(MAKE) fuzz FUZZTIME=$(if $(filter 1,$(SOAK)),1h,$(SOAK)))

.PHONY: bench
bench: build ## Run the benchmarks into bin/bench.txt (BENCH=... selects some)
	@{ go test -timeout=40m -run='^$$' -bench='$(BENCH)' -benchmem $(TESTFLAGS) ./...; \
	cd e2e && export OTELCOL_PROFILES_BIN=$(ROOT)/$(BIN); \
	go test -timeout=20m -run='^$$' -bench='$(BENCH)' -benchtime=1x $(TESTFLAGS) ./filebench . && \
	go test -timeout=20m -run='^$$' -bench='$(BENCH)' -benchtime=20x $(TESTFLAGS) ./jfr; } \
	| tee bin/bench.txt | grep -v -e '^goos' -e '^goarch' -e '^pkg' -e '^cpu' -e '^PASS' -e 'no test files' -e '^ok'

.PHONY: profile
profile: build ## Write bin/profile.pb.gz, the CPU profile of the program under load, taken by its own self section, and print it
	@cd e2e && OTELCOL_PROFILES_BIN=$(ROOT)/$(BIN) OTELCOL_PROFILES_PROFILE=$(ROOT)/bin/profile.pb.gz go test -count=1 -run='^$$' -bench='^BenchmarkProfile$$' -benchtime=1x . >$(ROOT)/bin/profile.log || { cat $(ROOT)/bin/profile.log; exit 1; }
	@$(OTELPROF) top bin/profile.pb.gz --cum --nodes=40

.PHONY: bench-compare
bench-compare: ## Compare two outputs of make bench by benchstat (OLD=old.txt, NEW=bin/bench.txt by default)
	@go tool -modfile=$(ROOT)/internal/tools/go.mod benchstat $(OLD) $(or $(NEW),bin/bench.txt)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME; failing inputs are kept in testdata
	@# At the end of the time Go 1.26 may fail with "context deadline exceeded" without a finding.
	@go test -list='^Fuzz' ./... \
	| awk '/^Fuzz/ {target[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, target[i]; n = 0}' \
	| while read -r package target; do \
		echo "$$target of $$package"; \
		log=$$(go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=10x $$package </dev/null 2>&1 | tee >(cat >&2)) \
		|| { grep -q '^ *context deadline exceeded$$' <<<"$$log" && ! grep -q 'Failing input' <<<"$$log"; }; \
	done

##@ Checking

.PHONY: check
check: check-fmt check-vet check-lint check-license check-imports check-modules check-tidy check-generated check-workflows ## Run format, vet, lint and the other checks

.PHONY: check-fmt
check-fmt: ## Check that all Go files are formatted, apart from generated ones
	@unformatted=$$(grep -rL --include='*.go' '^// Code generated .* DO NOT EDIT\.$$' . | xargs gofmt -l); \
	[ -z "$$unformatted" ] || { echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; }

.PHONY: check-vet
check-vet: ## Run go vet
	@for module in $(MODULES); do (cd $$module && echo "go vet $$module" && go vet ./...); done

.PHONY: check-lint
check-lint: bin/golangci-lint ## Run golangci-lint
	@for module in $(MODULES); do (cd $$module && echo "golangci-lint $$module" && $(LINT) ./...); done

.PHONY: check-license
check-license: ## Check that every Go file starts with the licence header
	go test -count=1 -run '^TestLicenseHeaders$$' ./internal/conventions

.PHONY: check-imports
check-imports: ## Check that packages import lower layers only
	go test -count=1 -run '^TestImportsRunOneWay$$' ./internal/conventions

.PHONY: check-modules
check-modules: ## Check that all modules of the Collector have the same set of versions
	go test -count=1 -run '^TestModuleSet$$' ./internal/conventions

.PHONY: check-tidy
check-tidy: ## Check that every go.mod and go.sum is tidy
	@for module in $(MODULES) internal/tools; do (cd $$module && echo "go mod tidy -diff $$module" && go mod tidy -diff); done

.PHONY: check-generated
check-generated: ## Check that generated files are up to date
	@.ci/check-generated

.PHONY: check-custom-build
check-custom-build: ## Build and run the distribution of config/custom-build (part of make e2e)
	cd e2e && go test -count=1 -run '^TestCustomBuild$$' -v .

.PHONY: check-workflows
check-workflows: bin/actionlint ## Run actionlint on the workflows
	bin/actionlint -shellcheck= -pyflakes=

.PHONY: govulncheck
govulncheck: bin/govulncheck build-node ## Look for known vulnerabilities in the code that the programs reach (VULNDB=... for another database than vuln.go.dev)
	bin/govulncheck -db=$(VULNDB) ./...
	cd cmd/otelcol-profiles && $(ROOT)/bin/govulncheck -db=$(VULNDB) ./...
	bin/govulncheck -db=$(VULNDB) -mode=binary $(NODE)

##@ Releasing

SYSTEMS   ?= linux,darwin,windows
RELEASED   = $(shell awk '$$1 == "version:" {print $$2}' builder-config.yaml)
GORELEASER = PATH="$(ROOT)/bin:$(ROOT)/packaging:$$PATH" VERSION=$(RELEASED) bin/goreleaser
RELEASE    = bin/goreleaser bin/cyclonedx-gomod bin/release/THIRD_PARTY_LICENSES.txt

.PHONY: version
version: ## Print the version of the next release, from builder-config.yaml
	@echo $(RELEASED)

.PHONY: snapshot
snapshot: $(RELEASE) ## Build and check a release in bin/dist, without publishing
	sed 's/goos: &goos .*/goos: \&goos [$(SYSTEMS)]/' .goreleaser.yaml >bin/release/goreleaser.yaml
	$(GORELEASER) check .goreleaser.yaml bin/release/goreleaser.yaml
	$(GORELEASER) release --config=bin/release/goreleaser.yaml --snapshot --skip=sign --clean --parallelism=1 --timeout=3h
	cd packaging && SNAPSHOT=$(ROOT)/bin/dist go test -count=1 -v $(TESTFLAGS) .

.PHONY: tags
tags: ## Tag HEAD as the next release, and cmd/otelcol-profiles on a commit that requires it
	@test -z "$$(git status --porcelain)" || { echo 'commit the changes first'; exit 1; }
	git tag --annotate --message='Release $(RELEASED)' v$(RELEASED)
	git checkout --quiet --detach
	cd packaging && go run ./modproxy -update v$(RELEASED) .. $(ROOT)/bin/proxy >/dev/null
	git commit --quiet --all --message='cmd/otelcol-profiles: require v$(RELEASED)'
	git tag --annotate --message='Release $(RELEASED)' cmd/otelcol-profiles/v$(RELEASED)
	git checkout --quiet -

.PHONY: release
release: $(RELEASE) ## Publish a release of the tag of the commit (run by .github/workflows/release.yaml)
	awk '/^## / {on = index($$0, "## [$(RELEASED)]") == 1; next} on' CHANGELOG.md >bin/release/notes.md
	test -s bin/release/notes.md
	$(GORELEASER) release --clean --parallelism=1 --timeout=3h --release-notes=bin/release/notes.md

.PHONY: bin/release/THIRD_PARTY_LICENSES.txt
bin/release/THIRD_PARTY_LICENSES.txt:
	@mkdir -p $(@D)
	cd packaging && go run ./licenses ../cmd/otelcol-profiles ../cmd/otelprof >$(ROOT)/$@

bin/goreleaser: TOOL = github.com/goreleaser/goreleaser/v2
bin/cyclonedx-gomod: TOOL = github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
bin/actionlint: TOOL = github.com/rhysd/actionlint/cmd/actionlint
bin/goreleaser bin/cyclonedx-gomod bin/actionlint: packaging/go.mod
	cd packaging && go build -ldflags='-s -w' -o $(ROOT)/$@ $(TOOL)

##@ Maintaining

.PHONY: generate
generate: ## Write generated files
	go generate ./...
	go test ./internal/conventions/configtable -update
	$(OCB) builder-config.yaml
	$(call own-command,cmd/otelcol-profiles)
	gofmt -w cmd/otelcol-profiles
	cd cmd/otelcol-profiles && go mod tidy

.PHONY: fix
fix: bin/golangci-lint ## Format, and apply the fixes of golangci-lint
	grep -rL --include='*.go' '^// Code generated .* DO NOT EDIT\.$$' . | xargs gofmt -w
	@for module in $(MODULES); do (cd $$module && $(LINT) --fix ./... || true); done

bin/golangci-lint: TOOL = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
bin/gotestsum: TOOL = gotest.tools/gotestsum
bin/govulncheck: TOOL = golang.org/x/vuln/cmd/govulncheck
bin/golangci-lint bin/gotestsum bin/govulncheck: internal/tools/go.mod
	cd internal/tools && go build -o $(ROOT)/$@ $(TOOL)

.PHONY: tidy
tidy: ## Run go mod tidy in every module, and check the versions
	for module in $(MODULES) internal/tools; do (cd $$module && go mod tidy); done
	$(MAKE) check-modules

.PHONY: clean
clean: ## Remove bin (files in ./profiles stay)
	rm -rf bin
