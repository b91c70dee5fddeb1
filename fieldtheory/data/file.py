"""Samples from a user's own file."""

import csv
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldtheory.data.dataset import Dataset, select

SAMPLE_NAMES = ("X", "samples", "data", "images")
LABEL_NAMES = ("y", "labels", "label", "target", "class")
_NO_HEADER = "has no header row: its first row is a sample, and none of its columns holds labels."


def load_file(
    path: str | Path,
    classes: Sequence[Hashable] | None = None,
    count: int | None = None,
    header: bool | None = None,
) -> Dataset:
    """Samples, and labels where there are any, from a ``.npz`` or ``.csv`` file.

    * ``.npz``: the samples are the array named X, samples, data or images (the first of these that
      is there), else the only array with two axes or more; the first axis counts samples, the
      others are flattened. Labels are the array named y, labels, label, target or class. Pickled
      objects are refused.
    * ``.csv``: rows are samples, separated by commas, or by semicolons or tabs where the first row
      has some; then decimal commas are read as well. A first row without any number is a header,
      or one with a column named label, labels, y, target or class, which holds the labels.

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
    header : bool, optional
        Whether the first row of a ``.csv`` file is one, for names that are numbers.

    Returns
    -------
    Dataset
        ``samples`` (P, d) in the order of the file; with ``classes``, sorted by class. A ``.csv``
        file without a header has a ``note`` that says so.

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
    readers: dict[str, Callable[[Path], Any]] = {
        ".npz": _read_npz,
        ".csv": partial(_read_csv, header=header),
    }
    if path.suffix.lower() not in readers:
        raise ValueError(f"path = {str(path)!r}: the file must be .npz or .csv")
    if not path.is_file():
        raise ValueError(f"path = {str(path)!r}: there is no such file")
    try:
        samples, labels, note = readers[path.suffix.lower()](path)
        samples = samples.reshape(len(samples), math.prod(samples.shape[1:]))
        if samples.shape[1] == 0:
            raise ValueError(f"samples of shape {samples.shape} hold no numbers")
        if not np.isfinite(samples).all():
            row, column = np.argwhere(~np.isfinite(samples))[0]
            raise ValueError(
                f"sample {row + 1}, entry {column + 1} is {samples[row, column]}, every entry must "
                "be a finite number"
            )
        total = len(samples)
        if labels is not None and labels.shape != (total,):
            raise ValueError(f"labels of shape {labels.shape}, must be ({total},), one a sample")
    except (OSError, UnicodeDecodeError, EOFError, csv.Error, zipfile.BadZipFile, zlib.error) as e:
        reason = " ".join(str(e).split())
        raise ValueError(f"path = {str(path)!r}: the file cannot be read ({reason})") from e
    except ValueError as error:
        raise ValueError(f"path = {str(path)!r}: {error}") from error
    samples, labels = select(samples, labels, classes, count, f"path = {str(path)!r}")
    return Dataset(samples, labels, path.name, total, note)


def _read_npz(path: Path) -> tuple[NDArray[np.float64], NDArray[Any] | None, str]:
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
            raise ValueError("holds Python objects, arrays must be numeric") from error
    if len(names) == 0 or arrays[names[0]].ndim < 2:
        raise ValueError(
            f"no samples among its arrays {archive.files}, must hold one "
            f"array (P, d) or (P, height, width), named one of {', '.join(SAMPLE_NAMES)}"
        )
    if names[0] not in SAMPLE_NAMES and len(names) > 1:
        raise ValueError(
            f"{', '.join(names)} could each be the samples, "
            f"name one of them {' or '.join(SAMPLE_NAMES)}"
        )
    samples = arrays[names[0]]
    if samples.dtype.kind not in "biuf":
        raise ValueError(f"array {names[0]!r} has type {samples.dtype}, must be real numbers")
    labels = _tidy_labels(arrays[label_names[0]]) if label_names else None
    return samples.astype(np.float64), labels, ""


def _read_csv(
    path: Path, header: bool | None
) -> tuple[NDArray[np.float64], NDArray[Any] | None, str]:
    rows: list[NDArray[np.float64]] = []
    labels: list[str] = []
    column = None
    width = None
    with path.open(newline="", encoding="utf-8-sig") as file:
        # A tab or semicolon where the first line has one.
        first = file.readline()
        separator = next((each for each in "\t;" if each in first), ",")
        file.seek(0)
        reader = csv.reader(file, delimiter=separator)
        for row in reader:
            if not row:
                continue
            where = f"line {reader.line_num}"
            if width is None:
                width = len(row)
                names = [cell.strip().lower() for cell in row]
                if header is None:
                    numbers = [_number(cell, separator) for cell in row]
                    header = not any(numbers) or not set(names).isdisjoint(LABEL_NAMES)
                if header:
                    column = _label_column(names, where)
                    continue
            if len(row) != width:
                raise ValueError(
                    f"{where}: {len(row)} columns where the first row has {width}, "
                    "rows must be equally long"
                )
            if column is not None:
                labels.append(row.pop(column).strip())
            rows.append(_numbers(row, separator, where))
    samples = np.array(rows) if rows else np.empty((0, width or 1))
    note = "" if header else f"{path.name} {_NO_HEADER}"
    return samples, None if column is None else _tidy_labels(np.array(labels)), note


def _numbers(row: list[str], separator: str, where: str) -> NDArray[np.float64]:
    """The numbers in a row, at once where NumPy reads them, else cell by cell."""
    # Python and NumPy also take digits with underscores.
    if "_" not in "".join(row):
        with suppress(ValueError):
            return np.array(row, dtype=float)
    numbers = []
    for cell in row:
        number = _number(cell, separator)
        if number is None:
            raise ValueError(f"{where}: {_not_a_number(cell)}")
        numbers.append(number[0])
    return np.array(numbers)


def _number(cell: str, separator: str) -> tuple[float] | None:
    """The number in a cell, in a tuple since it may be 0; with a decimal comma if there can be."""
    text = cell.strip().replace("−", "-")
    if separator != "," and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    try:
        return None if "_" in text else (float(text),)
    except ValueError:
        return None


def _not_a_number(cell: str) -> str:
    if re.fullmatch(r"\S+( +\S+)+", cell.strip()):
        hint = "columns are separated by commas, semicolons or tabs"
    else:
        hint = (
            "a header is a row without any number, or asked for by header=True; only a label "
            f"column, named in the header {' or '.join(LABEL_NAMES)}, may hold text"
        )
    return f"{cell!r} is not a number; {hint}"


def _label_column(header: list[str], where: str) -> int | None:
    if "" in header:
        raise ValueError(
            f"{where}: column {header.index('') + 1} has no name in the header; "
            "name it, or leave out a column of row numbers"
        )
    columns = [i for i, name in enumerate(header) if name in LABEL_NAMES]
    if len(columns) > 1:
        names = ", ".join(header[i] for i in columns)
        raise ValueError(f"{where}: several label columns ({names}), must be at most one")
    return columns[0] if columns else None


def _tidy_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as integers where they all are integers that int64 holds, else as strings."""
    if labels.dtype.kind not in "biufU":
        raise ValueError(f"labels of type {labels.dtype}, must be integers or strings")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    whole = [_whole(str(label)) for label in labels.ravel().tolist()]
    if any(number is None or abs(number) >= 2**63 for number in whole):
        return labels.astype(str)
    return np.array(whole, dtype=np.int64).reshape(labels.shape)


def _whole(label: str) -> int | None:
    """The integer that a label is, exactly; None if it is something else."""
    if label in ("True", "False"):
        return int(label == "True")
    match = re.fullmatch(r"([+-]?\d+)(\.0*)?", label)
    if match:
        return int(match[1])
    try:
        number = float(label)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
