# Needs only Python >= 3.11 and pip: the first target that is run makes .venv and installs into it.
# Another interpreter: make test PYTHON=python3.12. Options for pytest: make test PYTEST_ARGS="-k kernel".
PYTHON ?= python3
PYTEST_ARGS ?=
SPHINX_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WITH_TORCH := $(VENV)/.torch
WHEEL := build/wheel
LOWEST := build/lowest
# Every public name is used in an example; the tests beside them use the libraries most.
LOWEST_TESTS := fieldtheory tests/cli/test_optimum_command.py tests/compiling/test_functions.py \
  tests/data tests/plotting tests/report/test_document.py
# The build for CPUs, a tenth of the other: the version under which an index may have it, and
# where it is published.
TORCH := 2.13.0+cpu
TORCH_INDEX := https://download.pytorch.org/whl/cpu
# Tests that torch decides on.
TORCH_TESTS := tests/audits tests/measured_blocks/test_torch_blocks.py tests/cli/test_audit_command.py \
  tests/cli/test_examples.py tests/cli/test_figures_command.py tests/figures \
  tests/networks/test_callables.py tests/plotting/test_audits.py tests/test_docs.py \
  tests/test_package.py tests/test_site.py tests/training
# Two processes on two cores: neither needs threads of its own in matrix products.
ONE_THREAD := OMP_NUM_THREADS=1
PYTEST := pytest -n 2 --dist worksteal
COVERAGE := build/coverage.json
LEAST_COVERAGE := 97

.DEFAULT_GOAL := help
.PHONY: help install run test test-all coverage test-without-torch test-lowest check docs linkcheck wheel release \
  accuracy bench mutants notebooks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(WITH_TORCH) ## make .venv and install the package with everything it can use

# Where the venv module cannot bring pip along (Debian without python3-venv), pip installs itself.
define venv_with_pip
$(PYTHON) -m venv $(1) || { $(PYTHON) -m venv --without-pip --clear $(1) && \
	  $(PYTHON) -m pip --python $(1)/bin/python install --quiet pip; }
endef

define fresh_venv
rm -rf $(1)
$(venv_with_pip)
endef

$(INSTALLED): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
	  "fieldtheory needs Python >= 3.11, $(PYTHON) is %d.%d; choose one with make PYTHON=..." % sys.version_info[:2])'
	test -x $(BIN)/pip || $(call venv_with_pip,$(VENV))
	@echo "Installing into $(VENV); the first time this takes two or three minutes."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]'
	@touch $@

$(WITH_TORCH): $(INSTALLED)
	@$(BIN)/python -c 'import torch' 2>/dev/null || \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check 'torch==$(TORCH)' 2>/dev/null || \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check 'torch>=2.2' \
	    --index-url $(TORCH_INDEX) 2>/dev/null || \
	  echo "torch is not to be had here: tests of fieldtheory.training are left out"
	@touch $@

run: $(INSTALLED) ## the main job: formulas, numbers, figures and a page in results/
	$(BIN)/fieldtheory run

test: $(WITH_TORCH) ## doctests, tests and notebooks, without the slow ones
	@mkdir -p build
	$(ONE_THREAD) $(BIN)/python $(COUNTED) -m $(PYTEST) fieldtheory tests $(PYTEST_ARGS)

test-all: $(WITH_TORCH) ## the same, with the slow ones
	$(ONE_THREAD) $(BIN)/python -m $(PYTEST) fieldtheory tests -m "" -o faulthandler_timeout=3600 \
	  $(PYTEST_ARGS)

# SlipCover puts its probes into the bytecode and takes them out again: the tests keep their speed.
coverage: COUNTED := -m slipcover --json --out $(COVERAGE)
coverage: test ## make test, and which lines it runs
	$(BIN)/python -m slipcover --skip-covered --fail-under $(LEAST_COVERAGE) \
	  --merge $(COVERAGE) --out $(COVERAGE)

test-without-torch: $(INSTALLED) ## the tests that torch decides on, as where it is not installed
	$(ONE_THREAD) $(BIN)/python -m $(PYTEST) -p tests.without_torch $(TORCH_TESTS) \
	  -k 'torch or train or audit or names or patterns or public'

test-lowest: ## some of the tests with the lowest versions that setup.cfg admits
	$(call fresh_venv,$(LOWEST))
	$(PYTHON) .ci/lowest_versions.py > $(LOWEST)/versions.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement $(LOWEST)/versions.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(LOWEST)/bin/python -m pytest -n 2 $(LOWEST_TESTS)

check: $(INSTALLED) ## ruff (rules and format) and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Pages are executed, and kept in build/pages until they change.
docs: $(WITH_TORCH) ## build the site into build/docs/index.html; warnings are errors
	@echo "The first time every figure and page is computed, in five to ten minutes; then what changed."
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -j 2 -d build/doctrees $(SPHINX_ARGS) docs build/docs
	@if grep -rlE '<(script|img|iframe)[^>]* src="https?:|<link[^>]* href="https?:' \
	  --include='*.html' build/docs; then echo "these pages load from the network"; exit 1; fi
	@echo "build/docs/index.html"

linkcheck: $(WITH_TORCH) ## whether external links of the site answer; needs a network, so CI leaves it out
	$(ONE_THREAD) $(BIN)/python -m sphinx -b linkcheck -q -j 2 -d build/doctrees docs build/links

# Run from another folder, so that nothing comes from the source tree.
wheel: ## build the wheel, install it into a fresh environment and use it there
	$(call fresh_venv,$(WHEEL))
	rm -rf dist build/lib build/bdist.*
	$(WHEEL)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
	  --wheel-dir dist .
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd $(WHEEL) && bin/python -c 'import fieldtheory as ft; print(ft.__file__, ft.__version__)'
	cd $(WHEEL) && bin/fieldtheory --version && bin/fieldtheory solve --depth 2 -k 0.05
	cd $(WHEEL) && bin/fieldtheory derive --document > appendix.tex

release: $(INSTALLED) ## build what is uploaded, source and wheel, into dist/ and check it
	rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/python -m twine check --strict dist/*
	@if $(BIN)/python -m zipfile --list dist/*.whl | grep -E '^(tests|docs|benchmarks)/'; \
	  then echo "the wheel holds more than the package"; exit 1; fi

accuracy: $(INSTALLED) ## float64 against proven intervals at 1000 points; writes docs/accuracy.md
	$(ONE_THREAD) $(BIN)/python benchmarks/accuracy.py docs/accuracy.md

bench: $(WITH_TORCH) ## run every benchmark but that of other people's models
	@set -e; for f in $$(ls benchmarks/[a-z]*.py | grep -v audit_models); do echo "== $$f"; $(BIN)/python $$f; done

mutants: $(WITH_TORCH) ## mutation score of the core, a random sample; hours
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutants]'
	$(BIN)/python -m tests.mutants

notebooks: $(WITH_TORCH) ## execute the notebooks in place, keeping outputs that are stable
	$(BIN)/python notebooks/execute.py

clean: ## remove .venv, node_modules, caches and build outputs; results/ stays
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  tests/rendering/node_modules docs/api/generated docs/gallery docs/notebooks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
