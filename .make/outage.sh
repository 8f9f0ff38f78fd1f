#!/usr/bin/env bash
# outage.sh: a scripted outage on a throw-away database, in which panel, metrics, records, log, traces and alerts have to tell the
# same story with the same numbers. Prints the comparison, and fails when they differ.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=.make/cluster.sh
. .make/cluster.sh
trap stop_cluster EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
.make/tools.sh cc node rust wasm-target wasm-bindgen postgres redis playwright promtool
server=${YICI_SERVER_BIN:-}
if [ -z "$server" ]; then
    cargo build --workspace
    server=$target/debug/server
fi
# The pages are not looked at, but the server insists on a front end.
pages=$(mktemp -d)
mkdir "$pages/pkg"
touch "$pages/pkg/yici.js"
trap 'stop_cluster; rm -rf "$pages"' EXIT
start_cluster
if promtool=$(find_promtool); then export YICI_PROMTOOL=$promtool; fi
env -u DATABASE_URL YICI_TEST_DATABASE_URL="$database_url" YICI_SERVER_BIN="$server" YICI_SITE="$pages" YICI_CHROMIUM=none \
    node end2end/outage.mjs
