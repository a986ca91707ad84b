# A bare Debian in a folder, made by debootstrap, for scripts that set `release` and `name` (of the
# script) and source this, as root. The folder is removed at the end unless KEEP is set.

mirror=${MIRROR:-http://deb.debian.org/debian}
command -v debootstrap > /dev/null || {
	echo "$name: debootstrap is missing; install it (apt-get install debootstrap)" >&2
	exit 2
}
root=$(mktemp -d "${TMPDIR:-/var/tmp}/netbench-debian.XXXXXX")
chmod 755 "$root" # it becomes /, which all accounts pass
trap '[ "${KEEP:-}" ] || rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' HUP INT TERM

# Mounts and processes end with the namespaces. The network is the machine's: apt and pip need it.
isolated="unshare --mount --pid --fork --kill-child --propagation private"
inside() { # user, rights to /proc/sys, folder, script; OFFLINE: with loopback alone
	$isolated ${OFFLINE:+--net} sh -euc '
		[ ! "${OFFLINE:-}" ] || ip link set lo up
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
	what=$1 began=$(date +%s) size=$(size) count=$(count)
	shift
	"$@"
	echo "$name $release: $what: $(($(date +%s) - began)) s," \
		"$(($(count) - count)) packages, $(($(size) - size)) MB" | tee -a "$root/steps"
}
make_root() { # packages, one word with commas
	$isolated debootstrap --variant=minbase ${1:+--include="$1"} "$release" "$root" "$mirror"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/certificates.crt" # what this machine trusts
	useradd --root "$root" --create-home somebody
}
