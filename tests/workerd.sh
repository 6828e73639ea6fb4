#!/bin/sh
# Gets workerd, Cloudflare's runtime of workers, with npm, and puts it into the target directory, where the tests look.
set -eu

version=1.20261117.1
root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}/workerd

if ! grep -qs "\"version\": \"$version\"" "$target/node_modules/workerd/package.json"; then
    mkdir -p "$target"
    npm install --prefix "$target" --no-save --ignore-scripts --no-audit --no-fund --silent "workerd@$version" >&2
fi
