# Weir's commands; `make help` lists them. Needed: Debian or Ubuntu, make, Python 3.11 to 3.13
# with venv. What else is needed comes from requirements.lock.

VENV := .venv
PY := $(VENV)/bin/python
PACKAGES := $(VENV)/.packages
INSTALLED := $(VENV)/.installed
PIP := $(PY) -m pip --disable-pip-version-check --no-input
# Takes a quarter of pip's time; pip helps out where only pip is told of an index. The certificates
# are those of the system, by the old and the new name of that setting.
UV := UV_NATIVE_TLS=1 UV_SYSTEM_CERTS=1 $(PY) -m uv

# The first Python that fits, unless one is named: make run PYTHON=/usr/bin/python3.12
# The distribution's goes first: it is compiled with profile-guided optimization, which pyenv leaves
# out by default: the tests of topology and online placement took nearly twice the processor time there.
FITS := import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for name in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do \
	$$name -c '$(FITS)' 2>/dev/null && echo $$name && break; done)

# What pytest is given: make test T='tests/algorithms -k seed'
T ?=
# Processes that share the tests; with more than cores, tests reach their time limits (0055).
N ?= 2
# The sample of make mutants.
SEED ?= 1

.DEFAULT_GOAL := help
.PHONY: help run test nightly mutants install packages lint format types contracts check lock bench site screenshots clean

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 20

run: $(INSTALLED) ## install what is missing and run Weir until Ctrl-C
	@exec env WEIR_UNDER_MAKE=1 $(VENV)/bin/weir serve

test: $(INSTALLED) ## install what is missing and run the tests that every change must pass
	@chromium="$$(.ci/chromium)" && postgres="$$(.ci/postgres)" && \
	java="$$($(PY) -m controlplane.processes.runtime.java $(VENV)/java)" && \
	exec env CHROMIUM="$$chromium" POSTGRES="$$postgres" JAVA_HOME="$$java" $(PY) -m pytest -n $(N) \
	--dist loadscope --no-loadscope-reorder $(T)

nightly: $(INSTALLED) ## what takes longer, in parts of up to 40 minutes; P=PART: this one (tests/support/nightly.py)
	@chromium="$$(.ci/chromium)" && postgres="$$(.ci/postgres)" && \
	java="$$($(PY) -m controlplane.processes.runtime.java $(VENV)/java)" || exit 1; \
	export CHROMIUM="$$chromium" POSTGRES="$$postgres" JAVA_HOME="$$java"; failed=; \
	for part in $(or $(P),$$($(PY) -m tests.support.nightly)); do echo "== $$part"; \
	WEIR_NIGHTLY=$$part $(PY) -m pytest -n $(N) --dist loadscope --no-loadscope-reorder $(T) || \
	failed="$$failed $$part"; done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

mutants: $(INSTALLED) ## test 200 small faults of the code: how many the tests detect (takes an hour)
	@exec $(PY) -m benchmarks.mutation.sample --output mutants.json --seed $(SEED)

install: $(INSTALLED) ## make .venv as requirements.lock says

packages: $(PACKAGES) # without what is compiled from them: types can be checked meanwhile

$(PACKAGES): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "weir: no Python 3.11 to 3.13 with venv was found." >&2; \
		echo "weir: what to do: apt-get install python3-venv, or make PYTHON=/path/to/python3.11" >&2; \
		exit 1; fi
	@$(PY) -c '$(FITS)' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@echo "weir: installing into $(VENV); the first time takes a few minutes"
	@$(PIP) install --quiet 'uv>=0.9'
	@$(UV) pip install --quiet --compile-bytecode --requirement requirements.lock || \
		$(PIP) install --quiet --requirement requirements.lock
	@$(PIP) install --quiet --no-deps --editable .
	@touch $@

$(INSTALLED): $(PACKAGES)
	@$(VENV)/bin/weir prepare
	@touch $@

lint: $(INSTALLED) ## ruff: rules and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: $(INSTALLED) ## let ruff mend what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: $(INSTALLED) ## mypy, strict
	$(PY) -m mypy

contracts: $(INSTALLED) ## import-linter: who may import whom
	$(VENV)/bin/lint-imports

check: lint types contracts test ## everything that .ci/run runs

lock: $(INSTALLED) ## make requirements.lock anew from pyproject.toml
	$(PIP) install --quiet 'uv>=0.9'
	$(UV) pip compile --quiet --universal --python-version 3.11 --extra dev --upgrade \
		--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
		--output-file requirements.lock pyproject.toml

bench: $(INSTALLED) ## run the benchmarks and print their tables
	@chromium="$$(.ci/chromium)" && java="$$($(PY) -m controlplane.processes.runtime.java $(VENV)/java)" && \
	exec env CHROMIUM="$$chromium" JAVA_HOME="$$java" $(PY) -m benchmarks

site: $(INSTALLED) ## build the documentation as a site in .site
	$(PY) -m mkdocs build --strict

screenshots: $(INSTALLED) ## draw docs/images from a running Weir; D=FOLDER: every page, both themes, two widths; P=a,b: these
	@chromium="$$(.ci/chromium)" && exec env CHROMIUM="$$chromium" DJANGO_SETTINGS_MODULE=controlplane.settings \
	$(PY) -m docs.screenshots $(if $(D),--all $(D)) $(if $(P),--pages $(P))

clean: ## remove .venv and caches; the data directory stays
	rm -rf $(VENV) .site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
