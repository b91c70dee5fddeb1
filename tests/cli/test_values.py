"""Text from a shell as values: what is understood, and one line for what is not."""

import numpy as np
import pytest

from fieldtheory.cli import values
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.block import BlockNetwork


class TestActivation:
    def test_keeps_the_name_that_was_typed(self):
        assert values.activation(" 0.5*h ").name == "0.5*h"
        assert values.activation("silu").name == "swish"


class TestNumbers:
    def test_one_or_several(self):
        assert values.numbers("branch_scale", "0.3") == 0.3
        assert values.numbers("branch_scale", " 1e-2, 2 ") == [0.01, 2.0]


class TestKernel:
    def test_text(self):
        assert values.kernel("0.05") == 0.05
        np.testing.assert_array_equal(values.kernel("1,0.5; 0.5,2"), [[1, 0.5], [0.5, 2]])

    def test_files(self, tmp_path):
        matrix = np.array([[1, 0.5], [0.5, 2]])
        np.save(tmp_path / "kernel.npy", matrix)
        np.savetxt(tmp_path / "kernel.csv", matrix, delimiter=",")
        (tmp_path / "variance.csv").write_text("0.25\n")
        for name in ("kernel.npy", "kernel.csv"):
            np.testing.assert_array_equal(values.kernel(str(tmp_path / name)), matrix)
        assert values.kernel(str(tmp_path / "variance.csv")) == 0.25

    def test_samples_are_no_kernel(self, tmp_path):
        np.savetxt(tmp_path / "samples.csv", np.ones((2, 3)), delimiter=",")
        with pytest.raises(ValueError, match="got shape .2, 3. in .* samples in rows are for --d"):
            values.kernel(str(tmp_path / "samples.csv"))

    @pytest.mark.parametrize("name", ["kernel.csv", "kernel.npy"])
    @pytest.mark.filterwarnings("ignore:loadtxt")
    def test_refuses_unreadable_files(self, tmp_path, name):
        (tmp_path / name).write_text("not, a\nkernel\n")
        with pytest.raises(ValueError, match="^K0 cannot be read from [^\n]*$"):
            values.kernel(str(tmp_path / name))


class TestAxis:
    @pytest.mark.parametrize(
        ("text", "name", "expected"),
        [
            ("depth=10, 50", "depth", [10, 50]),
            ("depth=10:30:3", "depth", [10, 20, 30]),
            ("branch-scale=0.1", "branch_scale", [0.1]),
            ("branch_scale=0.1:0.7:4", "branch_scale", [0.1, 0.3, 0.5, 0.7]),
            ("K0=1e-3,1", "K0", [1e-3, 1.0]),
            ("readout_bias_variance=none,0", "readout_bias_variance", [None, 0.0]),
        ],
    )
    def test_of_numbers(self, text, name, expected):
        found = values.axis(text)
        assert found == (name, expected)
        assert [type(value) for value in found[1]] == [type(value) for value in expected]

    def test_of_activations(self):
        name, found = values.axis("activation=erf, max(0, h),tanh(2*h)")
        assert name == "activation"
        assert [phi.name for phi in found] == ["erf", "max(0, h)", "tanh(2*h)"]


class TestIntegersAndClasses:
    def test_integers(self):
        assert values.integers("depths", "10, 50") == [10, 50]
        for text in ("", "1.5", "1;2", "1,"):
            with pytest.raises(ValueError, match="^depths must be integers separated by commas"):
                values.integers("depths", text)


class TestNetwork:
    def test_scales_and_activation_are_read(self):
        net = values.network("2*tanh(h)", "0.3,0.2", "0.9", depth=2, weight_variance=1.5)
        assert (net.branch_scale, net.skip_scale) == ((0.3, 0.2), 0.9)
        assert (net.activation.name, net.weight_variance) == ("2*tanh(h)", 1.5)

    def test_blocks(self):
        typed = {"normalization": "none", "norm_position": "post", "gated": True, "epsilon": 0.0}
        typed |= {"inner_weight_variance": "2,1", "outer_weight_variance": "none"}
        net = values.network("relu", "0.5", "0.9", family="block", depth=2, **typed)
        expected = typed | {
            "normalization": None,
            "inner_weight_variance": (2.0, 1.0),
            "outer_weight_variance": None,
            "activation": as_activation("relu"),
            "branch_scale": 0.5,
            "skip_scale": 0.9,
        }
        assert net == BlockNetwork(depth=2, **expected)
