# The tasks of this checkout; `make` alone lists them. Everything is installed into .venv (and, for the tests of the
# Node SDK and of the console, node_modules below tests/) from lock files with hashes. Nothing else on the machine changes.

.DEFAULT_GOAL := help
.PHONY: audit help install run test covered check testing lowest newest format docs release sums vendor screenshots lock

# Of all Pythons in PATH an optimised build (flowserver/base/interpreter.py), and of equals the newest. A name may exist
# without an interpreter behind it (pyenv's shims).
SUPPORTED := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in $$(which -a python3.13 python3.12 python3.11 python3 2>/dev/null); do \
	echo "$$($$name flowserver/base/interpreter.py 2>/dev/null) $$name"; \
	done | awk '$$1 + 0 > best { best = $$1 + 0; name = $$2 } END { print name }')

VENV := .venv
BIN := $(VENV)/bin
export PIP_ROOT_USER_ACTION := ignore
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input

# Stamps: an environment is rebuilt only when its lock file changes.
# The lock files name every package, so pip need not resolve; before 23.1 it takes a newer release for a name with extras.
RUNTIME := $(VENV)/.runtime
PROJECT := $(VENV)/.project
TESTING := $(VENV)/.testing
SDK_V3 := $(VENV)/sdk-v3/.installed
OPENAPI_CLIENT := $(VENV)/openapi-client/.installed
SDK_NODE := tests/sdk/node/node_modules/.package-lock.json
OPENAPI_NODE := tests/openapi/node_modules/.package-lock.json
CONSOLE := tests/console/node_modules/.package-lock.json
YAML_SERVER := tests/editing/yaml_language_server/node_modules/.package-lock.json
CHROMIUM := tests/console/node_modules/.chromium/fonts/fonts.conf

# Node comes from a package, too. The tests of the Node SDK, of the console and of the JSON Schemas have their own npm packages. npm trusts the
# certificates of the system, as pip does: a proxy of a company may have its own.
NODE := $(CURDIR)/$(BIN)/node
NPM := NODE_USE_SYSTEM_CA=1 $(CURDIR)/$(BIN)/npm --no-audit --no-fund --ignore-scripts

# The SDKs under test use proxies even for 127.0.0.1 and ignore NO_PROXY. Without bytecode, every process that the tests
# start would compile its imports.
CLEAN := env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u http_proxy -u https_proxy -u all_proxy \
	-u PYTHONDONTWRITEBYTECODE

# These packages must be fully covered, so their tests run under coverage; the other tests run faster without it.
FULLY_COVERED := tests/language tests/expressions tests/machine

# Four processes keep two cores busy: a test spends much of its time waiting for a server, a database or a timer.
# They take modules in the order of collection, which starts with the slow ones.
WORKERS ?= 4
PYTEST := $(CLEAN) $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder

help: ## List the tasks
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

install: $(PROJECT) ## Build the environment in .venv

run: $(PROJECT) ## Migrate the database and serve
	@$(BIN)/flowserver migrate
	@exec $(BIN)/flowserver serve

test: testing ## Run every check and every test
	@$(MAKE) --no-print-directory --jobs=2 check covered
	$(PYTEST) $(FULLY_COVERED:%=--ignore=%)

covered: $(TESTING)
	$(PYTEST) --cov --cov-report= $(FULLY_COVERED)
	$(BIN)/coverage report --show-missing --skip-covered --fail-under=100

testing: $(TESTING) $(SDK_V3) $(OPENAPI_CLIENT) $(SDK_NODE) $(OPENAPI_NODE) $(YAML_SERVER) $(CHROMIUM) ## Install what tests, proofs and benchmarks need

lowest: ## Test with the oldest libraries that pyproject.toml allows
newest: ## Test with the newest libraries that pyproject.toml allows

# What users have who install without a lock file. These tests use most of what the libraries do.
AT_BOUNDS ?= tests/api tests/cli tests/client tests/editing tests/flowtests tests/front tests/invokers tests/store/test_migrations.py
lowest: RESOLUTION := lowest-direct
newest: RESOLUTION := highest
lowest newest: testing
	$(PIP) install uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/$@
	$(BIN)/uv pip compile --quiet --resolution $(RESOLUTION) --python-version 3.11 $(EXTRAS:%=--extra %) pyproject.toml \
		--output-file $(VENV)/$@/constraints.txt
	$(BIN)/uv pip install --quiet --python $(VENV)/$@/bin/python --constraint $(VENV)/$@/constraints.txt --group build \
		--editable '.[lsp,nats,otel,postgres,test]'
	PATH="$(CURDIR)/$(VENV)/$@/bin:$$PATH" \
		$(CLEAN) $(VENV)/$@/bin/python -m pytest -n $(WORKERS) --dist loadscope $(AT_BOUNDS)

