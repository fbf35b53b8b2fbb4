# `make help` lists the targets. `make run` and `make test` need only Python 3.11 or newer
# (with Java, the tests also regenerate the parser).
PYTHON ?= python3
BIN := .venv/bin
# The number of test processes. It exceeds the two cores of a small machine, because many tests wait for clusters.
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
FORMER ?=
KEY ?= ~/.ssh/id_ed25519

.PHONY: help run test quick check-slow lint types imports unit format parser proto console bench campaign-kill campaign-cluster campaign-growth experiments campaign-sim campaign-mutants explore campaign-storage campaign-sql campaign-sync campaign-sync-kill campaign-streaming campaign-wire campaign-http compare-iotdb simulate-scale mutants docs clean campaign-doors campaign-automutants campaign-power campaign-upgrade wheel sign sbom lock audit check-lowest campaign-soak campaign-properties

help:           ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

# pip compiles the modules of packages that it installs to bytecode, but not those of a package that stays in place.
.venv/.installed: pyproject.toml
	@echo "setting up .venv (once): about 550 MB, one to two minutes ..." >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check -e . >&2
	@$(BIN)/python -m compileall -q -j 0 $(wildcard */saros*/) >&2
	@touch $@

# Dependency groups need pip 25.1; the pip of a new environment may be older.
.venv/.dev: .venv/.installed
	@echo "adding the tools of the tests (once): about 800 MB, two minutes ..." >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check "pip>=25.1" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --group dev >&2
	@touch $@

run: .venv/.installed ## open the shell on an embedded database in ./data (or run the statements on standard input)
	@$(BIN)/saros shell ./data

test: lint types imports unit ## all checks: style, types, imports, tests

quick: .venv/.dev ## run only the tests that take less than a second each, for a first result in two minutes
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --max-worker-restart 1 -m "not slow and not speed"

check-slow: .venv/.dev ## fail tests over a second that are not marked slow; needs a quiet machine
	@$(BIN)/python -m pytest --check-slow -m "not slow and not speed"

lint: .venv/.dev ## check the style
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: .venv/.dev ## check types with mypy in strict mode
	@$(BIN)/mypy

imports: .venv/.dev ## check which packages may import which
	@$(BIN)/lint-imports

quick unit: export PYTHONDONTWRITEBYTECODE := # the processes that tests start use bytecode caches, like a user's processes
unit: .venv/.dev ## run all tests, WORKERS files at a time, the slowest first; tests that compare times run alone
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 1 -m "not speed" --durations=15
	@$(BIN)/python -m pytest -m speed

format: .venv/.dev ## format the code with ruff, and fix what it can fix
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

bench: .venv/.dev ## run the micro-benchmarks
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file; done

campaign-kill: .venv/.dev ## kill -9 a process during ingest, ROUNDS times; no acknowledged write may be lost
	@$(BIN)/python benchmarks/campaign_kill.py --rounds $(ROUNDS)

campaign-power: .venv/.dev ## CUTS power cuts of a FILE_SYSTEM (ext4, xfs) in an image file; needs root; no acknowledged write may be lost
	@$(BIN)/python benchmarks/campaign_power.py --cuts $(CUTS) --file-system $(FILE_SYSTEM)

campaign-cluster: .venv/.dev ## kill, stop and partition a cluster of NODES processes, CYCLES times
	@$(BIN)/python benchmarks/campaign_cluster.py --cycles $(CYCLES) --nodes $(NODES)

campaign-upgrade: .venv/.dev ## upgrade a cluster node by node, under load, from FORMER (a tag or commit; default: the newest tag)
	@$(BIN)/python benchmarks/campaign_upgrade.py $(if $(FORMER),--former $(FORMER))

campaign-soak: .venv/.dev ## mixed load on a cluster of processes, for MINUTES (at least 10); no write may be lost, and no use of resources may grow
	@$(BIN)/python benchmarks/campaign_soak.py --minutes $(MINUTES)

campaign-growth: .venv/.dev ## nodes join and leave a cluster of processes under load, with FAULTS faults; no write may be lost
	@$(BIN)/python benchmarks/campaign_growth.py --faults $(FAULTS)

experiments: .venv/.dev ## run experiments on clusters that grow and shrink; write numbers and plots into docs/experiments
	@$(BIN)/python benchmarks/experiments.py

campaign-sim: .venv/.dev ## simulate clusters with new seeds, for MINUTES; no safety rule may be violated
	@$(BIN)/python benchmarks/campaign_sim.py --minutes $(MINUTES)

campaign-mutants: .venv/.dev ## plant mistakes one at a time; the simulated clusters must find each mistake
	@$(BIN)/python benchmarks/campaign_sim.py --mutants

campaign-automutants: .venv/.dev ## make small changes of the code of a ROOM on which data depends, for MINUTES; tests must find nine of ten
	@$(BIN)/python benchmarks/campaign_automutants.py --minutes $(MINUTES) --room "$(ROOM)"

explore: .venv/.dev ## check all interleavings of the protocol by which a small cluster grows and shrinks
	@$(BIN)/python benchmarks/explore_expansion.py

campaign-storage: .venv/.dev ## crash fixed sequences of operations at every point; then random sequences, failing disks and bad files, for MINUTES; no write may be lost
	@$(BIN)/python benchmarks/campaign_storage.py --whole
	@$(BIN)/python benchmarks/campaign_storage.py --minutes $(MINUTES)

