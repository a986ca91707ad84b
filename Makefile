# make demo       a real campaign on this machine, and a report worth reading
# make test       lint, C tests under sanitizers, every Python test
# make docs       the documentation site, strictly, into site/
# make reference  the tables of docs/reference, from the code
# make notebooks  the notebooks, in Jupyter
# make dist      an sdist and wheels
# make bench      netbench beside its peers and its budgets: writes docs/performance.md
# README.md names the Debian packages that are needed.

$(if $(word 2,$(CURDIR)),$(error make(1) cannot work in a folder with a space in its path))
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NETBENCH := $(BIN)/python -m netbench
NATIVE_FILES := $(shell find native/src native/include native/tests -name '*.[ch]')
BENCH_FILES := $(wildcard tools/bench/loops/*.[ch])
PYTEST_WORKERS ?= 3
PIP := $(BIN)/pip install -q --disable-pip-version-check -c constraints.txt
# The oldest supported Python, which is Debian 12's, and the newest.
PYTHONS := 3.11.2 3.13
RESOLVE := $(BIN)/pip install --dry-run --ignore-installed --target .make/none \
	--only-binary=:all: -r .make/resolve.txt --python-version
# Python keeps what it has compiled: each of the hundreds of starts in the tests would compile all
# of netbench again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: all demo test checks test-slow test-debian lint size bench clean pytest docs packages \
	notebooks reference resolve constraints dist wheelhouse deb test-dist test-wheel \
	test-reproducible release
all: .make/built

include native/Makefile
.DEFAULT_GOAL := all

# What runs and builds netbench; what develops it is installed when it is first needed.
define INSTALL
	$(BIN)/python tools/requirements.py $(1) > $@.txt
	$(PIP) --no-compile -r $@.txt
	-@$(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib > /dev/null # pip: one CPU
	@touch $@
endef

.make/venv: pyproject.toml constraints.txt tools/requirements.py
	@mkdir -p .make
	$(PYTHON) -m venv $(VENV)
	$(call INSTALL)

.make/dev: .make/venv | .make/built
	$(call INSTALL,dev)

.make/built: .make/venv setup.py netbench/engine/build_native.py \
		$(filter-out native/tests/%,$(NATIVE_FILES))
	$(PIP) --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	@touch $@

.make/notebooks: .make/built
	$(call INSTALL,notebook)

# On a host without a browser: OPTIONS="--no-browser". Of notebooks that it does not trust Jupyter
# shows stored outputs without their styles.
notebooks: .make/notebooks
	@$(BIN)/jupyter trust notebooks/*.ipynb
	$(BIN)/jupyter notebook $(OPTIONS) notebooks/first-look.ipynb

demo: .make/built
	@set -o pipefail; $(NETBENCH) run campaigns/loopback.yaml --results results \
		| tee .make/demo.txt
	@result=$$(tail -n 1 .make/demo.txt) \
		&& $(NETBENCH) report $$result --html $$result/report/index.html > /dev/null \
		&& echo "the same report with plots: $$result/report/index.html"

.make/dist: .make/built
	$(call INSTALL,dist)

# The sdist and a wheel for each machine type, from what is committed: MACHINES=x86_64 for one.
dist: .make/dist
	$(BIN)/python -m tools.packaging.dist $(MACHINES)

OLD_ENOUGH := $(foreach glibc,28 27 24 17,--platform manylinux_2_$(glibc)_$(shell uname -m))

# What an installation without a network needs, for this machine's type: the wheels of run-time
# dependencies, and pip, which pipx installs anew.
wheelhouse: .make/dist
	for python in $(PYTHONS); do \
		$(BIN)/pip download -q --disable-pip-version-check -c constraints.txt \
			-d dist/wheelhouse --only-binary=:all: --python-version $$python \
			$(OLD_ENOUGH) \
			pip dist/netbench-*$$(uname -m).whl || exit; \
	done

# A Debian package of them: RELEASE=bookworm or trixie.
deb:
	tools/packaging/deb.sh $(RELEASE)

# This machine's wheel, installed into an empty venv and used outside the clone.
test-wheel: .make/dist
	$(BIN)/python -m tools.packaging.dist $$(uname -m)
	$(PYTHON) -m venv --clear .make/installed
	.make/installed/bin/pip install -q --disable-pip-version-check -c constraints.txt \
		dist/netbench-*$$(uname -m).whl
	cd / && $(CURDIR)/.make/installed/bin/netbench transfer duration=100ms warmup=0s > /dev/null
	test -s .make/installed/share/man/man1/netbench.1
	test -s .make/installed/share/bash-completion/completions/netbench

# Whether the same commit gives the same bytes in another folder, forty days later.
test-reproducible: .make/dist
	tools/packaging/test_reproducible.sh

# What the packages promise, in a bare Debian: RELEASE=trixie; needs root, debootstrap, minutes, and
# what `make dist wheelhouse deb` have made.
test-dist:
	tools/packaging/test_dist.sh $(RELEASE)

# Tests in Python wait half of their time: lint and the C tests take what is left of the CPUs.
test: packages .make/dev
	@$(MAKE) --no-print-directory -j2 pytest checks

packages:
	@tools/packages.sh missing

checks: .make/dev
	@nice -n 19 $(MAKE) --no-print-directory lint native-tsan native-asan \
		> .make/checks.txt 2>&1 || { cat .make/checks.txt; exit 1; }
	@echo "lint and the C tests pass"

pytest: .make/dev
	$(BIN)/python -m pytest -m "not slow" -n $(PYTEST_WORKERS) --dist loadfile \
		--no-loadscope-reorder

test-slow: .make/dev
	$(BIN)/python -m pytest -m slow

# What README.md says first, on a bare Debian: RELEASE=trixie; needs root, debootstrap and minutes.
# TESTS='-m "not slow and not guest"': pytest after it, with these arguments
test-debian:
	tools/test_debian.sh $(RELEASE)

# Whether each supported Python can install what constraints.txt pins; needs the network.
resolve: .make/resolve.txt
	for python in $(PYTHONS); do \
		$(RESOLVE) $$python -c constraints.txt || exit; \
	done

# The newest versions that the oldest Python can have: then `make resolve test`.
constraints: .make/resolve.txt
	set -o pipefail; $(RESOLVE) $(firstword $(PYTHONS)) | sed -n 's/^Would install //p' \
		| tr ' ' '\n' | sed 's/-\([^-]*\)$$/==\1/' | LC_ALL=C sort -f -t= -k1,1 \
		> .make/constraints.txt
	{ echo '# Made by `make constraints`.'; cat .make/constraints.txt; } > constraints.txt

.make/resolve.txt: pyproject.toml tools/requirements.py
	@mkdir -p .make
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python tools/requirements.py dev dist | grep -v argparse-manpage > $@ # has no wheel

# Checks, packages and the tag of VERSION=0.2.0; as root.
release:
	tools/packaging/release.sh $(VERSION)

# Lines of each room beside its budget.
size:
	@$(PYTHON) tools/size.py

lint: .make/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE_FILES) $(BENCH_FILES)

# What docs/reference says of the code's own tables.
reference: .make/dev
	$(BIN)/python -m tools.docs.reference

docs: .make/dev
	rm -rf site
	$(BIN)/python -m tools.docs site

# PARTS="peers ledger meters" or others of tools/bench/__main__.py; left out: all
bench: .make/dev
	$(BIN)/python -m tools.bench $(PARTS)

clean: native-clean
	rm -rf site build dist .make $(VENV) *.egg-info netbench/engine/_native* \
		netbench/engine/worker-* \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
