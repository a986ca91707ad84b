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
chmod 755 "$root" # it becomes /, which all accounts pass
trap '[ "${KEEP:-}" ] || rm -rf --one-file-system "$root"' EXIT

packages=$(sed -n 's/^sudo apt-get install -y --no-install-recommends \(.*\) && .*/\1/p' README.md)
debootstrap --variant=minbase --include=ca-certificates,python3,procps "$release" "$root" "$mirror"
mkdir "$root/netbench"
git archive HEAD | tar -x -C "$root/netbench"
git -C "$root/netbench" init -q # a test asks git which files there are
git -C "$root/netbench" add -A

# The certificates that this machine trusts, for pip.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2> /dev/null || true
cp /etc/resolv.conf "$root/etc/resolv.conf"

# Mounts and processes end with the namespaces. The network is the machine's: apt and pip need it.
inside() {
	unshare --mount --pid --fork --propagation private sh -euc '
		root=$0 rights=$1
		mount --bind "$root" "$root" # `ip netns` needs a / that is a mount
		mount --rbind /dev "$root/dev"
		mount -t proc proc "$root/proc"
		mount --bind -o "$rights" "$root/proc/sys" "$root/proc/sys"
		mount -o "remount,bind,$rights" "$root/proc/sys"
		mount -t sysfs sysfs "$root/sys"
		mount -t tmpfs -o mode=755 tmpfs "$root/run"
		shift
		cd "$root"
		mkdir -p .before
		pivot_root . .before
		umount -l /.before
		exec env HOME=/root PIP_CERT=/etc/ssl/certs/ca-certificates.crt "$@"
	' "$root" "$@"
}

# Packages apply settings of their own to /proc/sys: those are of this machine.
inside ro sh -euc '
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q
	apt-get install -q -y --no-install-recommends $0
	make -C /netbench .make/built
' "$packages"
inside rw sh -euc 'cd /netbench; eval ".venv/bin/python -m pytest $0"' "$tests"
