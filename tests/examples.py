"""Networks that several test modules share, and their derivations, each derived once."""

from functools import lru_cache

import numpy as np
from mpmath import mpf
from scipy.special import erf

import fieldtheory as ft
from tests.oracles import quadrature, recursion

PHI = {
    "erf": erf,
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "linear": lambda x: x,
}
K0_PAIR = np.array([[0.4, 0.15], [0.15, 0.6]])
K0_TRIPLE = np.array([[0.4, 0.15, 0.1], [0.15, 0.6, -0.2], [0.1, -0.2, 0.5]])


def network(depth, activation="erf", gamma=0.7, **changes):
    """Layer-dependent ρ, a readout of its own; gamma is one number or one for every layer."""
    parameters = {
        "branch_scale": [0.5 + 0.3 * (l % 3) for l in range(depth)],
        "skip_scale": gamma,
        "readout_weight_variance": 1.4,
        "readout_bias_variance": 0.1,
        "width": 200,
    }
    return ft.ResidualNetwork(depth=depth, activation=activation, **(parameters | changes))


def oracle(net):
    """The same network for the oracles."""
    return recursion.Net(
        tuple(net.branch_scales),
        tuple(net.skip_scales),
        net.weight_variance,
        net.bias_variance,
        *net.readout_variances,
    )


def precise_oracle(net):
    """The parameters of a network for the oracles, in mpmath."""
    values = (tuple(map(mpf, x)) if isinstance(x, tuple) else mpf(x) for x in oracle(net))
    return recursion.Net(*values)


def moment(activation):
    """⟨φφ⟩ by the quadrature of the oracles."""
    return recursion.moment_of(PHI[activation], quadrature.average1, quadrature.average2)


@lru_cache
def derivation(depth, inputs=1, activation=None):
    """The theory with scales ρ_l and γ_l of every layer."""
    each = {"branch_scale": "per layer", "skip_scale": "per layer"}
    return ft.derive(depth, inputs, activation, **each)


@lru_cache
def block(name, depth, inputs=1, activation=None):
    """A lambdified block of `derivation`."""
    return derivation(depth, inputs, activation).lambdify(name)
