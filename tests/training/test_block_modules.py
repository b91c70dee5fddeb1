"""Torch modules of networks of blocks: their weights, their law, and their blocks measured."""

import numpy as np
import pytest
from scipy.special import erf, expit

import fieldtheory as ft
from tests.oracles import block_networks

torch = pytest.importorskip("torch", reason="torch is not installed")
from fieldtheory.training import Langevin, torch_module, train  # noqa: E402

X = np.array([[1.0, 0.5, -0.4], [-0.3, 1.2, 0.8]])
FUNCTIONS = {
    "gelu": lambda u: u * (1 + erf(u / 2**0.5)) / 2,
    "swish": lambda u: u * expit(u),
    "tanh": np.tanh,
}
COMMON = {
    "depth": 2,
    "branch_scale": 0.9,
    "skip_scale": 0.8,
    "inner_weight_variance": 1.5,
    "outer_weight_variance": 1.3,
    "epsilon": 0.1,
    "expansion": 2,
    "width": 32,
    "input_dim": 3,
}
BIASES = {
    "inner_bias_variance": 0.1,
    "outer_bias_variance": 0.05,
    "readin_bias_variance": 0.2,
    "readout_bias_variance": 0.3,
}
GATE = {"gated": True, "gate_weight_variance": 0.8}
NETWORKS = {
    "pre": {"activation": "gelu"} | BIASES,
    "gate": {"activation": "swish"} | GATE,
    "post": {"activation": "tanh", "norm_position": "post", "readout_weight_variance": 0.7}
    | BIASES,
    "layer": {"activation": "gelu", "normalization": "layer"} | GATE | BIASES,
    "layer, post": {"activation": "tanh", "normalization": "layer", "norm_position": "post"},
    "none": {"activation": "tanh", "normalization": None} | BIASES,
}


def network(name):
    return ft.BlockNetwork(**COMMON | NETWORKS[name])


def written(net):
    """The network of the oracle."""
    return block_networks.Block(
        net.depth, FUNCTIONS[net.activation.name], 0.9, 0.8, net.normalization,
        net.norm_position == "post", 0.1, net.gated, 1.5, 0.8, 1.3, net.inner_bias_variance,
        net.outer_bias_variance, net.readout_weight_variance, net.readout_bias_variance,
    )  # fmt: skip


def deviation(values, others):
    """The largest difference of the means of two samples, in standard errors."""
    parts = [x.reshape(len(x), -1) for x in (values, others)]
    parts = [x[:, x.std(axis=0) > 1e-12] for x in parts]
    error = np.sqrt(sum(x.var(axis=0) / len(x) for x in parts))
    return (abs(parts[0].mean(axis=0) - parts[1].mean(axis=0)) / error).max()


