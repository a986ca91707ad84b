#!/bin/sh
# What README.md tells a new user, on a bare Debian that debootstrap makes: `make test-debian
# RELEASE=trixie`. Root runs its first two blocks, and so does an ordinary user, for whom root has
# installed the packages. TESTS: then pytest, with these arguments. As root; removes the folder at
# the end unless KEEP is set.
set -eu

release=$1
name=test-debian
. tools/bare_debian.sh

blocks() { # the first $1 of README.md
	awk -v last="$1" '/^```/ { inside = /^```sh$/ && ++n; next } inside && n <= last' README.md
}

demo() { # user, folder
	inside "$1" ro "$2" "$(blocks 2 | sed 's/^sudo .* && //')
		test -s results/loopback/*/report/index.html"
	echo "$name $release: $2/.venv: $(du -sm "$root$2/.venv" | cut -f 1) MB" >> "$root/steps"
}

make_root ""
for folder in /netbench /home/somebody/netbench; do
	git clone -q --depth 1 "file://$PWD" "$root$folder"
done
chown -R "$(stat -c %u:%g "$root/home/somebody")" "$root/home/somebody"

inside root ro / 'apt-get update -q'
# Packages apply settings of their own to /proc/sys: those are of this machine.
step "packages to run" inside root ro / "$(blocks 1 | sed -n 's/^sudo \(.*\) && .*/\1/p')"
step "build and demo as root" demo root /netbench
step "build and demo as a user" demo somebody /home/somebody/netbench
if [ "${TESTS:-}" ]; then
	step "packages to test" inside root ro /netbench \
		'apt-get install -y -q --no-install-recommends $(tools/packages.sh); make .make/dev'
	inside root rw /netbench ".venv/bin/python -m pytest $TESTS"
fi
cat "$root/steps"
