#!/bin/sh
# Builds the packages of the commit here, and in a clone in another folder with a later clock and
# empty caches: `make test-reproducible`.
set -eu

other=$(mktemp -d)
trap 'rm -rf "$other"' EXIT
python=$PWD/.venv/bin/python
git clone -q . "$other/clone"
"$python" -m tools.packaging.dist
(cd "$other/clone" && TMPDIR=$other ZIG_GLOBAL_CACHE_DIR=$other/zig ZIG_LOCAL_CACHE_DIR=$other/zig \
	faketime -f +40d "$python" -m tools.packaging.dist)
for file in "$other"/clone/dist/*; do
	cmp "$file" "dist/${file##*/}"
done
echo "the same bytes: $(cd "$other/clone/dist" && echo *)"
