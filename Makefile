# The list of verbs. `make run` and `make test` need Python 3.11 to 3.13 and nothing installed by hand
# (Java, if present, also lets the tests regenerate the parser).
PYTHON ?= python3
BIN := .venv/bin
# Test processes: more than a machine of two cores has, since many tests wait for clusters.
WORKERS ?= 3
MINUTES ?= 10
IOTDB_PORT ?= 6667
ROUNDS ?= 100
CYCLES ?= 50
CUTS ?= 100
FILE_SYSTEM ?= ext4
NODES ?= 3
FAULTS ?= 8
RESTARTS ?= 200
EXAMPLES ?= 2000

.PHONY: help run test quick check-slow lint types imports unit format parser proto console bench campaign-kill campaign-cluster campaign-growth experiments campaign-sim campaign-mutants explore campaign-storage campaign-sql campaign-sync campaign-sync-kill campaign-streaming campaign-wire campaign-http compare-iotdb simulate-scale mutants docs clean campaign-doors campaign-automutants campaign-power

help:           ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

.venv/.installed: pyproject.toml
	@echo "setting up .venv (once): about 550 MB, one to two minutes ..." >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check -e . >&2
	@touch $@

# Dependency groups need pip 25.1; the pip of a new environment may be older.
.venv/.dev: .venv/.installed
	@echo "adding the tools of the tests (once): about 800 MB, two minutes ..." >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check "pip>=25.1" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --group dev >&2
	@touch $@

run: .venv/.installed ## open the shell on an embedded database in ./data (or run the statements on standard input)
	@$(BIN)/saros shell ./data

test: lint types imports unit ## everything that must hold

quick: .venv/.dev ## the tests that take under a second each, without style and types: a first answer in two minutes
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --max-worker-restart 1 -m "not slow and not speed"

check-slow: .venv/.dev ## fail tests over a second that are not marked slow; needs a quiet machine
	@$(BIN)/python -m pytest --check-slow -m "not slow and not speed"

lint: .venv/.dev ## style
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: .venv/.dev ## mypy, strict
	@$(BIN)/mypy

imports: .venv/.dev ## who may import whom
	@$(BIN)/lint-imports

quick unit: export PYTHONDONTWRITEBYTECODE := # the processes that tests start begin as a user's do; rewritten tests are kept
unit: .venv/.dev ## all tests: WORKERS files at a time, the slowest first; what compares times, alone
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 1 -m "not speed" --durations=15
	@$(BIN)/python -m pytest -m speed

format: .venv/.dev ## rewrite the code as ruff wants it
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

