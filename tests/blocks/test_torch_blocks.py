"""Torch modules as blocks: the numbers of the same block in NumPy, what is left alone, refusals."""

import sys
import warnings

import numpy as np
import pytest

import fieldtheory as ft
from tests.rounding import assert_same

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra torch)")
nn = torch.nn

N = 24


def linear():
    """Weights of variance 1/(3N) and biases as large, of PyTorch's uniform distribution."""
    return nn.Linear(N, N)


def exact_scores(m):
    expected = {"G_RR": m.G_zz / 3 + 1 / (3 * N), "perpendicular": 0.5 + m.branch_scale**2 / 3}
    return [
        (getattr(m, name) - value) / getattr(m, f"{name}_error") for name, value in expected.items()
    ]


@pytest.mark.parametrize(
    "block",
    [linear(), lambda width, rng: linear(), nn.Sequential(nn.Identity(), linear()), "reset"],
    ids=["module", "factory", "parts", "reset"],
)
def test_linear_layer(block):
    options = {}
    if block == "reset":

        def reset(module):
            nn.init.uniform_(module.weight, -(N**-0.5), N**-0.5)
            nn.init.uniform_(module.bias, -(N**-0.5), N**-0.5)

        block, options = linear(), {"reset": reset}
    m = ft.measure_block(block, N, 300, **options)
    assert max(map(abs, exact_scores(m))) < 4
    assert m.G_RR_error < 0.03 * m.G_RR


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
    np.testing.assert_allclose(first.batch_means, second.batch_means, rtol=1e-9, atol=1e-12)


def test_users_module_and_random_numbers_are_left_alone():
    block = linear()
    weights, state = block.weight.detach().clone(), torch.random.get_rng_state()
    first = ft.measure_block(block, N, 20)
    torch.manual_seed(7)
    assert_same(first.batch_means, ft.measure_block(block, N, 20).batch_means)
    torch.random.set_rng_state(state)
    assert torch.equal(block.weight, weights) and block.weight.dtype == torch.float32
    assert torch.equal(torch.random.get_rng_state(), state)


def test_dropout_is_the_same_for_all_that_one_sample_compares():
    with pytest.warns(UserWarning, match="as in training, with Dropout; block.eval"):
        m = ft.measure_block(nn.Sequential(linear(), nn.Dropout(0.5)), N, 200)
    plain = ft.measure_block(linear(), N, 200)
    # Half of the neurons with twice their size.
    np.testing.assert_allclose(m.G_RR / plain.G_RR, 2.0, rtol=0.15)
    assert m.perpendicular < 2


def test_in_use_nothing_is_dropped():
    block = nn.Sequential(linear(), nn.Dropout(0.5)).eval()
    m, plain = (ft.measure_block(of, N, 40) for of in (block, nn.Sequential(linear())))
    assert_same(m.batch_means, plain.batch_means)


def test_modules_that_a_function_builds_follow_the_seed():
    found = []
    for _ in range(2):
        torch.rand(1)
        state = torch.random.get_rng_state()
        found.append(ft.measure_block(lambda width, rng: linear(), N, 20).batch_means.tolist())
        assert torch.equal(torch.random.get_rng_state(), state)
    assert found[0] == found[1]


def test_also_if_the_function_imports_torch(monkeypatch):
    expected = ft.measure_block(lambda width, rng: linear(), N, 20).batch_means.tolist()
    monkeypatch.delitem(sys.modules, "torch")

    def importing(width, rng):
        sys.modules["torch"] = torch
        return linear()

    assert_same(ft.measure_block(importing, N, 20).batch_means, expected)


def test_attention_with_layer_norm():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.heads = nn.LayerNorm(N), nn.MultiheadAttention(N, 2)

        def forward(self, z):
            z = self.norm(z)
            return self.heads(z, z, z)[0]

    m = ft.measure_block(Attention(), N, 100, K0=np.eye(4))
    # The norm makes the branch forget the size of the signal; R z grows with the size of z.
    growth = m.skip_scale * m.branch_scale * m.G_Rz / m.G_zz
    assert abs(m.parallel - m.skip_scale**2 - growth) < 1e-3
    assert 0 < m.G_RR < 1 and abs(m.G_Rz) < 4 * m.G_Rz_error


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(N, 2)

    def forward(self, z):
        return self.heads(z, z, z)[0]


class Weak(nn.Module):
    """Its reset, and with it the constructor, scales what its last layer draws."""

    def __init__(self):
        super().__init__()
        self.first, self.last = linear(), linear()
        self.reset_parameters()

    def reset_parameters(self):
        for part in (self.first, self.last):
            part.reset_parameters()
        with torch.no_grad():
            for parameter in self.last.parameters():
                parameter.mul_(0.1)

    def forward(self, z):
        return self.last(self.first(z))


class Constructed(Weak):
    """The same in the constructor alone."""

    def reset_parameters(self):
        if not hasattr(self, "is_made"):
            self.is_made = True
            super().reset_parameters()


