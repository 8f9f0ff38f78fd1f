#!/usr/bin/env bash
# test.sh: every test. Installs what it needs, checks, tests on a Postgres of its own, tests in a browser. A part that fails
# does not keep the others from running; the last line says what happened.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=.make/cluster.sh
. .make/cluster.sh
begin=$SECONDS
passed=() failed=() left_out=()
complete=

# Stops the cluster and says the last word, however the script ends.
finish() {
    local status=$?
    stop_cluster
    local text="make test: ${#passed[@]} parts passed${passed:+ (${passed[*]})}"
    if [ ${#failed[@]} -gt 0 ]; then text+=", ${#failed[@]} FAILED (${failed[*]})"; fi
    if [ ${#left_out[@]} -gt 0 ]; then text+=", not run: ${left_out[*]}"; fi
    if [ -z "$complete" ]; then text+=", ended EARLY"; fi
    say "$text; $((SECONDS - begin)) s"
    if [ -z "$complete" ] && [ "$status" = 0 ]; then status=1; fi
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# part NAME COMMAND…
part() {
    local name=$1 from=$SECONDS
    shift
    say "== $name"
    if "$@"; then passed+=("$name"); else failed+=("$name"); fi
    say "== $name: $((SECONDS - from)) s"
}

rust_tests() { DATABASE_URL=$database_url cargo test --workspace --locked --no-fail-fast; }

# The tests start servers themselves; a DATABASE_URL would send those to one shared database.
browser_tests() {
    env -u DATABASE_URL YICI_TEST_DATABASE_URL="$database_url" YICI_SERVER_BIN="$(absolute "$target/debug/server")" \
        YICI_SITE="$(absolute "$site")" YICI_CHROMIUM="$(find_browser)" \
        node --test --test-reporter=spec end2end/tests/*.test.mjs
}

# The rules, and that each alert fires and does not.
alert_tests() {
    promtool check rules server/observability/rules.yml && promtool test rules server/observability/tests.yml
}

absolute() { (cd "$(dirname "$1")" && printf '%s/%s\n' "$PWD" "$(basename "$1")"); }

say "== tools"
.make/tools.sh cc node rust wasm-target wasm-bindgen wasm-opt postgres redis browser playwright promtool
for name in format versions layout scripts wasm_guard lint lint_wasm; do
    part "$name" .make/check.sh "$name"
done
if cargo deny --version >/dev/null 2>&1; then
    part dependencies .make/check.sh dependencies
else
    left_out+=("dependencies (no cargo-deny)")
fi
if promtool=$(find_promtool); then
    # The tests of the metrics page look for it, too.
    PATH=$(dirname "$promtool"):$PATH
    part alerts alert_tests
else
    left_out+=("alerts (no promtool, which Debian's package prometheus has)")
fi
start_cluster
part rust rust_tests
if [ -x "$target/debug/server" ]; then
    part outage env YICI_SERVER_BIN="$(absolute "$target/debug/server")" .make/scene.sh outage
else
    left_out+=("outage (nothing built)")
fi
part front_end .make/web.sh release
if [ -x "$target/debug/server" ] && [ -s "$site/hash.txt" ]; then
    part browser browser_tests
else
    left_out+=("browser (nothing built)")
fi
complete=yes
[ ${#failed[@]} = 0 ]
