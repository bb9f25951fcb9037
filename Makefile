# Everything here works in a fresh clone with nothing but Go and make. Tools are
# built from internal/tools at the versions that its go.mod names.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The state of git (absent, foreign owner) must not decide whether we build.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

ROOT    := $(CURDIR)
BIN     := bin/otelcol-profiles
KAFKA   := bin/otelcol-profiles-kafka
LINT    := $(ROOT)/bin/golangci-lint run --config $(ROOT)/.golangci.yml
MODULES := . cmd/otelcol-profiles $(patsubst %/go.mod,%,$(wildcard e2e/go.mod deploy/go.mod))
# The race detector needs cgo; go itself says whether there is a C compiler.
RACE    := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# A collector has some two thousand packages: whatever looks at the program does
# so with the flags it is built with, so that they are compiled once.
AS_PROGRAM := export CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath"
IN_MODULE   = cd $$module && { [ $$module != cmd/otelcol-profiles ] || $(AS_PROGRAM); }

# Options for the program and for the tests, as in
#   make run ARGS=--set=exporters.profiles_file.directory=/tmp/profiles
#   make test TESTFLAGS='-run TestRoundTrip -v'
ARGS      ?=
TESTFLAGS ?=
BENCH     ?= .
FUZZTIME  ?= 10s
SOAK      ?= 1
# The tests that are rows of the fault tables: those of the receiver (R), the
# processor (P), the exporter (E) and the whole (D).
ROWS      ?= ^Test[RPED][0-9]

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##@ Running

.PHONY: run
run: build ## Build and run the default config in the foreground (ARGS=... for options)
	exec $(BIN) $(ARGS)

.PHONY: build
build: ## Build bin/otelcol-profiles
	@$(AS_PROGRAM) && cd cmd/otelcol-profiles && go build -ldflags='-s -w' -o $(ROOT)/$(BIN) .

.PHONY: build-kafka
build-kafka: ## Build bin/otelcol-profiles-kafka, with Kafka in and out (config/kafka)
	go tool -modfile=$(ROOT)/internal/tools/go.mod builder --config config/kafka/builder-config.yaml --skip-compilation
	$(AS_PROGRAM) && cd bin/kafka && go build -ldflags='-s -w' -o $(ROOT)/$(KAFKA) .

##@ Testing

# Each prints events for faulttable, which shows what go test does, and a table of
# the fault rows that ran.
UNIT_TESTS    = go test -json -timeout=20m $(RACE) $(TESTFLAGS) ./...
PROGRAM_TESTS = ($(AS_PROGRAM) && cd cmd/otelcol-profiles && go test -json $(TESTFLAGS) ./...)
E2E_TESTS     = (failed=0; export OTELCOL_PROFILES_BIN=$(ROOT)/$(BIN) OTELCOL_PROFILES_KAFKA_BIN=$(ROOT)/$(KAFKA); \
	for module in e2e deploy; do (cd $$module && go test -json -timeout=30m -count=1 $(TESTFLAGS) ./...) || failed=1; done; exit $$failed)
FAULTTABLE    = go run ./internal/profiletest/faulttable $(if $(filter -v,$(TESTFLAGS)),-v)

.PHONY: test
test: build build-kafka ## Run all tests (packages, program, end to end), and print the table of fault rows
	@{ failed=0; $(UNIT_TESTS) || failed=1; $(PROGRAM_TESTS) || failed=1; $(E2E_TESTS) || failed=1; exit $$failed; } | $(FAULTTABLE)

.PHONY: test-unit
test-unit: ## Run the tests of the packages (with the race detector, if it works here) and of the program
	@{ failed=0; $(UNIT_TESTS) || failed=1; $(PROGRAM_TESTS) || failed=1; exit $$failed; } | $(FAULTTABLE)

.PHONY: e2e
e2e: build build-kafka ## Run the end-to-end tests against bin/otelcol-profiles and bin/otelcol-profiles-kafka
	@$(E2E_TESTS) | $(FAULTTABLE)

.PHONY: cover
cover: ## Print how much of each package the tests of all run, and write bin/coverage.html
	@mkdir -p bin
	@go test -json -timeout=20m -coverpkg=./... -coverprofile=bin/coverage.all $(TESTFLAGS) ./... | go run ./internal/profiletest/faulttable > bin/coverage.log || { cat bin/coverage.log; exit 1; }
	@grep -v '/internal/metadata\(test\)\?/' bin/coverage.all > bin/coverage.out
	@awk 'NR > 1 { split($$1, at, ":"); sub("/[^/]*$$", "", at[1]); size[at[1]] += $$2 * !($$1 in hit); hit[$$1] += 0; if ($$3 > 0 && !hit[$$1]) { hit[$$1] = 1; run[at[1]] += $$2 } } \
		END { for (p in size) { printf "%5.1f%%  %5d statements  %s\n", 100 * run[p] / size[p], size[p], p } }' bin/coverage.out | sort -k4
	@go tool cover -html=bin/coverage.out -o bin/coverage.html

