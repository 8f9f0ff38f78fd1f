#!/usr/bin/env bash
# watch.sh: builds for development, serves, and does both again whenever a source file changes. Looks at the files' times
# twice a second, so that nothing has to be installed for it; ends only the server that it started.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
.make/tools.sh cc node rust wasm-target wasm-bindgen
if [ -z "${DATABASE_URL:-}" ]; then .make/tools.sh postgres; fi
export YICI_SITE_DIR=${YICI_SITE_DIR:-target/site-dev}
sources=(app server style migrations Cargo.toml Cargo.lock)
server=
seen=$(mktemp)

end_server() {
    if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
        kill -TERM "$server"
        wait "$server" || true
    fi
    server=
}
trap 'end_server; rm -f "$seen" "$seen.list"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

list() { find "${sources[@]}" -type f 2>/dev/null | sort; }

# A file that is new, gone, or younger than the last look.
changed() {
    [ -n "$(find "${sources[@]}" -type f -newer "$seen" -print 2>/dev/null | head -1)" ] || ! list | cmp -s - "$seen.list"
}

while :; do
    # The time of the look is that of its beginning: what is edited during the build is built next.
    touch "$seen"
    list >"$seen.list"
    begin=$SECONDS
    if .make/web.sh dev && cargo build --workspace; then
        say "-- built in $((SECONDS - begin)) s; serving until a file changes"
        end_server
        "$target/debug/server" serve --demo &
        server=$!
    else
        say "-- the build failed; the server stays as it was, waiting for a change"
    fi
    until changed; do
        # Without a server there is nothing to lose; it is started again after the next change.
        sleep 0.5
    done
    say "-- a file has changed"
done
