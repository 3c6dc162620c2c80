# `make` or `make help` lists the targets: each has a `## ` comment on its line.
# Variables: ARGS (passed on to the command), PYTHON (the interpreter that makes .venv), N (kills of crash and
# spark-faults, images of powercut and image-reads, backups, mutants, histories of an ensemble), URL and VERSUS (the
# brokers of bench), A, A_WEB, B and B_WEB (those of differences, compare-admin and java-tools), TOOLS (the jars of
# java-tools), SUITE_DIR (of suite), WORKERS (of test).

SHELL := /usr/bin/env bash
BIN := .venv/bin
ARGS ?=
SEEDS ?= 200
EVENTS ?=
N ?=
URL ?=
VERSUS ?=
A ?=
A_WEB ?=
B ?=
B_WEB ?=
SUITE_DIR ?=
TOOLS ?=
TAG ?=
# Three more than processors, because tests also wait for others; not so many that their boxes fill the memory.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? n + 3 : 6)))
export PYTHON
# Modules are compiled once, as those of an installed wheel are: what is tested and measured starts as it does there.
unexport PYTHONDONTWRITEBYTECODE

# What mypy checks: named as packages, because through the links a scan of folders would see storage/x.py twice.
# examples and benchmarks join as soon as they hold Python.
holds-python = $(if $(shell find $(1) -name '*.py' -print -quit 2>/dev/null),$(1))
TYPED_PACKAGES := pulsarbox tests $(foreach folder,examples benchmarks,$(call holds-python,$(folder)))

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: env-run
env-run:
	@.ci/environment run

.PHONY: env-dev
env-dev:
	@.ci/environment dev

.PHONY: start
start: env-run ## Start the broker in the foreground: 6650 and 8080 (ARGS="--port 0 --web-port 0")
	@exec $(BIN)/pulsarbox start $(ARGS)

.PHONY: test
test: env-dev ## Run all tests (ARGS="-k name")
	@.ci/tests --workers $(WORKERS) $(ARGS)

.PHONY: campaigns
campaigns: env-dev ## Run the long forms of tests, which make test leaves out (half an hour; ARGS="-k name")
	@HYPOTHESIS_EXAMPLES=200 .ci/tests -m "campaign or hypothesis" --workers $(WORKERS) $(ARGS)

.PHONY: check
check: env-dev ## Check what changed since main: lint, types, unit tests of the changed rooms (BASE=main)
	@.ci/check $(or $(BASE),main)

.PHONY: crash
crash: env-dev ## Kill the box again and again under load and check what its clients saw (N=25)
	@$(BIN)/python -m tests.crash.run --kills $(or $(N),25) $(ARGS)

.PHONY: crash-directories
crash-directories: env-dev ## Break one of three data directories in each round, beside kills (N=25; root mounts file systems)
	@$(BIN)/python -m tests.crash.directories --rounds $(or $(N),25) $(ARGS)

.PHONY: backups
backups: env-dev ## Back up a box under load, restore each backup and check that it is one instant (N=25)
	@$(BIN)/python -m tests.backups.run --backups $(or $(N),25) $(ARGS)

.PHONY: spark-cluster
spark-cluster: env-dev ## Run a pipeline on a standalone master with two workers, twice, and count what is there (needs Java)
	@$(BIN)/python -m tests.spark_faults.on_cluster

.PHONY: spark-faults
spark-faults: env-dev ## Kill workers, drivers and the box while Spark writes, and count what is there (N=10; needs Java)
	@$(BIN)/python -m tests.spark_faults.run --kills $(or $(N),10) $(ARGS)

.PHONY: iceberg-faults
iceberg-faults: env-dev ## Kill workers and drivers while Spark writes an Iceberg table, and count its rows (N=25; needs Java)
	@$(BIN)/python -m tests.spark_faults.lakehouse --kills $(or $(N),25)

.PHONY: delta-faults
delta-faults: env-dev ## The same for a Delta table, with Spark 4.2 and Delta's jar, which are fetched (N=25; 450 MB; needs Java)
	@.ci/spark-oldest -m tests.spark_faults.lakehouse --delta --kills $(or $(N),25)

.PHONY: spark-live
spark-live: env-dev ## Read beside writers, packing and trimming with the reader inside the JVM, and check every row (needs a JDK)
	@$(BIN)/python -m tests.spark_live.run $(ARGS)

.PHONY: jar
jar: env-dev ## Build the jar of Spark's reader inside the JVM (needs a JDK; wheels contain it if it is there)
	@$(BIN)/python -m tests.tools.build_jar

.PHONY: spark-oldest
spark-oldest: env-dev ## Run the tests of Spark with the oldest version that is supported, which is fetched (450 MB; needs Java)
	@.ci/spark-oldest $(ARGS)

