"""Order 1/N² of any φ without skip connections, where the kernels are a Markov chain."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from tests.oracles import chain_width

PHI = {
    "hard_swish": (lambda h: h * np.clip(h + 3, 0, 6) / 6, (-3.0, 3.0)),
    "softsign": (lambda h: h / (1 + np.abs(h)), (0.0,)),
    "elu": (lambda h: np.where(h > 0, h, np.expm1(np.minimum(h, 0))), (0.0,)),
    "leaky_relu": (lambda h: np.where(h > 0, h, 0.01 * h), (0.0,)),
    "cos": (np.cos, ()),
    "exp(-h**2)": (lambda h: np.exp(-(h**2)), ()),
    "h**2/3": (lambda h: h**2 / 3, ()),
    "sign": (np.sign, (0.0,)),
    "Heaviside(h-0.5)": (lambda h: np.heaviside(h - 0.5, 0.5), (0.5,)),
}


@pytest.mark.slow_but(7)
@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
@pytest.mark.parametrize("name", PHI)
def test_cumulants_of_deep_kernels(name):
    net = ft.ResidualNetwork(
        depth=4,
        activation=name,
        skip_scale=0.0,
        branch_scale=1.0,
        weight_variance=1.3,
        bias_variance=0.1,
        width=60,
    )
    layers, N = layer_coefficients(net), net.width
    s = ft.solve(net, 0.8, order=2)
    known = chain_width.coefficients(*PHI[name], 0.8, layers.weights[1:], layers.biases[1:])
    found = [
        N * s.mean_shift,
        N**2 * s.mean_shift_2,
        N * np.diag(s.G11),
        N**2 * s.variance_2,
        N**2 * s.third_cumulant,
    ]
    for one, its in zip(found, known, strict=True):
        np.testing.assert_allclose(one[1:], its, rtol=1e-9, atol=1e-11)
