# make demo     a real campaign on this machine, and a report worth reading
# make test     lint, C tests under sanitizers, every Python test
# make docs     the documentation site, strictly, into site/
# make bench    netbench beside its peers and its budgets: writes docs/performance.md
# The Debian packages that are needed are named in README.md.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NETBENCH := $(BIN)/python -m netbench
NATIVE_FILES := $(shell find native/src native/include native/tests -name '*.[ch]')
BENCH_FILES := $(wildcard tools/bench/*.[ch] tools/bench/loops/*.[ch])
PYTEST_WORKERS ?= 2
# Python keeps what it has compiled: each of the hundreds of starts in the tests would compile all
# of netbench again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: all demo test checks test-slow test-debian lint bench clean pytest docs
all: .make/built

include native/Makefile
.DEFAULT_GOAL := all

.make/venv: pyproject.toml constraints.txt
	@mkdir -p .make
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt "setuptools>=77" cffi
	$(BIN)/python tools/requirements.py > .make/requirements.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-compile -c constraints.txt \
		-r .make/requirements.txt
	-@$(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib > /dev/null # pip: one CPU
	@touch $@

.make/built: .make/venv setup.py netbench/engine/build_native.py \
		$(filter-out native/tests/%,$(NATIVE_FILES))
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: .make/built
	@set -o pipefail; $(NETBENCH) run campaigns/loopback.yaml --results results \
		| tee .make/demo.txt
	@result=$$(tail -n 1 .make/demo.txt) \
		&& $(NETBENCH) report $$result --html $$result/report/index.html > /dev/null \
		&& echo "the same report with plots: $$result/report/index.html"

# Tests in Python wait half of their time: lint and the C tests take what is left of the CPUs.
test: .make/built
	@$(MAKE) --no-print-directory -j2 pytest checks

checks: .make/built
	@nice -n 19 $(MAKE) --no-print-directory lint native-tsan native-asan \
		> .make/checks.txt 2>&1 || { cat .make/checks.txt; exit 1; }
	@echo "lint and the C tests pass"

pytest: .make/built
	$(BIN)/python -m pytest -m "not slow" -n $(PYTEST_WORKERS) --dist loadfile \
		--no-loadscope-reorder

test-slow: .make/built
	$(BIN)/python -m pytest -m slow

# RELEASE=trixie; needs root, debootstrap and minutes
test-debian:
	tools/test_debian.sh $(RELEASE)

lint: .make/built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE_FILES) $(BENCH_FILES)

docs: .make/built
	rm -rf site
	$(BIN)/python -m tools.docs site

# PARTS="peers ledger meters" or others of tools/bench/__main__.py; left out: all
bench: .make/built
	$(BIN)/python -m tools.bench $(PARTS)

clean: native-clean
	rm -rf site build dist .make $(VENV) *.egg-info netbench/engine/_native* \
		netbench/engine/worker-* netbench/engine/source.tar \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
