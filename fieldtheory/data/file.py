"""Samples from a user's own file."""

import csv
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldtheory.data.dataset import Dataset, listed, select
from fieldtheory.validation import choice

SAMPLE_NAMES = ("X", "samples", "data", "images")
LABEL_NAMES = ("y", "labels", "label", "target", "class")
_NO_HEADER = "has no header row: its first row is a sample, and none of its columns holds labels."


def load_file(
    path: str | Path,
    classes: Sequence[Hashable] | None = None,
    count: int | None = None,
    header: bool | None = None,
    label: str | None = None,
    drop: Sequence[str] = (),
    standardise: bool = False,
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
    label : str, optional
        The column, or the array, that holds the labels, if its name is another.
    drop : sequence of str, optional
        Columns of a ``.csv`` file to leave out, by the names in its header; they may hold text.
    standardise : bool
        Give every column the mean 0 and the deviation 1 over all samples of the file, for columns
        of different units. Constant columns become 0.

    Returns
    -------
    Dataset
        ``samples`` (P, d) in the order of the file; with ``classes``, sorted by class. Its ``note``
        says if a ``.csv`` file has no header, and which columns are constant; its ``warning`` if
        samples are nearly parallel, as they are where one column has the largest unit.

    Raises
    ------
    ValueError
        One line naming the file and what is allowed: no such file, another format, entries that
        are not finite real numbers, rows of unequal length, fewer than two samples, labels that do
        not fit the samples, a class or a column that is not there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "four.csv"
    >>> _ = path.write_text("label,a,b\\ncat,0,1\\ndog,1,2\\ncat,3,1\\ndog,2,0\\n")
    >>> load_file(path, classes=["dog"]).samples
    array([[1., 2.],
           [2., 0.]])
    >>> load_file(path, label="label", drop=["a"], standardise=True).samples.round(2).tolist()
    [[0.0], [1.41], [0.0], [-1.41]]
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], Any]] = {
        ".npz": partial(_read_npz, label=label, drop=drop),
        ".csv": partial(_read_csv, header=header, label=label, drop=drop),
    }
    if path.suffix.lower() not in readers:
        raise ValueError(f"path = {str(path)!r}: the file must be .npz or .csv")
    if not path.is_file():
        raise ValueError(f"path = {str(path)!r}: there is no such file")
    try:
        samples, labels, columns, note = readers[path.suffix.lower()](path)
        are_images = samples.ndim > 2
        samples = samples.reshape(len(samples), math.prod(samples.shape[1:]))
        if samples.shape[1] == 0:
            raise ValueError(f"samples of shape {samples.shape} hold no numbers")
        if not np.isfinite(samples).all():
            row, column = np.argwhere(~np.isfinite(samples))[0]
            entry = f"column {columns[column]!r}" if columns else f"entry {column + 1}"
            raise ValueError(
                f"sample {row + 1}, {entry} is {samples[row, column]}, every entry must be a "
                "finite number"
            )
        total = len(samples)
        if labels is not None and labels.shape != (total,):
            raise ValueError(f"labels of shape {labels.shape}, must be ({total},), one a sample")
    except (OSError, UnicodeDecodeError, EOFError, zipfile.BadZipFile, zlib.error) as e:
        reason = " ".join(str(e).split())
        raise ValueError(f"path = {str(path)!r}: the file cannot be read ({reason})") from e
    except ValueError as error:
        raise ValueError(f"path = {str(path)!r}: {str(error).strip()}") from error
    constant = np.flatnonzero((samples == samples[:1]).all(axis=0))
    # Pixels at the edge of images are.
    if total > 1 and len(constant) and not are_images:
        names = [columns[i] if columns else str(i + 1) for i in constant]
        note = f"{note} Constant over all samples: {listed('column', names)}.".strip()
    if standardise:
        samples = samples - samples.mean(axis=0)
        samples[:, constant] = 0.0
        deviation = samples.std(axis=0)
        samples /= np.where(deviation > 0, deviation, 1.0)
    samples, labels = select(samples, labels, classes, count, f"path = {str(path)!r}")
    name = f"{path.name}, columns standardised" if standardise else path.name
    return Dataset(samples, labels, name, total, note, columns)


def _read_npz(
    path: Path, label: str | None, drop: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[Any] | None, tuple[str, ...], str]:
    if drop:
        raise ValueError(f"drop is for columns of a .csv file, which have names, got {drop[0]!r}")
    if not zipfile.is_zipfile(path):
        raise zipfile.BadZipFile("not an .npz archive")
    with np.load(path, allow_pickle=False) as archive:
        names = [name for name in SAMPLE_NAMES if name in archive.files]
        label_names = [name for name in LABEL_NAMES if name in archive.files]
        if label is not None:
            label_names = [choice("label", label, archive.files)]
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
    return samples.astype(np.float64), labels, (), ""