parser: .venv/.dev ## regenerate the parser from grammar/*.g4 (needs Java)
	@cd grammar && ../$(BIN)/antlr4 -Dlanguage=Python3 -visitor -no-listener -Xexact-output-dir -o saros_grammar/generated SqlLexer.g4 Sql.g4 \
		&& rm -f saros_grammar/generated/*.interp saros_grammar/generated/*.tokens

proto: .venv/.dev ## regenerate the messages from wire/*.proto
	@$(BIN)/python -m grpc_tools.protoc -I wire --python_out=wire/saros_wire/generated --pyi_out=wire/saros_wire/generated wire/*.proto

console:        ## bundle the console from server/console, and copy its charts for Spark's reports (needs Node and npm)
	@cd server/console && npm ci --no-audit --no-fund --ignore-scripts && node build.mjs
	@cd server/console/node_modules/uplot && cp dist/uPlot.iife.min.js dist/uPlot.min.css ../../../../spark/saros_spark/pipeline/page/ \
		&& cp LICENSE ../../../../spark/saros_spark/pipeline/page/uPlot.LICENSE.txt

bench: .venv/.dev ## the micro-benchmarks
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file; done

campaign-kill: .venv/.dev ## kill -9 during ingest, ROUNDS times; nothing acknowledged may be lost
	@$(BIN)/python benchmarks/campaign_kill.py --rounds $(ROUNDS)

campaign-power: .venv/.dev ## CUTS power cuts of a FILE_SYSTEM (ext4, xfs) in an image file; needs root; nothing acknowledged may be lost
	@$(BIN)/python benchmarks/campaign_power.py --cuts $(CUTS) --file-system $(FILE_SYSTEM)

campaign-cluster: .venv/.dev ## kills, stops and partitions of a cluster of NODES processes, CYCLES times
	@$(BIN)/python benchmarks/campaign_cluster.py --cycles $(CYCLES) --nodes $(NODES)

campaign-growth: .venv/.dev ## nodes join and leave a cluster of processes under load, and FAULTS befall it; nothing may be lost
	@$(BIN)/python benchmarks/campaign_growth.py --faults $(FAULTS)

experiments: .venv/.dev ## the thesis's experiments on growing, in shape: numbers and plots into docs/experiments
	@$(BIN)/python benchmarks/experiments.py

campaign-sim: .venv/.dev ## simulated clusters on new seeds, for MINUTES; nothing bad may happen
	@$(BIN)/python benchmarks/campaign_sim.py --minutes $(MINUTES)

campaign-mutants: .venv/.dev ## mistakes planted one at a time; the simulated clusters must find each
	@$(BIN)/python benchmarks/campaign_sim.py --mutants

campaign-automutants: .venv/.dev ## small changes of the code on which data depends (of a ROOM), for MINUTES; nine of ten must be found
	@$(BIN)/python benchmarks/campaign_automutants.py --minutes $(MINUTES) --room "$(ROOM)"

explore: .venv/.dev ## the protocol of growing and shrinking, in all interleavings of a small cluster
	@$(BIN)/python benchmarks/explore_expansion.py

campaign-storage: .venv/.dev ## all crashes of fixed stories; then random ones, failing disks and bad files, for MINUTES; nothing may be lost
	@$(BIN)/python benchmarks/campaign_storage.py --whole
	@$(BIN)/python benchmarks/campaign_storage.py --minutes $(MINUTES)

campaign-sql: .venv/.dev ## queries by chance beside a model, and texts that are hardly SQL, for MINUTES; nothing may be wrong
	@$(BIN)/python benchmarks/campaign_sql.py --minutes $(MINUTES)

campaign-sync: .venv/.dev ## senders, servers and clusters: crashes and failing disks, random stories over bad lines, for MINUTES
	@$(BIN)/python benchmarks/campaign_sync.py --minutes $(MINUTES)

campaign-sync-kill: .venv/.dev ## two instances of 10 million points to three nodes; 100 cuts, 20 kills of all sides; it must be exact
	@$(BIN)/python benchmarks/campaign_sync_kills.py

campaign-wire: .venv/.dev ## mutated messages of both client protocols, for MINUTES; the server must serve others all the time
	@$(BIN)/python benchmarks/campaign_wire.py --minutes $(MINUTES)

campaign-http: .venv/.dev ## mutated requests on every route of HTTP, for MINUTES; the server must serve others all the time
	@$(BIN)/python benchmarks/campaign_http.py --minutes $(MINUTES)

campaign-doors: .venv/.dev ## EXAMPLES random frames through every door into a database and out again; every value must come back
	@$(BIN)/python benchmarks/campaign_doors.py --examples $(EXAMPLES)

campaign-streaming: .venv/.dev ## a stream of Spark's from Saros to Saros starts again RESTARTS times; no row may be lost or come twice
	@$(BIN)/python benchmarks/campaign_streaming.py --restarts $(RESTARTS)

compare-iotdb: .venv/.dev ## answers of the IoTDB at IOTDB_PORT (it loses its databases) beside ours; RECORD=1 records them for the tests
	@$(BIN)/python benchmarks/compare_iotdb.py --port $(IOTDB_PORT) $(if $(RECORD),--record)

simulate-scale: .venv/.dev ## clusters of 50, 200 and 1,000 nodes, simulated: traffic, elections, growth, a lost rack, within limits
	@$(BIN)/python benchmarks/simulate_scale.py

mutants: .venv/.dev ## mistakes planted in storage and sync one at a time; their suites must find each
	@$(BIN)/python benchmarks/campaign_storage.py --mutants
	@$(BIN)/python benchmarks/campaign_sync.py --mutants

# The site needs no other package of this project, and gets an environment of its own.
.venv/docs/.installed: pyproject.toml
	@echo "setting up .venv/docs (once): about 60 MB ..." >&2
	@$(PYTHON) -m venv .venv/docs
	@.venv/docs/bin/python -m pip install -q --disable-pip-version-check "pip>=25.1" >&2
	@.venv/docs/bin/python -m pip install -q --disable-pip-version-check --group docs >&2
	@touch $@

docs: export NO_MKDOCS_2_WARNING := 1
docs: .venv/docs/.installed ## the documentation as a site, in build/docs; a warning is an error
	@.venv/docs/bin/mkdocs build -q
	@echo "to read it: $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/docs 8000"

clean:          ## remove what the other verbs made (not ./data)
	@rm -rf .venv build/docs .mypy_cache .ruff_cache .pytest_cache .hypothesis
