# `make demo`, `make test` and `make docs` do all the set-up themselves, once.
# `make test CONSTRAINTS=constraints-lowest.txt` tests with the oldest versions that pyproject.toml allows.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
VENV := $(if $(filter constraints.txt,$(CONSTRAINTS)),.venv,.venv-$(basename $(notdir $(CONSTRAINTS))))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test coverage fuzz kills lint docs clean

help:
	@echo "make demo    find a graph lottery ticket on the bundled digits graph"
	@echo "make test    check style and types, run all tests"
	@echo "make coverage  run all tests and count the lines that they reach, which takes half as long again"
	@echo "make fuzz    read a million damaged and hostile files (FASTGLT_FUZZ=N: as many as N)"
	@echo "make kills   kill -9 commands 500 times, and compare with what nobody disturbs (FASTGLT_KILLS=N: N times)"
	@echo "make lint    check style and types only"
	@echo "make docs    build the pages and the API reference into docs/_build"
	@echo "make clean   remove the virtual environment and caches"

demo: $(STAMP)
	@rm -rf runs/demo
	$(BIN)/fastglt find --out runs/demo

# Style and types are checked with the pinned versions alone: older packages describe their types otherwise.
test: $(if $(filter constraints.txt,$(CONSTRAINTS)),lint,$(STAMP))
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

coverage: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal --cov=src/fastglt --cov-report=term

fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz

kills: $(STAMP)
	$(BIN)/python -m tests.kills
	FASTGLT_LIMITS=12 $(BIN)/python -m pytest -q tests/cli/test_low_memory.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going --quiet docs docs/_build

$(STAMP): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fastglt needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Installing into $(VENV), once; this takes a few minutes …"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[dev]"
	@touch $@

clean:
	rm -rf .venv .venv-* docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
