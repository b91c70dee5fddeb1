# Needs only Python >= 3.11 and pip: the first target that is run makes .venv and installs into it.
# Another interpreter: make test PYTHON=python3.12. Options for pytest: make test PYTEST_ARGS="-k kernel".
PYTHON ?= python3
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WHEEL := build/wheel
LOWEST := build/lowest
# Every public name is used in an example; the tests beside them use the libraries most.
LOWEST_TESTS := fieldtheory tests/cli/test_optimum_command.py tests/compiling/test_functions.py \
  tests/data tests/plotting tests/report/test_document.py
# Two processes on two cores: neither needs threads of its own in matrix products.
RUN_TESTS := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal
PYTEST := $(RUN_TESTS) fieldtheory tests
# Tracing takes two to three times as long: what computes most runs without it. The lines that these
# tests run are reached from the rooms above them and by their neighbours.
UNTRACED := $(filter-out %/test_precise_cumulants.py,$(wildcard tests/averages/test_*.py)) \
  tests/compiling tests/theory tests/literature tests/oracles tests/test_oracles.py \
  tests/test_derivations.py tests/test_docs.py tests/test_notebooks.py tests/rendering \
  tests/networks/test_existence.py tests/blocks/test_deep_stacks.py tests/plotting/test_style.py \
  tests/figures/test_f25_tasks.py tests/figures/test_sr.py \
  $(addprefix tests/numerics/test_,accuracy.py activation_table.py convention.py \
    decimal_constants.py decorrelations.py finite_width.py fluctuations.py \
    loop_sums.py narrow_networks.py output_law.py pair_averages.py parametrizations.py \
    several_inputs.py steep.py tangent_accuracy.py) \
  tests/inference/test_spectra.py tests/limits/test_depth_limit.py tests/test_sklearn.py \
  $(addprefix tests/scaling/test_,deep_covariance.py maximum_entropy.py optimum.py) \
  $(addprefix tests/montecarlo/test_,antithetic.py comparison.py conditional.py \
    control_variate.py coverage.py estimators.py family.py gradient_norms.py jax_sampler.py \
    perturbation.py samplers.py simulation.py theory.py) \
  $(addprefix tests/cli/test_,app.py critical_command.py optimum_command.py verify_command.py)

.DEFAULT_GOAL := help
.PHONY: help install run test test-all coverage test-lowest check wheel bench notebooks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv and install the package with everything it can use

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
	@echo "Installing into $(VENV); the first time this takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]'
	@touch $@

run: $(INSTALLED) ## the main job: formulas, numbers, figures and a page in results/
	$(BIN)/fieldtheory run

test: $(INSTALLED) ## doctests, tests and notebooks, without the slow ones
	$(PYTEST) $(PYTEST_ARGS)

test-all: $(INSTALLED) ## the same, with the slow ones
	$(PYTEST) -m "" $(PYTEST_ARGS)

coverage: $(INSTALLED) ## the tests of make test, and which lines they run
	$(RUN_TESTS) $(UNTRACED) $(PYTEST_ARGS)
	$(RUN_TESTS) fieldtheory tests $(addprefix --ignore=,$(UNTRACED)) \
	  --cov --cov-report=term:skip-covered $(PYTEST_ARGS)

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

# Run from another folder, so that nothing comes from the source tree.
wheel: ## build the wheel, install it into a fresh environment and use it there
	$(call fresh_venv,$(WHEEL))
	rm -rf dist build/lib build/bdist.*
	$(WHEEL)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
	  --wheel-dir dist .
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd $(WHEEL) && bin/python -c 'import fieldtheory as ft; print(ft.__file__, ft.__version__)'
	cd $(WHEEL) && bin/fieldtheory --version && bin/fieldtheory solve --depth 2 -k 0.05

bench: $(INSTALLED) ## run every benchmark
	@set -e; for f in benchmarks/[a-z]*.py; do echo "== $$f"; $(BIN)/python $$f; done

notebooks: $(INSTALLED) ## execute the notebooks in place, keeping outputs that are stable
	$(BIN)/python notebooks/execute.py

clean: ## remove .venv, node_modules, caches and build outputs; results/ stays
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  tests/rendering/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
