"""Torch modules: their law against theory and simulation, their parameters, refusals."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.networks.activation import ACTIVATIONS, h

torch = pytest.importorskip("torch", reason="torch is not installed")
from fieldtheory.training import measure_response, torch_module  # noqa: E402
from fieldtheory.training.modules import torch_function  # noqa: E402

NET = ft.ResidualNetwork(
    depth=3,
    branch_scale=[0.9, 0.5, 0.7],
    skip_scale=[1.0, 0.8, 0.9],
    weight_variance=1.3,
    bias_variance=0.1,
    readin_weight_variance=0.8,
    readin_bias_variance=0.05,
    readout_weight_variance=1.1,
    readout_bias_variance=0.2,
    width=64,
    input_dim=3,
)
X = np.array([[1.0, 0.5, -0.4], [-0.3, 1.2, 0.8]])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_and_its_slope(name):
    activation = ACTIVATIONS[name]
    points = np.concatenate([np.linspace(-6, 6, 998), [-30.0, 30.0]])
    x = torch.tensor(points, requires_grad=True)
    value = torch_function(activation)(x)
    slope = torch.autograd.grad((value + 0 * x).sum(), x)[0]
    expected = function_of(activation.expression, h)
    assert value.dtype == torch.float64
    np.testing.assert_allclose(value.detach(), expected.value(points), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(slope, expected.slope(points), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["elu", "softplus", "mish", "log_cosh", "gelu", "swish"])
def test_large_signals_leave_no_nan(name):
    x = torch.tensor([-2000.0, 2000.0], requires_grad=True)
    value = torch_function(ACTIVATIONS[name])(x)
    value.sum().backward()
    assert torch.isfinite(value).all() and torch.isfinite(x.grad).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erf", "relu", "gelu", "hard_tanh", "sin"])
def test_kernels_are_those_of_the_prior(name):
    net = NET.replace(activation=name)
    K0, first, second = ft.input_kernel(X, net), *np.triu_indices(2)
    solved = ft.solve(net, K0)
    simulated = ft.simulate(net, X=X, samples=1200, seed=1, method="weights")
    module = torch_module(net, copies=800, seed=7)
    with torch.no_grad():
        found = module.residual_kernels(X).numpy()
        variances = module.kernels(X).numpy()
        outputs = module(X)[..., 0].numpy()
    np.testing.assert_allclose(found[:, 0], np.broadcast_to(K0, found[:, 0].shape))
    error = found.std(axis=0, ddof=1)[1:] / len(found) ** 0.5
    theory = solved.residual_kernels + solved.mean_shift
    # What order 1/N leaves is far below the statistical error here.
    assert (abs(found.mean(axis=0) - theory)[1:] / error).max() < 4
    both = np.hypot(error, simulated.mean_error[1:])
    assert (abs(found.mean(axis=0) - simulated.mean)[1:] / both).max() < 4
    covariance = np.cov(found[:, -1, first, second], rowvar=False)
    np.testing.assert_allclose(np.diag(covariance), np.diag(solved.G11[-1, -1]), rtol=0.3)
    kernel_error = variances.std(axis=0, ddof=1) / len(found) ** 0.5
    both = np.hypot(kernel_error, simulated.kernel_mean_error)
    assert (abs(variances.mean(axis=0) - simulated.kernel_mean) / both).max() < 4
    squares = outputs[:, :, None] * outputs[:, None, :]
    output_error = squares.std(axis=0) / len(found) ** 0.5
    assert (abs(squares.mean(axis=0) - theory[-1]) / output_error).max() < 4


def test_a_module_is_the_network_of_its_weights():
    module = torch_module(NET, outputs=2, seed=3)
    p = {name: value.detach().numpy() for name, value in module.named_parameters()}
    scales = zip(NET.skip_scales, NET.branch_scales, strict=True)
    signal = X @ p["readin.weight"].T + p["readin.bias"]
    from scipy.special import erf

    for l, (gamma, rho) in enumerate(scales):
        step = erf(signal) @ p[f"layers.{l}.weight"].T + p[f"layers.{l}.bias"]
        signal = gamma * signal + rho * step
    expected = erf(signal) @ p["readout.weight"].T + p["readout.bias"]
    np.testing.assert_allclose(module(X).detach(), expected, rtol=1e-12)
    for part, of in ((module.readin, (3, 64)), (module.layers[1], (64, 64))):
        linear = torch.nn.Linear(*of, dtype=torch.float64)
        linear.load_state_dict(part.state_dict())
        x = torch.ones(2, of[0], dtype=torch.float64)
        torch.testing.assert_close(linear(x), part(x))


def test_both_parametrisations_are_one_network():
    standard, unit = (
        torch_module(NET, copies=2, seed=5, parametrization=p) for p in ("standard", "ntk")
    )
    torch.testing.assert_close(standard(X), unit(X))
    assert {variance for _, variance in unit.priors()} == {1.0}
    for parameter, variance in standard.priors():
        assert parameter.numel() < 500 or abs(parameter.var().item() / variance - 1) < 0.2
    torch.testing.assert_close(torch_module(NET, seed=5)(X), torch_module(NET, seed=5)(X))
    assert torch_module(NET, seed=5, dtype="float32")(X).dtype == torch.float32


def test_copies_are_networks_of_their_own():
    many = torch_module(NET, copies=3, batch_norm=True, seed=2)
    one = torch_module(NET, batch_norm=True)
    for i in range(3):
        one.load_state_dict(
            {
                name: value.view(3, -1)[i] if "norms" in name and value.ndim else
                value[i] if value.ndim else value
                for name, value in many.state_dict().items()
            }
        )  # fmt: skip
        torch.testing.assert_close(one(X), many(X)[i])


def test_diffusion_network_of_its_definition():
    net = ft.DiffusionNetwork(depth=4, width=6, horizon=0.5, input_activation="tanh")
    module = torch_module(net, inputs=3, outputs=2, seed=1)
    p = {name: value.detach().numpy() for name, value in module.named_parameters()}
    x = X @ p["readin.weight"].T
    for l in range(4):
        x = x + np.tanh(np.tanh(x) @ p[f"layers.{l}.weight"].T + p[f"layers.{l}.bias"])
    np.testing.assert_allclose(module(X).detach(), x @ p["readout.weight"].T, rtol=1e-12)
    variances = [variance for _, variance in module.priors()]
    np.testing.assert_allclose(variances, [1.0, *[0.125 / 6, 0.125] * 4, 1.0])


def test_gradients_by_standard_normals_are_those_by_the_weights_scaled():
    """PF eq. (15): ∇_ε = σ_w √(Δt/D) ∇_ΔW and σ_b √Δt ∇_Δb."""
    net = ft.DiffusionNetwork(depth=5, width=8, weight_variance=1.7, bias_variance=0.4)
    gradients = []
    for parametrization in ("ntk", "standard"):
        module = torch_module(net, inputs=3, parametrization=parametrization, seed=1)
        module(X).square().sum().backward()
        gradients.append([(part.weight.grad, part.bias.grad) for part in module.layers])
    for by_normals, by_weights in zip(*gradients, strict=True):
        torch.testing.assert_close(
            by_normals[0], (1.7 * net.step / 8) ** 0.5 * by_weights[0], rtol=1e-12, atol=0
        )
        torch.testing.assert_close(
            by_normals[1], (0.4 * net.step) ** 0.5 * by_weights[1], rtol=1e-12, atol=0
        )


LIMIT = ft.DiffusionNetwork(depth=None)
REFUSED = {
    "network must be one ResidualNetwork": (TypeError, {"network": 3}),
    "network must be one ResidualNetwork, BlockNetwork": (
        TypeError,
        {"network": NET.replace(branch_scale=[[0.1], [0.2]])},
    ),
    "a DiffusionNetwork must have a finite depth": (ValueError, {"network": LIMIT, "inputs": 2}),
    "copies must be an integer >= 1": (ValueError, {"copies": 0}),
    "outputs must be an integer >= 1": (ValueError, {"outputs": 0}),
    "seed must be an integer >= 0": (ValueError, {"seed": -1}),
    "dtype must be one of float64, float32": (ValueError, {"dtype": "float16"}),
    "parametrization must be": (ValueError, {"parametrization": "mup"}),
    "unknown argument 'n'": (TypeError, {"n": 2}),
    "activation must be made of functions that torch has, got loggamma": (
        ValueError,
        {"network": NET.replace(activation=sp.loggamma(h**2 + 1))},
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message):
    kind, arguments = REFUSED[message]
    with pytest.raises(kind, match=message):
        torch_module(**{"network": NET} | arguments)


def test_refusals_of_a_module():
    with pytest.raises(ValueError, match=r"X must have shape \(P, 3\), got \(2, 2\)"):
        torch_module(NET)(X[:, :2])
    with pytest.raises(ValueError, match="module must have a prior"):
        list(torch_module(NET, batch_norm=True).priors())
    with pytest.raises(ValueError, match="no residual kernels"):
        torch_module(ft.DiffusionNetwork(depth=2), inputs=3).residual_kernels(X)


def test_responses_are_those_of_the_theory_and_differences():
    """Means over many networks; of one network by differences of its kernels, input by input."""
    net = ft.ResidualNetwork(
        depth=2, width=100, input_dim=4, branch_scale=0.6, readin_bias_variance=0.0
    )
    X, v = np.array([[1.0, 0.2, 0.0, 0.0], [-0.3, 0.9, 0.4, 0.0]]), np.eye(4)[3]
    module = torch_module(net, copies=300, seed=0)
    found = measure_response(module, X, v).numpy()
    wide = ft.solve(net, ft.input_kernel(X, net))
    expected = np.append(wide.residual_response[:, 0, 1], wide.output_response[0, 1])
    each = found[:, :, 0, 1]
    error = each.std(axis=0) / 300**0.5
    assert (abs(each.mean(axis=0) - expected) <= 4 * error + 0.03 * expected).all()
    assert (error[1:] < 0.02 * expected[1:]).all()
    size, step = np.zeros(found.shape[:2]), 1e-3
    for sign in np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]):
        moved = module.residual_kernels(X + step * sign[:, None] * v).detach().numpy()
        size += np.prod(sign) * moved[:, :, 0, 1]
    np.testing.assert_allclose(size / size[:, :1], each, rtol=1e-5)
