"""Real images as inputs of a network: the bundled digits, a user's own file, and the input scale.

Everything ends in a :class:`Dataset`, whose ``samples`` are the rows of X in the input kernel
σ²_w,in/d X Xᵀ + σ²_b,in (F25, text below eq. (27); F25 is Fischer, Dahmen and Helias, field theory
for residual networks).
"""

import csv
import math
import zipfile
import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldtheory.validation import finite_array, integer, nonnegative

SAMPLE_NAMES = ("X", "samples", "data", "images")
LABEL_NAMES = ("y", "labels", "label", "target", "class")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples of a task, one per row.

    Attributes
    ----------
    samples : (P, d) float64 array
        One sample per row, trailing axes of images flattened.
    labels : (P,) array or None
        The class of each sample, integers or strings; None if the source names no classes.
    name : str
        What the samples are, for titles and captions.
    """

    samples: NDArray[np.float64]
    labels: NDArray | None
    name: str


def load_digits(classes: Sequence[int] = (0, 3), count: int = 20) -> Dataset:
    """Handwritten digits, 8x8 pixels, from the set that scikit-learn carries with it.

    The first ``count / len(classes)`` samples of every class, sorted by class, as the samples of
    F25 Fig. 6(b) are (there from MNIST, 20 samples of the digits 0 and 3). Nothing is downloaded.

    Parameters
    ----------
    classes : sequence of int
        The digits, each in 0..9 and named once.
    count : int
        Number of samples P in all; a multiple of ``len(classes)``, at least 2.

    Returns
    -------
    Dataset
        ``samples`` (count, 64) with pixel values 0..16, ``labels`` (count,).

    Raises
    ------
    ImportError
        scikit-learn is not installed.
    ValueError
        A class or a count that the set does not hold.

    Examples
    --------
    >>> digits = load_digits(classes=(0, 3), count=4)
    >>> digits.samples.shape, digits.labels.tolist()
    ((4, 64), [0, 0, 3, 3])
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError(
            "the bundled digits need scikit-learn: pip install fieldtheory-networks[data]"
        ) from error
    bunch = datasets.load_digits()
    samples, labels = _select(bunch.data, bunch.target, classes, count, "scikit-learn's digits")
    digits = ", ".join(str(digit) for digit in sorted(classes))
    return Dataset(samples, labels, f"digits {digits} (scikit-learn, 8x8 pixels)")


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
            f"path = {str(path)!r}: sample {row}, entry {column} is {samples[row, column]}, "
            "every entry must be a finite number"
        )
    if labels is not None and labels.shape != (len(samples),):
        raise ValueError(
            f"path = {str(path)!r}: labels of shape {labels.shape} for {len(samples)} samples, "
            f"must be ({len(samples)},)"
        )
    samples, labels = _select(samples, labels, classes, count, f"path = {str(path)!r}")
    return Dataset(samples, labels, path.name)


def normalise(samples: ArrayLike, scale: float, weight_variance: float) -> NDArray[np.float64]:
    """Rescale every sample so that the input kernel has ``scale`` on its diagonal.

    Sample α becomes x_α √(scale d / σ²_w,in) / ‖x_α‖, so that (σ²_w,in/d) x_α·x_α = scale, as in
    F25 Fig. 6 (samples of equal length, input scale K^(0) = 0.05). The variance σ²_b,in of the
    read-in biases, where it is not 0, comes on top of this in K^(0).

    Samples are not centred: F25 Fig. 9 shows raw overlaps.

    Parameters
    ----------
    samples : (P, d) array
        One sample per row.
    scale : float
        Diagonal of the input kernel, > 0.
    weight_variance : float
        σ²_w,in of the network's read-in layer, > 0.

    Returns
    -------
    (P, d) float64 array

    Raises
    ------
    ValueError
        ``samples`` is not (P, d) or not finite, a sample is constant (all its entries equal, as
        in an empty image), or ``scale`` or ``weight_variance`` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> X = normalise([[0, 3, 1], [2, 2, 5]], scale=0.05, weight_variance=1.2)
    >>> np.allclose(1.2 / 3 * np.diag(X @ X.T), 0.05, rtol=1e-14)
    True
    """
    for name, value in (("scale", scale), ("weight_variance", weight_variance)):
        if nonnegative(name, value) == 0:
            raise ValueError(f"{name} must be > 0, got {value!r}")
    x = finite_array("samples", samples)
    if x.ndim != 2:
        raise ValueError(f"samples must have shape (P, d), got {x.shape}")
    constant = np.flatnonzero((x == x[:, :1]).all(axis=1))
    if constant.size:
        raise ValueError(
            f"samples must not be constant, got image {constant[0]} with all entries equal to "
            f"{x[constant[0], 0]:g}"
        )
    # Dividing by the largest entry first keeps the squared norm from over- or underflowing.
    x = x / np.abs(x).max(axis=1, keepdims=True)
    norm = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return x * (math.sqrt(scale * x.shape[1] / weight_variance) / norm)


def _read_npz(path: Path) -> tuple[NDArray[np.float64], NDArray | None]:
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


def _read_csv(path: Path) -> tuple[NDArray[np.float64], NDArray | None]:
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


def _tidy_labels(labels: NDArray, path: Path) -> NDArray:
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


def _select(
    samples: NDArray[np.float64],
    labels: NDArray | None,
    classes: Sequence[Hashable] | None,
    count: int | None,
    source: str,
) -> tuple[NDArray[np.float64], NDArray | None]:
    """The samples asked for, sorted by class; ``source`` names them in error messages."""
    if count is not None:
        integer("count", count, 2)
    if classes is None:
        if count is not None and count > len(samples):
            raise ValueError(f"count must be at most {len(samples)} for {source}, got {count}")
        kept = np.arange(len(samples) if count is None else count)
        if labels is not None:
            kept = kept[np.argsort(labels[kept], kind="stable")]
    else:
        kept = _of_classes(labels, classes, count, source)
    if len(kept) < 2:
        raise ValueError(f"{source}: must hold at least 2 samples, got {len(kept)}")
    return samples[kept], None if labels is None else labels[kept]


def _of_classes(
    labels: NDArray | None, classes: Sequence[Hashable], count: int | None, source: str
) -> NDArray[np.intp]:
    """Indices of the first ``count / len(classes)`` samples of every class, sorted by class."""
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):
        raise TypeError(f"classes must be a sequence of classes, got {classes!r}")
    if labels is None:
        raise ValueError(f"classes need labels to choose by, got none from {source}")
    wanted = [str(label) for label in classes]
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError(f"classes must name at least one class, each once, got {list(classes)}")
    present = np.unique(labels)
    printed = [str(label) for label in present]
    for label in wanted:
        if label not in printed:
            shown = ", ".join(printed[:20]) + (", ..." if len(printed) > 20 else "")
            raise ValueError(f"classes must be among {shown} for {source}, got {label!r}")
    if count is not None and count % len(wanted):
        raise ValueError(f"count must be a multiple of {len(wanted)}, the classes, got {count}")
    kept = []
    for label in present[[name in wanted for name in printed]]:
        members = np.flatnonzero(labels == label)
        share = len(members) if count is None else count // len(wanted)
        if share > len(members):
            raise ValueError(
                f"count must be at most {len(members) * len(wanted)} for {source}, whose class "
                f"{label} has {len(members)} samples, got {count}"
            )
        kept.append(members[:share])
    return np.concatenate(kept)