@pytest.mark.parametrize("name", NETWORKS)
def test_module_is_the_network_of_its_weights(name):
    rho, gamma = [0.9, 0.6], [1.0, 0.8]
    net = network(name).replace(branch_scale=rho, skip_scale=gamma)
    oracle = written(net)
    module = torch_module(net, outputs=2, seed=3)
    p = {key: value.detach().numpy() for key, value in module.named_parameters()}

    def affine(part, x):
        return x @ p[f"{part}.weight"].T + p.get(f"{part}.bias", 0.0)

    def passed(x):
        n = block_networks.normalized(x, oracle)
        mean = x.mean(axis=-1, keepdims=True) if net.normalization == "layer" else 0.0
        return n, n if oracle.post else x - mean

    x = affine("readin", X)
    for l in range(2):
        n, carried = passed(x)
        a = oracle.phi(affine(f"layers.{l}.maps.0", n))
        if net.gated:
            a = a * affine(f"layers.{l}.maps.1", n)
        f = rho[l] * affine(f"layers.{l}.maps.{1 + net.gated}", a)
        branch = module.layers[l](torch.tensor(x)).detach()
        np.testing.assert_allclose(branch, f, rtol=1e-12, atol=1e-14)
        x = gamma[l] * carried + f
    n, carried = passed(x)
    np.testing.assert_allclose(module(X).detach(), affine("readout", n), rtol=1e-12)
    *_, last = module.signals(X)
    np.testing.assert_allclose(last.detach(), carried, rtol=1e-12)
    biases = {key for key in p if key.endswith("bias")}
    assert (not biases) == (net.inner_bias_variance == 0)
    unit = torch_module(net, outputs=2, seed=3, parametrization="ntk")
    torch.testing.assert_close(unit(X), module(X))
    assert {variance for _, variance in unit.priors()} == {1.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_law_is_that_of_explicit_weights(name):
    net, samples = network(name), 1500
    K0 = ft.input_kernel(X, net)
    C, R, _ = block_networks.drawn(written(net), K0, 32, 64, samples, 1)
    module = torch_module(net, copies=samples, seed=7)
    with torch.no_grad():
        drawn, kernels = module.residual_kernels(X).numpy(), module.kernels(X).numpy()
        outputs = module(X)[..., 0].numpy()
    np.testing.assert_allclose(drawn[:, 0], C[:, 0])
    np.testing.assert_allclose(kernels[:, -1], drawn[:, -1])
    assert deviation(drawn, C) < 4 and deviation(kernels[:, :-1], R) < 4
    assert deviation(outputs[:, :, None] * outputs[:, None], C[:, -1]) < 4
    for values, others in ((drawn, C), (kernels[:, :-1], R)):
        squares = [(x - others.mean(axis=0)) ** 2 for x in (values, others)]
        assert deviation(*squares) < 4


def test_priors_are_the_variances_of_every_map():
    net = network("layer").replace(width=64, inner_weight_variance=[1.5, 0.5])
    module = torch_module(net)
    expected = [1 / 3, 0.2, *(1.5 / 64, 0.1, 0.8 / 64, 1.3 / 128, 0.05)]
    expected += [0.5 / 64, 0.1, 0.8 / 64, 1.3 / 128, 0.05, 1 / 64, 0.3]
    np.testing.assert_allclose([variance for _, variance in module.priors()], expected)
    for parameter, variance in module.priors():
        assert parameter.numel() < 500 or abs(parameter.var().item() / variance - 1) < 0.2


def test_training_with_langevin():
    module = torch_module(network("gate"), copies=4)
    sampler = Langevin(module.priors(), step_size=0.01, temperature=0.1)
    history = train(module, X, [1.0, -1.0], sampler, steps=80, every=20)
    assert history.loss[-1].mean() < history.loss[0].mean() / 3


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_have_the_tangent_kernel(name):
    """Σ_θ σ² ∂y_α/∂θ ∂y_β/∂θ of wide networks, about (1 + O(1/N)) Θ, for kinds of parameters."""
    net = network(name).replace(width=400)
    drawn = []
    for seed in range(40):
        module = torch_module(net, seed=seed)
        parameters, variances = zip(*module.priors(), strict=True)
        outputs = module(torch.tensor(X))[:, 0]
        gradients = [
            torch.autograd.grad(y, parameters, retain_graph=True, allow_unused=True)
            for y in outputs
        ]
        flat = [
            np.concatenate(
                [
                    0.0 * p.detach().numpy().ravel() if g is None else v**0.5 * g.numpy().ravel()
                    for p, g, v in zip(parameters, each, variances, strict=True)
                ]
            )
            for each in gradients
        ]
        drawn.append(np.array(flat) @ np.transpose(flat))
    drawn = np.array(drawn)
    error = drawn.std(axis=0, ddof=1) / len(drawn) ** 0.5
    expected = ft.solve(net, ft.input_kernel(X, net)).output_tangent_kernel
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(drawn.mean(axis=0) - expected) < 4 * error + 10 / net.width * size).all()
    assert (error < 0.04 * size).all()


def test_refusals():
    with pytest.raises(ValueError, match="batch_norm must be False for a BlockNetwork"):
        torch_module(network("pre"), batch_norm=True)
    with pytest.raises(TypeError, match="network must be one ResidualNetwork, BlockNetwork"):
        torch_module(network("pre").replace(branch_scale=[[0.1], [0.2]]))
