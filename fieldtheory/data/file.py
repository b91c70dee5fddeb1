"""Samples from a user's own file."""

import csv
import math
import zipfile
import zlib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldtheory.data.dataset import Dataset, select

SAMPLE_NAMES = ("X", "samples", "data", "images")
LABEL_NAMES = ("y", "labels", "label", "target", "class")


def load_file(
    path: str | Path, classes: Sequence[Hashable] | None = None, count: int | None = None
) -> Dataset:
    """Samples, and labels where there are any, from a ``.npz`` or ``.csv`` file.

    * ``.npz``: the samples are the array named X, samples, data or images (the first of these that
      is there), else the only array with two axes or more; the first axis counts samples, the
      others are flattened. Labels are the array named y, labels, label, target or class. Pickled
      objects are refused.
    * ``.csv``: comma-separated, rows are samples. A first row that holds anything but numbers is a
      header; its column named label, labels, y, target or class, if any, holds the labels.

    Parameters
    ----------
    path : str or Path
        The file; its suffix says the format.
    classes : sequence, optional
        Keep these classes only, sorted by class; needs labels. A class matches a label that prints
        the same way, so 3 and "3" are one class.
    count : int, optional
        With ``classes``, the first ``count / len(classes)`` samples of each; otherwise the first
        ``count`` rows. Default: all.

    Returns
    -------
    Dataset
        ``samples`` (P, d); with labels, sorted by class and in file order within a class.

    Raises
    ------
    ValueError
        One line naming the file and what is allowed: no such file, another format, entries that
        are not finite real numbers, rows of unequal length, fewer than two samples, labels that do
        not fit the samples, a class that is not there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "four.csv"
    >>> _ = path.write_text("label,a,b\\ncat,0,1\\ndog,1,2\\ncat,3,1\\ndog,2,0\\n")
    >>> load_file(path, classes=["dog"]).samples
    array([[1., 2.],
           [2., 0.]])
    """
    path = Path(path)
    readers = {".npz": _read_npz, ".csv": _read_csv}
    if path.suffix.lower() not in readers:
        raise ValueError(f"path = {str(path)!r}: the file must be .npz or .csv")
    if not path.is_file():
        raise ValueError(f"path = {str(path)!r}: there is no such file")
    try:
        samples, labels = readers[path.suffix.lower()](path)
    except (OSError, UnicodeDecodeError, EOFError, csv.Error, zipfile.BadZipFile, zlib.error) as e:
        reason = " ".join(str(e).split())
        raise ValueError(f"path = {str(path)!r}: the file cannot be read ({reason})") from e
    samples = samples.reshape(len(samples), math.prod(samples.shape[1:]))
    if samples.shape[1] == 0:
        raise ValueError(f"path = {str(path)!r}: samples of shape {samples.shape} hold no numbers")
    if not np.isfinite(samples).all():
        row, column = np.argwhere(~np.isfinite(samples))[0]
        raise ValueError(
            f"path = {str(path)!r}: sample {row + 1}, entry {column + 1} is "
            f"{samples[row, column]}, every entry must be a finite number"
        )
    if labels is not None and labels.shape != (len(samples),):
        raise ValueError(
            f"path = {str(path)!r}: labels of shape {labels.shape} for {len(samples)} samples, "
            f"must be ({len(samples)},)"
        )
    samples, labels = select(samples, labels, classes, count, f"path = {str(path)!r}")
    return Dataset(samples, labels, path.name)


def _read_npz(path: Path) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    if not zipfile.is_zipfile(path):
        raise zipfile.BadZipFile("not an .npz archive")
    with np.load(path, allow_pickle=False) as archive:
        names = [name for name in SAMPLE_NAMES if name in archive.files]
        label_names = [name for name in LABEL_NAMES if name in archive.files]
        try:
            arrays = {name: archive[name] for name in names[:1] + label_names or archive.files}
            if not names:
                others = [name for name in archive.files if name not in label_names]
                arrays |= {name: archive[name] for name in others}
                names = [name for name in others if arrays[name].ndim >= 2]
        except ValueError as error:
            raise ValueError(
                f"path = {str(path)!r}: holds Python objects, arrays must be numeric"
            ) from error
    if len(names) == 0 or arrays[names[0]].ndim < 2:
        raise ValueError(
            f"path = {str(path)!r}: no samples among its arrays {archive.files}, must hold one "
            f"array (P, d) or (P, height, width), named one of {', '.join(SAMPLE_NAMES)}"
        )
    if names[0] not in SAMPLE_NAMES and len(names) > 1:
        raise ValueError(
            f"path = {str(path)!r}: {', '.join(names)} could each be the samples, "
            f"name one of them {' or '.join(SAMPLE_NAMES)}"
        )
    samples = arrays[names[0]]
    if samples.dtype.kind not in "biuf":
        raise ValueError(
            f"path = {str(path)!r}: array {names[0]!r} has type {samples.dtype}, "
            "must be real numbers"
        )
    labels = _tidy_labels(arrays[label_names[0]], path) if label_names else None
    return samples.astype(np.float64), labels


def _read_csv(path: Path) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    rows: list[NDArray[np.float64]] = []
    labels: list[str] = []
    header: list[str] | None = None
    column = None
    width = None
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        for row in reader:
            if not row:
                continue
            where = f"path = {str(path)!r}, line {reader.line_num}"
            if width is None:
                width = len(row)
                if not all(_is_number(cell) for cell in row):
                    header = [cell.strip().lower() for cell in row]
                    column = _label_column(header, where)
                    continue
            if len(row) != width:
                raise ValueError(
                    f"{where}: {len(row)} columns where the first row has {width}, "
                    "rows must be equally long"
                )
            if column is not None:
                labels.append(row.pop(column).strip())
            try:
                rows.append(np.array(row, dtype=np.float64))
            except ValueError as error:
                cell = next(cell for cell in row if not _is_number(cell))
                raise ValueError(
                    f"{where}: {cell!r} is not a number; only a label column, named in the "
                    f"header {' or '.join(LABEL_NAMES)}, may hold text"
                ) from error
    samples = np.array(rows) if rows else np.empty((0, width or 1))
    return samples, None if column is None else _tidy_labels(np.array(labels), path)


def _label_column(header: list[str], where: str) -> int | None:
    if "" in header:
        raise ValueError(
            f"{where}: column {header.index('') + 1} has no name in the header; "
            "name it, or leave out a column of row numbers"
        )
    found = [i for i, name in enumerate(header) if name in LABEL_NAMES]
    if len(found) > 1:
        names = ", ".join(header[i] for i in found)
        raise ValueError(f"{where}: several label columns ({names}), must be at most one")
    return found[0] if found else None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _tidy_labels(labels: NDArray[Any], path: Path) -> NDArray[Any]:
    """Labels as integers where they all are integers, else as strings."""
    if labels.dtype.kind not in "biufU":
        raise ValueError(
            f"path = {str(path)!r}: labels of type {labels.dtype}, must be integers or strings"
        )
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        return labels
    whole = np.isfinite(numbers).all() and np.array_equal(numbers, np.round(numbers))
    return numbers.astype(np.int64) if whole else labels.astype(str)
