"""Other layouts of a kernel's code: a real make and a real linker, of a tree of a few lines. Guests
boot those of Linux in `tests/guests/test_builds.py`.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from netbench.base.errors import RequestError
from netbench.kernels.compile import build
from tests.support.kernel_repository import Lines, Repository, compiled, kernel


def symbols(place: Path) -> list[tuple[int, str]]:
    """Address and name of what a build's System.map has, in order."""
    lines = (place / "tar-install" / "boot" / "System.map").read_text().splitlines()
    return [(int(at, 16), name) for at, _, name in map(str.split, lines)]


def objects(tmp_path: Path) -> dict[str, str]:
    (tree,) = (tmp_path / "cache" / "netbench" / "trees").glob("*/objects")
    return {f.name: sha256(f.read_bytes()).hexdigest() for f in tree.glob("*.o")}


def links(tmp_path: Path) -> int:
    (log,) = (tmp_path / "cache" / "netbench" / "trees").glob("*/objects/linked")
    return len(log.read_text().splitlines())


def test_builds_of_a_commit_share_their_objects_and_differ_in_addresses(
    repository: Repository, tmp_path: Path
) -> None:
    plain = build(kernel(repository), Lines().told)
    before, heard = objects(tmp_path), Lines()
    each = [build(one, heard.told) for one in kernel(repository, layouts=4).each]
    assert each[0] == plain
    layouts = ["layout1", "layout2", "layout3"]
    assert [place.name.rpartition("-")[2] for place in each[1:]] == layouts
    assert objects(tmp_path) == before
    assert compiled(tmp_path) == 1
    orders = [[name for _, name in symbols(place)] for place in each]
    assert len({tuple(order) for order in orders}) == 4
    assert len({tuple(sorted(order)) for order in orders}) == 1
    assert links(tmp_path) == 4
    assert [line.rpartition("-")[2].split()[0] for line in heard.said] == layouts


def test_a_layout_is_built_once_and_the_same_again_and_the_tree_s_own_order_comes_back(
    repository: Repository, tmp_path: Path
) -> None:
    layouts = kernel(repository, layouts=2).each
    places = [build(each, Lines().told) for each in layouts]
    images = [next(place.glob("tar-install/boot/vmlinuz-*")) for place in places]
    whole, made, again = [image.read_bytes() for image in images], links(tmp_path), Lines()
    assert [build(each, again.told) for each in layouts] == places
    assert (again.said, links(tmp_path)) == ([], made)
    for image in images:
        image.write_bytes(b"")
    for at in (1, 0):
        build(layouts[at], again.told)
        assert images[at].read_bytes() == whole[at]
    repository.commit("int segments = 2;\n", "v2")
    later = build(kernel(repository, "v2"), Lines().told)
    one, other = ([name for _, name in symbols(place)] for place in (places[0], later))
    assert one == other


def test_objects_that_are_joined_before_the_last_link_are_told(repository: Repository) -> None:
    """As Linux with CONFIG_X86_KERNEL_IBT or LTO does."""
    joined = kernel(repository, layouts=2, make=("JOINED=joined.o",))
    build(joined.each[0], Lines().told)
    with pytest.raises(RequestError, match=r"kernel k#2: v1 cannot be shuffled: .*IBT=n"):
        build(joined.each[1], Lines().told)
