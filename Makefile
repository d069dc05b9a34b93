# symbolize: every task has a target here; `make` alone lists them.

GO       ?= go
BUILD    := build
BIN      := $(BUILD)/symbolize
STORE    := $(BUILD)/demo-store
FUZZTIME ?= 30s
# Flags of the linker that leave out the symbol table and debug information; STRIP= keeps them.
STRIP    ?= -s -w
DEMO_LIBS ?= /usr/lib

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
DEADCODE    := golang.org/x/tools/cmd/deadcode@v0.40.0

# What also builds, with its tests, where nothing can be recorded.
OFFLINE := ./buildid/... ./ingest/... ./store/... ./analyze/... ./cmd/...

.DEFAULT_GOAL := help

.PHONY: help
help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the binary into build/symbolize, static and stripped; STRIP= keeps its symbols
	@mkdir -p $(BUILD)
	@test -f $(BUILD)/go.mod || echo 'module build' >$(BUILD)/go.mod # keeps ./... out of here
	CGO_ENABLED=0 $(GO) build -ldflags="$(STRIP)$(if $(filter linux/amd64,$(shell $(GO) env GOOS GOARCH | paste -sd /)), -E=entry)" -o $(BIN) ./cmd/symbolize

.PHONY: demo
demo: build ## run the main job: index, resolve a recorded capture, print the top table
	@sh fixtures/demo.sh $(BIN) $(BUILD) $(DEMO_LIBS)

.PHONY: test
test: ## pass all tests that need no root, no perf and no compiler but Go; make lint has go vet
	$(GO) test -vet=off -timeout 580s ./...
	$(GO) -C fixtures/peers test -vet=off -timeout 580s ./...

.PHONY: test-anywhere
test-anywhere: ## the same as another user, in new namespaces, up for a minute and ten years, on one core, with -race (Linux, root)
	@GO=$(GO) sh fixtures/anywhere.sh

.PHONY: lint
lint: ## gofmt -s, go vet, go mod tidy, staticcheck, unreachable functions, the layer test; types for darwin and windows
	@test -z "$$(gofmt -s -l $$(git ls-files '*.go'))" || { gofmt -s -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) -C fixtures/peers mod tidy -diff
	$(GO) -C fixtures/peers vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) -C fixtures/peers run $(STATICCHECK) ./...
	@mkdir -p $(BUILD)
	GOBIN=$(CURDIR)/$(BUILD) $(GO) install $(DEADCODE)
	$(BUILD)/deadcode -test ./... >$(BUILD)/unreachable && test ! -s $(BUILD)/unreachable || { cat $(BUILD)/unreachable; exit 1; }
	$(GO) test ./fixtures/house
	# Compiling all libraries for two more systems would be six minutes; this reads their types.
	@for os in darwin windows; do GOOS=$$os $(BUILD)/deadcode -test $(OFFLINE) >/dev/null || exit 1; done

.PHONY: live
live: build ## tests on the running kernel: perf, BPF, full disks; installs what it needs (Debian, root); OTEL_AGENT=PATH: the eBPF profiler of OpenTelemetry
	@sh fixtures/live.sh

.PHONY: beam
beam: ## test the Beam pipeline of cmd/batch, a module of its own, and the Kubernetes manifest: fetches Beam (100 MB)
	cd cmd/batch && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test -count=1 -timeout 600s ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s) each
	@sh fixtures/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: build ## time the main jobs against perf, debuginfod, llvm, and write the tables; ROWS=PATTERN: some rows; BASE=BINARY: against an older binary; RUNS=N: at most N runs a row
	@sh fixtures/peers/bench.sh $(BIN) $(BUILD)

RUNS ?= 21
BYTES_SECONDS ?= 60
IDLE_SECONDS ?= 30
.PHONY: bench-capture
bench-capture: build ## time dd beside capture, perf and a BPF counter, RUNS (21) times each; bytes of BYTES_SECONDS (60); idle for IDLE_SECONDS (30)
	@RUNS=$(RUNS) BYTES_SECONDS=$(BYTES_SECONDS) IDLE_SECONDS=$(IDLE_SECONDS) \
		sh fixtures/peers/bench-capture.sh $(BIN) $(BUILD)

SOAK ?= 30m
.PHONY: soak
soak: ## record for SOAK (30m), in one file after another, beside 150 new processes a second and BPF programs (root)
	SYMBOLIZE_LIVE=1 SYMBOLIZE_SOAK=$(SOAK) nice $(GO) test -count=1 -timeout 0 -v -run '^TestLiveSoak$$' ./cmd/symbolize

.PHONY: debug-packages
debug-packages: ## fetch the big debug packages (1.4 GB) that make bench then measures with
	@sh fixtures/peers/debug-packages.sh $(BUILD)

.PHONY: peers
peers: build ## compare with peers: frames of all kinds of debug information, perf script
	@sh fixtures/peers/peers.sh $(BIN) $(BUILD)

.PHONY: man
man: ## write the man pages into build/man, from the pages of docs
	$(GO) run ./fixtures/release/man docs $(BUILD)/man "$$(git describe --always)" "$$(git log -1 --format=%cs)"

TARGETS ?= linux/amd64 linux/arm64
.PHONY: release
release: ## packages of the last commit for TARGETS (linux/amd64 linux/arm64), in build/release
	@sh fixtures/release/release.sh $(BUILD)/release $(TARGETS)

.PHONY: release-check
release-check: ## make the release twice, in two directories: both must be the same bytes
	@sh fixtures/release/check.sh $(BUILD)/release $(TARGETS)

.PHONY: clean
clean: ## remove the build folder
	rm -rf $(BUILD)
