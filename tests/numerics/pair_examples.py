"""Networks of several inputs that test modules share, and their dense oracle."""

from functools import partial

import numpy as np
from scipy.special import erf, ndtr

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from tests.oracles.several_inputs import Dense, kinked_nodes, smooth_nodes

# Kinks at two places, one of them inside the denominator.
OFFSET = "abs(x-1)/(1+abs(x))"
STEPPED = "Heaviside(h)*cos(h)"
STEPS, STEP = "sign(h-1)+sign(h+1)", "Heaviside(h-1)"
SELU = (1.0507009873554804934193349852946, 1.6732632423543772848170429916717)
PHI = {
    "erf": erf,
    "tanh": np.tanh,
    "gelu": lambda h: h * ndtr(h),
    "relu": lambda h: np.maximum(h, 0),
    "leaky_relu": lambda h: np.where(h > 0, h, 0.01 * h),
    "abs": np.abs,
    "hard_tanh": lambda h: np.clip(h, -1, 1),
    "relu6": lambda h: np.clip(h, 0, 6),
    "elu": lambda h: np.where(h > 0, h, np.expm1(np.minimum(h, 0))),
    "selu": lambda h: SELU[0] * np.where(h > 0, h, SELU[1] * np.expm1(np.minimum(h, 0))),
    "softsign": lambda h: h / (1 + np.abs(h)),
    "sign": np.sign,
    "heaviside": lambda h: np.heaviside(h, 0.5),
    STEPPED: lambda h: np.heaviside(h, 0.5) * np.cos(h),
    "cos": np.cos,
    "exp(-h**2)": lambda h: np.exp(-(h**2)),
    OFFSET: lambda h: np.abs(h - 1) / (1 + np.abs(h)),
    STEPS: lambda h: np.sign(h - 1) + np.sign(h + 1),
    STEP: lambda h: np.heaviside(h - 1, 0.5),
}
ELSEWHERE = {
    "hard_tanh": (-1.0, 1.0),
    "relu6": (0.0, 6.0),
    OFFSET: (0.0, 1.0),
    STEPS: (-1.0, 1.0),
    STEP: (1.0,),
}
KINKED = ("relu", "leaky_relu", "abs", "elu", "selu", "softsign", "sign", "heaviside", STEPPED)
TWO = np.array([[0.3, 0.11], [0.11, 0.2]])
OPPOSED = TWO * [[1, -1], [-1, 1]]
THREE = np.array([[0.3, 0.1, -0.05], [0.1, 0.25, 0.12], [-0.05, 0.12, 0.4]])


def network(name, gamma, depth, **others):
    given = {"branch_scale": 0.6, "weight_variance": 1.3, "bias_variance": 0.07} | others
    return ft.ResidualNetwork(depth=depth, activation=name, skip_scale=gamma, **given)


def dense(net, K0, count):
    """The oracle, of the same coefficients."""
    layers, name = layer_coefficients(net), net.activation.name
    gammas = np.broadcast_to(net.skip_scale, net.depth)
    rule = kinked_nodes if name in KINKED else smooth_nodes
    if name in ELSEWHERE:
        rule = partial(kinked_nodes, kinks=ELSEWHERE[name])
    return Dense(PHI[name], layers.weights, layers.biases, gammas, K0, rule, count)


def of_pairs(G11):
    """(L + 2, L + 2, p, p) as one matrix of all fields."""
    layers, _, p, _ = G11.shape
    return G11.transpose(0, 2, 1, 3).reshape(layers * p, layers * p)


def upper(matrices):
    return matrices[..., *np.triu_indices(matrices.shape[-1])]