.PHONY: powercut
powercut: env-dev ## Open disks as they may stand after a power cut (N=500; needs a C compiler)
	@$(BIN)/python -m tests.powercut.run --images $(or $(N),500) $(ARGS)

.PHONY: image-reads
image-reads: env-dev ## Read disks as they may stand after a power cut inside the JVM and with Python (N=100; needs a JDK and a C compiler)
	@$(BIN)/python -m tests.spark_faults.image_reads --images $(or $(N),100) $(ARGS)

.PHONY: bench
bench: env-dev ## Measure the box, or a broker, or two by turns (URL=pulsar://... VERSUS=pulsar://...)
	@$(BIN)/python -m benchmarks.bench $(if $(URL),--url $(URL)) $(if $(VERSUS),--versus $(VERSUS)) $(ARGS)

.PHONY: bench-copies
bench-copies: env-dev ## Measure copies in several data directories against one directory (ARGS="--disks A B C")
	@$(BIN)/python -m benchmarks.copies $(ARGS)

.PHONY: bench-storage
bench-storage: env-dev ## Measure the store: packing, catch-up, restart, memory, delays (ARGS="--only restart --scale 0.1")
	@$(BIN)/python -m benchmarks.storage $(ARGS)

.PHONY: bench-embed
bench-embed: env-dev ## Measure embedded boxes: start, a hundred side by side, the pytest plugin (ARGS="--boxes 20")
	@$(BIN)/python -m benchmarks.embed $(ARGS)

.PHONY: bench-throttle
bench-throttle: env-dev ## Measure how well rates are kept, in real time (ARGS="--periods 30")
	@$(BIN)/python -m benchmarks.throttle $(ARGS)

.PHONY: bench-spark
bench-spark: env-dev ## Measure Spark reading and writing topics, Parquet, pipelines (STEPS_ARGS, ARGS, SINK_ARGS, TABLE_ARGS, PIPELINE_ARGS, ROLLUP_ARGS)
	@$(BIN)/python -m benchmarks.spark_steps $(STEPS_ARGS)
	@$(BIN)/python -m benchmarks.spark $(ARGS)
	@$(BIN)/python -m benchmarks.spark_sink $(SINK_ARGS)
	@$(BIN)/python -m benchmarks.spark_table $(TABLE_ARGS)
	@$(BIN)/python -m benchmarks.spark_pipelines $(PIPELINE_ARGS)
	@$(BIN)/python -m benchmarks.spark_rollup $(ROLLUP_ARGS)

.PHONY: bench-sql
bench-sql: env-dev ## Measure queries of pulsarbox sql against Spark, from start to answer (ARGS="--without-spark --turns 5")
	@$(BIN)/python -m benchmarks.sql $(ARGS)

.PHONY: bench-tui
bench-tui: env-dev ## Measure the dashboard: first paint, processor time, memory (ARGS="--subscriptions 1000")
	@$(BIN)/python -m benchmarks.tui $(ARGS)

.PHONY: differences
differences: env-dev ## Play scenarios to a box and a Pulsar broker, print what differs (B=pulsar://... B_WEB=its web URL)
	@$(BIN)/python -m tests.differences $(if $(A),--a $(A)) $(if $(A_WEB),--a-web $(A_WEB)) \
		$(if $(B),--b $(B)) $(if $(B_WEB),--b-web $(B_WEB)) $(ARGS)

.PHONY: compare-admin
compare-admin: env-dev ## Ask a box and a Pulsar broker all endpoints, print what differs (B=pulsar://... B_WEB=its web URL)
	@$(BIN)/python -m tests.endpoints $(if $(A),--a $(A)) $(if $(A_WEB),--a-web $(A_WEB)) \
		$(if $(B),--b $(B)) $(if $(B_WEB),--b-web $(B_WEB)) $(ARGS)

.PHONY: mutants
mutants: env-dev ## Mutate N places of the pure rooms and name those that no test notices (N=50; ARGS="--seed 7 --quick")
	@$(BIN)/python -m tests.mutants.run --count $(or $(N),50) $(ARGS)

.PHONY: fuzz-admin
fuzz-admin: env-dev ## Ask the Admin API all it has, half of it nonsense (N=20 boxes, ARGS="--requests 10000")
	@$(BIN)/python -m tests.fuzz.run --seeds $(or $(N),20) $(ARGS)

.PHONY: attack
attack: env-dev ## Attack a box: lengths, counts, bombs, schemas, tokens, paths, ten thousand connections (ARGS="--scale 0.1")
	@$(BIN)/python -m tests.attack.run $(ARGS)

.PHONY: demo
demo: env-dev ## This machine's telemetry through a box and workers that are killed in the middle
	@$(BIN)/python -m examples.demo $(ARGS)

