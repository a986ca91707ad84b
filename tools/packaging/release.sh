#!/bin/sh
# A release, as root: `make release VERSION=0.2.0` writes the version where it stands, runs all
# checks on that commit, builds what is published into dist/, and tags it. Pushes nothing.
set -eu

version=$1
fail() { echo "release: $1" >&2; exit 2; }
echo "$version" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+' || fail "VERSION is as 0.2.0, got '$version'"
[ ! "$(git status --porcelain)" ] || fail "the tree has changes; commit them"
! git rev-parse -q --verify "refs/tags/v$version" > /dev/null || fail "v$version is there already"
grep -q '^## .*, not released yet$' CHANGELOG.md || fail "CHANGELOG.md tells nothing that is new"

sed -i "s/^## .*, not released yet$/## $version, $(date +%Y-%m-%d)/" CHANGELOG.md
sed -i "s/^version = .*/version = \"$version\"/" pyproject.toml
sed -i "s/^__version__ = .*/__version__ = \"$version\"/" netbench/__init__.py
sed -i "s/^#define NB_ENGINE .*/#define NB_ENGINE \"$version\"/" native/src/hello.c
git commit -qam "Release $version"

rm -rf dist
make test dist wheelhouse test-wheel test-reproducible
for debian in bookworm trixie; do
	make deb test-dist RELEASE=$debian
	lintian --fail-on error dist/netbench_*+"$debian"_*.deb
done
(cd dist && sha256sum netbench* > SHA256SUMS)
git tag -a "v$version" -m "netbench $version"
echo "v$version is tagged; dist/ has what is published"
