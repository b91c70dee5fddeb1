"""Text from a shell: what is understood, and that nothing in it is ever executed."""

import numpy as np
import pytest
import sympy as sp

from fieldtheory.networks import parsing
from fieldtheory.networks.activations import ACTIVATIONS, h


class TestActivation:
    @pytest.mark.parametrize("name", ACTIVATIONS)
    def test_names(self, name):
        assert parsing.activation(name) is ACTIVATIONS[name]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("h", h),
            ("tanh(2*h)", sp.tanh(2 * h)),
            ("h*erf(h)", h * sp.erf(h)),
            ("-h**3/6 + h", h - h**3 / 6),
            ("0.1*h", h / 10),
            ("1e-3*h", h / 1000),
            ("max(0, h)", sp.Max(0, h)),
            ("relu(h) + abs(h)/2", sp.Max(0, h) + sp.Abs(h) / 2),
            ("sin(pi*h)", sp.sin(sp.pi * h)),
            ("log(1 + exp(h))", sp.log(1 + sp.exp(h))),
            ("sqrt(1 + h**2)", sp.sqrt(1 + h**2)),
        ],
    )
    def test_expressions(self, text, expected):
        assert parsing.activation(text).expression == expected

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "nonsense",
            "tanh(h",
            "tanh(x)",
            "h*x",
            "2",
            "h.diff",
            "h.diff(h)",
            "__import__('os').system('true')",
            "exp(h)(h)",
            "exec('1')",
            "lambda h: h",
            "[h for h in h]",
            "(h := 2)",
            "f'{h}'",
            "tanh(h, h)",
            "max(h)",
            "tanh(argument=h)",
            "h^2",
            "h/0",
            "sqrt(-1)*h",
            "True*h",
            "9**9**9*h",
            "(9**20)**20*h",
            "h**h",
            "h**1000",
            "h" + "+h" * 200,
            "h\x00",
        ],
    )
    def test_refuses_in_one_line(self, text):
        with pytest.raises(ValueError, match="^activation must [^\n]*$"):
            parsing.activation(text)


class TestNumbers:
    def test_one_or_several(self):
        assert parsing.numbers("branch_scale", "0.3") == 0.3
        assert parsing.numbers("branch_scale", " 1e-2, 2 ") == [0.01, 2.0]

    @pytest.mark.parametrize("text", ["", "a", "1,", "1;2", "1 2"])
    def test_refuses(self, text):
        with pytest.raises(ValueError, match="^branch_scale must be a number[^\n]*$"):
            parsing.numbers("branch_scale", text)


class TestKernel:
    def test_text(self):
        assert parsing.kernel("0.05") == 0.05
        np.testing.assert_array_equal(parsing.kernel("1,0.5; 0.5,2"), [[1, 0.5], [0.5, 2]])

    def test_files(self, tmp_path):
        matrix = np.array([[1, 0.5], [0.5, 2]])
        np.save(tmp_path / "kernel.npy", matrix)
        np.savetxt(tmp_path / "kernel.csv", matrix, delimiter=",")
        (tmp_path / "variance.csv").write_text("0.25\n")
        for name in ("kernel.npy", "kernel.csv"):
            np.testing.assert_array_equal(parsing.kernel(str(tmp_path / name)), matrix)
        assert parsing.kernel(str(tmp_path / "variance.csv")) == 0.25

    @pytest.mark.parametrize("text", ["", "a,b", "1;2", "1,2;3", "missing.csv", "missing.npy"])
    def test_refuses(self, text):
        with pytest.raises(ValueError, match="^K0 [^\n]*$"):
            parsing.kernel(text)

    @pytest.mark.parametrize("name", ["kernel.csv", "kernel.npy"])
    @pytest.mark.filterwarnings("ignore:loadtxt")
    def test_refuses_unreadable_files(self, tmp_path, name):
        (tmp_path / name).write_text("not, a\nkernel\n")
        with pytest.raises(ValueError, match="^K0 cannot be read from [^\n]*$"):
            parsing.kernel(str(tmp_path / name))
