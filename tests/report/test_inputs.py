"""The images of a run: their scale, their number, their classes, the network that sees them."""

import numpy as np
import pytest

from fieldtheory import data
from fieldtheory.data.dataset import pair_classes
from fieldtheory.report.inputs import equal_share, load


@pytest.fixture(scope="module")
def inputs():
    return load(count=4)


class TestInputs:
    def test_images_have_the_input_scale(self, inputs):
        np.testing.assert_allclose(np.diag(inputs.K0), 0.05, rtol=1e-14)
        images = data.load_digits((0, 3), 4).samples
        overlap = images @ images.T
        norm = np.sqrt(np.diag(overlap))
        np.testing.assert_allclose(inputs.K0, 0.05 * overlap / np.outer(norm, norm), rtol=1e-12)

    def test_network_is_that_of_the_figure(self, inputs):
        net = inputs.network
        assert (net.weight_variance, net.bias_variance, net.width) == (1.25, 0.05, 500)
        assert net.readin_variances == (1.25, 0.0)
        assert net.readout_variances == (1.25, 0.05)
        assert (net.skip_scale, net.activation.name, net.input_dim) == (1.0, "erf", 64)

    def test_twenty_images_by_default_and_all_rows_of_a_file(self, tmp_path):
        found = load()
        assert found.labels.tolist() == [0] * 10 + [3] * 10
        assert len(load(classes=(1, 4, 7)).labels) == 18
        rng = np.random.default_rng(0)
        np.savez(tmp_path / "many.npz", X=rng.random((50, 2, 3)))
        np.savez(tmp_path / "few.npz", X=rng.random((5, 6)))
        assert load(tmp_path / "many.npz").K0.shape == (50, 50)
        assert load(tmp_path / "few.npz").K0.shape == (5, 5)

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            ({"count": 3}, "count"),
            ({"count": -2}, "count"),
            ({"classes": (0, 12)}, "classes"),
            ({"data": "missing.npz"}, "path"),
        ],
    )
    def test_bad_input(self, arguments, name):
        with pytest.raises((ValueError, TypeError), match=f"^{name}[^\n]*$"):
            load(**arguments)


def test_every_class_has_an_equal_share():
    assert [equal_share(classes) for classes in (None, (), (3,), (0, 3), (0, 3, 7))] == [
        20,
        20,
        20,
        20,
        18,
    ]


def test_one_class():
    groups = pair_classes(np.array([7, 7, 7]), 3)
    assert {name: mask.sum() for name, mask in groups.items()} == {
        "same sample": 3,
        "same class": 3,
    }
