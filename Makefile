# Everything starts from a bare clone: each target makes the environment it needs.
#
#   make demo          a first look, under a minute
#   make test          the tests that need no PyTorch           .venv
#   make test-gpu      the Triton kernels, interpreted if there is no GPU   .venv-gpu
#   make test-slow     the longer checks of both
#   make test-integrations  beside other libraries, with their own suites   .venv-hosts, ...
#   make test-minimal  `pip install .` and no extra             .venv-minimal
#   make test-oldest   the oldest versions allowed, oldest.txt  .venv-oldest
#   make docs          the site, in out/docs                    .venv-docs
#   make dist-check    build, check and install what is released .venv-dist
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Byte code is written at the first import: half of an installation would be spent on files that
# nobody reads. -qq leaves errors.
INSTALL := pip install -qq --no-compile
# Where it is set, every process that the tests start would translate Numba and the others again.
unexport PYTHONDONTWRITEBYTECODE
OLDEST_TESTS := tests/test_space.py tests/test_optimizer.py tests/test_engines.py \
  tests/test_cli.py tests/test_plots.py tests/test_pbo.py tests/test_features.py \
  tests/test_tabular.py tests/test_bench_algorithms.py
HOST_TESTS := tests/integrations tests/test_docs.py -n 2 --dist worksteal $(if $(SLOW),,-m "not slow")

.PHONY: demo test test-gpu test-slow test-integrations test-minimal test-oldest docs dist-check lint format bench clean

demo: $(VENV)/.base
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal -m "not slow and not gpu"

test-gpu: $(VENV)-gpu/.gpu
	$(VENV)-gpu/bin/python -m pytest -m "gpu and not slow"

test-slow: $(VENV)/.dev $(VENV)-gpu/.gpu
	$(BIN)/python -m pytest -m "not gpu"
	$(VENV)-gpu/bin/python -m pytest -m gpu

# With the newest versions and with the oldest. The longest are left out, unless SLOW=1 is given.
test-integrations: $(VENV)-hosts/.hosts $(VENV)-ray/.hosts $(VENV)-oldest/.oldest
	$(VENV)-hosts/bin/python -m pytest $(HOST_TESTS) -k "integrations or optuna or sklearn or ioh"
	$(VENV)-ray/bin/python -m pytest $(HOST_TESTS) -k "test_ray or ray.md"
	$(VENV)-oldest/bin/python -m pytest $(HOST_TESTS) -k "test_optuna or test_sklearn or nevergrad"

# Not editable and outside the tree: what is imported is what was installed.
test-minimal: $(VENV)-minimal/.venv
	rm -rf build # modules of an earlier tree would be installed as well
	$(VENV)-minimal/bin/$(INSTALL) .
	cd $(VENV)-minimal && bin/python ../tests/test_packaging_minimal.py

test-oldest: $(VENV)-oldest/.oldest
	$(VENV)-oldest/bin/python -m pytest -m "not slow and not gpu" $(OLDEST_TESTS)

# Every warning is an error; what is not rebuilt is what has not changed.
docs: $(VENV)-docs/.docs
	$(VENV)-docs/bin/python -m sphinx -q -W --keep-going -b html -d out/doctrees docs out/docs

# The wheel is built from the sdist, and both are installed: the wheel without extras.
dist-check: $(VENV)-dist/.dist
	rm -rf build dist
	$(VENV)-dist/bin/python -m build --quiet --outdir dist .
	$(VENV)-dist/bin/twine check --strict dist/*
	$(VENV)-dist/bin/python .ci/check_dist.py dist

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
	$(BIN)/python benchmarks/integer_digits.py
	$(BIN)/python benchmarks/problems.py
	$(BIN)/python benchmarks/baselines.py
	$(BIN)/python benchmarks/baselines.py --runs 50 --algorithm "BOA, read in reverse" \
	  --out baselines_boa.csv
	$(BIN)/python benchmarks/local_search.py
	$(BIN)/python benchmarks/confirm.py run
	$(BIN)/python benchmarks/compiling.py
	$(BIN)/python benchmarks/loop.py session
	$(BIN)/python benchmarks/loop.py overhead
	$(BIN)/python benchmarks/loop.py async
	$(BIN)/python benchmarks/loop.py million

clean:
	rm -rf $(VENV) $(VENV)-* out build dist docs/gallery docs/api/generated docs/sg_execution_times.rst

%/.venv:
	$(PYTHON) -m venv $*
	touch $@

$(VENV)/.base: $(VENV)/.venv pyproject.toml
	$(BIN)/$(INSTALL) -e '.[plot]'
	touch $@

$(VENV)/.dev: $(VENV)/.venv pyproject.toml
	$(BIN)/$(INSTALL) -e '.[dev]'
	touch $@ $(VENV)/.base

$(VENV)/.bench: $(VENV)/.venv pyproject.toml
	$(BIN)/$(INSTALL) -e '.[dev,bench]'
	touch $@ $(VENV)/.base $(VENV)/.dev

$(VENV)-gpu/.gpu: $(VENV)-gpu/.venv pyproject.toml
	$(VENV)-gpu/bin/$(INSTALL) -e '.[gpu-test]'
	touch $@

$(VENV)-oldest/.oldest: $(VENV)-oldest/.venv pyproject.toml oldest.txt
	$(VENV)-oldest/bin/$(INSTALL) -c oldest.txt -e '.[test,peers,hpobench]'
	touch $@

$(VENV)-hosts/.hosts: $(VENV)-hosts/.venv pyproject.toml
	$(VENV)-hosts/bin/$(INSTALL) -e '.[test,optuna,sklearn]' optuna==5.0.0 optunahub iohinspector \
	  dask-jobqueue dask-kubernetes psycopg2-binary submitit
	touch $@

$(VENV)-ray/.hosts: $(VENV)-ray/.venv pyproject.toml
	$(VENV)-ray/bin/$(INSTALL) -e '.[test,ray]'
	touch $@

$(VENV)-docs/.docs: $(VENV)-docs/.venv pyproject.toml
	$(VENV)-docs/bin/$(INSTALL) -e '.[docs]'
	touch $@

$(VENV)-dist/.dist: $(VENV)-dist/.venv
	$(VENV)-dist/bin/$(INSTALL) build twine
	touch $@
