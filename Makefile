# `make evaluate` and `make test` set themselves up: Python 3.11-3.14, git and a C++ compiler are all they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SOURCE := lcm eval pipelines benchmarks tests

# hnswlib compiles for this very processor unless told otherwise; a portable build can be cached and moved.
export HNSWLIB_NO_NATIVE = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: evaluate test test-ci test-all slow-tests check format benchmark docs clean

evaluate: $(STAMP)  ## evaluate the default memory on the bundled sample
	$(BIN)/lcm evaluate

test: $(STAMP)  ## what a change is likely to break: four minutes on two cores (docs/tests.md)
	$(BIN)/python -m pytest -n 2 -m "not full and not slow" --hypothesis-profile=fast --largest-worker-mb=2000

test-ci: $(STAMP)  ## the tests that must pass before anything lands, as `make check` must
	$(BIN)/python -m pytest -n 2 -m "not full" --hypothesis-profile=fast --largest-worker-mb=2000

test-all: $(STAMP)  ## everything, and property tests with all their examples
	$(BIN)/python -m pytest -n 2

slow-tests: $(STAMP)  ## record which tests take over half a second, which `make test` then leaves out
	$(BIN)/python -m pytest -n 2 -m "not full" --record-slow --hypothesis-profile=fast

check: $(STAMP)  ## lint and types
	$(BIN)/ruff check $(SOURCE)
	$(BIN)/ruff format --check $(SOURCE)
	$(BIN)/mypy

format: $(STAMP)  ## put the code into its one format
	$(BIN)/ruff check --fix $(SOURCE)
	$(BIN)/ruff format $(SOURCE)

benchmark: $(STAMP)  ## time lcm against the libraries below it: make benchmark ARGS="repeats=3 growth=null" (docs/benchmark.md)
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(STAMP)  ## the documentation as a site, in build/docs
	$(BIN)/python docs/reference.py
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs build/docs
	@echo "Read it: build/docs/index.html"

clean:  ## remove the environment and everything that runs left behind
	rm -rf $(VENV) build docs/components runs multirun mlruns mlflow.db workspace.db*

# Installs once; again only when what is to be installed has changed.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 14) else f"Python 3.11-3.14 is needed, $(PYTHON) is {v[0]}.{v[1]}; name another with: make PYTHON=python3.12")'
	@echo "Installing into $(VENV): some minutes, about 2.5 GB"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[models,dev]'
	touch $@
