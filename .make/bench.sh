#!/usr/bin/env bash
# bench.sh: how fast it is, on a Postgres of its own with fsync on, thrown away afterwards; BENCH holds more arguments.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=.make/cluster.sh
. .make/cluster.sh
.make/tools.sh cc node rust postgres redis
run=(cargo bench --workspace --locked --bench speed)
say "-- the server and its bench: building"
"${run[@]}" --no-run
# shellcheck disable=SC2206
asked=(${BENCH:-})
case " ${asked[*]} " in
*" --help "* | *" -h "*) exec "${run[@]}" -- "${asked[@]}" ;;
esac
trap stop_cluster EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
settings=(fsync=on full_page_writes=on max_connections=500)
# It comes with Postgres, but not with every package of it; without it the bench says that it does not count statements.
home=$(dirname "$(dirname "$(readlink -f "$(find_postgres)/postgres")")")
if [ -n "$(find "$home/lib" -name 'pg_stat_statements.*' -print -quit)" ]; then
    settings+=(shared_preload_libraries=pg_stat_statements pg_stat_statements.track=none)
fi
start_cluster "${settings[@]}"
# Cargo runs a bench in its package's folder.
figures=$(mkdir -p "$target" && cd "$target" && pwd)/bench.json
env -u DATABASE_URL YICI_BENCH_DATABASE_URL="$database_url" "${run[@]}" -- --json "$figures" "${asked[@]}"
