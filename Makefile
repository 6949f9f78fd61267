# make demo, make test: all it takes on a machine with Python 3.11 or newer and gcc.
#
# Everything runs on the installed wheel, from a folder outside the source tree, so that what is
# tested is what users get. The wheel is built again only when its sources change.
#
#   PYTHON=python3.12             another Python
#   EXTENSOR_BUILD_LEVELS=native  a quicker build for this machine's CPU alone
#   ARGS="-k shape"               further arguments for pytest, the benchmark or the accuracy run
#   PIP_ARGS=…                    further arguments for pip

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
ARGS ?=
PIP_ARGS ?=

comma := ,
LEVELS := $(subst $(comma),-,$(or $(EXTENSOR_BUILD_LEVELS),all))
STAMPS := build/stamps
WHEEL := $(STAMPS)/wheel-$(LEVELS)
SOURCES := setup.py pyproject.toml README.md LICENSE \
	$(shell find extensor -name '*.py' -o -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' \
		-o -name '*.h' -o -name 'py.typed')
PIP = -m pip install --quiet --disable-pip-version-check $(PIP_ARGS)
# Prints a list of requirements in pyproject.toml, one a line.
READ = import tomllib; project = tomllib.load(open("pyproject.toml", "rb")); print(*project$(1), sep="\n")
WHEEL_FILE = $$(ls $(CURDIR)/build/dist/*.whl)
# Refuses to go on with another extensor than the installed one.
INSTALLED = import extensor, sys; sys.exit(None if extensor.__file__.startswith(sys.prefix) else f"{extensor.__file__} is not the installed extensor")

.DELETE_ON_ERROR:
.PHONY: demo test bench accuracy lint wheel wheel-check docs clean help

help:
	@echo "make demo    learn to read handwritten digits: progress bar, confusions, pictures in out/"
	@echo "make test    build, install and test everything"
	@echo "make lint    ruff, cython-lint, mypy"
	@echo "make bench   compare with NumPy, PyTorch, JAX and numexpr"
	@echo "make accuracy  every float32 input against references (15 minutes), into docs/accuracy.md"
	@echo "make wheel   build/dist/extensor-*.whl"
	@echo "make wheel-check  try the wheel in empty environments, with the oldest and the newest NumPy"
	@echo "make docs    the documentation site, into build/site"
	@echo "make clean   remove everything made, but for the virtual environments"

demo: $(STAMPS)/demo
	@mkdir -p build/run out
	@cd build/run && ../../$(VENV)/bin/python ../../examples/digits.py ../../out

test: $(STAMPS)/test
	@mkdir -p build/run
	@cd build/run && ../../$(VENV)/bin/python -c '$(INSTALLED)'
	cd build/run && EXTENSOR_WHEEL=$(WHEEL_FILE) ../../$(VENV)/bin/python -m pytest ../../tests $(ARGS)

lint: $(STAMPS)/lint
	$(VENV)/bin/ruff check .
	PATH=$(CURDIR)/$(VENV)/bin:$$PATH $(VENV)/bin/cython-lint extensor
	$(VENV)/bin/mypy

bench: $(STAMPS)/bench
	@mkdir -p build/run
	@cd build/run && ../../$(BENCH_VENV)/bin/python -c '$(INSTALLED)'
	cd build/run && ../../$(BENCH_VENV)/bin/python -c 'import runpy, sys; sys.path.append("../.."); runpy.run_module("benchmarks", run_name="__main__", alter_sys=True)' $(ARGS)

# ARGS="--level v3 --thin 64": another CPU level, one of every 64 inputs
accuracy: $(STAMPS)/accuracy
	@mkdir -p build/run
	@cd build/run && ../../$(VENV)/bin/python -c '$(INSTALLED)'
	cd build/run && ../../$(VENV)/bin/python -P ../../benchmarks/accuracy.py $(ARGS)

wheel: $(WHEEL)
	@ls -l build/dist/*.whl

wheel-check: $(WHEEL)
	$(VENV)/bin/python -P tests/wheel_check.py $(WHEEL_FILE)

# The program mkdocs, not `python -m mkdocs`, which would read the source tree for the package.
docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict --site-dir build/site
	@echo "build/site/index.html"

clean:
	rm -rf build dist out *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find extensor -name '*.so' -delete
	find . -name __pycache__ -not -path './.venv*' -exec rm -rf {} +

# --- how the targets get what they need

define make-venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "extensor needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Name another one: make PYTHON=python3.12"; exit 1; }
	@echo "Creating $(1) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(1) || { \
		echo "$(PYTHON) cannot create virtual environments (Debian and Ubuntu:" \
			"apt-get install python3-venv)"; rm -rf $(1); exit 1; }
endef

$(VENV)/bin/python:
	$(call make-venv,$(VENV))

$(BENCH_VENV)/bin/python:
	$(call make-venv,$(BENCH_VENV))

# The build's tools stay in the virtual environment: in a fresh one every time (build isolation),
# NumPy's headers would be new every time and nothing could be kept from one build to the next.
$(STAMPS)/tools: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the tools of the build into $(VENV)"
	@mkdir -p $(STAMPS)
	@$(VENV)/bin/python -c '$(call READ,["build-system"]["requires"])' > $(STAMPS)/tools.txt
	@$(VENV)/bin/python $(PIP) wheel -r $(STAMPS)/tools.txt
	@touch $@

# The wheel has a build folder of its own: what development builds leave in build/ stays out of it.
$(WHEEL): $(SOURCES) $(STAMPS)/tools
	@echo "Building the wheel (CPU levels: $(LEVELS)); all levels take about three minutes"
	@mkdir -p $(STAMPS) build/dist
	@rm -f build/dist/*.whl $(STAMPS)/wheel-*
	@printf '[build]\nbuild_base = build/wheel-$(LEVELS)\n' > build/wheel.cfg
	@find build/wheel-$(LEVELS) \( -name '*.py' -o -name '*.pyi' \) -delete 2>/dev/null || true
	@DIST_EXTRA_CONFIG=$(CURDIR)/build/wheel.cfg $(VENV)/bin/python -m pip wheel --quiet \
		--disable-pip-version-check --no-build-isolation --no-deps --wheel-dir build/dist $(PIP_ARGS) .
	@touch $@

# install(python, extra): the wheel, and what the extra asks for
define install
	@echo "Installing the wheel and what '$(2)' needs into $(patsubst %/bin/python,%,$(1))"
	@mkdir -p $(STAMPS)
	@$(1) $(PIP) --force-reinstall --no-deps $(WHEEL_FILE)
	@$(1) $(PIP) "$(WHEEL_FILE)[$(2)]"
endef

$(STAMPS)/test $(STAMPS)/demo $(STAMPS)/accuracy $(STAMPS)/docs: $(STAMPS)/%: $(WHEEL) | $(VENV)/bin/python
	$(call install,$(VENV)/bin/python,$*)
	@touch $@

$(STAMPS)/bench: $(WHEEL) | $(BENCH_VENV)/bin/python
	$(call install,$(BENCH_VENV)/bin/python,bench)
	@touch $@

$(STAMPS)/lint: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the linters into $(VENV)"
	@mkdir -p $(STAMPS)
	@$(VENV)/bin/python -c '$(call READ,["project"]["optional-dependencies"]["lint"])' > $(STAMPS)/lint.txt
	@$(VENV)/bin/python $(PIP) numpy -r $(STAMPS)/lint.txt
	@touch $@
