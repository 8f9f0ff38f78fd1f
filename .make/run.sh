#!/usr/bin/env bash
# run.sh [build|run]: everything from a clone to the served page; what is done is skipped.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
begin=$SECONDS
.make/tools.sh cc node rust wasm-target wasm-bindgen wasm-opt
.make/web.sh release
# cargo itself knows what has changed.
say "-- server: building what has changed (about 7 minutes from nothing)"
built=$SECONDS
cargo build --workspace --release
say "   done in $((SECONDS - built)) s"
if [ "${1:-run}" = build ]; then
    say "built $target/release/server and $site in $((SECONDS - begin)) s"
    exit
fi
if [ -z "${DATABASE_URL:-}" ]; then .make/tools.sh postgres; fi
say "-- serving; everything before took $((SECONDS - begin)) s; Ctrl-C stops"
export YICI_SITE_DIR=$site
exec "$target/release/server" serve --demo
