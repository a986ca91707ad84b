#!/bin/sh
# The tests on another release of Debian, in a folder that debootstrap fills: `make test-debian
# RELEASE=trixie`. As root; removes the folder at the end unless KEEP is set. TESTS: what pytest
# gets, by default everything but slow tests and those with guests.
set -eu

release=$1
tests=${TESTS:-'-m "not slow and not guest"'}
mirror=${MIRROR:-http://deb.debian.org/debian}
command -v debootstrap > /dev/null || {
	echo "test-debian: debootstrap is missing; install it (apt-get install debootstrap)" >&2
	exit 2
}
root=$(mktemp -d /var/tmp/netbench-debian.XXXXXX)
trap '[ "${KEEP:-}" ] || rm -rf --one-file-system "$root"' EXIT

packages=$(sed -n 's/^sudo apt-get install -y --no-install-recommends \(.*\) && .*/\1/p' README.md)
debootstrap --variant=minbase --include=ca-certificates,python3,procps "$release" "$root" "$mirror"
mkdir "$root/netbench"
git archive HEAD | tar -x -C "$root/netbench"
git -C "$root/netbench" init -q # a test asks git which files there are
git -C "$root/netbench" add -A

cat > "$root/run.sh" << 'EOF'
set -eu
packages=$1 tests=$2
export DEBIAN_FRONTEND=noninteractive HOME=/root
apt-get update -q
apt-get install -q -y --no-install-recommends $packages
cd /netbench
make .make/built
eval ".venv/bin/python -m pytest $tests"
EOF
# Mounts and processes end with the namespaces. The network is the machine's: pip needs it.
unshare --mount --pid --fork --propagation private sh -euc '
	mount --bind /dev "$0/dev"
	mount --bind /dev/pts "$0/dev/pts"
	mount -t proc proc "$0/proc"
	mount -t sysfs sysfs "$0/sys"
	mount -t tmpfs tmpfs "$0/run"
	cp /etc/resolv.conf "$0/etc/resolv.conf"
	exec chroot "$0" sh /run.sh "$1" "$2"
' "$root" "$packages" "$tests"
