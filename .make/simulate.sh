#!/usr/bin/env bash
# simulate.sh: the traffic of students on bad networks against a server that runs (make run); SIMULATE holds more arguments.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
.make/tools.sh cc rust
server=${YICI_SERVER_BIN:-$target/release/server}
if [ ! -x "$server" ]; then
    say "-- server: building"
    cargo build --workspace --release
fi
# shellcheck disable=SC2086
exec "$server" simulate ${SIMULATE:-}
