"""`posterior` against NUTS on all weights of networks of eight neurons, and both against weighting.

Eight neurons are few: what the order 1/N leaves out is 6 to 13 % of what it adds here.
"""

import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from tests.oracles import weighted_prior

jax = pytest.importorskip("jax", reason="jax is not installed (extra nuts)")
pytest.importorskip("blackjax", reason="blackjax is not installed (extra nuts)")
from tests.oracles import sampled_weights  # noqa: E402

X = np.random.default_rng(0).standard_normal((5, 3))
Y = np.array([2.0, -2.0, 3.0, 0.6])
N, DEPTH, RHO, BIAS, NOISE, DRAWS = 8, 2, 0.5, 0.1, 0.5, 10_000
PHI = {"erf": (erf, jax.scipy.special.erf), "tanh": (np.tanh, jax.numpy.tanh)}


@pytest.mark.slow
@pytest.mark.parametrize("activation, gamma", [("erf", 1.0), ("tanh", 0.6)])
def test_weights_drawn_from_their_posterior(activation, gamma):
    net = ft.ResidualNetwork(
        depth=DEPTH, activation=activation, width=N, skip_scale=gamma, branch_scale=RHO,
        weight_variance=1.0, bias_variance=BIAS, readin_bias_variance=0.0, input_dim=3,
    )  # fmt: skip
    K0 = ft.input_kernel(X, net)
    numpy_phi, jax_phi = PHI[activation]
    layers = [(gamma, RHO**2, RHO**2 * BIAS)] * DEPTH + [(gamma, 1.0, BIAS)]
    drawn = weighted_prior.weighted(numpy_phi, K0, Y, NOISE, N, layers, 200_000, 1)
    assert drawn.effective > 60_000
    setting = {"N": N, "L": DEPTH, "gamma": gamma, "rho": RHO, "w": 1.0, "b": BIAS}
    means, errors, divergences = sampled_weights.sampled(jax_phi, X, Y, NOISE, setting, DRAWS, 0)
    assert divergences == 0
    found = ft.posterior(net, K0, Y, NOISE)
    wide = {
        "residual_kernels": ft.solve(net, K0).residual_kernels,
        "mean": found.mean_nngp,
        "variance": found.variance_nngp,
    }
    assert found.expansion_ratio < 0.15
    for name, at_infinite_width in wide.items():
        layers_of = slice(1, None) if name == "residual_kernels" else slice(None)
        first = getattr(found, name)[layers_of]
        size = np.abs(first - at_infinite_width[layers_of]).max()
        z = (means[name] - drawn.means[name]) / np.hypot(errors[name], drawn.errors[name])
        assert np.abs(z).max() < 4.5, name
        # The order 1/N shows, and what is left out is a small part of it.
        apart = np.abs(means[name] - first)
        assert size > 6 * errors[name].max(), name
        assert (apart <= 4.5 * errors[name] + 0.2 * size).all(), name
