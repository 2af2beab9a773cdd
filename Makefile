# Everything this project needs is set up by these targets from python3 (3.11 or newer) and make alone.
# `make help` lists them.

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
# The core's tests, which `make check` runs once, and measures what they reach.
COVERED := tests/unit tests/contract/test_replay_vectors.py
# Tests at the same time: they wait three times as long as they compute, so each core bears four.
JOBS ?= $(shell cores=$$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) && echo $$((4 * cores)))
PARALLEL := -n $(JOBS) --dist worksteal
# Python keeps what it compiled, whatever the machine says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
# Where Debian has varnishd, nginx and useradd, which not every user's PATH names.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin
# Byte-for-byte what requirements/*.txt pins, or nothing: pip refuses a download whose hash is not listed there. Only what
# is built already: to build it, pip would fetch whatever it says it needs, without any hash.
PIP := python -m pip --quiet --disable-pip-version-check install
# What builds JavaScript and checks it, byte-for-byte what tools/js/package-lock.json pins; none of its own scripts are run (.npmrc).
ESBUILD := tools/js/node_modules/.package-lock.json
BIOME := tools/js/node_modules/.bin/biome

.PHONY: help setup run test check coverage format clauses schemas bench campaign edge mutants lowest audit pins release clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

setup: .venv/installed ## the command, as .venv/bin/lookout

run: .venv/installed ## the whole service on simulated upstreams; ARGS= passes options, e.g. --listen 127.0.0.1:9000
	@$(BIN)/lookout demo $(ARGS)

test: .venv/installed-dev .venv/packages $(ESBUILD) ## all tests except those marked long; ARGS= passes options to pytest
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

check: .venv/installed-dev .venv/packages $(ESBUILD) ## format, lint, types, import rules, clauses, the core's coverage, then all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@[ ! -x $(BIOME) ] || { set -x; $(BIOME) check --error-on-warnings .; }
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@$(MAKE) --no-print-directory clauses coverage
	@$(MAKE) --no-print-directory test ARGS="$(COVERED:%=--ignore=%) $(ARGS)"

coverage: .venv/installed-dev ## the core's tests reach every statement and branch of it
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q $(PARALLEL) $(COVERED)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

format: .venv/installed-dev $(ESBUILD) ## rewrite the code as `make check` wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIOME) check --write .

clauses: .venv/installed-dev ## every clause of the contract with its tests
	@$(BIN)/python -m tools.clauses

schemas: .venv/installed $(ESBUILD) ## write from the code: docs/schemas/, the OpenAPI description, the example of a configuration, its keys' tables, the readers' statuses and states, what servers send to browsers, the SBOMs; needs npm
	$(BIN)/python -m tools.schemas
	$(BIN)/python -m tools.configuration
	$(BIN)/python -m tools.statuses
	$(BIN)/python -m tools.states
	$(BIN)/python -m tools.sbom
	node tools/js/build.mjs page

bench: .venv/installed-dev ## measurements, as a table of ratios; ARGS="serve decode --json" names some, writes JSON
	$(BIN)/python -m bench $(ARGS)

campaign: .venv/installed-dev .venv/packages .venv/container-packages $(ESBUILD) ## the long tests, for about an hour; ARGS= names parts, ARGS=--help lists them with their minutes
	@$(BIN)/python -m tests.campaign $(ARGS)

edge: .venv/installed .venv/packages ## Varnish in front of a running service; ARGS= passes options, e.g. -c lookout.toml
	@$(BIN)/python -m tools.edge $(ARGS)

mutants: .venv-mutants/installed .venv/installed-dev ## leave out what the assembly passes on, change the rules in every small way, and check that a test fails; tens of minutes
	$(BIN)/python -m tools.omissions
	.venv-mutants/bin/mutmut run $(ARGS)
	.venv-mutants/bin/mutmut results

lowest: .venv-lowest/installed .venv/packages $(ESBUILD) ## all tests with the oldest versions that pyproject.toml accepts of what Lookout needs
	.venv-lowest/bin/python -m pytest $(PARALLEL) $(ARGS)

audit: .venv-audit/installed ## ask PyPI whether a pinned dependency has a known vulnerability; needs the internet
	@.venv-audit/bin/python -m tools.audit

pins: .venv-audit/installed ## compile requirements/*.in again, for every platform
	for set in run build alerts source dev lowest mutants audit; do .venv-audit/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header requirements/$$set.in -o requirements/$$set.txt || exit 1; done

