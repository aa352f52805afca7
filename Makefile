# demo, test and bench set themselves up: Python 3.11 or newer and make are all they need.
PYTHON ?= python3
# more arguments for pytest, e.g. make test PYTEST_ARGS="-k graph"
PYTEST_ARGS ?=

RUN := .venv/bin/python
BENCH := .venv-bench/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check
# parallel test processes must not each start a pool of linear algebra threads
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1

.PHONY: demo test lint bench docs clean

demo: .venv/installed
	$(RUN) -m spectralgp demo

test: lint
	$(ONE_THREAD) $(RUN) -m pytest -q -n 2 $(PYTEST_ARGS)

lint: .venv/installed-test
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# in an environment of its own, with the libraries it compares with; the GPU has benchmarks/gpu.py, run where one is
bench: .venv-bench/installed
	set -e; for script in benchmarks/bench_*.py; do echo "== $$script"; $(BENCH) "$$script"; done
	$(BENCH) benchmarks/write_performance.py

# the pictures of the documentation; the pages themselves are plain Markdown
docs: .venv/installed
	@if [ -f docs/make.py ]; then $(RUN) docs/make.py; else echo "no docs/make.py: nothing to build"; fi

# the environments stay: remove them with rm -r .venv .venv-bench
clean:
	rm -rf build dist demo-output reproduction-output reproduction-quick .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests reproduction -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps depend on pyproject.toml, so that a second run installs nothing. An environment without a working
# pip (an interrupted first run) is made anew.
.venv/installed: pyproject.toml
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(PIP) --editable .
	@touch $@

.venv/installed-test: pyproject.toml
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(PIP) --editable ".[test]"
	@touch .venv/installed $@

.venv-bench/installed: pyproject.toml benchmarks/requirements.txt
	@$(BENCH) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-bench
	$(BENCH) -m pip install --quiet --disable-pip-version-check --requirement benchmarks/requirements.txt
	@touch $@
