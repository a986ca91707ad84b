"""Kernels from git: a real repository, worktrees and make, of a tree of a few lines."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from netbench import campaign
from netbench.base.errors import RequestError
from netbench.kernels.built import pinned, with_built_kernels
from netbench.kernels.compile import BuildFailed, _environment, build, recipe_of
from netbench.kernels.revision import commit_of
from netbench.kernels.source import locate, unpack
from netbench.model import Kernel
from netbench.run.progress import Progress
from tests.support.kernel_repository import MAKEFILE, Lines, Repository, compiled, kernel
from tests.support.local import call


def program(place: Path, does: str) -> None:
    place.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo other 13 && exit\n{does}\n')
    place.chmod(0o755)


def test_a_revision_is_built_once_and_boots_as_a_tree_does(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit("int segments = 2;\n", "v2")
    heard = Lines()
    first, second = (build(kernel(repository, rev), heard.told) for rev in ("v1", "v2"))
    assert first != second
    assert compiled(tmp_path) == 2
    assert [line.partition("(")[2] for line in heard.said] == ["v1)", "v2)"]
    assert "kernel k: built" in heard.lines
    (tmp_path / "out").mkdir()
    found = unpack(Kernel("k", tree=str(first)), tmp_path / "out")
    assert found.release == f"6.1.0-{repository.base[:12]}"
    assert not list(locate(Kernel("k", tree=str(first))).glob("boot/vmlinux-*"))
    again = Lines()
    assert build(kernel(repository, repository.base[:10]), again.told) == first
    assert (again.said, compiled(tmp_path)) == ([], 2)
    (repository.place / "README").write_text("a comment")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "docs")
    assert build(kernel(repository, "master"), Lines().told) != second
    assert compiled(tmp_path) == 2, "the file did not change"


def test_the_users_checkout_is_never_touched(repository: Repository) -> None:
    repository.commit("int segments = 2;\n", "v2")
    (repository.place / "tcp.c").write_text("half an edit, which does not compile")
    (repository.place / "notes").write_text("mine")
    repository.git("worktree", "add", str(away := repository.place.parent / "disk"))
    away.rename(away.with_name("away"))
    before = repository.git("status", "--porcelain"), repository.git("rev-parse", "HEAD")
    build(kernel(repository, "v1"), Lines().told)
    assert (repository.git("status", "--porcelain"), repository.git("rev-parse", "HEAD")) == before
    assert (repository.place / "tcp.c").read_text() == "half an edit, which does not compile"
    assert not (repository.place / ".config").exists()
    assert len(repository.git("worktree", "list").splitlines()) == 3


def test_another_configuration_or_compiler_is_another_build(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.config").write_bytes(b"# f\xfcr uns\nCONFIG_MORE=y\n")
    (tmp_path / "own.config").write_text("CONFIG_OWN=y\nCONFIG_LOST=y\n")
    program(tmp_path / "programs" / "other-gcc", 'exec gcc "$@"')
    each: list[dict[str, object]] = [
        *({}, {"fragment": "more.config"}, {"config": "own.config"}, {"make": ("EXTRA=1",)}),
        {"make": ("CC=other-gcc",)},
    ]
    built = [build(kernel(repository, "v1", **keys), Lines().told) for keys in each]
    assert len({*built}) == len(each)
    configs = [(place / "tar-install" / "boot" / "config").read_text("latin-1") for place in built]
    assert ["CONFIG_MORE=y" in config for config in configs] == [False, True, False, False, False]
    assert ["CONFIG_OWN=y" in config for config in configs] == [False, False, True, False, False]
    (repository.place / "Makefile").write_text(MAKEFILE.replace("LOST", "GONE"))
    repository.commit("int segments = 1;\n", "v2")  # knows what v1 does not, in the same tree
    place = build(kernel(repository, "v2", config="own.config"), Lines().told)
    assert "CONFIG_LOST=y" in (place / "tar-install" / "boot" / "config").read_text()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("CROSS_COMPILE=foo-", "foo-gcc"),
        ("LLVM=-15 CROSS_COMPILE=foo-", "clang-15"),
        ("LLVM={}/", "{}/clang"),
        ("LLVM=-15 CC=other", "other"),
    ],
)
def test_the_compiler_that_is_asked_for_its_version_is_that_of_make(
    repository: Repository, tmp_path: Path, words: str, name: str
) -> None:
    program((programs := tmp_path / "programs") / name.format(programs), "exit 1")
    asked = kernel(repository, make=tuple(words.format(programs).split()))
    assert recipe_of(asked).compiler == "other 13"


def test_head_is_that_of_the_folder_which_is_named(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "topic"), "HEAD")
    repository.commit("int segments = 2;\n", "v2")
    assert commit_of(kernel(repository, "HEAD", git=str(tmp_path / "topic"))) == repository.base


def test_what_a_killed_build_has_left_is_waited_for(repository: Repository, tmp_path: Path) -> None:
    """Its compiler would else write into the next one's objects."""
    os.mkfifo(fifo := tmp_path / "fifo")
    program(
        tmp_path / "programs" / "slow-gcc", f'[ -p {fifo} ] && read line < {fifo}; exec gcc "$@"'
    )
    slow = kernel(repository, make=("CC=slow-gcc",))
    builder = multiprocessing.get_context("fork").Process(target=build, args=(slow, Lines().told))
    builder.start()
    with fifo.open("w"):
        fifo.unlink()
        builder.kill()
        builder.join()
        (lock,) = (tmp_path / "cache" / "netbench" / "trees").glob("*.lock")
        with lock.open() as held, pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert build(slow, Lines().told).is_dir(), "once the old compiler has ended"


