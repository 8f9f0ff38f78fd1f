# shellcheck shell=bash disable=SC2034,SC2154
# A Postgres of a script's own, thrown away afterwards. Sourced, never run; lib.sh comes before it.

cluster=

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

# start_cluster [SETTING=VALUE…]: a cluster of its own, thrown away afterwards. fsync is off unless a setting says otherwise: only
# a crash of the machine could notice.
start_cluster() {
    local base port password settings=(fsync=off full_page_writes=off max_connections=300 shared_buffers=256MB "$@")
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
        -c unix_socket_directories= ${settings[*]/#/-c }" \
        >"$cluster.log" 2>&1 || { cat "$cluster.log" "$cluster/log"; return 1; }
    database_url="postgres://yici:$password@127.0.0.1:$port/postgres"
}

stop_cluster() {
    [ -n "$cluster" ] || return 0
    as_postgres "$pg/pg_ctl" stop -D "$cluster/data" -m immediate -w >/dev/null 2>&1 || true
    rm -rf "$cluster" "$cluster.log"
    cluster=
}
