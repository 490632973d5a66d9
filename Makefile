# `make demo` and `make test` do all the set-up themselves, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test fuzz lint clean

help:
	@echo "make demo    find a graph lottery ticket on the bundled digits graph"
	@echo "make test    check style and types, run all tests with coverage"
	@echo "make fuzz    read a million damaged and hostile files (FASTGLT_FUZZ=N: as many as N)"
	@echo "make lint    check style and types only"
	@echo "make clean   remove the virtual environment and caches"

demo: $(STAMP)
	@rm -rf runs/demo
	$(BIN)/fastglt find --out runs/demo

test: lint
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --cov=src/fastglt --cov-report=term

fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fastglt needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Installing into $(VENV), once; this takes a few minutes …"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
