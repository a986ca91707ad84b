#!/bin/sh
# The Debian packages that README.md names. `tools/packages.sh missing`: an error that names those
# of them that are not installed, where this is a Debian.
set -eu

packages=$(sed -n 's/^sudo apt-get install -y --no-install-recommends \([^&]*\).*/\1/p' README.md)
[ "$packages" ] || { echo "README.md names no packages" >&2; exit 2; }
[ "${1:-}" ] || exec echo $packages
command -v dpkg-query > /dev/null || exit 0
missing=
for package in $packages; do
	case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) in
	installed) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -z "$missing" ] || {
	echo "tests need Debian packages that are not installed; \`make pytest\` skips what it can:" >&2
	echo "sudo apt-get install -y --no-install-recommends$missing" >&2
	exit 2
}