# Exact G_RR. Of attention to the one token itself: 1/2 by Xavier's law, 1/3 by that of Linear,
# and no biases; of two layers 1/(3N) for every bias.
PARENTS = {
    "attention": (Tokens, lambda G: G / 6),
    "scaled": (Weak, lambda G: 0.01 * ((G / 3 + 1 / (3 * N)) / 3 + 1 / (3 * N))),
}


@pytest.mark.parametrize("name", PARENTS)
def test_parents_are_initialised_after_their_children(name):
    kind, expected = PARENTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in (kind(), lambda width, rng: kind()):
            m = ft.measure_block(block, N, 200)
            assert abs(m.G_RR - expected(m.G_zz)) < 4 * m.G_RR_error < 0.3 * m.G_RR


def test_initialisation_that_a_reset_replaces_is_named():
    words = (
        r"not as it was constructed: root mean square of 'last.weight' \(0.01\d*, then 0.11\d*\), "
        r"'last.bias' .*; give lambda width, rng: MyBlock"
    )
    with pytest.warns(UserWarning, match=words):
        replaced = ft.measure_block(Constructed(), N, 100)
    made = ft.measure_block(lambda width, rng: Constructed(), N, 100)
    assert abs(made.G_RR - PARENTS["scaled"][1](made.G_zz)) < 4 * made.G_RR_error
    assert replaced.G_RR > 50 * made.G_RR
    shifted = linear()
    nn.init.constant_(shifted.bias, -1.0)
    with pytest.warns(UserWarning, match="root mean square of 'bias'"):
        ft.measure_block(shifted, N, 20)


class RandomFeatures(nn.Module):
    def __init__(self, buffer):
        super().__init__()
        self.inner, B = linear(), torch.randn(N, N, dtype=torch.float64)
        if buffer:
            self.register_buffer("B", B)
        else:
            self.B = B

    def forward(self, z):
        return self.inner(torch.cos(z @ self.B))


def seeded(module):
    torch.manual_seed(0)
    module.reset_parameters()


ONE_LINEAR = nn.Linear(N, N)
FIXED = {
    "buffer": (RandomFeatures(True), {}, "has 'B' the same in every sample"),
    "attribute": (RandomFeatures(False), {}, "has 'B' the same"),
    "nothing": (linear(), {"reset": lambda module: None}, "has 'weight', 'bias' the same"),
    "half": (linear(), {"reset": lambda m: nn.init.normal_(m.weight)}, "has 'bias' the same"),
    "seeded": (linear(), {"reset": seeded}, "has 'weight', 'bias' the same"),
    "one module": (lambda width, rng: ONE_LINEAR, {}, "has 'weight', 'bias' the same"),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_is_not_drawn_anew_is_named(name):
    block, options, words = FIXED[name]
    with pytest.warns(UserWarning, match=f"block {words}.*, and the errors are too small"):
        ft.measure_block(block, N, 20, **options)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, "RReLU"])
def test_roundings_and_random_slopes_have_no_susceptibilities(kind):
    class Rounded(nn.Linear):
        def forward(self, z):
            return super().forward(z.to(kind).double())

    rrelu = nn.Sequential(linear(), nn.RReLU())
    block = rrelu if kind == "RReLU" else Rounded(N, N)
    with pytest.warns(UserWarning, match="its parallel and perpendicular susceptibilities cannot"):
        m = ft.measure_block(block, N, 100)
    assert np.isnan(m.parallel) and np.isnan(m.perpendicular) and m.G_RR > 0
    if kind == "RReLU":
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert ft.measure_block(rrelu.eval(), N, 20).perpendicular > 0


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.ones(N)), linear()

    def forward(self, z):
        return self.scale * self.inner(z)


class TestBadInput:
    @pytest.mark.parametrize(
        ("block", "options", "error", "words"),
        [
            (nn.Linear, {}, TypeError, "block must be a module, got the class Linear"),
            (Own(), {}, ValueError, "'scale', which no reset_parameters.. initialises: give reset"),
            (nn.Sequential(Own()), {}, ValueError, "parameter '0.scale'"),
            (linear(), {"reset": lambda m: linear()}, ValueError, "in place, it returned another"),
            (linear(), {"reset": 3}, TypeError, "reset must be a function of the module, got 3"),
            (linear(), {"reset": lambda: 0}, TypeError, "reset must be callable as reset.module"),
            (nn.Linear(N, 3), {}, ValueError, "of the shape of its input .1, 24., got shape .1, 3"),
            (nn.Linear(3, 3), {}, ValueError, "block failed on a signal of shape .1, 24.: Runtime"),
            (nn.LSTM(N, N), {}, ValueError, "the module returned a tuple, not a tensor"),
        ],
        ids=lambda value: "",
    )
    def test_refused(self, block, options, error, words):
        with pytest.raises(error, match=words):
            ft.measure_block(block, N, 20, **options)
