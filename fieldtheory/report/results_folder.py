"""A folder of results that is always whole: built under another name, renamed at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

_MARKER = ".fieldtheory-results"
_MARKER_TEXT = "Written by fieldtheory run, which may replace this folder.\n"


def replaceable(output: str | Path, files: Sequence[str]) -> Path:
    """The absolute path of a folder that holds nothing but files of another run, if it exists."""
    folder = Path(output).resolve()
    if not folder.parent.is_dir():
        raise ValueError(f"output must lie in a folder that exists, got {str(folder)!r}")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"output must be a folder, got the file {str(folder)!r}")
    present = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in present if name not in (*files, _MARKER)]
    if present and (foreign or _MARKER not in present):
        other = foreign[0] if foreign else present[0]
        raise ValueError(
            f"output must be new, empty or the results of another run, got {str(folder)!r} "
            f"with {other!r} in it"
        )
    return folder


@contextlib.contextmanager
def built_aside(folder: Path, files: Sequence[str]) -> Iterator[Path]:
    """A folder to build in that takes the place of a `replaceable` one, or vanishes on failure."""
    partial = folder.with_name(f"{folder.name}.partial-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        (partial / _MARKER).write_text(_MARKER_TEXT, encoding="utf-8")
        _take_place(partial, replaceable(folder, files))
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _take_place(partial: Path, folder: Path) -> None:
    if not folder.exists():
        partial.rename(folder)
        return
    old = partial.with_name(f"{partial.name}-old")
    folder.rename(old)
    try:
        partial.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
