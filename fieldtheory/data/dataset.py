"""Samples of a task, and the choice of classes among them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldtheory.validation import integer

# Images are below, columns of different units above: the median of |correlations|.
_PARALLEL = 0.99


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
    total : int
        The number of samples of the source, of which these are all or some; 0 if it is not known.
    note : str
        What whoever reads the numbers should know of the source; mostly empty.
    columns : tuple of str
        Names of the d numbers, if they have any.

    Examples
    --------
    >>> Dataset(np.eye(2), np.array(["cat", "dog"]), "two corners").samples.shape
    (2, 2)
    """

    samples: NDArray[np.float64]
    labels: NDArray[Any] | None
    name: str
    total: int = 0
    note: str = ""
    columns: tuple[str, ...] = ()

    @property
    def size(self) -> str:
        """Number of samples and of those they were chosen from, in words.

        Examples
        --------
        >>> Dataset(np.eye(2), None, "two corners", total=30).size
        '2 of 30 samples'
        """
        part = f" of {self.total}" if self.total > len(self.samples) else ""
        return f"{len(self.samples)}{part} samples"

    @property
    def warning(self) -> str:
        """Words on samples that are nearly parallel, and the column it is due to; mostly empty.

        Examples
        --------
        >>> samples = np.array([[1, 900.0], [2, 800], [3, 850]])
        >>> Dataset(samples, None, "lengths", columns=("km", "mm")).warning[:72]
        'samples are nearly parallel: half of their correlations are above 0.9999'
        """
        count, dimension = self.samples.shape
        # Every so many are enough to know what most of them are.
        x = self.samples[:: max(1, count // 500)]
        x = x / np.maximum(np.abs(x).max(axis=1, keepdims=True), np.finfo(float).tiny)
        x = x[x.any(axis=1)]
        if len(x) < 2 or dimension < 2:
            return ""
        x /= np.sqrt((x * x).sum(axis=1, keepdims=True))
        overlap = float(np.median(np.abs(x @ x.T)[np.triu_indices(len(x), 1)]))
        if overlap < _PARALLEL:
            return ""
        shares = (x * x).mean(axis=0)
        largest = int(shares.argmax())
        name = self.columns[largest] if self.columns else str(largest + 1)
        # Fewer squares may be chance where there are few columns.
        has_one = shares[largest] > 0.8
        due = (
            f", column {name} is {100 * shares[largest]:.3g} % of their squares" if has_one else ""
        )
        by_name = f", or leave some out: --drop {name}" if has_one and self.columns else ""
        return (
            f"samples are nearly parallel: half of their correlations are above "
            f"{np.floor(1e4 * overlap) / 1e4:.4g}{due}. ρ* and responses are those of small "
            "differences. If columns have different units, give all of them one scale: "
            f"--standardise{by_name}"
        )

    def __repr__(self) -> str:
        kinds = "" if self.labels is None else f", {len(np.unique(self.labels))} classes"
        return f"Dataset({self.name!r}, {self.size} of {self.samples.shape[1]} numbers{kinds})"


def listed(noun: str, names: Sequence[str]) -> str:
    """The first of some things by name, and how many more there are.

    Examples
    --------
    >>> listed("column", ["a"]), listed("column", list("abcdef"))
    ('column a', 'columns a, b, c, d and 2 more')
    """
    most = 4
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{noun}{'s' if len(names) > 1 else ''} {', '.join(names[:most])}{more}"


def select(
    samples: NDArray[Any],
    labels: NDArray[Any] | None,
    classes: Sequence[Hashable] | None,
    count: int | None,
    source: str,
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """The samples asked for, sorted by ``classes`` if given; ``source`` is for error messages."""
    if count is not None:
        integer("count", count, 2)
    if classes is None:
        if count is not None and count > len(samples):
            raise ValueError(f"count must be at most {len(samples)} for {source}, got {count}")
        kept = np.arange(len(samples) if count is None else count)
    else:
        kept = _of_classes(labels, classes, count, source)
    if len(kept) < 2:
        raise ValueError(f"{source}: must hold at least 2 samples, got {len(kept)}")
    return samples[kept].astype(np.float64), None if labels is None else labels[kept]


def _of_classes(
    labels: NDArray[Any] | None, classes: Sequence[Hashable], count: int | None, source: str
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
            listed = ", ".join(printed[:20]) + (", ..." if len(printed) > 20 else "")
            raise ValueError(f"classes must be among {listed} for {source}, got {label!r}")
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


def pair_classes(labels: NDArray[Any] | None, size: int) -> dict[str, np.ndarray]:
    """Masks (P, P) of the classes of pairs that occur; each pair of samples is in one of them once.

    >>> {name: int(mask.sum()) for name, mask in pair_classes(np.array([0, 0, 3]), 3).items()}
    {'same sample': 3, 'same class': 1, 'different classes': 2}
    """
    upper = np.triu(np.ones((size, size), dtype=bool), 1)
    groups = {"same sample": np.eye(size, dtype=bool)}
    if labels is None:
        groups["different samples"] = upper
    else:
        same = labels[:, None] == labels
        groups |= {"same class": upper & same, "different classes": upper & ~same}
    return {name: mask for name, mask in groups.items() if mask.any()}
