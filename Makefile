# One virtual environment in this checkout serves every target. It is built on the first run, reused
# on the next ones and brought up to date when pyproject.toml or constraints.txt changes.
#
#   make demo    the system at work, with worker kills (DEMO_ARGS="--seed 2" for another run)
#   make test    every test (PYTEST_ARGS= for one at a time)
#   make test-sqlalchemy   the planner's and the store's tests on the oldest SQLAlchemy that is allowed
#   make check   format, lint, types, import contracts, generated pages and blocks

PYTHON ?= python3
SQLALCHEMY ?= 2.0.40
PYTEST_ARGS ?= -n 4 --dist loadscope
DEMO_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# The stamp is written last: an install that was cut off is done again.
STAMP := $(VENV)/installed.stamp
# A checkout that was copied or moved brings an environment whose scripts point at the old place.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
STALE := stale
endif

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-sqlalchemy check venv clean stale
.PHONY: check-format check-lint check-types check-imports check-blocks

help:
	@sed -n 's/^#   //p' Makefile

demo: $(STAMP)
	$(BIN)/ackbox demo $(DEMO_ARGS)

test: $(STAMP)
	$(BIN)/pytest $(PYTEST_ARGS)

OLD := build/sqlalchemy
# Only these import SQLAlchemy in earnest; the whole suite would say no more in four times the time.
OLD_TESTS := tests/conformance $(addprefix tests/integration/test_,$(addsuffix .py, \
	on_transactions async_planner plain_connection which_outbox planner planner_put planner_rings \
	planner_compensate statements edges_on_postgres database sessions bind migrate supersede \
	compensation hold reconcile attempts))

test-sqlalchemy:
	@$(PYTHON) -m venv --clear $(OLD)
	@grep -vi '^sqlalchemy==' constraints.txt > $(OLD)/constraints.txt
	@$(OLD)/bin/python -m pip install -qq -c $(OLD)/constraints.txt \
		'sqlalchemy[asyncio]==$(SQLALCHEMY)' -e '.[dev]'
	$(OLD)/bin/pytest $(PYTEST_ARGS) $(OLD_TESTS)

check: check-format check-lint check-types check-imports check-blocks

check-format: $(STAMP)
	$(BIN)/ruff format --check .

check-lint: $(STAMP)
	$(BIN)/ruff check .

check-types: $(STAMP)
	$(BIN)/mypy

check-imports: $(STAMP)
	$(BIN)/lint-imports --no-logo

check-blocks: $(STAMP)
	$(BIN)/python -m ackbox.outbox.render --check
	$(BIN)/python -m ackbox.app.reference --check docs/reference/api.md
	$(BIN)/python -m ackbox.app.cli.reference --check docs/reference/cli.md

venv: $(STAMP)

define PYTHON_MISSING
ackbox needs Python 3.11 or newer with its venv module, and "$(PYTHON)" is not that.
Install it (Debian: apt-get install python3-venv) or name another: make PYTHON=python3.12 ...
endef
export PYTHON_MISSING
HAS_PYTHON := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

$(STAMP): pyproject.toml constraints.txt $(STALE)
	@$(PYTHON) -c '$(HAS_PYTHON)' 2>/dev/null || { echo "$$PYTHON_MISSING" >&2; exit 1; }
	@echo 'Setting up $(VENV) (once; a minute or two)'
	@rm -f $@
	@$(PYTHON) -m venv $(if $(STALE),--clear) $(VENV)
	@$(BIN)/python -m pip install -qq -c constraints.txt -e '.[dev]'
	@echo '$(CURDIR)' > $@

# Phony, and asked for only where the environment has to be built anew.
stale:

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
