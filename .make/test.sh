#!/usr/bin/env bash
# test.sh: every test. Installs what it needs, checks, tests on a Postgres of its own, tests in a browser. A part that fails
# does not keep the others from running; the last line says what happened.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
begin=$SECONDS
passed=() failed=() left_out=()
cluster=
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

# Ends clusters of runs that were killed: their folder's name is the process id of the run.
sweep() {
    local dir
    for dir in "$1"/*/; do
        [ -d "$dir" ] || continue
        kill -0 "$(basename "$dir")" 2>/dev/null && continue
        as_postgres "$pg/pg_ctl" stop -D "$dir/data" -m immediate -w >/dev/null 2>&1 || true
        rm -rf "$dir" "${dir%/}.log"
    done
}

# A cluster of its own, thrown away afterwards: fsync is off, which only a crash of the machine could notice.
start_cluster() {
    local base port password
    pg=$(find_postgres)
    mkdir -p "$target/test-postgres"
    base=$(cd "$target/test-postgres" && pwd)
    # A clone below /root is closed to the user that Postgres runs as.
    as_postgres sh -c 'cd "$1"' sh "$base" 2>/dev/null || base=/var/lib/yici/test-postgres
    mkdir -p "$base"
    sweep "$base"
    cluster=$base/$$
    mkdir -m 700 "$cluster"
    password=$(node -p 'crypto.randomBytes(16).toString("hex")')
    say "$password" >"$cluster/password"
    if is_root; then chown -R "$(postgres_user)" "$cluster"; fi
    as_postgres "$pg/initdb" -D "$cluster/data" -U yici --pwfile="$cluster/password" -A password -E UTF8 --locale=C \
        --no-sync >"$cluster.log" 2>&1 || { cat "$cluster.log"; return 1; }
    port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
    as_postgres "$pg/pg_ctl" start -D "$cluster/data" -l "$cluster/log" -w -o "-p $port -c listen_addresses=127.0.0.1 \
        -c unix_socket_directories= -c fsync=off -c full_page_writes=off -c max_connections=300 -c shared_buffers=256MB" \
        >"$cluster.log" 2>&1 || { cat "$cluster.log" "$cluster/log"; return 1; }
    database_url="postgres://yici:$password@127.0.0.1:$port/postgres"
}

stop_cluster() {
    [ -n "$cluster" ] || return 0
    as_postgres "$pg/pg_ctl" stop -D "$cluster/data" -m immediate -w >/dev/null 2>&1 || true
    rm -rf "$cluster" "$cluster.log"
    cluster=
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
part front_end .make/web.sh release
if [ -x "$target/debug/server" ] && [ -s "$site/hash.txt" ]; then
    part browser browser_tests
else
    left_out+=("browser (nothing built)")
fi
complete=yes
[ ${#failed[@]} = 0 ]