def test_what_a_compiler_leaves_running_holds_no_tree(
    repository: Repository, tmp_path: Path
) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    daemon = f'(setsid cat {fifo} >/dev/null 2>&1 &); exec gcc "$@"'
    program(tmp_path / "programs" / "daemon-gcc", daemon)
    build(kernel(repository, make=("CC=daemon-gcc",)), Lines().told)
    (lock,) = (tmp_path / "cache" / "netbench" / "trees").glob("*.lock")
    with fifo.open("w"), lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_build_that_was_changed_in_the_cache_is_made_anew_once(
    repository: Repository, tmp_path: Path
) -> None:
    """Also where three ask for it at once: two of them wait."""
    place = build(kernel(repository, "v1"), Lines().told)
    (image,) = place.glob("tar-install/boot/vmlinuz-*")
    whole = image.read_bytes()
    image.write_bytes(b"\0" * len(whole))
    with ThreadPoolExecutor(3) as pool:
        places = pool.map(lambda _: build(kernel(repository, "v1"), Lines().told), range(3))
    assert {*places} == {place}
    assert image.read_bytes() == whole
    assert compiled(tmp_path) == 1


def test_a_build_that_fails_says_the_first_error_with_its_file(repository: Repository) -> None:
    repository.commit("int segments = ;\n", "broken")
    says = r"kernel k: the build of broken failed: tcp\.c:1:\d+: error: expected expression"
    with pytest.raises(RequestError, match=says) as error:
        build(kernel(repository, "broken"), Lines().told)
    assert "error:" in Path(str(error.value).rpartition(" is in ")[2]).read_text()
    assert build(kernel(repository, "v1"), Lines().told).is_dir(), "the next one builds"


def test_errors_say_what_is_wrong_and_what_to_do(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "lost.config").write_text("CONFIG_LOST=y\nCONFIG_OFF=n\n")
    cases: list[tuple[dict[str, object], str]] = [
        ({"rev": "v9"}, r"has no revision 'v9'; `git -C \S+ fetch`, or correct `rev:`"),
        ({"git": str(tmp_path)}, "is not a git repository of this machine; correct `git:`"),
        ({"fragment": str(tmp_path / "no")}, "cannot read .*/no: No such file.*; correct `frag"),
        ({"fragment": str(tmp_path / "lost.config")}, "does not take CONFIG_LOST=y of its conf"),
        ({"make": ("CC=no-such-cc",)}, "the compiler no-such-cc cannot be run"),
        ({"config": "strangeconfig"}, "strangeconfig of v1 failed: .*No rule to make target"),
    ]
    for keys, why in cases:
        with pytest.raises(RequestError, match=why) as error:
            build(kernel(repository, **{"rev": "v1", **keys}), Lines().told)
        assert isinstance(error.value, BuildFailed) == (" v1 " in why or "take" in why)


