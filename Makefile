# Two commands do all set-up: `make demo` runs the main job on bundled photos, `make test` runs the tests.
# They need python3, make and a package index, nothing else. Tests that need more say so at the end, and what.

VENV := .venv
BIN := $(VENV)/bin

# MediaPipe's wheel exists for Python 3.11 and 3.12; on 3.13 everything but its systems works, and the demo runs another.
FIND_PYTHON = for p in $(PYTHON) python3.12 python3.11 python3 python; do \
	if command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] <= $(1)))' 2>/dev/null; \
	then echo $$p; exit 0; fi; done; exit 1

.PHONY: demo test lint clean

demo: $(VENV)/ready
	@set -e; if $(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 13))'; then \
		job="mediapipe-holistic met-pose/sub sample-photos"; threshold="--threshold 0.2"; \
	else \
		job="goalmap trajtest examples/walkers/walkers.csv"; threshold=; \
		echo "MediaPipe's wheel needs Python 3.11 or 3.12 and this is $$($(BIN)/python -V): the demo tests a predictor of"; \
		echo "walkers instead of a pose estimator. With another Python: make clean demo PYTHON=python3.12"; echo; \
	fi; \
	$(BIN)/instar run $$job --out runs/demo $$threshold; echo; \
	$(BIN)/instar report runs/demo $$threshold --out runs/demo-report.html
	@echo "or look at it in the viewer: $(BIN)/instar view runs/demo"

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest --dist worksteal -n $$(( 2 * $$(nproc 2>/dev/null || echo 2) ))  # many tests wait for processes of their own

lint: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/ready: pyproject.toml requirements/core.txt requirements/demo.txt requirements/without-deps.txt
	@python=$$($(call FIND_PYTHON,(3, 13))) || { \
		echo "Instar needs Python 3.11, 3.12 or 3.13, and found none; install one, or say which: make demo PYTHON=/path/to/python3.12"; exit 1; }; \
	[ -x $(BIN)/python ] || $$python -m venv $(VENV)
	@echo "setting up $(VENV) with $$($(BIN)/python -V) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt -r requirements/demo.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/without-deps.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

clean:
	rm -rf $(VENV) runs/demo runs/demo-report.html
