"""`from_torch`: models built from the parameters of networks give these back."""

import numpy as np
import pytest

import fieldtheory as ft

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from tests.audits.models import GPT, chain  # noqa: E402

PHI = {"gelu": nn.functional.gelu, "relu": torch.relu, "swish": nn.functional.silu}


def _linear(fan_in, fan_out, weight, bias=0.0):
    linear = nn.Linear(fan_in, fan_out)
    nn.init.normal_(linear.weight, std=(weight / fan_in) ** 0.5)
    nn.init.normal_(linear.bias, std=bias**0.5)
    return linear


def _norm(net):
    def norm(x):
        if net.normalization == "layer":
            x = x - x.mean(-1, keepdim=True)
        # ε is no attribute of a module.
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + net.epsilon)

    return norm if net.normalization else (lambda x: x)


class Block(nn.Module):
    def __init__(self, net, l):
        super().__init__()
        N, M = net.width, net.hidden_width
        sizes = {n: float(v[l]) for n, v in net.parameters.items() if np.ndim(v)}
        self.inner = _linear(N, M, sizes["inner_weight_variance"], net.inner_bias_variance)
        self.outer = _linear(M, N, sizes["outer_weight_variance"], net.outer_bias_variance)
        self.gate = _linear(N, M, sizes["gate_weight_variance"]) if net.gated else None
        self.scales, self.norm = (sizes["skip_scale"], sizes["branch_scale"]), _norm(net)
        self.phi, self.is_post = PHI[net.activation.name], net.norm_position == "post"

    def forward(self, x):
        read = x if self.is_post else self.norm(x)
        a = self.phi(self.inner(read))
        a = a * self.gate(read) if self.gate else a
        x = self.scales[0] * x + self.scales[1] * self.outer(a)
        return self.norm(x) if self.is_post else x


class Model(nn.Module):
    """The network, as `BlockNetwork` writes it."""

    def __init__(self, net):
        super().__init__()
        self.readin = _linear(net.input_dim, net.width, net.readin_weight_variance)
        self.blocks = nn.Sequential(*(Block(net, l) for l in range(net.depth)))
        self.readout = _linear(net.width, 50, net.readout_weight_variance)
        self.norm, self.is_post = _norm(net), net.norm_position == "post"

    def forward(self, x):
        x = self.readin(x)
        x = self.blocks(self.norm(x) if self.is_post else x)
        return self.readout(x if self.is_post else self.norm(x))


COMMON = {"width": 200, "input_dim": 60, "expansion": 2.0, "readout_weight_variance": 3.0}
NETWORKS = [
    {"branch_scale": (0.5, 0.4, 0.3), "epsilon": 1e-3, "inner_bias_variance": 0.1},
    {"normalization": "layer", "skip_scale": 0.8, "branch_scale": 0.6, "activation": "relu"},
    {"gated": True, "activation": "swish", "inner_weight_variance": (1.0, 2.0, 4.0)},
    {"normalization": None, "branch_scale": 0.3, "outer_bias_variance": 0.2},
    {"normalization": "layer", "norm_position": "post", "branch_scale": 0.3, "epsilon": 1e-2},
    {"norm_position": "post", "branch_scale": 1.5, "gated": True},
    {"skip_scale": 0.0, "normalization": None},
]
SAME = ("depth", "width", "input_dim", "expansion", "gated", "normalization", "norm_position")


@pytest.mark.parametrize("values", NETWORKS)
def test_the_network_is_given_back(values):
    torch.manual_seed(1)
    net = ft.BlockNetwork(depth=3, **COMMON, **values)
    found = ft.from_torch(Model(net))
    assert [getattr(found, name) for name in SAME] == [getattr(net, name) for name in SAME]
    assert found.activation.name == net.activation.name
    assert found.epsilon == pytest.approx(net.epsilon, rel=1e-3, abs=1e-5)
    # Scales are fitted to rounding, variances measured by 200 × 50 weights or more and 600 biases.
    near = {"branch_scale": 1e-5, "skip_scale": 1e-5, "inner_bias_variance": 0.25}
    near |= {"outer_bias_variance": 0.25} | {n: 0.06 for n in net.parameters if "weight" in n}
    for name, rtol in near.items():
        np.testing.assert_allclose(found.parameters[name], net.parameters[name], rtol=rtol)


