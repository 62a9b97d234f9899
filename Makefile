# The two commands: `make demo` and `make test`. Everything they need they set up themselves.
SHELL := /bin/bash
NODES ?= 2
LAB := tests/lab/lab

.PHONY: help setup demo test check lab lab-down lab-status bench docs

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## Python environment and collection path (needs PyPI, and apt where python3-venv is missing)
	@tests/setup

demo: setup ## From nothing to the model's answer in the lab: site.yml on two nodes without GPUs or internet
	@tests/lab/demo

test: ## Every check: lint, sanity, units, artifact, and the lab's scenarios
	@tests/run all

check: ## The fast part: no lab, no root
	@tests/run check

lab: setup ## Bring the lab's nodes up (NODES=2, 1 to 5)
	@$(LAB) up --nodes $(NODES)

lab-down: ## Remove everything the lab made, but not its cache of builds
	@$(LAB) down

lab-status: ## What stands
	@$(LAB) status

bench: setup ## Converge against a plain shell script, as a ratio
	@tests/bench/converge.py
