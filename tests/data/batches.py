"""A small folder of the form of CIFAR-10's python batches."""

import pickle
import struct

import numpy as np

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog"]


class Python2Pickler(pickle._Pickler):
    """Writes bytes and text as Python 2 wrote str, the form of the published files."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_str(self, value):
        value = value.encode("ascii") if isinstance(value, str) else value
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    dispatch[str] = dispatch[bytes] = save_str


def write(path, content):
    with path.open("wb") as file:
        Python2Pickler(file, protocol=2).dump(content)
    # Where NumPy kept its code until version 2.
    path.write_bytes(path.read_bytes().replace(b"numpy._core", b"numpy.core"))


def write_batches(folder):
    """Four images in each of five batches; the first pixel of image n of all is n."""
    write(folder / "batches.meta", {"label_names": NAMES, "num_vis": 3072})
    labels = np.array([[5, 0, 3, 0], [0, 0, 1, 2], [5, 4, 4, 4], [5, 5, 0, 1], [2, 2, 3, 5]])
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 3072), dtype=np.uint8)
    images[..., 0] = np.arange(20).reshape(5, 4)
    for number, (data, row) in enumerate(zip(images, labels, strict=True), 1):
        write(folder / f"data_batch_{number}", {"data": data, "labels": row.tolist()})
    return folder, images.reshape(20, 3072)
