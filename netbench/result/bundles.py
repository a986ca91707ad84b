"""Bundles: one archive of a result, with its report, its letter and how to repeat it."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from netbench.base.control_characters import in_utf8
from netbench.base.json_lines import pieces
from netbench.base.opening import files_inside
from netbench.base.whole_file import replacing

SUFFIX = ".zip"
REPORTS = "report"
_LATEST = (2107, 12, 31, 23, 59, 58)  # that an archive can say


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
    """Add a file as it is when it is opened. Errors: StoreError where it has become a link."""
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