def test_all_packages_that_a_build_needs_are_named_at_once(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel for x86-64 whose tree has objtool needs libelf, one that signs needs OpenSSL."""
    which, signs = shutil.which, tmp_path / "signs.config"
    signs.write_text("CONFIG_MODULE_SIG=y\n")
    (repository.place / "tools/objtool").mkdir(parents=True)
    (repository.place / "tools/objtool/Makefile").write_text("objtool:\n")
    repository.commit("int segments = 2;\n", "v2")
    monkeypatch.setattr(
        "shutil.which", lambda name, path=None: None if name == "bison" else which(name, path=path)
    )
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("netbench.kernels.needs._has", lambda header: False)
    cases: list[tuple[dict[str, object], str]] = [
        ({"rev": "v1"}, "bison"),
        ({"rev": "v2"}, "bison libelf-dev"),
        ({"rev": "v2", "make": ("ARCH=arm64",)}, "bison"),
        ({"rev": "v2", "config": str(signs)}, "bison libelf-dev libssl-dev"),
    ]
    for keys, packages in cases:
        with pytest.raises(RequestError, match=f"on Debian: apt install {packages}$"):
            build(kernel(repository, **{"rev": "v1", **keys}), Lines().told)


TEXT = """\
netbench: 1
name: patch
hosts: {{here: local}}
kernels:
  base: {{git: {0}, rev: v1, config: tinyconfig}}
  patched: {{git: {0}, rev: master, config: tinyconfig}}
sweep: {{kernel: [base, patched]}}
compare: {{factor: kernel, baseline: base}}
"""


def test_a_campaign_keeps_the_commits_that_its_revisions_named(
    repository: Repository, tmp_path: Path
) -> None:
    tip = repository.commit("int segments = 2;\n", "v2")
    kept = pinned(campaign.parse(TEXT.format(repository.place), "patch.yaml", ["repeat.min=3"]))
    assert [each.rev for each in kept.kernels.values()] == [repository.base, tip]
    first = kept.text.partition("\n")[0]
    revisions = f"--set kernels.base.rev={repository.base} --set kernels.patched.rev={tip}"
    assert first == f"# effective campaign of: --set repeat.min=3 {revisions}"
    repository.commit("int segments = 3;\n", "v3")
    later = campaign.parse(kept.text, "campaign.yaml")
    assert commit_of(later.kernels["patched"]) == tip
    built = with_built_kernels(later, Progress().say)
    assert len({each.tree for each in built.kernels.values()}) == 2
    assert pinned(later).text.count("--set kernels.patched.rev") == 2


def test_a_repository_that_git_refuses_is_not_said_to_be_none(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(RequestError, match=r"another account, .*--add safe\.directory /\S+/linux`"):
        commit_of(kernel(repository))


@pytest.mark.root
@pytest.mark.parametrize("how", ["sudo", "safe.directory"])
def test_a_repository_stays_its_owners(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Who else could not collect garbage, or add a worktree."""
    nobody = 65534
    for file in (repository.place, *repository.place.rglob("*")):
        os.chown(file, nobody, nobody, follow_symlinks=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    with pytest.raises(RequestError, match="belongs to another account"):
        build(kernel(repository), Lines().told)
    if how == "sudo":
        monkeypatch.setenv("SUDO_UID", str(nobody))
    else:
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", how)
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(repository.place))
    build(kernel(repository), Lines().told)
    folders = [file for file in repository.place.rglob("*") if file.is_dir()]
    assert any(folder.parent.name == "worktrees" for folder in folders)
    assert {folder.stat().st_uid for folder in folders} == {nobody}


def test_a_lab_that_cannot_be_made_is_told_before_a_kernel_is_built(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    file = tmp_path / "patch.yaml"
    text = TEXT.format(repository.place).replace("{here: local}", "{snd: {}, rcv: {}}")
    file.write_text(f"{text}lab: qemu\n")
    stopped = call("run", file)
    assert stopped.returncode
    assert "making a lab needs root" in stopped.stderr
    assert "building" not in stopped.stderr


def test_no_kernel_is_built_where_another_cannot_be(repository: Repository) -> None:
    text = TEXT.format(repository.place)
    wanted = campaign.parse(text, "patch.yaml", ["kernels.patched.config=/no/config"])
    heard = Lines()
    with pytest.raises(RequestError, match="kernel patched: cannot read /no/config"):
        with_built_kernels(wanted, heard.said.append)
    assert heard.said == []


def test_a_kernel_s_build_says_by_which_configuration_and_a_run_has_one(
    repository: Repository, tmp_path: Path
) -> None:
    """Whoever edits it meanwhile, or before the campaign is resumed."""
    repository.commit("int segments = 2;\n", "v2")
    (fragment := tmp_path / "more.config").write_text("CONFIG_MORE=y\n")
    sets = [f"kernels.{name}.fragment={fragment}" for name in ("base", "patched")]
    wanted = campaign.parse(TEXT.format(repository.place), "patch.yaml", sets)

    def says() -> list[bytes]:
        built = with_built_kernels(
            wanted, lambda line: fragment.write_text(f"CONFIG_MORE=y\n# {line}\n")
        )
        images = [next(Path(k.tree).rglob("vmlinuz-*")) for k in built.kernels.values()]
        return [image.read_bytes().partition(b"#")[2].partition(b" ")[0] for image in images]

    begun, resumed = says(), says()
    assert (len({*begun}), len({*resumed}), begun == resumed) == (1, 1, False)


def test_a_cache_that_was_removed_is_made_again(repository: Repository, tmp_path: Path) -> None:
    build(kernel(repository), Lines().told)
    shutil.rmtree(tmp_path / "cache" / "netbench")
    assert locate(Kernel("k", tree=str(build(kernel(repository), Lines().told))))
    shutil.rmtree(repository.place / ".git" / "worktrees")  # as where it was cloned anew
    repository.commit("int segments = 2;\n", "v2")
    assert locate(Kernel("k", tree=str(build(kernel(repository, "v2"), Lines().told))))


def test_make_obeys_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCFLAGS", "-O1")
    monkeypatch.setenv("LLVM", "1")
    assert {"KCFLAGS", "LLVM"}.isdisjoint(_environment("key"))


# Other layouts of a kernel's code: a real linker. Guests boot those of Linux (test_builds.py there)


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
