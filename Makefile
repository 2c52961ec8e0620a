# Cabrank: build, run and check. `make help` lists the targets.
#
# Tools are pinned in tools/go.mod and built into .tools/ under their own
# names, again only when that file changes. What the real tests need beside Go
# (Ruby, Python and Node packages) is installed by scripts/install-deps.sh.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The build date is the date of the commit, so that two builds of one commit
# are the same file and an unchanged tree is not linked again.
VERSION    := $(shell cat VERSION)
COMMIT     := $(or $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null),none)
BUILD_DATE := $(or $(shell git log -1 --format=%cI 2>/dev/null),unknown)
# Without gRPC's trace pages the linker leaves out what nobody calls; 3 MB less. HTTP/2 of
# net/http is 0.5 MB that nothing uses: calls have an engine of their own.
TAGS       := grpcnotrace,nethttpomithttp2
# The lab calls by Connect over HTTP/2 of net/http.
LAB_TAGS   := grpcnotrace
# Functions are inlined where calls go through: in the standard library and in these packages
# (a test holds that none is missing). Elsewhere they are not, which is 0.5 MB less.
ROOT := github.com/cabrank/cabrank
HOT  := $(addprefix $(ROOT)/,callee client) $(addprefix $(ROOT)/internal/,accesslog auth broker/... callers door grpcwire h2 head health list methods \
  rank redislink relay schema shard sink socket stats trace watch web) \
  $(ROOT)/internal/testkit/alarm $(addprefix $(ROOT)/lab/internal/,caller lab latency rawh2 traffic) \
  go.opentelemetry.io/proto/... github.com/HdrHistogram/... github.com/go-json-experiment/json/... github.com/gorilla/websocket github.com/redis/... google.golang.org/protobuf/... \
  golang.org/x/net/http/... golang.org/x/net/http2/hpack golang.org/x/net/idna golang.org/x/sys/... golang.org/x/text/...
GCFLAGS := -gcflags=all=-l $(patsubst %,-gcflags=%=,std $(HOT))
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.buildDate=$(BUILD_DATE)

# Linters and tests without the race detector build as the program is built: what they need,
# too, is compiled once. Vet is the linter's.
SAME := -trimpath -vet=off $(GCFLAGS)

BIN         ?= bin/cabrank
LAB         ?= bin/cabrank-lab
FUZZTIME    ?= 10s
DEMO        ?=
BENCH       ?= .
BENCH_FLAGS ?=

# $(call packages,REGEXP,MODULE) is the folders of a module's test files that have a line
# matching REGEXP, as ./dir arguments: nothing here is listed by hand.
packages = $(shell scripts/test-packages.sh '$(1)' '$(2)')

# beside runs a scenario beside other proxies; Envoy is in .deps.
beside = scripts/install-deps.sh peers && PATH=$$PWD/.deps/envoy:$$PATH bin/cabrank-lab run $(1) --out bench/out/$(1)-$$(date +%F-%H%M%S) $(BENCH_FLAGS)

TOOLS := golangci-lint gotestsum grpcurl interop_client interop_server protoc-gen-go protoc-gen-go-grpc h2spec
TEST  := .tools/gotestsum --format standard-quiet --

##@ First steps

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/cabrank: one static binary.
	@echo "building $(BIN) $(VERSION) for $$(go env GOOS)/$$(go env GOARCH)"
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags '$(TAGS)' $(GCFLAGS) -ldflags '$(LDFLAGS)' -o '$(BIN)' ./cmd/cabrank

.PHONY: lab
lab: ## Build bin/cabrank-lab, the program that measures; cabrank lab starts it.
	@echo "building $(LAB) $(VERSION) for $$(go env GOOS)/$$(go env GOARCH)"
	@CGO_ENABLED=0 go -C lab build -trimpath -buildvcs=false -tags '$(LAB_TAGS)' $(GCFLAGS) -ldflags '$(LDFLAGS)' -o ../$(LAB) ./cmd/cabrank-lab

.PHONY: demo
demo: build ## Run three demo workers behind one port; DEMO=once makes 12 calls and ends.
	@bin/cabrank demo $(addprefix --,$(DEMO))

##@ Packages

