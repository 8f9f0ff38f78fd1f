#!/usr/bin/env bash
# web.sh [release|dev]: builds the front end into the site folder ($YICI_SITE_DIR, target/site).
#   release: optimised, hashed names, compressed copies, hash.txt and ops.txt; skipped when nothing that it is made of has changed
#   dev:     quick, plain names, no hash.txt; into target/site-dev
# Two halves, each with a script of its own (app/src/bundle.rs): yici for the school, ops for ops.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"
mode=${1:-release}
if [ "$mode" = dev ]; then site=${YICI_SITE_DIR:-target/site-dev}; fi
stamp=$site.stamp
bindgen=$cache/wasm-bindgen-$WASM_BINDGEN/bin/wasm-bindgen
wasm_opt=$cache/binaryen-$BINARYEN/node_modules/.bin/wasm-opt

inputs() {
    node .make/digest.mjs app server/domain style Cargo.toml Cargo.lock .make/versions .make/web.sh .make/site.mjs \
        "=$(rustc -V)" "=${RUSTFLAGS:-}"
}

# Whether every file that hash.txt and ops.txt name is there.
is_complete() {
    local names name kind hash
    for names in hash:yici ops:ops; do
        name=${names#*:}
        [ -s "$site/${names%:*}.txt" ] || return 1
        while IFS=': ' read -r kind hash; do
            [ -f "$site/pkg/$name.$hash.$kind" ] || return 1
        done <"$site/${names%:*}.txt"
    done
}

# half FEATURE NAME: builds one half into $new.
half() {
    # `--crate-type cdylib` here and not in Cargo.toml: next to an rlib, LTO would silently be off.
    local args=(-p app --lib --crate-type cdylib --target wasm32-unknown-unknown --no-default-features --features "hydrate,$1")
    if [ "$mode" = dev ]; then
        cargo rustc "${args[@]}"
        "$bindgen" --target web --no-typescript --debug --out-dir "$new" --out-name "$2" \
            "$target/wasm32-unknown-unknown/debug/app.wasm"
        return
    fi
    cargo rustc "${args[@]}" --profile wasm-release
    "$bindgen" --target web --no-typescript --out-dir "$new" --out-name "$2" \
        "$target/wasm32-unknown-unknown/wasm-release/app.wasm"
    # -Os and not -Oz: larger before the compression, smaller after it.
    "$wasm_opt" -Os --converge --reorder-functions --reorder-locals --strip-producers "$new/$2_bg.wasm" -o "$new/small.wasm"
    mv "$new/small.wasm" "$new/$2_bg.wasm"
}

build() {
    local new=$site.new-$$
    rm -rf "$new"
    mkdir -p "$new"
    # shellcheck disable=SC2064
    trap "rm -rf '$new'" EXIT
    half school yici
    half ops ops
    cp style/main.css "$new/yici.css"
    if [ "$mode" != dev ]; then
        node .make/site.mjs "$new" yici js wasm css >"$site.hash"
        node .make/site.mjs "$new" ops js wasm >"$site.ops"
    fi
    # In this order a server that is running meanwhile always finds the files that its hash.txt names.
    mkdir -p "$site/pkg"
    rm -f "$stamp"
    mv "$new"/* "$site/pkg/"
    if [ "$mode" = dev ]; then
        rm -f "$site/hash.txt" "$site/ops.txt"
        return
    fi
    mv "$site.ops" "$site/ops.txt"
    mv "$site.hash" "$site/hash.txt"
    local file
    for file in "$site"/pkg/*; do
        grep -hqx ".*: $(cut -d. -f2 <<<"${file##*/}")" "$site/hash.txt" "$site/ops.txt" || rm -rf "$file"
    done
}

if [ "$mode" = dev ]; then
    build
    exit
fi
# Hashed before the build, so that an edit during it is not taken for built.
now=$(inputs)
if [ "$(cat "$stamp" 2>/dev/null)" = "$now" ] && is_complete; then
    say "-- front end: nothing has changed"
    exit
fi
begin=$SECONDS
say "-- front end: building (about 4 minutes from nothing, one and a half after a change)"
build
say "$now" >"$stamp"
say "   done in $((SECONDS - begin)) s"
