#!/bin/sh
# A Debian package of what `make dist wheelhouse` have made: `make deb RELEASE=trixie`, into dist/.
# It carries the Python packages that the release lacks or has too old, in a venv of its own in
# /usr/lib/netbench. The same wheels give the same bytes.
set -eu
umask 022

release=$1
machine=$(uname -m)
wheels=$(ls -t dist/netbench-*-manylinux_*_"$machine".whl)
wheel=$(echo "$wheels" | head -n 1) # the newest, where there are several versions
version=$(echo "$wheel" | cut -d - -f 2)
export SOURCE_DATE_EPOCH=$(git log -1 --format=%ct HEAD)
by="${DEBFULLNAME:-netbench developers} <${DEBEMAIL:-netbench@netbench.invalid}>"
depends= carried=
case $release in
bookworm) python=3.11 next=3.12 system=false ;;
trixie)
	python=3.13 next=3.14 system=true carried='--no-deps duckdb fabric invoke decorator deprecated wrapt'
	for package in argcomplete cffi cryptography jinja2 matplotlib numpy pandas paramiko \
		pydantic rich scipy yaml; do
		depends="$depends, python3-$package"
	done
	;;
*) echo "deb: RELEASE is bookworm or trixie, got '$release'" >&2; exit 2 ;;
esac
depends="python3 (>= $python), python3 (<< $next), libc6 (>= 2.28)$depends"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
home=$root/usr/lib/netbench
packages=$home/lib/python$python/site-packages
mkdir -p "$home/bin" "$packages" "$root/DEBIAN"
# shellcheck disable=SC2086
.venv/bin/pip install -q --disable-pip-version-check --no-compile --no-index \
	--find-links dist/wheelhouse --python-version $python --only-binary=:all: --target "$packages" \
	$carried "$wheel" 2> "$root/said" || { cat "$root/said" >&2; exit 1; }
rm "$root/said"
mv "$packages/share" "$root/usr/share"
rm -rf "$packages/bin"
find "$packages" -name tests -type d -prune -exec rm -rf {} +
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
find "$root/usr/share/man" -type f -exec gzip -9n {} +
find "$packages" -name '*.so*' -exec chmod 644 {} +
find "$root/usr/share" -mindepth 1 -maxdepth 1 ! -name man ! -name bash-completion ! -name zsh \
	! -name fish -exec rm -rf {} +
ln -s /usr/bin/python3 "$home/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = %s\nversion = %s\n' "$system" "$python" \
	> "$home/pyvenv.cfg"
mkdir "$root/usr/bin"
cp tools/packaging/netbench.py "$root/usr/bin/netbench"
chmod 755 "$root/usr/bin/netbench"

doc=$root/usr/share/doc/netbench
mkdir -p "$doc/examples"
cp tools/packaging/allow "$doc/examples/allow"
{ echo 'Source: this package; the Python packages in /usr/lib/netbench have their licences beside'
  echo 'them, in their .dist-info folders.'; echo; cat LICENSE; } > "$doc/copyright"
{ echo "netbench ($version+$release) $release; urgency=medium"; echo
  echo '  * Users'"'"' changes are in CHANGELOG.md of the source.'; echo
  echo " -- $by  $(date -uRd @"$SOURCE_DATE_EPOCH")"; } | gzip -9n > "$doc/changelog.gz"
mkdir -p "$root/usr/share/lintian/overrides"
cp tools/packaging/lintian-overrides "$root/usr/share/lintian/overrides/netbench"

cat > "$root/DEBIAN/control" << end
Package: netbench
Version: $version+$release
Architecture: $(dpkg --print-architecture)
Maintainer: $by
Section: net
Priority: optional
Installed-Size: $(du -sk "$root" | cut -f 1)
Depends: $depends
Recommends: openssh-client
Suggests: iperf3, iproute2, qemu-system-x86, sockperf
Description: Benchmark campaigns of network transfers
 A campaign is one YAML file: methods (sendfile, splice, zero-copy, ...),
 settings, kernels. netbench runs all in random order, repeats until intervals
 are narrow, checks that the mechanism was really used, puts settings back, and
 says what came out, with its doubts.
end
cp tools/packaging/postinst tools/packaging/prerm "$root/DEBIAN"
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
dpkg-deb --root-owner-group -Zxz -z1 --build "$root" dist > /dev/null
ls -l dist/netbench_"$version+$release"_*.deb