.PHONY: packages
packages: ## Build every package that people install into dist/.
	@# Built as the programs are, so that the standard library is compiled once for both.
	@CGO_ENABLED=0 go -C packaging run -trimpath . -out ../dist

.PHONY: packages-check
packages-check: packages ## Build all packages again from a clone elsewhere, with an empty build cache, and compare every byte.
	@scripts/packages-check.sh

##@ Checks

.PHONY: test
test: ## Check everything that a change has to pass: lint, test-unit, test-real.
	@scripts/install-deps.sh race
	@# What only the real tests need comes over the network meanwhile. What browsers, servers
	@# and killed compilers leave goes with a folder; paths of sockets want its name short.
	@scripts/install-deps.sh workers & \
	  export TMPDIR=$$(mktemp -d "$${TMPDIR:-/tmp}/tXXX"); chmod 755 "$$TMPDIR"; trap 'wait; rm -rf "$$TMPDIR"' EXIT; \
	  $(MAKE) lint; $(MAKE) test-unit; wait; $(MAKE) test-real

.PHONY: lint
lint: .tools/golangci-lint ## Check form: gofmt, modules, golangci-lint, types for macOS, scripts.
	@CGO_ENABLED=0 GOFLAGS='-trimpath $(GCFLAGS)' scripts/lint.sh '$(TAGS)'

