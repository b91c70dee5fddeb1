"""How many samples a command sees when nothing is said."""

import numpy as np
import pytest

from fieldtheory.cli.samples import read


def test_twenty_images_by_default_and_all_rows_of_a_file(tmp_path):
    assert read({"data": "digits"}).labels.tolist() == [0] * 10 + [3] * 10
    sizes = [len(read({"data": "digits", "classes": text}).labels) for text in ("3", "1,4,7")]
    assert sizes == [20, 18]
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "many.npz", X=rng.random((50, 2, 3)))
    assert read({"data": str(tmp_path / "many.npz")}).samples.shape == (50, 6)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"count": 3}, "count"),
        ({"count": -2}, "count"),
        ({"classes": "0,12"}, "classes"),
        ({"data": "missing.npz"}, "path"),
    ],
)
def test_bad_input(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name}[^\n]*$"):
        read({"data": "digits"} | arguments)
