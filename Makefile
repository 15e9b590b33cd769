# Two commands matter: `make demo` and `make test`. Both prepare .venv on first use.

PYTHON ?= python3
PORT ?= 8787
NO_BROWSER ?=
TORCH_INDEX ?=
PYTEST_ARGS ?=
JOBS ?= 2
SECONDS ?= 60
SEEDS ?= 1000
PROCESSES ?= 1
OUT ?=
WHEELHOUSE ?= wheelhouse

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --constraint constraints.txt
RECIPE := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check fix bench fuzz simulate model wheelhouse clean

help:  ## Say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  PORT=8787       the demo's port"
	@echo "  NO_BROWSER=1    do not open a browser"
	@echo "  TORCH_INDEX=URL take torch from this wheel index (pytorch.org names one for the CPU alone, a fraction"
	@echo "                  of the size); empty: from where pip takes everything else"
	@echo "  PYTEST_ARGS=... passed to pytest: PYTEST_ARGS='-k ledger'; JOBS=2: how many processes run tests side by side"
	@echo "  SEEDS=1000      how many seeds to simulate; OUT=file.json keeps the result, and goes on from it"
	@echo "  PROCESSES=1     how many processes share the seeds; LIMIT_S=400: stop after so long, and go on another time"
	@echo "  PYTHON=python3  the Python to make .venv from, 3.11 or newer"

demo: $(VENV)/demo.done  ## A live world on this machine, in your browser
	@exec $(BIN)/worldmove demo --port $(PORT) $(if $(NO_BROWSER),--no-browser)

test: $(VENV)/test.done  ## Everything that needs no GPU
	@$(BIN)/python -m tests $(JOBS) $(PYTEST_ARGS)

check: $(VENV)/check.done  ## Lint, format, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

fix: $(VENV)/check.done  ## Mend what the linter can mend, and format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/test.done  ## Take the figures of docs/figures.md, on this machine alone
	$(BIN)/python -m bench.all

fuzz: $(VENV)/fuzz.done  ## Throw bytes at every decoder, guided by coverage: SECONDS=60 each
	$(BIN)/python -m bench.fuzz --seconds $(SECONDS)

simulate: $(VENV)/test.done  ## Run SEEDS=n seeds of the deterministic simulation, in virtual time
	PYTHONPATH=src $(BIN)/python -m tests.simulation --seeds $(SEEDS) --processes $(PROCESSES) \
		$(if $(LIMIT_S),--limit-s $(LIMIT_S)) $(if $(OUT),--out $(OUT))

model: $(VENV)/test.done  ## Explore the protocol within its large bounds (an hour, gigabytes), and file the counts
	$(BIN)/python -m tests.model.large

wheelhouse: $(VENV)/torch.done  ## Collect the wheels for a GPU host without a network in WHEELHOUSE=wheelhouse
	$(BIN)/python -m tests.gpu.wheelhouse collect $(WHEELHOUSE)

clean:  ## Remove .venv and every cache
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/torch.done: $(RECIPE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "WorldMove needs Python 3.11 or newer. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Preparing $(VENV) (once; some minutes)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) --no-deps torch)
	@touch $@

$(VENV)/demo.done: $(VENV)/torch.done
	@$(PIP) --editable .
	@touch $@

$(VENV)/test.done: $(VENV)/torch.done
	@$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/demo.done

$(VENV)/fuzz.done: $(VENV)/torch.done
	@$(PIP) --editable '.[test,fuzz]'
	@touch $@ $(VENV)/test.done $(VENV)/demo.done

$(VENV)/check.done: $(VENV)/torch.done
	@$(PIP) --editable '.[test,check]'
	@touch $@ $(VENV)/test.done $(VENV)/demo.done
