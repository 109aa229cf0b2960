# Everything a clone can do. Needs make and Python 3.11 or newer; `make` alone lists the targets.

PYTHON ?= python3
VENV ?= .venv
SCALE ?= fast
OUT ?= results
BIN := $(VENV)/bin

# A local mirror of the data sets: with it nothing is fetched. Looked for in the folder that
# SCIML_SHARED names, then in a folder `shared` beside the clone; set SCIML_MIRROR for another.
ifndef SCIML_MIRROR
  SCIML_MIRROR := $(abspath $(firstword $(wildcard $(addsuffix /data/wind,$(SCIML_SHARED) ../shared))))
endif
ifneq ($(SCIML_MIRROR),)
  export SCIML_MIRROR
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help reproduce test validate coverage test-browser contract torch lab style lint format docs notebooks bench bench-gpu constraints clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

reproduce: $(VENV)/.base ## run the studies into results/ (SCALE=fast|full OUT=folder)
	$(BIN)/sciml reproduce --scale $(SCALE) --out $(OUT)

# Tests start hundreds of processes. What Python compiles is kept for them, also where the
# environment forbids to write it beside the sources. OpenBLAS has one thread in each: where two
# processes share two cores, its threads wait for each other ten times as long as they work. To
# write where in Python each operation of a program came from takes a twentieth of the time.
PYTEST = env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/.cache/pyc \
  OPENBLAS_NUM_THREADS=1 JAX_TRACEBACK_IN_LOCATIONS_LIMIT=0 \
  $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=40 $(COVER)

# Nearly all the time of the tests is XLA's; without its optimizations it is half, with the flags that
# are asked for here half again, and what one process has compiled serves the others.
OLDER = $(shell $(BIN)/python tests/xla_flags.py)
SHARED = env JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.cache/xla \
  JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
QUICK = $(SHARED) JAX_DISABLE_MOST_OPTIMIZATIONS=1 XLA_FLAGS="$(XLA_FLAGS) $(OLDER)"

# What lies under validation/ computes for longer: LLVM's first level takes a third to a half of the
# time to compile, for programs as fast. Notebooks, and .ci/unpinned, compile as users do.
FIRST = $(SHARED) XLA_FLAGS="$(XLA_FLAGS) --xla_backend_optimization_level=1 $(OLDER)"

test: export SCIML_SCALE := fast
test: $(VENV)/.test style ## style, types, tests, doctests: what a change must pass, in minutes
	$(QUICK) $(PYTEST) -m "not slow" tests sciml wse

# Studies are computed once for validation and the notebooks, in a folder that starts empty.
validate: export SCIML_RESULTS := $(CURDIR)/.cache/results-test
validate: export SCIML_SCALE := fast
validate: $(VENV)/.test ## physics, published figures, studies, long contracts, notebooks, docs
	rm -rf .cache/results-test .cache/notebooks
	$(QUICK) $(PYTEST) -m slow `grep -rl 'mark\.slow' tests --include='test_*.py'`
	$(FIRST) $(PYTEST) validation
	$(if $(wildcard .venv-torch/.made),$(TORCH) $(MODULES))

# Tracing takes a tenth of the time, so it is asked for.
coverage: COVER := --cov --cov-append --cov-report=term:skip-covered
coverage: test validate ## the same tests, and which lines they run

test-browser: $(VENV)/.test ## notebooks in JupyterLab and headless Chromium; pictures in .cache/browser
	$(BIN)/pytest validation/browser

contract: $(VENV)/.test ## every model on the emulated machine against plain JAX
	$(BIN)/pytest -m "contract or not contract" validation/contract tests/wse/execute/test_swarmx.py

# What takes seconds; `make test` checks types beside its other tests.
style: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo

lint: style ## formatting, lint, import contracts, types
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.test ## put the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# With that environment `make validate` tries ten models in it; all of them are tried here.
TORCH = $(QUICK) .venv-torch/bin/python -m pytest -n 2
MODULES = validation/wse/test_from_torch.py validation/wse/test_torch_matrices.py \
	validation/wse/test_torch_changes.py validation/wse/test_torch_models.py \
	validation/wse/test_named_models.py

.venv-torch/.made: pyproject.toml constraints.txt
	@test -d .venv-torch || $(PYTHON) -m venv .venv-torch
	@.venv-torch/bin/python -m pip install --quiet --no-compile -c constraints.txt -e '.[torch]' \
	  pytest pytest-xdist beartype hypothesis perfetto
	@touch $@

torch: .venv-torch/.made $(VENV)/.test ## modules of PyTorch, and traces of Perfetto, read by their owners, in .venv-torch (2 to 5 GB)
	$(TORCH) -m "contract or not contract" $(MODULES) validation/wse/test_config_counts.py \
	  tests/wse/graph/test_chakra.py

lab: export SCIML_RESULTS := $(or $(SCIML_RESULTS),$(abspath $(OUT)))
lab: $(VENV)/.lab ## JupyterLab on notebooks/
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/notebooks

# Notebooks are shown as the tests executed them; where none did, that is done first, in minutes.
.cache/notebooks: | $(VENV)/.test
	$(BIN)/pytest -q validation/test_notebooks.py

docs: $(VENV)/.test .cache/notebooks ## the documentation, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -a -b html docs docs/_build/html

notebooks: $(VENV)/.test ## remake notebooks/*.ipynb from notebooks/src/*.py
	$(BIN)/python notebooks/pair.py

bench: $(VENV)/.bench ## our training beside its peers, in one run
	$(BIN)/python benchmarks/dense_training.py

bench-gpu: $(VENV)/.gpu ## tests of training on a GPU, then our pace beside PyTorch's
	$(BIN)/python -c 'import jax, sys; sys.exit("JAX finds no GPU" * (jax.default_backend() != "gpu"))'
	env JAX_DEFAULT_MATMUL_PRECISION=highest $(BIN)/pytest -p no:cacheprovider tests/sciml/train tests/sciml/inverse tests/wse/execute
	$(BIN)/python benchmarks/gpu.py --out results/gpu.csv

constraints: $(VENV)/.made ## remake constraints.txt from what the index resolves today
	$(BIN)/python .ci/pin.py constraints.txt

clean: ## remove what the commands above left, but not results/ nor the environment
	rm -rf .cache .coverage .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	rm -rf docs/_build docs/notebooks docs/api/generated dist

# One environment; each stamp says that one set of extras is installed in it. Modules are compiled
# when they are first imported: to compile all of them here would take half as long again.
$(VENV)/.base: EXTRAS := [coast]
$(VENV)/.test: EXTRAS := [test,docs,lab,browser,genes]
$(VENV)/.lab: EXTRAS := [lab]
$(VENV)/.bench: EXTRAS := [bench]
$(VENV)/.gpu: EXTRAS := [test,bench,gpu]

$(VENV)/.base $(VENV)/.test $(VENV)/.lab $(VENV)/.bench $(VENV)/.gpu: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "Installing .$(EXTRAS) into $(VENV) (a minute or two)"
	@$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.$(EXTRAS)'
	@touch $@

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is `$(PYTHON) --version 2>&1`; this needs Python 3.11 or newer:" \
	    "make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' || { \
	  echo "$(PYTHON) cannot make environments: install its venv package" \
	    "(python3-venv on Debian and Ubuntu)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@
