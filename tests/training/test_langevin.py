"""Langevin sampling against posteriors that are known exactly."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.oracles import small_posteriors

torch = pytest.importorskip("torch", reason="torch is not installed")
from fieldtheory.training import Langevin, torch_module, train  # noqa: E402


def means_of_chains(values, dropped):
    """Mean over time, then over the chains (axis 1) with its standard error."""
    chains = values[dropped:].mean(axis=0)
    return chains.mean(axis=0), chains.std(axis=0, ddof=1) / len(chains) ** 0.5


def test_quadratic_losses_are_sampled_exactly_at_large_steps():
    """Three data of one line through the origin, twelve thousand chains, h at 0.7 of its limit."""
    x, y = torch.tensor([[1.0], [2.0], [-0.5]]), torch.tensor([[1.0], [1.0], [0.0]])
    theta = torch.nn.Parameter(torch.zeros(40000, 1, 1, dtype=torch.float64))
    variance, noise = 2.0, 0.5
    precision = 1 / variance + (x**2).sum().item() / noise
    sampler = Langevin([(theta, variance)], 1.4 / (variance * precision), noise, seed=3)
    for _ in range(60):
        sampler.zero_grad()
        ((x * theta - y) ** 2).sum().div(2).backward()
        sampler.step()
    mean, found = theta.mean().item(), theta.var().item()
    n = theta.numel()
    assert abs(mean - (x * y).sum().item() / noise / precision) < 4 / (precision * n) ** 0.5
    assert abs(found * precision - 1) < 4 * (2 / n) ** 0.5


@pytest.mark.slow
def test_linear_residual_network():
    x, y = np.array([1.0, -0.6, 1.5]), np.array([1.2, -0.2, 1.0])
    net = ft.ResidualNetwork(
        depth=1,
        activation="linear",
        branch_scale=0.8,
        weight_variance=1.5,
        bias_variance=0.0,
        readin_weight_variance=0.7,
        readout_weight_variance=1.1,
        width=4,
        input_dim=1,
    )
    q, f = small_posteriors.linear_residual(x, y, 4, 0.8, 1.5, 0.7, 1.1, noise=1.0)
    module = torch_module(net, copies=1000, seed=1)

    def observe(module):
        return {"q": module.residual_kernels([[1.0]])[:, -1, 0, 0], "f": module(x[:, None])[..., 0]}

    sampler = Langevin(module.priors(), step_size=0.01, temperature=1.0, seed=2)
    history = train(module, x[:, None], y, sampler, steps=2000, every=20, observe=observe)
    for name, expected in {"q": q, "f": f}.items():
        mean, error = means_of_chains(history.observed[name], 20)
        assert (abs(mean - expected) / error).max() < 4, name
        assert (error < 0.02 * abs(expected).max()).all()
    # The prior mean is elsewhere.
    assert abs(q - 1.1 * 0.7 * (1 + 0.64 * 1.5)) > 0.02


@pytest.mark.slow
def test_posterior_to_order_1_over_n():
    """The shift by the labels is fifty standard errors, what order 1/N misses is within them."""
    X = np.array([[1.0, 0.5], [-0.5, 1.0], [0.3, -1.2]])
    Y, noise = np.array([1.5, -1.0, 0.5]), 0.3
    net = ft.ResidualNetwork(
        depth=2,
        branch_scale=0.7,
        weight_variance=1.2,
        bias_variance=0.1,
        width=20,
        input_dim=2,
    )
    expected = ft.posterior(net, ft.input_kernel(X, net), Y, noise)
    module = torch_module(net, copies=1000, seed=1)

    def observe(module):
        return {"C": module.residual_kernels(X), "f": module(X)[..., 0]}

    sampler = Langevin(module.priors(), step_size=0.02, temperature=noise, seed=2)
    history = train(module, X, Y, sampler, steps=1000, every=10, observe=observe)
    mean, error = means_of_chains(history.observed["C"], 25)
    assert (abs(mean - expected.residual_kernels)[1:] / error[1:]).max() < 4
    wide = ft.solve(net, expected.input_kernel).residual_kernels
    assert (abs(mean - wide)[1:] / error[1:]).max() > 40
    mean, error = means_of_chains(history.observed["f"], 25)
    assert (abs(mean - expected.mean) / error).max() < 4
