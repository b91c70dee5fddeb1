"""Work that is written to a file and goes on where it was interrupted."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import typer

from fieldtheory.cli.terminal import echo


def require_place(save: Path | None, *suffixes: str) -> None:
    """Raise ValueError, before the work, unless a file, if there is one, can be written."""
    if save is None:
        return
    if save.suffix not in suffixes:
        allowed = " or ".join(suffixes)
        raise ValueError(f"save must be a file that ends in {allowed}, got {str(save)!r}")
    if not save.parent.is_dir():
        raise ValueError(f"save must lie in a folder that exists, got {str(save)!r}")


@contextlib.contextmanager
def parts_of(save: Path | None, suffix: str) -> Iterator[Path | None]:
    """The folder of finished parts next to a file, removed when the file has been written.

    Ctrl-C is answered with exit code 130 and, if there are finished parts, with where they are.
    """
    require_place(save, suffix)
    parts = None if save is None else save.with_name(f".{save.name}.parts")
    try:
        yield parts
    except KeyboardInterrupt:
        echo("interrupted", err=True)
        if parts is not None and parts.exists():
            echo(f"Finished parts are in {parts}: the same command goes on.", err=True)
        # The exit code of a shell's command after Ctrl-C.
        raise typer.Exit(130) from None
    if parts is not None:
        shutil.rmtree(parts, ignore_errors=True)
