# The targets set themselves up: Python 3.11 or newer and make are all they need.
PYTHON ?= python3
# more arguments for pytest, e.g. make test PYTEST_ARGS="-k graph"
PYTEST_ARGS ?=
# folder for the results of reproduce and reproduce-quick, where not their own; never taken from the environment
OUT :=

RUN := .venv/bin/python
BENCH := .venv-bench/bin/python
DOCS := .venv-docs/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check
OUT_OPTION := $(if $(OUT),--out "$(OUT)")
# parallel test processes must not each start a pool of linear algebra threads
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1
# a process that finishes its own half of the tests takes from the other's: fixtures are made once, and neither waits
PYTEST := $(ONE_THREAD) $(RUN) -m pytest -q -n 2 --dist worksteal
# without compiled files every process would compile its imports and rewrite its assertions again
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all lint bench reproduce reproduce-quick docs pictures dist clean

demo: .venv/installed
	$(RUN) -m spectralgp demo

# what a change to the package can break (benchmarks/mutants.py names the same tests)
test: lint
	$(PYTEST) src tests -m "not slow" --ignore=tests/repository $(PYTEST_ARGS)

# all tests: those of the repository and the slow ones too, and more examples of every property
test-all: lint
	$(PYTEST) --hypothesis-profile=thorough $(PYTEST_ARGS)

lint: .venv/installed-test
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# in an environment of its own, with the libraries it compares with; the GPU has benchmarks/gpu.py, run where one is
bench: .venv-bench/installed
	set -e; for script in benchmarks/bench_*.py; do echo "== $$script"; $(BENCH) "$$script"; done
	$(BENCH) benchmarks/write_performance.py

# the paper's data beside the checkout, where the tests look too; where they are not, they are downloaded
reproduce reproduce-quick: export SPECTRALGP_DATA ?= $(wildcard ../shared/data)

# every experiment of the paper, in full, and docs/reproduction.md with its appendices and pictures from the results
reproduce: .venv/installed
	$(RUN) -m reproduction --all $(OUT_OPTION) --docs docs

# a cut of every experiment, in under a minute; the documentation stays as it is
reproduce-quick: .venv/installed
	$(RUN) -m reproduction --quick $(OUT_OPTION)

# the documentation site, in build/docs; a warning is an error
docs: .venv-docs/installed
	$(DOCS) docs/make_api.py
	$(DOCS) -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

# the pictures of the documentation, but for those of the reproduction
pictures: .venv/installed
	$(RUN) docs/make.py

# sdist and wheel, in dist; the wheel is built from the sdist
dist: .venv/installed-test
	rm -rf dist
	$(RUN) -m build --no-isolation

# the environments stay: remove them with rm -r .venv .venv-bench .venv-docs
clean:
	rm -rf build dist docs/generated demo-output reproduction-output reproduction-quick .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks reproduction -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps depend on pyproject.toml, so that a second run installs nothing. An environment without a working
# pip (an interrupted first run) is made anew.
.venv/installed: pyproject.toml
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(PIP) --editable ".[all]"
	@touch $@

.venv/installed-test: pyproject.toml
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(PIP) --editable ".[test]"
	@touch .venv/installed $@

.venv-docs/installed: pyproject.toml
	@$(DOCS) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-docs
	$(DOCS) -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

.venv-bench/installed: pyproject.toml benchmarks/requirements.txt
	@$(BENCH) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-bench
	$(BENCH) -m pip install --quiet --disable-pip-version-check --requirement benchmarks/requirements.txt
	@touch $@
