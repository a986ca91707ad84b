#!/bin/sh
# What README.md tells a new user, on a bare Debian that debootstrap makes: `make test-debian
# RELEASE=trixie`. Root runs its first two blocks, and so does an ordinary user, for whom root has
# installed the packages. TESTS: then pytest, with these arguments. As root; removes the folder at
# the end unless KEEP is set.
set -eu

release=$1
mirror=${MIRROR:-http://deb.debian.org/debian}
command -v debootstrap > /dev/null || {
	echo "test-debian: debootstrap is missing; install it (apt-get install debootstrap)" >&2
	exit 2
}
root=$(mktemp -d "${TMPDIR:-/var/tmp}/netbench-debian.XXXXXX")
chmod 755 "$root" # it becomes /, which all accounts pass
trap '[ "${KEEP:-}" ] || rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' HUP INT TERM

blocks() { # the first $1 of README.md
	awk -v last="$1" '/^```/ { inside = /^```sh$/ && ++n; next } inside && n <= last' README.md
}

# Mounts and processes end with the namespaces. The network is the machine's: apt and pip need it.
isolated="unshare --mount --pid --fork --kill-child --propagation private"
inside() { # user, rights to /proc/sys, folder, script
	$isolated sh -euc '
		root=$0 rights=$2
		mount --bind "$root" "$root" # `ip netns` needs a / that is a mount
		mount --rbind /dev "$root/dev"
		mount -t proc proc "$root/proc"
		mount --bind -o "$rights" "$root/proc/sys" "$root/proc/sys"
		mount -o "remount,bind,$rights" "$root/proc/sys"
		mount -t sysfs sysfs "$root/sys"
		mount -t tmpfs -o mode=755 tmpfs "$root/run"
		mount -t tmpfs tmpfs "$root/dev/shm"
		cd "$root"
		mkdir -p .before
		pivot_root . .before
		umount -l /.before
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
			PIP_CERT=/etc/certificates.crt su "$1" -c "cd $3; set -eu; $4"
	' "$root" "$@"
}

size() { du -smx --exclude="$root"/var/cache --exclude="$root"/var/lib/apt "$root" | cut -f 1; }
count() { dpkg-query --admindir="$root/var/lib/dpkg" -W | wc -l; }
# What a step took, and how much larger it has made the folder.
step() {
	name=$1 began=$(date +%s) size=$(size) count=$(count)
	shift
	"$@"
	echo "test-debian $release: $name: $(($(date +%s) - began)) s," \
		"$(($(count) - count)) packages, $(($(size) - size)) MB" | tee -a "$root/steps"
}
demo() { # user, folder
	inside "$1" ro "$2" "$(blocks 2 | sed 's/^sudo .* && //')
		test -s results/loopback/*/report/index.html"
	echo "test-debian $release: $2/.venv: $(du -sm "$root$2/.venv" | cut -f 1) MB" >> "$root/steps"
}

$isolated debootstrap --variant=minbase "$release" "$root" "$mirror"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/certificates.crt" # what this machine trusts
useradd --root "$root" --create-home somebody
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
