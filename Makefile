# The commands of this project. Each makes .venv itself when it is missing or older than what it is made from.
# Needs Python 3.11 or newer and pip; another interpreter: `make test PYTHON=python3.12`.

PYTHON ?= python3
# More words for the command that a target runs: `make run ARGS="--port 9000"`, `make test ARGS="tests/service -x"`.
ARGS ?=
# A test that hangs fails after five minutes (tests/conftest.py). One that cannot be failed, because a thread hangs, ends
# its process with a traceback of every thread.
HANG := -o faulthandler_timeout=400 -o faulthandler_exit_on_timeout=true
# Four workers for two cores, because half of the time tests wait; a test file is never split between them.
# `make check WORKERS=0` runs the tests in one process.
WORKERS ?= 4

VENV := .venv
BIN := $(VENV)/bin
# Stamps: what running needs is installed, and what the tests and checks need, which is ten times as much.
RUN := $(VENV)/.run
TEST := $(VENV)/.test
DOCS := $(VENV)/.docs
# The versions of .ci/constraints.txt without their hashes: pip takes no hashes beside a project in a folder.
LOCKED := .ci/constraints.txt
PINS := $(VENV)/constraints.txt
# Writes hashes of all files that the index has of each version, for every platform and Python.
LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11.5
PIP := $(BIN)/python -m pip install --disable-pip-version-check
# Clients that tests/acceptance runs and that need more than they use (KiCost: wxPython): installed without their needs, each
# version in a folder of its own.
KICOST := 1.1.12 1.1.21
CLIENTS := $(VENV)/.clients
# And clients in JavaScript, by their hashes, where npm is.
NPM_LOCK := tests/acceptance/javascript/package-lock.json
# A test that runs make itself starts afresh, with nothing of the words that this make was called with. Bytecode is kept:
# tests start hundreds of interpreters, each of which would compile the same modules, for a second or two.
AFRESH := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u ARGS -u WORKERS -u PYTHONDONTWRITEBYTECODE
# Folders in order: what takes longest comes before the many quick ones, so that no worker ends long after the other.
PYTEST := $(AFRESH) $(BIN)/pytest $(HANG) -n $(WORKERS) --max-worker-restart 0 --dist loadfile --no-loadscope-reorder
# What a user installs, checked as an index would check it.
DIST = rm -rf dist && for part in . sandbox; do $(BIN)/python -m build --no-isolation --outdir dist $$part > /dev/null || exit 1; done && $(BIN)/twine check --strict dist/*

.PHONY: help run test test-fast programs check check-service check-tools check-sandbox types structure dist hooks bench docs format constraints clean
.DELETE_ON_ERROR:

help:
	@echo "make run          start the proxy on the embedded sandbox; it prints a curl line that works"
	@echo "make test         every test, five minutes on two idle cores; what is skipped is named at the end"
	@echo "make programs     install the programs that tests start (Debian; as root or with sudo)"
	@echo "make check        format, lint, types, import contracts, tests: what CI runs"
	@echo "make check-service, check-tools, check-sandbox   the same with the tests of one part"
	@echo "make test-fast    the tests of the service and the tools that start no servers, in about two minutes"
	@echo "make bench        the measurements of bench/"
	@echo "make docs         the documentation as a searchable site in build/docs; a broken link is an error"
	@echo "make dist         wheel and source distribution in dist/, checked with twine"
	@echo "make hooks        run the quick checks before each commit (pre-commit)"
	@echo "make format       put the code into its format"
	@echo "make constraints  move to the newest versions that pyproject.toml allows and pin them"
	@echo "make clean        remove everything that these commands made"

run: $(RUN)
	@$(BIN)/v3bridge serve $(ARGS)

test: $(TEST) $(CLIENTS)
	@.ci/programs
	@echo "running $(if $(ARGS),pytest $(ARGS),every test: five minutes on two idle cores)"
	@$(PYTEST) -rs $(ARGS)

programs:
	@.ci/programs --install

# What `check` does before the tests.
define CHECKS
	@echo "check 1/6: format"
	@$(BIN)/ruff format --check --quiet . || { echo "not in format; 'make format' puts it right" >&2; exit 1; }
	@echo "check 2/6: lint"
	@$(BIN)/ruff check --quiet .
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target types structure
endef

check: $(TEST) $(CLIENTS)
	$(CHECKS)
	@echo "check 6/6: tests"
	@$(PYTEST) -rs $(ARGS)

check-service check-tools check-sandbox: check-%: $(TEST)
	$(CHECKS)
	@echo "check 6/6: tests of the $*"
	@$(PYTEST) -rs tests/$* $(ARGS)

test-fast: $(TEST)
	@$(PYTEST) tests/service tests/tools $(ARGS)

# Steps of check, beside each other, because each keeps one core busy for half a minute.
types:
	@echo "check 3/6: types"
	@$(BIN)/mypy

structure:
	@echo "check 4/6: import contracts"
	@$(BIN)/lint-imports --no-logo
	@echo "check 5/6: wheel and source distribution"
	@$(DIST)

dist: $(TEST)
	@$(DIST)

hooks: $(TEST)
	@$(BIN)/pre-commit install

bench: $(TEST) $(CLIENTS)
	@$(BIN)/python -m bench $(ARGS)

docs: $(DOCS)
	@$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --nitpicky -c docs . build/docs
	@echo "build/docs/index.html"

format: $(TEST)
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format .

# A stamp comes last, so a set-up that broke off is done again. `-m venv` over an existing one keeps what is there.
# Compiled is only what is imported, when it is: most of what is installed never is.
$(RUN): pyproject.toml sandbox/pyproject.toml $(LOCKED)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0])'
	@echo "step 1 of 2: a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "step 2 of 2: what the service, its sandbox and comparisons need, some 45 packages"
	@sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' $(LOCKED) > $(PINS)
	@$(PIP) --no-compile -c $(PINS) -e '.[sandbox,sheet]' -e ./sandbox
	@touch $@

$(TEST): $(RUN)
	@echo "what tests and checks need, some 90 packages more"
	@$(PIP) -c $(PINS) -e '.[test]' -e ./sandbox
	@touch $@

$(DOCS): $(RUN)
	@echo "what the documentation site needs, some 25 packages more"
	@$(PIP) -c $(PINS) -e '.[docs]' -e ./sandbox
	@touch $@

$(CLIENTS): Makefile $(NPM_LOCK) | $(TEST)
	@echo "KiCost $(KICOST), graphql-request and openid-client, which tests run unmodified"
	@for version in $(KICOST); do $(PIP) --no-deps --upgrade --target $(VENV)/kicost-$$version kicost==$$version || exit 1; done
	@if command -v npm > /dev/null; then \
		mkdir -p $(VENV)/npm && cp $(dir $(NPM_LOCK))package*.json $(VENV)/npm && \
		npm ci --prefix $(VENV)/npm --ignore-scripts --no-audit --no-fund --silent; fi
	@touch $@

# The comments at the top of both files are kept; the versions and hashes below them are written anew.
constraints:
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --quiet --upgrade --upgrade-strategy eager -e '.[test,docs]' -e ./sandbox
	@$(BIN)/python -m pip freeze --exclude-editable --exclude v3bridge --exclude nexar-sandbox > $(PINS)
	@$(PIP) --quiet uv
	@sed -n '/^#/p' $(LOCKED) > $(VENV)/locked && $(LOCK) --no-deps $(PINS) >> $(VENV)/locked && mv $(VENV)/locked $(LOCKED)
	@sed -n '/^#/p' deploy/requirements.txt > $(VENV)/locked && echo hatchling | $(LOCK) --extra redis -c $(PINS) pyproject.toml - >> $(VENV)/locked && mv $(VENV)/locked deploy/requirements.txt
	@touch $(RUN) $(TEST) $(DOCS)

clean:
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find proxy sandbox tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
