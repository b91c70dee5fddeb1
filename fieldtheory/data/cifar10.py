"""CIFAR-10 from the python batches on a user's disk."""

import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldtheory.data.dataset import Dataset, select

BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_READABLE = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    # Its module is called _core from NumPy 2 on; the files were written long before.
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
}


def load_cifar10(
    folder: str | Path, classes: Sequence[str] = ("airplane", "dog"), count: int = 20
) -> Dataset:
    """Images of CIFAR-10, 32x32 pixels in three colours, from its python batches.

    The first ``count / len(classes)`` samples of every class, sorted by class, as the samples of
    F25 Fig. 6(c) are; which of them it shows is not stated. Nothing is downloaded: ``folder`` is
    ``cifar-10-batches-py`` of the archive ``cifar-10-python.tar.gz``. Of the pickled files, arrays
    and builtin types are read, nothing else.

    Parameters
    ----------
    folder : str or Path
        Holds ``batches.meta`` and ``data_batch_1`` to ``data_batch_5``.
    classes : sequence of str
        Names of the classes, such as airplane, dog, ship, each once.
    count : int
        Number of samples P in all; a multiple of ``len(classes)``, at least 2.

    Returns
    -------
    Dataset
        ``samples`` (count, 3072) with pixel values 0..255, red, green, blue after one another;
        ``labels`` (count,), the names.

    Raises
    ------
    ValueError
        One line naming the folder or file and what is allowed: no such folder or file, a file that
        is no such batch, a class or a count that the set does not hold.

    Examples
    --------
    >>> import pathlib, pickle, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> meta = {b"label_names": [b"airplane", b"dog"]}
    >>> _ = (folder / "batches.meta").write_bytes(pickle.dumps(meta))
    >>> batch = pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 1]})
    >>> for number in range(1, 6):
    ...     _ = (folder / f"data_batch_{number}").write_bytes(batch)
    >>> load_cifar10(folder, count=4).labels.tolist()
    ['airplane', 'airplane', 'dog', 'dog']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"folder = {str(folder)!r}: there is no such folder")
    names = _names(folder / "batches.meta")
    batches = [_batch(folder / name, len(names)) for name in BATCHES]
    numbers = np.concatenate([labels for _, labels in batches])
    samples, labels = select(
        np.concatenate([pixels for pixels, _ in batches]),
        names[numbers],
        classes,
        count,
        f"folder = {str(folder)!r}",
    )
    return Dataset(samples, labels, f"{', '.join(sorted(classes))} (CIFAR-10, 32x32 pixels)")


def _names(path: Path) -> NDArray[np.str_]:
    names = _read(path).get(b"label_names")
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) for name in names):
        raise ValueError(f"path = {str(path)!r}: holds no list label_names of class names")
    return np.array([name.decode() if isinstance(name, bytes) else name for name in names])


def _batch(path: Path, classes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pixels (n, 3072) and the numbers of the classes (n,)."""
    content = _read(path)
    pixels, numbers = content.get(b"data"), content.get(b"labels")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise ValueError(f"path = {str(path)!r}: holds no array data of images")
    expected = 3 * 32 * 32
    if pixels.shape[1] != expected:
        raise ValueError(
            f"path = {str(path)!r}: images have {pixels.shape[1]} numbers, must be {expected}"
        )
    allowed = set(range(classes))
    if (
        not isinstance(numbers, list)
        or len(numbers) != len(pixels)
        or not all(isinstance(number, int) and number in allowed for number in numbers)
    ):
        raise ValueError(
            f"path = {str(path)!r}: labels must be {len(pixels)} integers below {classes}"
        )
    return pixels, np.array(numbers, dtype=np.int64)


def _read(path: Path) -> dict[Any, Any]:
    if not path.is_file():
        raise ValueError(f"path = {str(path)!r}: there is no such file")
    try:
        content = _Arrays(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    # A broken pickle can raise nearly anything.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"path = {str(path)!r}: the file cannot be read ({reason})") from error
    if not isinstance(content, dict):
        raise ValueError(f"path = {str(path)!r}: must hold a dict, got {type(content).__name__}")
    return {key.encode() if isinstance(key, str) else key: content[key] for key in content}


class _Arrays(pickle.Unpickler):
    """Reads builtin types and NumPy arrays; any other object may run code and is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _READABLE:
            raise pickle.UnpicklingError(f"{module}.{name} is neither an array nor builtin")
        return _READABLE[module, name]
