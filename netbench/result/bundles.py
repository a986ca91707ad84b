"""Bundles: one archive of a result, with its report, its letter and how to repeat it. What reads a
result folder reads a bundle as well.
"""

from __future__ import annotations

import lzma
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from netbench.base.control_characters import in_utf8
from netbench.base.errors import ReportError, StoreError
from netbench.base.json_lines import pieces
from netbench.base.opening import DEEPEST, files_inside, walk
from netbench.base.whole_file import replacing

SUFFIX = ".zip"
REPORTS = "report"
SMALL, RATIO = 64 << 20, 100
"""A bundle of results unpacks to no more than so many bytes and so many times its size."""
FILES, FOLDERS = 100_000, 2_000
"""And to no more than so many files and folders with files."""
_LATEST = (2107, 12, 31, 23, 59, 58)  # that an archive can say
_DAMAGED = (  # what zipfile and its decompressors raise of what they do not understand
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError),
    *(NotImplementedError, RuntimeError, IndexError, MemoryError),
)
_unpacked: dict[Path, tempfile.TemporaryDirectory[str]] = {}  # removed when this process ends


def write_bundle(path: Path, reports: Path, file: Path) -> None:
    """Write a result folder as an archive, whole or not at all; `reports` is a folder with what was
    made of it. Errors: PlaceError; StoreError.
    """
    folder = inside(path)
    with (
        replacing(file, "choose another place with --output") as draft,
        zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive,
    ):
        for root, below in ((path, folder), (reports, folder / REPORTS)):
            for each in _files(root):
                _add(archive, each, each.relative_to(root), below)


def _add(archive: zipfile.ZipFile, file: Path, name: Path, below: PurePosixPath) -> None:
    """Add a file as it is when it is opened. Errors: StoreError where it has become a link since it
    was found.
    """
    status = file.lstat()
    when = min(max(time.localtime(status.st_mtime)[:6], (1980, 1, 1, 0, 0, 0)), _LATEST)
    entry = zipfile.ZipInfo(in_utf8(str(below / name.as_posix())), when)
    entry.compress_type, entry.external_attr = archive.compression, status.st_mode << 16
    with archive.open(entry, "w", force_zip64=True) as target:
        target.writelines(pieces(file, len(name.parts)))


def inside(path: Path) -> PurePosixPath:
    """Where a bundle holds a result: NAME/TIME-ID."""
    whole = path.resolve()
    return PurePosixPath(whole.parent.name, whole.name)


def _files(root: Path) -> Iterator[Path]:
    """The files of a result, without drafts that a kill left and without its earlier reports."""
    for each in files_inside(root):
        first = each.relative_to(root).parts[0]
        if not each.name.startswith(".") and first != REPORTS:
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
                size, most = sum(e.file_size for e in archive.infolist()), path.stat().st_size
                names = archive.namelist()
                folders = {name.rpartition("/")[0] for name in names}
                deepest = max((name.count("/") for name in names), default=0)
                if deepest > DEEPEST or len(folders) > FOLDERS or len(names) > FILES:
                    raise ValueError("it would unpack to too many folders and files")
                if size > SMALL + RATIO * most:
                    raise ValueError(f"it would unpack to {size >> 20} MiB")
                archive.extractall(folder.name)  # which lets no name lead out of the folder
        except _DAMAGED as error:
            folder.cleanup()
            raise ReportError(f"{path} is no bundle: {error}; `bundle R` makes one") from error
        except OSError as error:
            folder.cleanup()
            what = f"cannot unpack {path}: {error.strerror}"
            raise StoreError(f"{what}; free some space in {tempfile.gettempdir()}") from error
        _unpacked[path] = folder
    found = [file for file in walk(Path(_unpacked[path].name)) if file.name == "records.jsonl"]
    if not found:
        raise ReportError(f"{path} is no bundle: it holds no records.jsonl; `bundle R` makes one")
    return found[0].parent