def _read_csv(
    path: Path, header: bool | None, label: str | None, drop: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[Any] | None, tuple[str, ...], str]:
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            ".csv files need pandas: pip install fieldtheory-networks[data]"
        ) from error
    named = [*drop, *([] if label is None else [label])]
    if named and header is not None and not header:
        raise ValueError(f"label and drop name columns of a header, got header=False, {named[0]!r}")
    with path.open(newline="", encoding="utf-8-sig") as file:
        above, first = next(((i, row) for i, row in enumerate(file) if row.strip()), (0, ""))
    # A tab or semicolon where the first row has one.
    separator = next((each for each in "\t;" if each in first), ",")
    names = [cell.strip() for cell in next(csv.reader([first], delimiter=separator), [])]
    if header is None:
        has_numbers = any(_number(name, separator) is not None for name in names)
        has_label = not {name.lower() for name in names}.isdisjoint(LABEL_NAMES)
        header = bool(named) or has_label or not has_numbers
    column, kept = _columns(names, label, drop) if header else (None, [*range(len(names))])
    options: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig", "low_memory": False}
    options |= {"skiprows": above + 1 if header else 0, "na_filter": False}
    try:
        kinds = None if column is None else {column: str}
        table = pandas.read_csv(path, header=None, dtype=kinds, **options)
    except pandas.errors.EmptyDataError:
        return np.empty((0, len(kept) or 1)), None, (), ""
    if len(table.columns) != len(names):
        raise ValueError(f"rows of {len(table.columns)} columns below a header of {len(names)}")
    samples = np.empty((len(table), len(kept)))
    for i, place in enumerate(kept):
        cells = table[place]
        if cells.dtype.kind not in "iuf":
            # Decimal commas and other signs, which pandas leaves as text.
            cells, text = [_number(str(cell), separator) for cell in cells], cells
            if None in cells:
                row = cells.index(None)
                where = f"column {names[place]!r}" if header else f"entry {place + 1}"
                raise ValueError(
                    f"sample {row + 1}, {where}: {_not_a_number(str(text[row]), header)}"
                )
        samples[:, i] = cells
    labels = None
    if column is not None:
        labels = np.array([cell.strip() for cell in table[column]])
        if "" in labels:
            raise ValueError(f"sample {labels.tolist().index('') + 1} has no label")
        labels = _tidy_labels(labels)
    note = "" if header else f"{path.name} {_NO_HEADER}"
    return samples, labels, tuple(names[i] for i in kept) if header else (), note


def _number(cell: str, separator: str) -> float | None:
    """The number in a cell; with a decimal comma if there can be. Python also takes underscores."""
    text = cell.strip().replace("−", "-")
    if separator != "," and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _not_a_number(cell: str, has_header: bool) -> str:
    if not cell.strip():
        hint = "fill it, or leave out its row or column"
    elif has_header:
        hint = "only a column of labels may hold text: name it by label=, or leave it out by drop="
    elif re.fullmatch(r"\S+( +\S+)+", cell.strip()):
        hint = "columns are separated by commas, semicolons or tabs"
    else:
        hint = (
            "a header is a row without any number, or asked for by header=True; only a label "
            f"column, named in the header {' or '.join(LABEL_NAMES)}, may hold text"
        )
    return f"{cell!r} is not a number; {hint}"


def _columns(
    header: list[str], label: str | None, drop: Sequence[str]
) -> tuple[int | None, list[int]]:
    """The column of labels, if there is one, and those of the samples."""
    for argument, name in [*(("drop", name) for name in drop), ("label", label)]:
        if name is not None:
            choice(argument, name, header)
    if "" in header:
        raise ValueError(
            f"column {header.index('') + 1} has no name in the header; "
            "name it, or leave out a column of row numbers"
        )
    kept = [i for i, name in enumerate(header) if name not in drop]
    if label is None:
        columns = [i for i in kept if header[i].lower() in LABEL_NAMES]
    else:
        columns = [header.index(label)]
    if len(columns) > 1:
        names = ", ".join(header[i] for i in columns)
        raise ValueError(f"several label columns ({names}), must be at most one; name it by label=")
    return columns[0] if columns else None, [i for i in kept if i not in columns]


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