release: .venv/installed ## build everything to publish into dist/, check it, and list it; needs git and npm
	@$(BIN)/python -m tools.release

clean: ## remove what the targets above made
	rm -rf .venv .venv-audit .venv-lowest .venv-mutants .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache mutants build dist tools/js/node_modules

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "lookout needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -qq -y python3-venv >/dev/null; } \
	  || { echo "python3 cannot make virtual environments here; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv
	@touch $@

.venv/installed: .venv/python requirements/run.txt requirements/build.txt pyproject.toml readers/python/pyproject.toml
	@echo "setting up .venv (once; seconds when nothing changed)"
	@$(BIN)/$(PIP) --require-hashes --only-binary :all: -r requirements/run.txt -r requirements/build.txt
	@$(BIN)/$(PIP) --no-deps --no-build-isolation --editable readers/python --editable .
	@touch $@

# One of them is nowhere to be had but as its source: it is built here, by what was pinned for that.
.venv/installed-dev: .venv/installed requirements/source.txt requirements/dev.txt
	@$(BIN)/$(PIP) --require-hashes --only-binary :all: -r requirements/source.txt
	@$(BIN)/$(PIP) --require-hashes --only-binary :all: --no-binary sniffpy --no-build-isolation -r requirements/dev.txt
	@touch $@

# What tests use of the system. Elsewhere than on Debian as root they do without, and say at the end what was left out.
.venv/packages: PROGRAMS := chromium=chromium chromium-headless-shell=chromium-headless-shell curl=curl faketime=faketime haproxy=haproxy logrotate=logrotate nginx=nginx-light node=nodejs pgbouncer=pgbouncer promtool=prometheus systemd-analyze=systemd varnishd=varnish,varnish-modules wrk=wrk
# The campaign alone builds and runs the container.
.venv/container-packages: PROGRAMS := buildah=buildah podman=podman runc=runc mmdebstrap=mmdebstrap
.venv/packages .venv/container-packages: Makefile | .venv/python
	@wanted=; \
	for pair in $(PROGRAMS); do \
	  command -v $${pair%%=*} >/dev/null || wanted="$$wanted $$(echo $${pair#*=} | tr , ' ')"; \
	done; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || wanted="$$wanted postgresql"; \
	if [ -n "$$wanted" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing$$wanted (once)"; \
	  { apt-get update -qq && tools/install-packages $$wanted; } \
	    || { echo "could not install$$wanted: the tests that need them will be left out" >&2; exit 0; }; \
	fi; \
	touch $@

# Where npm is missing, JavaScript is not checked, the tests that need esbuild are left out, and the end of the run says so.
$(ESBUILD): tools/js/package-lock.json
	@if command -v npm >/dev/null; then cd tools/js && npm ci; else echo "without npm no JavaScript can be built here" >&2; fi

# An environment of its own: what changes the code wants an older test runner than what checks it.
.venv-mutants/installed: .venv/installed requirements/mutants.txt
	@$(PYTHON) -m venv --clear .venv-mutants
	@.venv-mutants/bin/$(PIP) --require-hashes --only-binary :all: -r requirements/mutants.txt
	@.venv-mutants/bin/$(PIP) --no-deps --no-build-isolation --editable readers/python --editable .
	@touch $@

# An environment of its own, in which the oldest versions replace those that are pinned for every day.
.venv-lowest/installed: .venv/installed requirements/source.txt requirements/dev.txt requirements/lowest.txt
	@$(PYTHON) -m venv --clear .venv-lowest
	@.venv-lowest/bin/$(PIP) --require-hashes --only-binary :all: -r requirements/source.txt
	@.venv-lowest/bin/$(PIP) --require-hashes --only-binary :all: --no-binary sniffpy --no-build-isolation -r requirements/dev.txt
	@.venv-lowest/bin/$(PIP) --require-hashes --only-binary :all: -r requirements/lowest.txt
	@.venv-lowest/bin/$(PIP) --no-deps --no-build-isolation --editable readers/python --editable .
	@touch $@

# An environment of its own: what looks after the pins is no part of what they are for.
.venv-audit/installed: .venv/python requirements/audit.txt
	@$(PYTHON) -m venv --clear .venv-audit
	@.venv-audit/bin/$(PIP) --require-hashes --only-binary :all: -r requirements/audit.txt
	@touch $@
