# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
PY := .venv/bin/python
GATES := $(PY) tests/tools/gates.py

.PHONY: help venv demo test unit vectors lint sanity integration lab-up lab-down e2e kill-matrix roll-1000 mutation bench docs build changelog lock clean

help: ## list these commands
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1 @ \2/p' Makefile | column -t -s@

venv: ## make the development environment in .venv
	@$(PYTHON) tests/tools/make_venv.py dev

# A command whose script is missing must say so, and must not look like a success.
need = @test -e $(1) || { echo "make $@: $(1) is missing, so there is nothing to run." >&2; exit 2; }

demo: venv ## judge the recorded sample fleet and this machine, write build/report/
	$(call need,tests/tools/demo.py)
	@$(PY) tests/tools/demo.py

test: venv ## run every gate and every test that this machine can run
	@$(GATES)

unit: venv ## run the unit tests, with the coverage of the core
	@$(GATES) units

vectors: venv ## run the test vectors through the core
	$(call need,tests/vectors/run.py)
	@$(GATES) vectors

lint: venv ## run the linters, the formatter in check mode, and the type checker
	@$(GATES) ruff ruff-format mypy reuse changelog ansible-lint yamllint

sanity: venv ## run the sanity tests of ansible-test
	@$(GATES) sanity

integration: venv ## run the integration targets of ansible-test
	@$(GATES) integration

lab-up: ## start the virtual nodes of the lab; CLUSTER=1 makes a Kubernetes cluster of them
	$(call need,tests/lab/__main__.py)
ifeq ($(CLUSTER),1)
	@$(PYTHON) tests/lab cluster up
else
	@$(PYTHON) tests/lab up
	@$(PYTHON) tests/lab wait
endif

lab-down: ## end the virtual nodes of the lab, and their cluster
	$(call need,tests/lab/__main__.py)
	@$(PYTHON) tests/lab cluster down
	@$(PYTHON) tests/lab down

e2e: venv ## run the molecule scenarios and the tests of the cluster; they start and end their own nodes
	@RDMA_K8S_EVERY_SCENARIO=1 $(GATES) molecule
	@$(PY) tests/lab cluster test

kill-matrix: venv ## kill controllers of a roll before and after each entry action, and print what came of it
	@$(PY) tests/roll/run.py kill-matrix

roll-1000: venv ## roll over 1,000 simulated nodes and print calls, seconds and memory
	@$(PY) tests/roll/run.py thousand --nodes $(or $(NODES),1000) --budget $(or $(BUDGET),50)

mutation: venv ## change the core in small ways and see the unit tests notice, 10 minutes at most
	@$(PY) tests/tools/mutation.py

bench: venv ## run the benchmarks with their baselines, write build/bench/
	$(call need,tests/bench/run.py)
	@$(PY) tests/bench/run.py --out build/bench

docs: venv ## write the documentation site to build/docs/
	@$(PY) tests/tools/docs_site.py

build: venv ## write the collection tarball to build/dist/
	@$(PY) tests/tools/tree.py --build

changelog: venv ## write CHANGELOG.md and CHANGELOG.rst anew from the fragments of this release
	@$(PY) tests/tools/changelog.py

lock: ## renew the lock files under requirements/ (for maintainers)
	@$(PYTHON) tests/tools/lock.py

clean: ## remove what the other commands made, apart from .venv
	@rm -rf build