campaign-sql: .venv/.dev ## compare random queries with a model, and run random texts that resemble SQL, for MINUTES
	@$(BIN)/python benchmarks/campaign_sql.py --minutes $(MINUTES)

campaign-sync: .venv/.dev ## sync between senders, servers and clusters with crashes, failing disks and unreliable links, for MINUTES
	@$(BIN)/python benchmarks/campaign_sync.py --minutes $(MINUTES)

campaign-sync-kill: .venv/.dev ## sync 2 x 10 million points to three nodes, with 100 cuts and 20 kills; the result must be exact
	@$(BIN)/python benchmarks/campaign_sync_kills.py

campaign-wire: .venv/.dev ## send mutated messages of both client protocols, for MINUTES; the server must keep serving other clients
	@$(BIN)/python benchmarks/campaign_wire.py --minutes $(MINUTES)

campaign-http: .venv/.dev ## send mutated requests to every HTTP route, for MINUTES; the server must keep serving other clients
	@$(BIN)/python benchmarks/campaign_http.py --minutes $(MINUTES)

campaign-doors: .venv/.dev ## write and read EXAMPLES random frames by every interface of a database; every value must come back
	@$(BIN)/python benchmarks/campaign_doors.py --examples $(EXAMPLES)

campaign-properties: .venv/.dev ## run the property tests with new random examples in each round, for MINUTES
	@$(BIN)/python benchmarks/campaign_properties.py --minutes $(MINUTES)

campaign-streaming: .venv/.dev ## a Spark stream from Saros to Saros restarts RESTARTS times; no row may be lost or duplicated
	@$(BIN)/python benchmarks/campaign_streaming.py --restarts $(RESTARTS)

compare-iotdb: .venv/.dev ## compare answers with the IoTDB at IOTDB_PORT (drops its databases); RECORD=1 records its answers for the tests; MINUTES=n runs random queries
	@$(BIN)/python benchmarks/compare_iotdb.py --port $(IOTDB_PORT) $(if $(RECORD),--record) $(if $(filter command line environment,$(origin MINUTES)),--minutes $(MINUTES))

simulate-scale: .venv/.dev ## simulate clusters of 50, 200 and 1,000 nodes: traffic, elections, growth and a lost rack must stay within limits
	@$(BIN)/python benchmarks/simulate_scale.py

mutants: .venv/.dev ## plant mistakes in storage and sync one at a time; the tests of these must find each mistake
	@$(BIN)/python benchmarks/campaign_storage.py --mutants
	@$(BIN)/python benchmarks/campaign_sync.py --mutants

# Releases: docs/contributing.md tells the order of these targets.
wheel sbom: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
wheel: .venv/.installed ## build the wheel and its SHA-256 in build/dist; the same commit makes the same bytes
	@rm -rf build/dist
	@$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps -w build/dist .
	@cd build/dist && sha256sum saros-*.whl > SHA256SUMS && cat SHA256SUMS

sbom: .venv/.dev ## write the software bill of materials (CycloneDX) of this installation to build/dist
	@mkdir -p build/dist
	@$(BIN)/python deploy/sbom.py > build/dist/saros.cdx.json

sign: wheel sbom ## sign the checksums of the wheel and the bill of materials with the SSH key KEY
	@cd build/dist && sha256sum saros-*.whl saros.cdx.json > SHA256SUMS && rm -f SHA256SUMS.sig
	@ssh-keygen -Y sign -q -n saros-release -f $(KEY) build/dist/SHA256SUMS

lock: .venv/release/.installed ## rewrite requirements.lock with the newest versions that pyproject.toml allows, and their hashes
	@.venv/release/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		-o requirements.lock pyproject.toml

audit: .venv/release/.installed ## look up known vulnerabilities of the locked packages
	@.venv/release/bin/pip-audit --disable-pip --require-hashes -r requirements.lock

check-lowest: .venv/release/.installed ## run the quick tests of driver and storage with the lowest versions that pyproject.toml allows
	@mkdir -p build
	@.venv/release/bin/uv pip compile -q --resolution lowest-direct --extra pandas --extra polars --extra sqlalchemy \
		-o build/lowest.txt pyproject.toml
	@.venv/release/bin/uv venv -q --clear --python $(BIN)/python build/lowest
	@.venv/release/bin/uv pip install -q --python build/lowest/bin/python -r build/lowest.txt pytest pytest-xdist hypothesis -e .
	@build/lowest/bin/python -m pytest -m "not slow and not speed" tests/driver tests/storage

# The site and the releases do not need this project's packages. Each has a separate environment with its
# dependency group.
.venv/%/.installed: pyproject.toml
	@echo "setting up .venv/$* (once): up to 100 MB ..." >&2
	@$(PYTHON) -m venv .venv/$*
	@.venv/$*/bin/python -m pip install -q --disable-pip-version-check "pip>=25.1" >&2
	@.venv/$*/bin/python -m pip install -q --disable-pip-version-check --group $* >&2
	@touch $@

docs: export NO_MKDOCS_2_WARNING := 1
docs: .venv/docs/.installed ## build the documentation as a site in build/docs; a warning is an error
	@.venv/docs/bin/mkdocs build -q
	@echo "to read it: $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/docs 8000"

clean:          ## remove everything that the other targets made (not ./data)
	@rm -rf .venv build/docs .mypy_cache .ruff_cache .pytest_cache .hypothesis
