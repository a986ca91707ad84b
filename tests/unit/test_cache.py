"""Pruning of netbench's cache: what goes, what stays, what a kill leaves."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from netbench.kernels import cache

DAY = 86400.0


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(cache.SIZE, raising=False)
    monkeypatch.setattr(cache, "_held", {})
    return cache.base()


def entry(here: Path, name: str, days: float, size: int = 4096) -> Path:
    """A folder with a file, last used so long ago."""
    place = here / name
    place.mkdir(parents=True)
    (place / "file").write_bytes(b"x" * size)
    return aged(place, days)


def aged(place: Path, days: float) -> Path:
    used = time.time() - days * DAY
    os.utime(place, (used, used))
    return place


def pruned(*, anew: bool = True) -> list[str]:
    """What is said."""
    if anew:
        (cache.base() / "pruned").unlink(missing_ok=True)
    said: list[str] = []
    cache.prune(said.append)
    return said


def test_what_nobody_used_for_90_days_goes(here: Path) -> None:
    old, young = entry(here, "built/old", 91), entry(here, "built/young", 89)
    kept = here / "lab" / "a.deb"
    kept.parent.mkdir()
    kept.write_text("x")
    aged(kept, 91)
    (said,) = pruned()
    assert said.startswith(
        f"removed 2 unused items of {here} (1M): not used for 90 days, or beyond"
    )
    assert [place.exists() for place in (old, young, kept)] == [False, True, False]


def test_beyond_the_size_the_least_recently_used_go(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.SIZE, "3M")
    places = [
        entry(here, f"lab/kernels/{i}", days, 1 << 20) for i, days in enumerate((0.9, 30, 4, 5))
    ]
    (said,) = pruned()
    assert said.startswith("removed 2 unused items")
    assert [place.exists() for place in places] == [True, False, True, False]
    monkeypatch.setenv(cache.SIZE, "1M")
    assert len(pruned()) == 1
    assert places[0].exists(), "what was used within a day stays"


def test_an_entry_in_use_stays(here: Path) -> None:
    used, file = entry(here, "built/used", 91), here / "lab" / "roots" / "r.cpio"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    assert cache.use(used)
    assert time.time() - used.stat().st_mtime < DAY, "to use an entry makes it young"
    with cache.locks([aged(file, 91), here / "none"]) as held:
        assert len(held) == 1
        child = subprocess.Popen(("sh", "-c", "read line"), stdin=subprocess.PIPE, pass_fds=held)
    with child:
        for place in (used, file):
            aged(place, 91)
        assert pruned() == []
        assert used.exists()
        assert file.exists()
        child.communicate(b"end\n")
    assert len(pruned()) == 1  # the file's lock has ended with the child
    assert used.exists()
    assert not file.exists()


def test_it_is_done_once_a_day_and_can_be_switched_off(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry(here, "built/one", 91)
    assert len(pruned()) == 1
    place = entry(here, "built/two", 91)
    assert pruned(anew=False) == []
    monkeypatch.setenv(cache.SIZE, "off")
    assert pruned() == []
    monkeypatch.setenv(cache.SIZE, "much")
    assert len(pruned()) == 1, "that it is no size is said"
    assert place.exists()
    monkeypatch.delenv(cache.SIZE)
    (here / "pruned").touch()
    aged(here / "pruned", 1.1)
    assert len(pruned(anew=False)) == 1
    assert not place.exists()


def test_what_is_none_of_it_stays(here: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    aged(elsewhere, 91)
    others = [entry(here, name, 91) for name in ("worker-1", "lab/tmp1/x", "mine")]
    (here / "built").symlink_to(elsewhere)
    (elsewhere / "file").write_text("x")
    aged(elsewhere / "file", 91)
    (here / "trees").mkdir()
    (here / "trees" / "one.lock").touch()
    aged(here / "trees" / "one.lock", 91)
    assert pruned() == []
    assert all(place.exists() for place in (*others, elsewhere / "file"))
    assert (here / "trees" / "one.lock").exists()


def test_what_a_kill_left_goes_the_next_time(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry on its way out, as it is renamed before it is removed; a draft; a note."""
    place = entry(here, "built/one", 91)

    def killed(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cache, "_delete", killed)
        with pytest.raises(KeyboardInterrupt):
            pruned()
    assert not place.exists(), "no entry in part"
    left = [entry(here, "lab/roots/.pruned-x", 0), entry(here, "lab/kernels/tmpabc", 2)]
    (here / "lab" / "gone.sha256").touch()
    left.append(aged(here / "lab" / "gone.sha256", 2))
    assert pruned() == []
    assert not any(place.exists() for place in left)
    assert list((here / "built").iterdir()) == []
