"""Bundles: one archive of a result, with its report, its letter and how to repeat it. What reads a
result folder reads a bundle as well.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from netbench.errors import ReportError, StoreError
from netbench.whole_file import replacing

SUFFIX = ".zip"
ABOUT = "README.txt"
REPORTS = "report"
_unpacked: dict[Path, tempfile.TemporaryDirectory[str]] = {}  # removed when this process ends


def write_bundle(path: Path, reports: Path, about: str, file: Path) -> None:
    """Write a result folder as an archive, whole or not at all; `reports` is a folder with what was
    made of it, `about` the text of its README. Errors: PlaceError.
    """
    folder = inside(path)
    with (
        replacing(file, "choose another place with --output") as draft,
        zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive,
    ):
        archive.writestr(str(folder / ABOUT), about)
        for root, below in ((path, folder), (reports, folder / REPORTS)):
            for each in _files(root):
                archive.write(each, str(below / each.relative_to(root).as_posix()))


def inside(path: Path) -> PurePosixPath:
    """Where a bundle holds a result: NAME/TIME-ID."""
    whole = path.resolve()
    return PurePosixPath(whole.parent.name, whole.name)


def _files(root: Path) -> Iterator[Path]:
    """The files of a result, without drafts that a kill left and without its earlier reports."""
    for each in sorted(root.rglob("*")):
        first = each.relative_to(root).parts[0]
        is_own = each.is_file() and not each.is_symlink() and not each.name.startswith(".")
        if is_own and first not in (REPORTS, ABOUT):
            yield each


def folder_of(path: Path) -> Path:
    """The folder of a result: itself, or what a bundle holds, unpacked until this process ends.
    Errors: ReportError for a file that is no bundle; StoreError where it cannot be unpacked.
    """
    if not path.is_file():
        return path
    if path not in _unpacked:
        folder = tempfile.TemporaryDirectory(prefix="netbench-bundle-")
        try:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder.name)  # which lets no name lead out of the folder
        except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError) as error:
            folder.cleanup()
            raise ReportError(f"{path} is no bundle: {error}; `bundle R` makes one") from error
        except OSError as error:
            folder.cleanup()
            what = f"cannot unpack {path}: {error.strerror}"
            raise StoreError(f"{what}; free some space in {tempfile.gettempdir()}") from error
        _unpacked[path] = folder
    found = sorted(Path(_unpacked[path].name).glob("**/records.jsonl"))
    if not found:
        raise ReportError(f"{path} is no bundle: it holds no records.jsonl; `bundle R` makes one")
    return found[0].parent
