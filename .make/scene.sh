#!/usr/bin/env bash
# scene.sh NAME [ARGUMENT…]: plays end2end/NAME.mjs, such as outage or chaos, with real processes on a throw-away cluster.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=.make/cluster.sh
. .make/cluster.sh
name=$1
shift
pages=$(mktemp -d)
trap 'stop_cluster; rm -rf "$pages"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
.make/tools.sh cc node rust wasm-target wasm-bindgen postgres redis playwright promtool
server=${YICI_SERVER_BIN:-}
if [ -z "$server" ]; then
    cargo build --workspace
    server=$target/debug/server
fi
# The pages are not looked at, but the server insists on a front end.
mkdir "$pages/pkg"
touch "$pages/pkg/yici.js"
start_cluster
if promtool=$(find_promtool); then export YICI_PROMTOOL=$promtool; fi
env -u DATABASE_URL YICI_TEST_DATABASE_URL="$database_url" YICI_SERVER_BIN="$server" YICI_SITE="$pages" YICI_CHROMIUM=none \
    node "end2end/$name.mjs" "$@"
