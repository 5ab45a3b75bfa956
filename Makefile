# Each target sets up what it needs in .venv; nothing outside of this folder and the model cache is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OVOS := .venv-ovos
ASK := $(BIN)/toolturn ask

.PHONY: help demo test lint format bench nightly docs clean weights

help:
	@echo "make demo     install, fetch the model, ask it two questions that need two different tools"
	@echo "make test     install, fetch the model, run all tests with branch coverage"
	@echo "make lint     check format, style and types"
	@echo "make format   format the code"
	@echo "make bench    measure against hand-written loops (ratios in one run)"
	@echo "make nightly  the slow proofs: thorough properties, mutation score, the model's questions, benchmarks"
	@echo "make docs     write the generated pages of docs/ anew"
	@echo "make clean    remove .venv and what the tools leave"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "toolturn needs Python 3.11 or newer; name one with: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "On Debian, venv is a package of its own: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.user: $(VENV)/bin/python pyproject.toml
	@echo "Installing toolturn with its command line and the runtime of the embedded model …"
	@$(BIN)/python -m pip install --quiet --editable '.[cli,local]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	@echo "Installing toolturn with all extras and the tools of its developers …"
	@$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@ $(VENV)/.user

$(OVOS)/.dev: pyproject.toml
	@echo "Installing toolturn beside OpenVoiceOS in an environment of its own …"
	@$(PYTHON) -m venv $(OVOS)
	@$(OVOS)/bin/python -m pip install --quiet --upgrade pip
	@$(OVOS)/bin/python -m pip install --quiet --editable '.[ovos,cli,local,mcp]' --group ovos
	@touch $@

demo: $(VENV)/.user
	@$(BIN)/toolturn model pull --source any
	@echo
	$(ASK) "How much is 15 * (7 + 4.5)?"
	@echo
	$(ASK) "How many pounds is 70 kg?"

# The tests of the embedded model need its weights; without them they are skipped, in CI they fail.
test: $(VENV)/.dev $(OVOS)/.dev
	@$(BIN)/toolturn model pull --source any >/dev/null || echo "The tests of the embedded model will be skipped."
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	@$(BIN)/coverage combine --quiet 2>/dev/null || true
	$(BIN)/coverage report
	$(OVOS)/bin/python -m pytest tests/ovos tests/personas/test_with_openvoiceos.py

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.dev
	$(BIN)/python -m tests.core.transitions

$(VENV)/.nightly: $(VENV)/.dev
	@$(BIN)/python -m pip install --quiet --group nightly
	@touch $@

# What is too slow for every change: thorough properties, fuzzing, mutants, the fault lab, the questions, the costs.
# Each part runs even where one before it failed; the exit code tells.
nightly: $(VENV)/.nightly $(OVOS)/.dev
	@failed=0; \
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -q tests/core tests/running tests/dialects tests/models || failed=1; \
	$(BIN)/python -m tests.fuzz --seconds 60 || failed=1; \
	$(BIN)/python -m tests.core.mutation || failed=1; \
	$(BIN)/toolturn conform --adapter toolturn --adapter toolturn_httpx2 --failures || failed=1; \
	$(BIN)/python benchmarks/questions.py --set all --check || failed=1; \
	TOOLTURN_OVOS_SESSIONS=20000 $(OVOS)/bin/python -m pytest -q tests/ovos/test_differential.py || failed=1; \
	$(OVOS)/bin/python benchmarks/ovos.py --check || failed=1; \
	$(BIN)/python benchmarks/setup_venvs.py --only handwritten_pyreqwest,server || failed=1; \
	$(BIN)/python benchmarks/run.py --check --loads import,w1,w3,w5,events,reaction,reaction_local,w2,w3http || failed=1; \
	exit $$failed

clean:
	rm -rf $(VENV) $(OVOS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov mutants
