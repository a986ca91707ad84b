#!/bin/sh
# What packages promise, in a bare Debian without compiler, headers, git and network: `make
# test-dist RELEASE=trixie` after `make dist wheelhouse`, and `make deb` of that release. As root.
set -eu

release=$1
name=test-dist
. tools/bare_debian.sh

deb=$(cd dist && ls netbench_*+"$release"_*.deb)
other=$(ls dist/netbench-*-manylinux_*.whl | grep -v "_$(uname -m).whl")
offline() { (export OFFLINE=1 && inside "$@"); }
user() { # step, script: as a user without a network
	step "$1" offline somebody ro /home/somebody "$setup; $2"
}
setup='export PATH="$HOME/.local/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1
	export PIP_FIND_LINKS="/dist /dist/wheelhouse" UV_FIND_LINKS="/dist,/dist/wheelhouse"
	! { command -v cc || command -v gcc || command -v git; }
	refuses() { # what it says, command
		says=$1; shift
		! "$@" > said 2>&1 && tr -s "\n " " " < said | grep -F "$says" || { cat said; exit 1; }
	}'
uses='
	began=$(date +%s)
	netbench demo --plain > told 2> said || { cat said; exit 1; }
	grep -A 1 "% intervals)" told || { cat told; exit 1; } # on a busy machine: inconclusive
	echo "the first verdict came after $(($(date +%s) - began)) s"
	[ $(($(date +%s) - began)) -le 60 ]
	test -s results/demo/*/report/index.html
	netbench --version
	for n in 1 2 3 4 5; do
		b=$(date +%s%N); netbench --help > /dev/null; echo $((($(date +%s%N) - b) / 1000000))
	done | sort -n | sed -n "3s/.*/--help takes & ms/p"
	rm -r results;'
completes='bash -c "COMP_LINE=\"netbench rest\" COMP_POINT=13 COMP_TYPE=9 COMP_WORDS=(netbench rest)
	. \$0; _python_argcomplete netbench; [ \"\${COMPREPLY[0]}\" = \"restore \" ]"'

make_root python3-venv,pipx,man-db
mkdir "$root/dist"
cp -r dist/netbench* dist/wheelhouse "$root/dist"
.venv/bin/pip download -q --no-deps -d "$root/dist/tools" uv

user "pip in a venv" "python3 -m venv v; v/bin/pip install -q netbench; . v/bin/activate; $uses
	python -m netbench --version
	man -w -M v/share/man netbench
	$completes v/share/bash-completion/completions/netbench"
echo "venv: $(du -sm "$root/home/somebody/v" | cut -f 1) MB" >> "$root/steps"

cp "$other" "$root/dist/other.whl"
user "what is missing is said" '. v/bin/activate; cd v/lib/python3*/site-packages/netbench
	cp ~/v/lib/python3*/site-packages/netbench/templates/demo.yaml .
	refuses "put it beside netbench" \
		netbench run demo.yaml --engine dask --scheduler tls://127.0.0.1:1
	mv engine/worker-$(uname -m) kept
	refuses "has no worker for $(uname -m)" netbench transfer duration=100ms
	mv kept engine/worker-$(uname -m)
	python3 -m zipfile -e /dist/other.whl ~/other
	cp ~/other/netbench/engine/_native.abi3.so engine/ # of another machine type
	refuses "install the wheel whose name ends in this machine" netbench transfer duration=100ms
	rm said demo.yaml; cd ~
	refuses "No matching distribution" v/bin/pip install --no-deps --target musl \
		--platform musllinux_1_2_$(uname -m) --only-binary=:all: netbench
	refuses "is not a supported wheel" v/bin/pip install --no-deps $(cd /dist; ls /dist/netbench-*.whl \
		| grep -v $(uname -m))'
user "pip again, and away" 'v/bin/pip install -q --force-reinstall --no-deps netbench
	v/bin/netbench list methods > /dev/null
	v/bin/pip uninstall -q -y netbench
	! find v ! -path "*/distributed/*" -name "*netbench*" | grep .'
user "pipx" "rm -r v; pipx install netbench; $uses pipx uninstall netbench"
user "uv" "python3 -m venv u; u/bin/pip install -q --no-index /dist/tools/uv-*.whl
	u/bin/uv tool install -q --offline --no-index netbench; $uses u/bin/uv tool uninstall netbench"

# The other machine type's module, by its Python; that its worker moves data is in tests/engine.
if [ "$(uname -m)" = x86_64 ] && command -v qemu-aarch64-static > /dev/null; then
	python=$(ls "$root"/usr/bin/python3.*[0-9]) && python=${python##*/}
	cp "$(command -v qemu-aarch64-static)" "$root/usr/bin"
	.venv/bin/pip download -q --no-deps --only-binary=:all: --platform manylinux_2_17_aarch64 \
		--platform manylinux_2_28_aarch64 --python-version "${python#python}" \
		-d "$root/dist/aarch64" -c constraints.txt cffi pycparser
	step "aarch64 by qemu" inside root ro /tmp "dpkg --add-architecture arm64; apt-get update -q
		apt-get download -q $python-minimal:arm64 lib$python-minimal:arm64 lib$python-stdlib:arm64 \
			libc6:arm64 zlib1g:arm64 libexpat1:arm64 libffi8:arm64
		for file in *.deb; do dpkg-deb -x \$file /arm; rm \$file; done
		[ -e /arm/lib ] || ln -s usr/lib /arm/lib
		for file in /dist/aarch64/*.whl /dist/other.whl; do
			python3 -m zipfile -e \$file /arm/packages
		done
		PYTHONHOME=/arm/usr PYTHONPATH=/arm/packages qemu-aarch64-static -L /arm \
			/arm/usr/bin/$python -c 'import platform; from netbench.engine import binding
print(platform.machine(), len(binding.describe()), \"rows of the engine\")'
		dpkg --remove-architecture arm64; rm -r /arm"
fi

there() { (cd "$root" && find . -xdev -path "*netbench*" ! -path "./dist/*" ! -path "./home/*" \
	! -path "./var/cache/*" ! -path "./tmp/*"); }
[ ! "$(there)" ]
inside root ro / 'apt-get update -q'
step "deb: install" inside root ro / "apt-get install -y -q --no-install-recommends /dist/$deb"
inside root ro / 'worker=$(ls /usr/local/libexec/netbench/worker-*)
	[ "$(stat -c %U:%G:%a $worker)" = root:root:755 ]
	[ "$(sha256sum < $worker | cut -d " " -f 1)" = "${worker##*-}" ]
	man -w netbench
	/usr/lib/netbench/bin/python3 -c "from importlib.metadata import requires, version
from packaging.requirements import Requirement
for need in map(Requirement, requires(\"netbench\")):
    if not need.marker or need.marker.evaluate({\"extra\": \"\"}):
        print(need.name, version(need.name))
        assert version(need.name) in need.specifier, need"'
user "deb: use" "$uses $completes /usr/share/bash-completion/completions/netbench
	mkdir -p results; touch results/kept"
dpkg-deb -R "dist/$deb" "$root/dist/newer"
sed -i 's/^Version: .*/&.1/' "$root/dist/newer/DEBIAN/control"
dpkg-deb --root-owner-group -Zxz -z1 -b "$root/dist/newer" "$root/dist/newer.deb" > /dev/null
step "deb: upgrade" inside root ro / 'dpkg -i /dist/newer.deb
	ls /usr/local/libexec/netbench/worker-*; netbench --version'
step "deb: remove" inside root ro / 'dpkg --purge netbench'
there
[ ! "$(there)" ]
test -e "$root/home/somebody/results/kept"
cat "$root/steps"