@torch.no_grad()
@pytest.mark.parametrize("values", NETWORKS[:4])
def test_kernels_are_those_of_forward_passes(values):
    """Of the mean over networks at this width, in standard errors."""
    net = ft.BlockNetwork(depth=3, **COMMON, **values)
    squares = []
    for seed in range(30):
        torch.manual_seed(seed)
        model, x = Model(net), torch.randn(1, 200)
        x = x / (x - x.mean() * net.centred).square().mean() ** 0.5
        stream = [x := block(x) for block in model.blocks]
        squares.append([float((y - y.mean() * net.centred).square().mean()) for y in stream])
    kernels = ft.solve(ft.from_torch(model), 1.0).kernels[1:4]
    error = np.std(squares, axis=0, ddof=1) / 30**0.5
    # The weights of one draw have variances that differ by chance: 1 % of 60,000 numbers.
    assert np.all(np.abs(np.mean(squares, axis=0) - kernels) < 4 * error + 0.02 * kernels)


def test_what_is_meant_stands_for_what_is_measured():
    net = ft.BlockNetwork(depth=3, **COMMON, branch_scale=0.5)
    intent = {"*.inner.weight": 0.1, "*readout.weight": 0.2}
    found = ft.from_torch(Model(net), intent=intent)
    assert found.inner_weight_variance == pytest.approx(200 * 0.01)
    assert found.readout_weight_variance == pytest.approx(200 * 0.04)
    assert found.outer_weight_variance != net.outer_weight_variance


class OneMatrix(nn.Module):
    def __init__(self, variance):
        super().__init__()
        self.matrix = _linear(100, 100, variance, 0.1)

    def forward(self, x):
        return x + 0.5 * self.matrix(torch.tanh(x))


def test_blocks_of_one_matrix_are_a_residual_network():
    torch.manual_seed(0)
    model = nn.Sequential(*(OneMatrix(v) for v in (1.0, 1.0, 4.0)))
    net = ft.from_torch(model, inputs=torch.randn(3, 100))
    assert isinstance(net, ft.ResidualNetwork) and (net.depth, net.width) == (3, 100)
    products = np.multiply(net.branch_scales**2, net.weight_variance)
    np.testing.assert_allclose(products, 0.25 * np.array([1.0, 1.0, 4.0]), rtol=0.1)
    assert net.activation.name == "tanh" and net.bias_variance > 0


def test_of_transformers_it_is_that_of_the_last_branches():
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="blocks have more than the branch that is recognised"):
        net = ft.from_torch(GPT(), intent="gpt2")
    assert (net.depth, net.width, net.expansion, net.normalization) == (4, 48, 4.0, "layer")
    assert net.outer_weight_variance == pytest.approx(4 * 48 * 0.02**2 / 8)
    assert net.epsilon == 1e-5 and ft.solve(net, 1.0).kernels[-2] > 1


def _mixed():
    net = ft.BlockNetwork(depth=2, **COMMON)
    other = net.replace(activation="relu")
    return nn.Sequential(Block(net, 0), Block(other, 1))


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = _linear(20, 20, 1.0)

    def forward(self, x):
        return x + torch.sin(self.part(x)) ** 3


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        net = ft.BlockNetwork(depth=2, **COMMON)
        self.a, self.b = (nn.Sequential(Block(net, 0), Block(net, 1)) for _ in range(2))

    def forward(self, x):
        return self.a(x) + self.b(x)


REFUSED = [
    (lambda: "gpt2", TypeError, "model must be a torch.nn.Module, got 'gpt2'"),
    (lambda: nn.Linear(4, 4), ValueError, "one stack of blocks, got none: no stack of like"),
    (lambda: nn.Embedding(4, 4), ValueError, "one stack of blocks, got none: no stack of like"),
    (lambda: nn.Sequential(Odd(), Odd()), ValueError, r"got others: 0 \(Odd\), 1 \(Odd\)$"),
    (_mixed, ValueError, "must have blocks of one form, got rms, gelu.* and rms, relu"),
    (Towers, ValueError, r"got several, from a\.0, b\.0: give one of them"),
]


@pytest.mark.parametrize(("build", "error", "match"), REFUSED)
def test_what_is_not_recognised_is_said(build, error, match):
    with pytest.raises(error, match=match) as caught:
        ft.from_torch(build())
    assert "\n" not in str(caught.value)


def test_a_chain_is_a_network_without_skip():
    model = nn.Sequential(*(nn.Sequential(nn.Tanh(), nn.Linear(50, 50)) for _ in range(3)))
    net = ft.from_torch(model, inputs=torch.randn(3, 50))
    assert isinstance(net, ft.ResidualNetwork) and net.skip_scale == 0.0
    with pytest.raises(ValueError, match="one stack of blocks, got none"):
        ft.from_torch(chain(1))
