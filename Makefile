# Needs only Python >= 3.11 and pip: the first target that is run makes .venv and installs into it.
# Another interpreter: make test PYTHON=python3.12. Options for pytest: make test PYTEST_ARGS="-k kernel".
PYTHON ?= python3
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal --nbmake fieldtheory tests $(wildcard notebooks)

.DEFAULT_GOAL := help
.PHONY: help install run test test-all check bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv and install the package with everything it can use

# Where the venv module cannot bring pip along (Debian without python3-venv), pip installs itself.
$(INSTALLED): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
	  "fieldtheory needs Python >= 3.11, $(PYTHON) is %d.%d; choose one with make PYTHON=..." % sys.version_info[:2])'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { \
	  $(PYTHON) -m venv --without-pip --clear $(VENV) && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	@echo "Installing into $(VENV); the first time this takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]'
	@touch $@

run: $(INSTALLED) ## the main job: formulas, numbers, figures and a page in results/
	$(BIN)/fieldtheory run

test: $(INSTALLED) ## doctests, tests and notebooks, without the slow ones
	$(PYTEST) $(PYTEST_ARGS)

test-all: $(INSTALLED) ## the same, with the slow ones
	$(PYTEST) -m "" $(PYTEST_ARGS)

check: $(INSTALLED) ## ruff (rules and format) and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(INSTALLED) ## run every benchmark
	@set -e; for f in benchmarks/[a-z]*.py; do echo "== $$f"; $(BIN)/python $$f; done

clean: ## remove .venv, node_modules, caches and build outputs; results/ stays
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  tests/rendering/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