.PHONY: pictures
pictures: env-dev ## Draw the screens of the dashboard from a box under load (ARGS="80x24 160x50": in these sizes), and record it
	@$(BIN)/python -m tests.tools.pictures docs/pictures $(ARGS)
	@$(BIN)/python -m tests.recording.dashboard docs/pictures/recording.svg

.PHONY: screens
screens: env-dev ## Write anew what a test compares the screens of the dashboard with; git diff shows what is other
	@$(BIN)/python -m tests.unit.tui.seen

.PHONY: gallery
gallery: env-dev ## Draw every view of the dashboard in every theme and size, on a page (ARGS="--theme dark --size 80x24 --view 'topic.*'")
	@$(BIN)/python -m tests.gallery $(ARGS)

.PHONY: image
image: ## Build the container image with docker, podman or buildah (TAG=pulsarbox ARGS="--no-cache")
	@.ci/image $(or $(TAG),pulsarbox) $(ARGS)

.PHONY: image-check
image-check: env-dev ## Lint the image and carry out its steps without a container engine (root, some minutes)
	@$(BIN)/python -m pytest -m "slow or not slow" tests/image $(ARGS)

.PHONY: clients
clients: env-dev ## README and quickstart line by line, the official clients of all languages (minutes; ARGS="-k Rust")
	@$(BIN)/python -m pytest -m "slow or not slow" tests/newcomer $(ARGS)

.PHONY: go-transactions
go-transactions: env-dev ## The official Go client's own tests of transactions (ARGS="--run TestTxn_AckAndSend")
	@$(BIN)/python -m tests.suite.go_client $(ARGS)

.PHONY: java-transactions
java-transactions: env-dev ## The official Java client's transactions against a box (a JDK; its jars are fetched once, by Maven)
	@$(BIN)/python -m tests.tools.java
	@$(BIN)/python -m pytest -n 0 tests/e2e/messaging/test_java_transactions.py $(ARGS)

.PHONY: java-tools
java-tools: env-dev ## Pulsar's own pulsar-admin, -client, -perf and -shell against a box, compared with Pulsar (Java; B=pulsar://... TOOLS='DIR/lib/*')
	@$(BIN)/python -m tests.java_tools $(if $(A),--a $(A)) $(if $(A_WEB),--a-web $(A_WEB)) \
		$(if $(B),--b $(B)) $(if $(B_WEB),--b-web $(B_WEB)) $(if $(TOOLS),--tools '$(TOOLS)') $(ARGS)

.PHONY: suite
suite: env-dev ## The official Python client's own suite, from a checkout of it (SUITE_DIR=... ARGS="--only schema")
	@$(BIN)/python -m tests.suite.run --dir $(or $(SUITE_DIR),$(error SUITE_DIR is a checkout of apache/pulsar-client-python)) $(ARGS)

.PHONY: simulate
simulate: env-dev ## Simulate SEEDS=200 histories of the core, or EVENTS=1000000 (ARGS="--engine both --steps 10000")
	@$(BIN)/python -m tests.simulation.run $(if $(EVENTS),--events $(EVENTS),--seeds $(SEEDS)) $(ARGS)

.PHONY: simulate-ensemble
simulate-ensemble: env-dev ## Simulate histories of several data directories that fail (SEEDS=200, or EVENTS=10000000)
	@$(BIN)/python -m tests.simulation.ensemble.run $(if $(EVENTS),--events $(EVENTS),--seeds $(SEEDS)) $(ARGS)

.PHONY: ensemble-histories
ensemble-histories: env-dev ## Try random histories of commits, faults and starts of several data directories (N=20000)
	@$(BIN)/python -m tests.unit.storage.ensemble.campaign --examples $(or $(N),20000) $(ARGS)

.PHONY: lint
lint: env-dev ## Check style, types, the direction of imports, and the prose of documents and help texts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(addprefix -p ,$(TYPED_PACKAGES))
	$(BIN)/lint-imports
	$(BIN)/python -m tests.tools.prose

.PHONY: format
format: env-dev ## Format the code and sort the imports
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: generate
generate: env-dev ## Generate again what is generated: protobuf code, pulsarbox.toml, tables in docs/
	$(BIN)/python tests/tools/generate_protocol.py
	$(BIN)/python -m tests.tools.generate_endpoints
	$(BIN)/python -m tests.tools.generate_policies
	$(BIN)/python -m tests.tools.generate_known
	$(BIN)/python -m tests.tools.generate_admin_groups
	$(BIN)/python -m tests.tools.generate_comparisons
	$(BIN)/python -m tests.tools.generate_spark
	$(BIN)/python -m pulsarbox.config --write

.PHONY: lock
lock: ## Pin the newest fitting versions in both lock files
	.ci/lock

.PHONY: clean
clean: ## Remove the environment and everything built (not the data)
	rm -rf .venv .make build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
