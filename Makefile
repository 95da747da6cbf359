# Everything starts from a bare clone: each target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow lint format bench clean

demo: $(VENV)/.base
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/reproduce_core.py --figure docs/reproduce_core.png
	$(BIN)/python benchmarks/reproduce_core.py --runs 30 --algorithm text \
	  --algorithm text+input_rate=12.8 --algorithm 'text+layer_rates=(0.2,1.0)' --out input_rate.csv
	$(BIN)/python benchmarks/reproduce_core.py --algorithm "iterated local search" \
	  --algorithm "simulated annealing" --algorithm "tabu search" --out local_search.csv
	$(BIN)/python benchmarks/integer_encoding.py
	$(BIN)/python benchmarks/problems.py
	$(BIN)/python benchmarks/baselines.py
	$(BIN)/python benchmarks/baselines.py --runs 50 --algorithm "BOA, read in reverse" \
	  --out baselines_boa.csv
	$(BIN)/python benchmarks/local_search.py
	$(BIN)/python benchmarks/loop.py session
	$(BIN)/python benchmarks/loop.py overhead
	$(BIN)/python benchmarks/loop.py async
	$(BIN)/python benchmarks/loop.py million

clean:
	rm -rf $(VENV) out

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.base: $(VENV)/.venv pyproject.toml
	$(BIN)/pip install -q -e '.[plot]'
	touch $@

$(VENV)/.dev: $(VENV)/.venv pyproject.toml
	$(BIN)/pip install -q -e '.[dev]'
	touch $@ $(VENV)/.base

$(VENV)/.bench: $(VENV)/.venv pyproject.toml
	$(BIN)/pip install -q -e '.[dev,bench]'
	touch $@ $(VENV)/.base $(VENV)/.dev
