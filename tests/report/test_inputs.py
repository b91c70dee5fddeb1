"""How many samples a command sees when nothing is said."""

import numpy as np
import pytest

from fieldtheory.report.inputs import dataset, equal_share


def test_twenty_images_by_default_and_all_rows_of_a_file(tmp_path):
    assert dataset().labels.tolist() == [0] * 10 + [3] * 10
    assert len(dataset(classes=(1, 4, 7)).labels) == 18
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "many.npz", X=rng.random((50, 2, 3)))
    assert dataset(tmp_path / "many.npz").samples.shape == (50, 6)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"count": 3}, "count"),
        ({"count": -2}, "count"),
        ({"classes": (0, 12)}, "classes"),
        ({"data": "missing.npz"}, "path"),
    ],
)
def test_bad_input(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name}[^\n]*$"):
        dataset(**arguments)


def test_every_class_has_an_equal_share():
    shares = [equal_share(classes) for classes in (None, (), (3,), (0, 3), (0, 3, 7))]
    assert shares == [20, 20, 20, 20, 18]
