"""Chunks of work: computed in parallel, shown as they finish, kept in files for resuming."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.numerics import storage

# Seconds between two lines of progress in a pipe.
SILENCE = 10.0


def chunk_files(
    directory: str | Path, specification: dict[str, Any], count: int
) -> dict[int, Path]:
    """The file of every chunk, named by a hash of all that decides what is in it."""
    from importlib.metadata import version

    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"directory must be a folder, got the file {str(folder)!r}")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"version": version("fieldtheory-networks"), **specification})
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    return {index: folder / f"{digest}-{index:06d}.npz" for index in range(count)}


def stored_chunk(path: Path) -> dict[str, np.ndarray] | None:
    """A finished chunk; None if there is none or it cannot be read."""
    try:
        return storage.read_npz(path)
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile):
        return None


def in_order(tasks: Iterable[tuple], jobs: int, purpose: str) -> Iterator[Any]:
    """Results of the tasks, in their order."""
    if jobs == 1:
        return (function(*arguments) for function, *arguments in tasks)
    joblib = _joblib(purpose)
    run = joblib.Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
    return run(joblib.delayed(function)(*arguments) for function, *arguments in tasks)


def usable_processes() -> int:
    """One for each core, up to 8; one without joblib."""
    return min(os.cpu_count() or 1, 8) if find_spec("joblib") else 1


def _joblib(purpose: str) -> Any:
    try:
        import joblib
    except ImportError:
        raise ImportError(
            f"{purpose} needs joblib: pip install 'fieldtheory-networks[parallel]'"
        ) from None
    return joblib


def ordered_chunks(
    evaluate: Callable[[tuple], tuple[int, dict[str, np.ndarray]]],
    tasks: Iterable[tuple],
    count: int,
    jobs: int | None,
    purpose: str,
    *,
    directory: str | Path | None = None,
    specification: dict[str, Any] | None = None,
    progress: bool = False,
) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of every chunk in order, whatever the order in which they are finished."""
    files = {} if directory is None else chunk_files(directory, specification or {}, count)
    stored = {i for i, path in files.items() if stored_chunk(path) is not None}
    if progress and stored:
        print(f"{purpose}: {len(stored)} of {count} parts found", file=sys.stderr, flush=True)

    def in_their_order() -> Iterator[dict[str, np.ndarray]]:
        joblib = _joblib(purpose)
        run = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        computed = run(joblib.delayed(evaluate)(task) for task in tasks if task[0] not in stored)
        waiting: dict[int, dict[str, np.ndarray]] = {}
        for wanted in range(count):
            while wanted not in stored and wanted not in waiting:
                index, arrays = next(computed)
                if files:
                    storage.write_npz(files[index], arrays)
                waiting[index] = arrays
            yield waiting.pop(wanted) if wanted in waiting else storage.read_npz(files[wanted])
        # joblib warns of a generator that is left before its end.
        next(computed, None)

    results = in_their_order()
    return with_progress(results, count, purpose) if progress else results


def with_progress(
    results: Iterable, total: int, title: str, size: Callable[[Any], int] = lambda _: 1
) -> Iterator:
    """The same results, each counted as its size on stderr: by a bar, or in a pipe now and then."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        done, spoken = 0, time.monotonic()
        for result in results:
            yield result
            done += size(result)
            if time.monotonic() - spoken >= SILENCE:
                print(f"{title}: {done} of {total}", file=sys.stderr, flush=True)
                spoken = time.monotonic()
        return
    with Progress(console=console) as bar:
        task = bar.add_task(title, total=total)
        for result in results:
            yield result
            bar.advance(task, size(result))


def one_thread() -> AbstractContextManager[Any]:
    """One thread for BLAS: several round in another way, and joblib's workers have fewer."""
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError:
        return nullcontext()
    return threadpool_limits(1)
