# Every target sets itself up: a virtual environment in .venv with pinned versions, made once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
READY := $(VENV)/.ready
SITE := $(VENV)/.site
# pip compiles modules one after the other, half of the set-up: here every core does, afterwards, for what the
# demo needs; of what tests and the site need besides, few of 15,000 modules are ever imported, and each is compiled
# then. A file that is no Python of this version (a template, a test of a parser) is left as it is.
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib src || true
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
LOCKED := $(INSTALL) --require-hashes --no-deps
PIP := $(INSTALL) --constraint constraints.txt
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: help demo check test drills docs lint types bench results clean

help:
	@echo "make demo    set up, then in two minutes: a real model looked at, small GPTs compared, a page"
	@echo "make check   format, lint, types and the tests of what changed, within 90 s"
	@echo "make test    set up, then run the test suite"
	@echo "make drills  kills, full disks, clusters, bad calls and crafted files; fills docs/reliability.md"
	@echo "make lint    format check and lint        make types   mypy strict"
	@echo "make docs    the site of docs/ and the API, strict, to out/site/html"
	@echo "make bench   the speed tables, as ratios measured in one run"
	@echo "make results every table and figure of the documents, made again from results/"

# What the demo needs: the core, its pages, and a real pretrained model (weights alone, no code).
# Every file but torch's is one whose digest the lock holds; torch follows constraints.txt.
$(CORE): pyproject.toml constraints.txt requirements/demo.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "depthpde needs Python 3.11 or newer: set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(LOCKED) --requirement requirements/demo.lock
	$(PIP) --editable '.[data,web]'
	$(COMPILE)
	@touch $@

# What tests, benchmarks and results need as well.
$(READY): $(CORE)
	# axe-core is in it as a file, for the accessibility test; its browser driver is not needed
	$(LOCKED) --requirement requirements/test.lock
	$(PIP) --editable '.[test]'
	# timm apart from the rest: it would pull a CUDA torchvision
	$(LOCKED) --target $(VENV)/timm --upgrade --requirement requirements/timm.lock
	@touch $@

# What the site needs besides the core.
$(SITE): $(CORE)
	$(PIP) --editable '.[docs]'
	@touch $@

demo: $(CORE)
	$(BIN)/depthpde demo

check: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python tools/check.py

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m 'not drill' --durations 25 --durations-min 4 --numprocesses $(WORKERS) --dist worksteal

drills: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m drill --numprocesses $(WORKERS) --dist loadfile --table=docs/reliability.md tests

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

docs: $(SITE)
	$(BIN)/python tools/build_site.py

bench: $(READY)
	$(BIN)/python benchmarks/diffusion.py --check
	$(BIN)/python benchmarks/gpu_plan.py --check
	$(BIN)/python benchmarks/placement.py --check
	$(BIN)/python benchmarks/data.py --check
	$(BIN)/python benchmarks/trivial_lines.py --check
	$(BIN)/python benchmarks/training.py --check
	$(BIN)/python benchmarks/dashboard.py --check
	$(BIN)/python benchmarks/audit.py --check
	$(BIN)/python benchmarks/reach.py --check
	$(BIN)/python benchmarks/inference.py --check
	$(BIN)/python benchmarks/simulator.py --check
	$(BIN)/python benchmarks/doctor.py cost --check
	$(BIN)/python benchmarks/doctor.py early --check
	$(BIN)/python benchmarks/doctor.py exam --slice --check

results: $(READY)
	rm -rf results/report
	$(BIN)/depthpde report results --fill README.md docs/findings.md

clean:
	rm -rf $(VENV) build dist out
