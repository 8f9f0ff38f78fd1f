# Yici. The targets are thin; what they do is in .make/.
.DEFAULT_GOAL := help
.PHONY: help run build watch test model bench check fmt clean simulate outage chaos

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build everything, start a private Postgres unless DATABASE_URL is set, and serve the demo on http://127.0.0.1:3000
	@exec .make/run.sh run

build: ## Build what `make run` serves: target/release/server and target/site
	@exec .make/run.sh build

watch: ## Build for development and serve the demo, again after each change of a source file
	@exec .make/watch.sh

test: ## Run every check and every test, the browser's included, after installing what they need
	@exec .make/test.sh

simulate: ## Send the traffic of students on bad networks to the server of `make run`, and compare with its panel (SIMULATE="--help")
	@exec .make/simulate.sh

outage: ## Go through an outage on a throw-away database: panel, metrics, log, traces and alerts must tell the same
	@exec .make/scene.sh outage

chaos: ## Let everything go wrong at random under load for a minute, then look up every rule in the rows (CHAOS="--seconds 300")
	@exec .make/scene.sh chaos $(CHAOS)

model: ## Check the protocol's model in a release build, and print states, depth and time
	@YICI_MODEL=full cargo test --release --locked -p engine --test model -- --nocapture --test-threads 1

bench: ## Measure submissions, the panel and the front lock on a throw-away Postgres with fsync on, as ratios (BENCH="--help")
	@exec .make/bench.sh

check: ## Check format, lints, layout, pins and dependencies, without running anything
	@exec .make/check.sh

fmt: ## Format the Rust sources
	@cargo fmt --all

clean: ## Remove what was built; the database under data/ and the tools in the cache folder stay
	@cargo clean
	@rm -rf target end2end/node_modules end2end/artifacts
