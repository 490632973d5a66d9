# `make demo`, `make test` and `make docs` do all the set-up themselves, once.
# `make test CONSTRAINTS=constraints-lowest.txt` tests with the oldest versions that pyproject.toml allows.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
EXTRAS ?= dev
VENV := $(if $(filter constraints.txt,$(CONSTRAINTS)),.venv,.venv-$(basename $(notdir $(CONSTRAINTS))))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test coverage federated federated-tests fuzz kills lint style types tests docs clean

# Tests import the same modules in many processes: compiled once, they are there for all. Threads that wait leave
# the core to others.
unexport PYTHONDONTWRITEBYTECODE
export OMP_WAIT_POLICY := passive

help:
	@echo "make demo    find a ticket on the bundled digits graph, and prove on fresh seeds that it is no worse than dense"
	@echo "make test    check style and types, run all tests"
	@echo "make coverage  run all tests and count the lines that they reach, which takes half as long again"
	@echo "make federated  set up an environment with Flower, and run the tests of federated training in it"
	@echo "make fuzz    read a million damaged and hostile files (FASTGLT_FUZZ=N: as many as N)"
	@echo "make kills   kill -9 commands 500 times, and compare with what nobody disturbs (FASTGLT_KILLS=N: N times)"
	@echo "make lint    check style and types only"
	@echo "make docs    build the pages and the API reference into docs/_build"
	@echo "make clean   remove the virtual environment and caches"

# What `fastglt find --prefer small` chooses on validation scores of the digits graph; it looks for a minute or two.
demo: $(STAMP)
	@rm -rf runs/demo
	$(BIN)/fastglt find --method forest --structure units --graph-sparsity 0.35 --weight-sparsity 0.9 --out runs/demo
	$(BIN)/fastglt evaluate runs/demo --seeds 1-3

# Types are checked while the tests run; whichever fails, `make test` fails. Style and types are checked with the
# pinned versions alone: older packages describe their types otherwise.
test: $(if $(filter constraints.txt,$(CONSTRAINTS)),style,$(STAMP))
	+$(MAKE) --no-print-directory --jobs 2 $(if $(filter constraints.txt,$(CONSTRAINTS)),types) tests

tests: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

coverage: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal --cov=src/fastglt --cov-report=term

# Flower holds other packages back, so it has an environment and constraints of its own.
federated:
	$(MAKE) --no-print-directory CONSTRAINTS=constraints-federated.txt EXTRAS=dev,federated federated-tests

federated-tests: $(STAMP)
	$(BIN)/python -m pytest -q tests/federated tests/cli/commands/test_federated.py

fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz

kills: $(STAMP)
	$(BIN)/python -m tests.kills
	FASTGLT_LIMITS=12 $(BIN)/python -m pytest -q tests/cli/test_low_memory.py

lint: style types

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going --quiet docs docs/_build

# Most modules of the packages are never imported; those that are, are compiled then.
$(STAMP): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fastglt needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Installing into $(VENV), once; this takes a few minutes …"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c $(CONSTRAINTS) -e ".[$(EXTRAS)]"
	@touch $@

clean:
	rm -rf .venv .venv-* docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
