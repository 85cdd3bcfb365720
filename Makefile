# What one does with this project. `make` alone lists the targets.
# Everything is installed into .venv (Python) and .stack (embedded Redis and model host), both inside
# the checkout; `make clean` removes them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
LOG ?= shipped
PYTEST_ARGS ?=

export WARMUP_HOME ?= $(CURDIR)/.stack

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: system
system: # Debian's Python comes without ensurepip, and vLLM's CPU build loads libnuma
	@$(PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || deploy/debian-packages.sh python3-venv
	@$(PYTHON) -c 'import ctypes; ctypes.CDLL("libnuma.so.1")' 2>/dev/null \
	  || deploy/debian-packages.sh libnuma1 || echo "without libnuma1 the model host is skipped"

.venv/base: pyproject.toml constraints.txt | system
	@echo "== installing the library into .venv (log: .venv/install.log)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -q -U pip >.venv/install.log 2>&1
	@$(BIN)/python -m pip install -c constraints.txt -e . >>.venv/install.log 2>&1 \
	  || { tail -5 .venv/install.log; echo "see README.md, 'Installing torch', where torch is what failed"; exit 1; }
	@touch $@

.venv/dev: .venv/base
	@echo "== installing Airflow and the test tools into .venv"
	@$(BIN)/python -m pip install -c constraints.txt -e '.[airflow,dev,gateway]' >>.venv/install.log 2>&1 \
	  || { tail -5 .venv/install.log; exit 1; }
	@touch $@

.PHONY: demo
demo: .venv/base ## Run the main job end to end on the embedded stack (LOG=shipped, or a folder of real texts)
	@$(BIN)/warmup demo --log $(LOG)

.PHONY: test-system
test-system: # tests/deploy validates docker-compose.yaml, with no engine; tests/targets wants a Redis
# with TLS, tests/observe a Prometheus; libcachesim, a peer of the policies, loads glib
	@command -v docker-compose >/dev/null || deploy/debian-packages.sh docker-compose
	@command -v promtool >/dev/null || deploy/debian-packages.sh prometheus
	@command -v redis-check-rdb >/dev/null || deploy/debian-packages.sh redis-tools
	@$(PYTHON) -c 'import ctypes; ctypes.CDLL("libglib-2.0.so.0")' 2>/dev/null \
	  || deploy/debian-packages.sh libglib2.0-0

.PHONY: test
test: test-system check ## Set everything up and run all tests but the slow ones
	@$(BIN)/python -m pytest -m "not slow and not gpu" $(PYTEST_ARGS)

.PHONY: test-full
test-full: test-system check ## Run all tests, the slow ones too
	@$(BIN)/python -m pytest -m "not gpu" $(PYTEST_ARGS)

.PHONY: check
check: .venv/dev ## Lint, types and import floors
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check --preview --select AIR dags
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: bench
bench: .venv/dev ## Run the measurements and write bench/reports/
	@$(BIN)/warmup stack up --hosts 2
	@for bench in coverage encoder near_duplicates guard selection redis_writes berlin policies calibration feedback \
	    interference gauntlet wrong_hits reader "kv_length reserved" "kv_length paged" strategies effect slo_decay; do \
	    $(BIN)/python -m bench.$$bench || exit 1; done

.PHONY: ui
ui: .venv/dev ## Start Airflow with the DAGs on the embedded stack; prints address and login
	@$(BIN)/python -m warmup_lib.airflow.local

.PHONY: clean
clean: ## Stop the embedded stack and remove everything that was set up or made here
	@if [ -x $(BIN)/warmup ]; then $(BIN)/warmup stack down; fi
	@rm -rf .venv .stack .demo .airflow build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
