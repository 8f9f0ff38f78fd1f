#!/usr/bin/env bash
# check.sh [PART…]: what can be checked without running the program. Without names: all parts.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"

# The files of the repository, also where the clone belongs to another user (a container's mount).
tracked() { git -c safe.directory='*' ls-files "$@"; }

part_format() { cargo fmt --all --check; }

part_lint() { cargo clippy --workspace --all-targets --locked -- -D warnings; }

part_lint_wasm() {
    local half
    for half in school ops; do
        cargo clippy -p app --lib --locked --target wasm32-unknown-unknown --no-default-features --features "hydrate,$half" -- \
            -D warnings || return
    done
}

# The crates of the server that a dependency tree holds.
server_crates() { cargo tree --locked --prefix none --format '{p}' --edges normal "$@" | grep -E '^(sqlx[a-z-]*|tokio|axum|hyper|engine|server|leptos_axum) v' | sort -u; }

# The browser's half must not hold the server's: the tree of the wasm build is searched for it.
part_wasm_guard() {
    local found
    # The same search must find them where they are, or finding nothing proves nothing.
    found=$(server_crates -p app --no-default-features --features ssr) || true
    local name
    for name in sqlx tokio axum engine; do
        grep -q "^$name v" <<<"$found" || { say "the guard is broken: it does not find $name in the server's half"; return 1; }
    done
    cargo tree --locked -p app --target wasm32-unknown-unknown --no-default-features --features hydrate,school,ops >/dev/null || return
    found=$(server_crates -p app --target wasm32-unknown-unknown --no-default-features --features hydrate,school,ops) || true
    if [ -n "$found" ]; then
        say "the browser's half depends on crates of the server:"
        say "$found"
        return 1
    fi
}

# Each pin is written in two places.
part_versions() {
    local status=0
    grep -qE "^wasm-bindgen = \"=$WASM_BINDGEN\"" Cargo.toml ||
        { say "Cargo.toml's wasm-bindgen is not =$WASM_BINDGEN, as .make/versions has it"; status=1; }
    grep -qF "\"playwright-core\": \"$PLAYWRIGHT_CORE\"" end2end/package.json ||
        { say "end2end/package.json's playwright-core is not $PLAYWRIGHT_CORE, as .make/versions has it"; status=1; }
    return "$status"
}

# The layout that the documentation describes.
part_layout() {
    local status=0 found
    [ -n "$(tracked Makefile)" ] || { say "git does not list the repository's files"; return 1; }
    found=$(tracked | cut -d/ -f1 | sort -u |
        grep -vxE 'Cargo\.(toml|lock)|app|server|style|migrations|end2end|README\.md|Makefile|LICENSE|\..+') || true
    if [ -n "$found" ]; then
        say "not in the layout's top level: $found"
        status=1
    fi
    found=$(tracked -- app server ':!server/engine/src/store' ':!**/tests/**' ':!**/benches/**' |
        grep '\.rs$' | tr '\n' '\0' | xargs -0 grep -nE 'sqlx::(query|raw_sql)|\bquery_(as|scalar)(::<|\()|QueryBuilder') || true
    if [ -n "$found" ]; then
        say "SQL outside server/engine/src/store:"
        say "$found"
        status=1
    fi
    return "$status"
}

part_scripts() {
    local file status=0
    for file in .make/*.sh .ci/run; do
        bash -n "$file" || status=1
        if have shellcheck; then shellcheck -x -P . -S warning "$file" || status=1; fi
    done
    while read -r file; do
        node --check "$file" || status=1
    done < <(tracked '*.mjs')
    return "$status"
}

part_dependencies() {
    if ! cargo deny --version >/dev/null 2>&1; then
        say "SKIPPED: cargo-deny is not installed (cargo install cargo-deny --locked)"
        return
    fi
    cargo deny --config .deny.toml check
}

parts=(format versions layout scripts wasm_guard lint lint_wasm dependencies)
if [ $# = 0 ]; then
    set -- "${parts[@]}"
    .make/tools.sh cc node rust wasm-target
fi
failed=()
for part in "$@"; do
    declare -F "part_$part" >/dev/null || stop "check.sh has no part $part; it has: ${parts[*]}"
    step "check: $part" "part_$part" || failed+=("$part")
done
if [ ${#failed[@]} -gt 0 ]; then
    say "check FAILED: ${failed[*]}"
    exit 1
fi
say "check passed: $*"