.PHONY: soak
soak: build ## Run the fault tables in full: hours; SOAK=10m bounds the rows that go on for a given time; ROWS='^TestE' picks some
	@export SOAK=$(SOAK) OTELCOL_PROFILES_BIN=$(ROOT)/$(BIN); rows='-json -timeout=24h -count=1 -p=1 -run=$(ROWS) $(TESTFLAGS)'; \
	{ failed=0; go test $$rows ./... || failed=1; (cd e2e && go test $$rows ./...) || failed=1; exit $$failed; } | $(FAULTTABLE) -progress
	$(if $(filter ^Test[RPED][0-9],$(ROWS)),$(MAKE) fuzz FUZZTIME=$(if $(filter 1,$(SOAK)),1h,$(SOAK)))

.PHONY: bench
bench: build ## Run the benchmarks and print them as tables (BENCH=... picks some)
	@{ go test -timeout=40m -run='^$$' -bench='$(BENCH)' -benchmem $(TESTFLAGS) ./...; \
	cd e2e && OTELCOL_PROFILES_BIN=$(ROOT)/$(BIN) go test -timeout=20m -run='^$$' -bench='$(BENCH)' -benchtime=1x $(TESTFLAGS) ./filebench ./loadbench; } | go run ./internal/profiletest/benchtable

.PHONY: fuzz
fuzz: ## Run each fuzz target for a while (FUZZTIME=... each); what they find is kept in testdata
	@# Go 1.26 may fail when the time is over, "context deadline exceeded", having found nothing.
	@go test -list='^Fuzz' ./... \
	| awk '/^Fuzz/ {target[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, target[i]; n = 0}' \
	| while read -r package target; do \
		echo "$$target of $$package"; \
		log=$$(go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=10x $$package </dev/null 2>&1 | tee >(cat >&2)) \
		|| { grep -q '^ *context deadline exceeded$$' <<<"$$log" && ! grep -q 'Failing input' <<<"$$log"; }; \
	done

##@ Checking

.PHONY: check
check: check-fmt check-vet check-lint check-license check-imports check-modules check-tidy check-generated ## Run all checks below but check-custom-build

.PHONY: check-fmt
check-fmt: ## Every Go file that is not generated is gofmt-clean
	@unformatted=$$(grep -rL --include='*.go' '^// Code generated .* DO NOT EDIT\.$$' . | xargs gofmt -l); \
	[ -z "$$unformatted" ] || { echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; }

.PHONY: check-vet
check-vet: ## go vet
	@for module in $(MODULES); do ($(IN_MODULE) && echo "go vet $$module" && go vet ./...); done

.PHONY: check-lint
check-lint: bin/golangci-lint ## golangci-lint, as .golangci.yml says
	@for module in $(MODULES); do ($(IN_MODULE) && echo "golangci-lint $$module" && $(LINT) ./...); done

.PHONY: check-license
check-license: ## Every Go file begins with the license header
	go test -count=1 -run '^TestLicenseHeaders$$' ./internal/conventions

.PHONY: check-imports
check-imports: ## Packages import each other one way only
	go test -count=1 -run '^TestImportsRunOneWay$$' ./internal/conventions

.PHONY: check-modules
check-modules: ## Every module of the collector is at the one set of versions
	go test -count=1 -run '^TestModuleSet$$' ./internal/conventions

.PHONY: check-tidy
check-tidy: ## Every go.mod and go.sum is as `go mod tidy` leaves it
	@for module in $(MODULES) internal/tools; do (cd $$module && echo "go mod tidy -diff $$module" && go mod tidy -diff); done

.PHONY: check-generated
check-generated: ## What `make generate` writes is up to date (works in an uncommitted tree too)
	@.ci/check-generated

.PHONY: check-custom-build
check-custom-build: ## A distribution of one's own, built by ocb from config/custom-build, compiles and runs (as in make e2e)
	cd e2e && go test -count=1 -run '^TestCustomBuild$$' -v .

##@ Maintaining

.PHONY: generate
generate: ## Write what is generated: the components' metadata, and the program from builder-config.yaml
	go generate ./...
	go tool -modfile=$(ROOT)/internal/tools/go.mod builder --config builder-config.yaml --skip-compilation

.PHONY: fix
fix: bin/golangci-lint ## gofmt every Go file that is not generated, and let golangci-lint mend what it can
	grep -rL --include='*.go' '^// Code generated .* DO NOT EDIT\.$$' . | xargs gofmt -w
	@for module in $(MODULES); do ($(IN_MODULE) && $(LINT) --fix ./... || true); done

bin/golangci-lint: internal/tools/go.mod
	cd internal/tools && go build -o $(ROOT)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: tidy
tidy: ## go mod tidy in every module, and a look at the versions after it
	for module in $(MODULES) internal/tools; do (cd $$module && go mod tidy); done
	$(MAKE) check-modules

.PHONY: clean
clean: ## Remove what was built (files in ./profiles stay)
	rm -rf bin