.PHONY: test-unit
test-unit: .tools/gotestsum ## Run the whole tree with the race detector and all fuzz seeds, simulations without; starts no child.
	@scripts/install-deps.sh race
	@$(TEST) -race -vet=off -timeout 10m ./...
	@cd lab && ../$(TEST) -race -vet=off -timeout 10m ./...
	@cd packaging && ../$(TEST) -vet=off ./...
	@CGO_ENABLED=0 $(TEST) $(SAME) -tags '$(TAGS)' $(call packages,^//go:build .*!race\b)
	@cd lab && CGO_ENABLED=0 ../$(TEST) $(SAME) -tags '$(TAGS)' $(call packages,^//go:build .*!race\b,lab)

.PHONY: test-real
test-real: build lab tools ## Run the real lane: the tests that test/promises.tsv names, at most 150, two packages at a time.
	@scripts/install-deps.sh workers
	@CGO_ENABLED=0 go -C packaging run -trimpath . -here -out ../dist
	@CGO_ENABLED=0 go run -trimpath ./test/lane gate $(SAME) -tags 'real,$(TAGS)'

.PHONY: h2spec
h2spec: build .tools/h2spec ## Run the 145 cases of h2spec: the engine, and through the relay.
	@scripts/h2spec.sh

.PHONY: conformance
conformance: h2spec ## Run h2spec and, against the transport of sockets, 301 cases of Autobahn; needs Python 2.7.
	@scripts/install-deps.sh autobahn
	@$(TEST) -tags conformance -count=1 -v -run '^TestAutobahn$$' $(call packages,^//go:build conformance\b)

.PHONY: conformance-doors
conformance-doors: build ## Run Connect's suite for what passes through the port: MODE PASSED/TOTAL.
	@scripts/install-deps.sh conformance
	@go test -tags soak -count=1 -timeout 30m -v -run '^TestConformanceOfDoors$$' ./test/real/protocol | sed -n 's,^ *\([a-z0-9-]* [0-9]*/[0-9]*\)$$,\1,p; /FAIL/p; /_test.go:/p'

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s) each.
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: soak
soak: build lab packages tools ## Run all other real tests and what is statistical (tag soak), 100 minutes; again skips what has passed, SOAK_AGAIN=1 does not.
	@scripts/install-deps.sh workers
	@scripts/install-deps.sh conformance
	@scripts/install-deps.sh bench
	@scripts/install-deps.sh lab
	@go run ./test/lane soak -tags soak

.PHONY: kubernetes-check
kubernetes-check: ## Have a kube-apiserver take the manifests and the chart, as a dry run; the first time it builds it, 5 minutes.
	@scripts/kubernetes-check.sh

##@ Measurements

.PHONY: bench
bench: ## Run the Go benchmarks; BENCH=REGEXP chooses.
	@go test -run '^$$' -bench '$(BENCH)' -benchmem $(filter-out ./test/real/%,$(call packages,^func Benchmark))
	@cd lab && go test -run '^$$' -bench '$(BENCH)' -benchmem $(call packages,^func Benchmark,lab)

.PHONY: lab-deps
lab-deps: ## Build the servers in Java and Rust that the scenario languages measures, where their toolchains are.
	@scripts/install-deps.sh lab

.PHONY: lab-quick
lab-quick: build lab ## Run one short round of every scenario of the lab, to see that all of it runs; 7 minutes.
	@scripts/install-deps.sh workers
	@scripts/lab-quick.sh

.PHONY: bench-peers
bench-peers: build lab ## Measure beside HAProxy, nghttpx, nginx and Envoy, which it installs; BENCH_FLAGS=--quick tries it.
	@$(call beside,peers)

.PHONY: bench-tls
bench-tls: build lab ## Measure calls over TLS beside HAProxy, nginx and Envoy that end it; 6 minutes.
	@$(call beside,tls)

.PHONY: bench-doors
bench-doors: build lab ## Measure calls by gRPC-Web and Connect beside Envoy's filters; 4 minutes.
	@$(call beside,doors)

.PHONY: bench-queue
bench-queue: build lab ## Measure the queue on workers of one slot beside HAProxy, nghttpx and Envoy; half an hour.
	@$(call beside,queue)

.PHONY: bench-socket
bench-socket: build ## Measure what sockets cost beside the old server: calls, events, memory, BENCH=Calls/old chooses; 3 rounds, 8 minutes.
	@scripts/install-deps.sh workers
	@for round in 1 2 3; do go test -tags real -run '^$$' -bench '$(BENCH)' -benchtime 1x $(BENCH_FLAGS) ./test/real/socket; done

.PHONY: ablation
ablation: build lab ## Take one mechanism after the other out of the tree before the spine was rebuilt, and write down what is worse; two hours.
	@scripts/install-deps.sh workers
	@go run ./test/ablation tests
	@go run ./test/ablation faults
	@go run ./test/ablation workloads
	@go run ./test/ablation table

.PHONY: bars
bars: ## Hold the simulated rank and number of workers against their ideals, at length, and print the tables.
	@go test -tags soak -count=1 -timeout 2h -v -run '^TestBar' $(call packages,^func TestBar) | sed -n '/^|/p; /^FAIL/p; /_test.go:/p'

.PHONY: rank-plots
rank-plots: ## Simulate the pictures of docs/rank.md and docs/workers.md again; 4 minutes.
	@go -C lab test -count=1 -timeout 1h -run TestPictures ./internal/report -draw

##@ Housekeeping

.PHONY: fmt
fmt: ## Format all Go files.
	@scripts/go-files.sh | xargs -0 gofmt -s -w

.PHONY: generate
generate: .tools/protoc-gen-go .tools/protoc-gen-go-grpc ## Write the code of the .proto files again.
	@proto/generate.sh

.PHONY: tools
tools: $(addprefix .tools/,$(TOOLS)) ## Build the pinned tools into .tools/.

.PHONY: clean
clean: ## Remove everything that make builds or installs inside the tree.
	@rm -rf bin dist .tools .deps examples/node/node_modules examples/nestjs/node_modules examples/nestjs/dist examples/echo/node_modules bench/k6/node_modules

# build-tool builds the package $(1) of tools/go.mod as the file $@.
build-tool = @echo "building $@"; cd tools && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o ../$@ $(1)

.tools/golangci-lint: tools/go.mod
	$(call build-tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
.tools/gotestsum: tools/go.mod
	$(call build-tool,gotest.tools/gotestsum)
.tools/grpcurl: tools/go.mod
	$(call build-tool,github.com/fullstorydev/grpcurl/cmd/grpcurl)
.tools/interop_client: tools/go.mod
	$(call build-tool,google.golang.org/grpc/interop/client)
.tools/interop_server: tools/go.mod
	$(call build-tool,google.golang.org/grpc/interop/server)
.tools/h2spec: tools/go.mod
	$(call build-tool,github.com/summerwind/h2spec/cmd/h2spec)
.tools/protoc-gen-go: tools/go.mod
	$(call build-tool,google.golang.org/protobuf/cmd/protoc-gen-go)
.tools/protoc-gen-go-grpc: tools/go.mod
	$(call build-tool,google.golang.org/grpc/cmd/protoc-gen-go-grpc)