check: $(TESTING) ## Lint, formatting, types and import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(TESTING) ## Format the code and fix what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(TESTING) ## Regenerate the generated parts of docs/
	$(BIN)/python -m tests.docs.generate

audit: $(TESTING) ## Look for known holes in the packages of the lock file (pip-audit; asks a public database)
	@$(BIN)/python -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet 'pip-audit==2.*'
	$(VENV)/audit/bin/pip-audit --requirement requirements.txt --require-hashes --disable-pip

FOLDER ?= build/screenshots

screenshots: testing ## Take pictures of every page of the console (FOLDER=build/screenshots)
	$(CLEAN) $(BIN)/python -m tests.console.seeded.screenshots $(FOLDER)

DIST ?= dist

release: $(TESTING) ## Build the wheel, the source archive, and the SBOM (CycloneDX) in dist/; sign them (KEY=a key of SSH)
	$(BIN)/python -m hatchling build
	$(BIN)/python -m venv $(VENV)/sbom && $(VENV)/sbom/bin/python -m pip install --quiet 'cyclonedx-bom==7.*'
	$(VENV)/sbom/bin/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml --mc-type application \
		--output-reproducible --of JSON --output-file dist/flowserver.cdx.json
	@$(MAKE) --no-print-directory sums

sums:
	cd $(DIST) && rm -f SHA256SUMS SHA256SUMS.sig && sha256sum -- * > SHA256SUMS
	$(if $(KEY),ssh-keygen -q -Y sign -f $(KEY) -n flowserver $(DIST)/SHA256SUMS)

vendor: $(CONSOLE) ## Bundle the console's libraries from tests/console/package-lock.json
	$(NODE) tests/console/vendor/build.mjs flowserver/console/vendor

EXTRAS := lsp nats otel postgres
UV_COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(UPGRADE)

lock: $(TESTING) ## Update the lock files from pyproject.toml and package.json (UPGRADE=--upgrade for newer versions)
	$(PIP) install uv
	$(UV_COMPILE) pyproject.toml $(EXTRAS:%=--extra %) --group build --output-file requirements.txt
	$(UV_COMPILE) pyproject.toml $(EXTRAS:%=--extra %) --extra test --constraint requirements.txt --output-file requirements-test.txt
	$(UV_COMPILE) --group sdk-v3 --output-file requirements-sdk-v3.txt
	$(UV_COMPILE) --group openapi-client --output-file requirements-openapi-client.txt
	for folder in tests/console tests/openapi tests/sdk/node tests/editing/yaml_language_server; do \
		(cd $$folder && $(NPM) install --package-lock-only --omit-lockfile-registry-resolved) || exit 1; done
	$(BIN)/python -m tests.tidy.without_addresses \
		$(addsuffix /package-lock.json,tests/console tests/openapi tests/sdk/node tests/editing/yaml_language_server)

$(RUNTIME): requirements.txt
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(SUPPORTED)' || \
		{ echo 'flowserver needs Python 3.11 or newer; none was found (make PYTHON=/path/to/python3).' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'Python lacks its venv module; on Debian: apt-get install python3-venv' >&2; exit 1; }
	@echo 'Building the environment in $(VENV) ...'
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes --no-deps --requirement requirements.txt
	@touch $@

$(PROJECT): $(RUNTIME) pyproject.toml
	@$(PIP) install --no-index --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q flowserver
	@touch $@

$(TESTING): $(PROJECT) requirements-test.txt
	@echo 'Installing what the tests need ...'
	@$(PIP) install --require-hashes --no-deps --requirement requirements-test.txt
	@touch $@

# openapi-python-client needs an older typer than the command line, so it has a folder of its own, too.
$(OPENAPI_CLIENT): $(PROJECT) requirements-openapi-client.txt
	@rm -rf $(@D)
	@$(PIP) install --require-hashes --no-deps --target $(@D) --requirement requirements-openapi-client.txt
	@touch $@

# The older SDK release that signs with V3. It conflicts with the newer one, so it has a folder of its own.
$(SDK_V3): $(PROJECT) requirements-sdk-v3.txt
	@rm -rf $(@D)
	@$(PIP) install --require-hashes --no-deps --target $(@D) --requirement requirements-sdk-v3.txt
	@touch $@

$(SDK_NODE) $(OPENAPI_NODE) $(YAML_SERVER) $(CONSOLE): %/node_modules/.package-lock.json: %/package-lock.json | $(TESTING)
	cd $* && $(NPM) ci
	@touch $@

$(CHROMIUM): tests/console/browser/unpack.mjs $(CONSOLE)
	$(NODE) $<
	@touch $@
