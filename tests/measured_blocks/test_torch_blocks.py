"""Functions that draw torch modules: the numbers of the same block in NumPy, and refusals."""

import numpy as np
import pytest

import fieldtheory as ft

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra torch)")
nn = torch.nn

N = 24


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def linear(width=N, rng=None):
    """Weights of variance 1/(3N) and biases as large, of PyTorch's uniform distribution."""
    return nn.Linear(width, width)


def test_linear_layer():
    m = ft.measure_block(linear, N, 300)
    square = 1 / 3 + 1 / (3 * N)
    assert abs(m.branch_scale - (0.5 / square) ** 0.5) < 4 * m.branch_scale_error
    expected = 0.5 + m.branch_scale**2 / 3
    assert abs(m.perpendicular - expected) < 4 * m.perpendicular_error
    assert m.branch_scale_error < 0.02 * m.branch_scale


def test_same_block_in_numpy_and_torch():
    def arrays(width, rng):
        first, second = rng.normal(size=(2, width, width)) / width**0.5
        return lambda z: np.maximum(z @ first.T, 0) @ second.T

    def modules(width, rng):
        weights = torch.tensor(rng.normal(size=(2, width, width)) / width**0.5)
        block = nn.Sequential(nn.Linear(N, N, bias=False), nn.ReLU(), nn.Linear(N, N, bias=False))
        block = block.double()
        for layer, weight in zip(block[::2], weights, strict=True):
            layer.weight.data.copy_(weight)
        return block

    first, second = (ft.measure_block(block, N, 40, K0=np.eye(3)) for block in (arrays, modules))
    np.testing.assert_allclose(first.kernel, second.kernel, rtol=1e-9, atol=1e-12)


def test_one_module_for_all_samples_is_named():
    one = linear()
    with pytest.warns(UserWarning, match="block is the same in every sample: .* errors are too sm"):
        ft.measure_block(lambda width, rng: one, N, 20)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_roundings_have_no_susceptibilities(kind):
    class Rounded(nn.Linear):
        def forward(self, z):
            return super().forward(z.to(kind).double())

    with pytest.warns(UserWarning, match="its parallel and perpendicular susceptibilities cannot"):
        m = ft.measure_block(lambda width, rng: Rounded(N, N), N, 100)
    assert np.isnan(m.parallel) and np.isnan(m.perpendicular) and m.branch_scale > 0


FACTORY = "a new block, got the torch module {0}: give lambda width, rng: {0}.*"
REFUSED = [
    (nn.Linear, TypeError, FACTORY.format("Linear")),
    (nn.Linear(N, N), TypeError, FACTORY.format("Linear")),
    (nn.Sequential(nn.Linear(N, N)), TypeError, FACTORY.format("Sequential")),
    (lambda width, rng: nn.Linear(N, 3), ValueError, "of its input .1, 24., got shape .1, 3"),
    (lambda width, rng: nn.Linear(3, 3), ValueError, "failed on a signal of shape .1, 24.: Runt"),
    (lambda width, rng: nn.LSTM(N, N), ValueError, "block failed on a signal of shape .1, 24."),
    (lambda width, rng: nn.Linear, ValueError, "block failed on a signal of shape .1, 24."),
    (lambda width, rng: nn.Dropout(0.5), ValueError, "two answers for one z .* needs its eval"),
]


@pytest.mark.parametrize(("block", "error", "words"), REFUSED, ids=lambda value: "")
def test_refused(block, error, words):
    with pytest.raises(error, match=words):
        ft.measure_block(block, N, 20)
