# `make help` lists what there is. Every target makes what it needs.

PYTHON3 ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
CRDS ?= ../shared/crds

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.PHONY: venv
venv: $(VENV)/ready ## Build .venv from pinned hashes.

$(VENV)/ready: requirements-dev.txt pyproject.toml
	@$(PYTHON3) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON3=") if sys.version_info < (3, 11) else None'
	$(PYTHON3) -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: fmt
fmt: venv ## Format the code.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --quiet .

.PHONY: check
check: venv ## Lint, type-check, hold the import contracts, verify generated files.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(MAKE) --no-print-directory check-generated

.PHONY: test
test: venv ## Run every test that needs neither Go nor root.
	$(BIN)/pytest -n auto

.PHONY: demo
demo: venv ## Plan the getting-started fleet: placements, reasons, objects, URL.
	$(BIN)/modelplane plan examples/getting-started

.PHONY: bench
bench: venv ## Print latency, start-up time and memory, and write _output/bench.json.
	$(PYTHON) -m tests.bench

CONFORMANCE := _output/conformance
VECTORS := $(addprefix tests/lib/dra/vectors/,dra-cel.json dra-generated.json own.json)
COUNT ?= 3000
SEED ?= 1

.PHONY: $(CONFORMANCE)
$(CONFORMANCE):
	cd tests/conformance && nice go build -p 1 -o ../../$@ .

.PHONY: conformance
conformance: $(CONFORMANCE) ## Judge the selector vectors with Kubernetes' own library again (Go).
	$(CONFORMANCE) $(VECTORS)

.PHONY: conformance-fuzz
conformance-fuzz: venv $(CONFORMANCE) ## Compare generated selectors with Kubernetes (Go). COUNT=, SEED=.
	$(PYTHON) -m tests.conformance.fuzz $(CONFORMANCE) --vectors
	$(PYTHON) -m tests.conformance.fuzz $(CONFORMANCE) --count $(COUNT) --seed $(SEED) --costs

E2E := $(BIN)/pytest -o "norecursedirs=.venv .hypothesis" -s

.PHONY: e2e-tools
e2e-tools: venv ## Build the programs of a real control plane (Go; some 20 minutes the first time).
	$(PYTHON) -m tests.e2e.tools

.PHONY: e2e
e2e: e2e-tools ## Run the suite on a real control plane (Go, and root or user namespaces).
	$(E2E) tests/e2e

.PHONY: e2e-chaos
e2e-chaos: e2e-tools ## Kill each program twenty times in rollouts, keep each away, measure what users wait for and the circuit breaker.
	E2E_CHAOS_ROUNDS=20 $(E2E) $(addprefix tests/e2e/test_,$(addsuffix .py,serving lifecycle faults chaos breaker gangs teardown))

.PHONY: control-plane
control-plane: e2e-tools ## Bring up a real control plane and stay; prints how to reach it.
	$(PYTHON) -m tests.e2e.plane

REGISTRY ?= registry.example.org/modelplane
CROSSPLANE ?=
RUNTIME ?=

.PHONY: packages
packages: venv ## Stage the Crossplane packages in _output/packages; with CROSSPLANE=<cli> build them, with RUNTIME=<archive> around their image. REGISTRY=<host>/modelplane.
	$(PYTHON) package/packages.py --registry $(REGISTRY) --crossplane "$(CROSSPLANE)" $(if $(RUNTIME),--runtime "$(RUNTIME)")

.PHONY: requirements
requirements: venv ## Pin what pyproject.toml asks for, with hashes.
	$(BIN)/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-annotate --no-header --strip-extras --allow-unsafe -o requirements.txt pyproject.toml
	$(BIN)/pip-compile --quiet --extra dev --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-annotate --no-header --strip-extras --allow-unsafe -o requirements-dev.txt pyproject.toml

.PHONY: clean
clean: ## Remove what the targets made.
	rm -rf $(VENV) _output dist

-include schemas/schemas.mk
