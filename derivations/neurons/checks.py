"""The derived recursion against the code, exact linear networks and the diagrams of the loops."""

from __future__ import annotations

from functools import cache
from math import factorial

import numpy as np

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.neurons.finite_width import Neurons
from fieldtheory.numerics.neurons.interacting_neurons import first_order, second_order
from neurons.cumulants import Cumulant
from neurons.recursion import Word, kernels, recursion

# h_2 of the neurons of a layer.
SECOND = Word(0, ("h_2",))


def observables(
    network: ft.ResidualNetwork, K: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """D of all layers on Gauss-Hermite nodes, the weights, and the first h_n there."""
    z, weights = np.polynomial.hermite_e.hermegauss(2 * count)
    weights /= weights.sum()
    h = np.ones((count, len(z)))
    h[1] = z
    for n in range(1, count - 1):
        h[n + 1] = (z * h[n] - np.sqrt(n) * h[n - 1]) / np.sqrt(n + 1)
    layers = layer_coefficients(network).weights[1 : len(K) + 1]
    square = Neurons.of(network, layers, K, None).square(np.sqrt(K)[:, None] * z)
    return layers[:, None] * (square - (square @ weights)[:, None]), weights, h


def on_modes(network: ft.ResidualNetwork, K: np.ndarray, count: int) -> np.ndarray:
    """δ_1, q_1, δ_2, q_2, t_2, 2 g_2(h_2, h_2) of all layers, from Hermite coefficients."""
    D, weights, h = observables(network, K, count)
    orders = np.arange(count)

    def moved(l: int, j: int) -> np.ndarray:
        """P_j from layer l + 1 to layer l: √(n!/(n−2j)!) c^{n−2j}/(j! (2K')^j)."""
        c = network.skip_scales[l] * np.sqrt(K[l] / K[l + 1])
        matrix = np.zeros((len(orders), len(orders)))
        for column, n in enumerate(map(int, orders)):
            if n >= 2 * j:
                lowered = np.sqrt(float(factorial(n) // factorial(n - 2 * j)))
                row = list(orders).index(n - 2 * j)
                matrix[row, column] = (
                    lowered * c ** (n - 2 * j) / factorial(j) / (2 * K[l + 1]) ** j
                )
        return matrix

    steps = [[moved(l, j) for j in range(5)] for l in range(network.depth)]
    one = np.eye(len(orders))[0]

    @cache
    def vector(l: int, word: Word) -> np.ndarray:
        if word.power:
            inner = vector(l, Word(0, word.factor)) @ h
            return h @ (weights * D[l] ** word.power * inner)
        if word.factor is None:
            return one
        if word == SECOND:
            return np.eye(len(orders))[list(orders).index(2)]
        _, j, inner = word.factor
        return steps[l][j] @ vector(l + 1, inner)

    value = recursion(lambda l, word: vector(l, word)[0], float)
    pairing = [2 * value(l, Cumulant, (2,), (SECOND, SECOND)) for l in range(network.depth + 1)]
    return np.column_stack([kernels(value, network.depth), pairing])


def of_the_code(network: ft.ResidualNetwork, K: np.ndarray) -> np.ndarray:
    """The same by `fieldtheory.numerics.neurons.interacting_neurons`."""
    neurons = Neurons.of(network, layer_coefficients(network).weights[1 : len(K) + 1], K, None)
    fine, _ = neurons.resolutions(3)
    layers = list(neurons.layers(fine, 3))
    one, two = first_order(layers), second_order(layers)
    columns = one.shift, one.variance, two.shift, two.variance, two.third_cumulant, two.pairing
    return np.array(columns).T


def difference_from_the_code(network: ft.ResidualNetwork, K0: float, count: int = 128) -> float:
    """The largest difference of a coefficient of any layer, relative to the largest of its kind."""
    K = ft.solve(network, K0).kernels[:-1]
    derived, coded = on_modes(network, K, count), of_the_code(network, K)
    return float(np.max(np.abs(derived - coded) / np.abs(coded).max(axis=0)))


def closure_of_one_mode(network: ft.ResidualNetwork, K0: float, count: int = 24) -> np.ndarray:
    """V = 4 K² r_2 where of r·D the term r_2 D_2 alone is kept."""
    K = ft.solve(network, K0).kernels[:-1]
    r2, V = 0.0, [0.0]
    observed, weights, h = observables(network, K, count)
    for l, D in enumerate(observed[:-1]):
        D2, beta = D @ (weights * h[2]), 1 / (np.sqrt(2) * K[l + 1])
        square = network.skip_scales[l] ** 2 * K[l] / K[l + 1]
        s2, q = D2 + 2 * D2 * r2, D**2 @ weights + 2 * D2 * D2 * r2
        r2 = square * (square * r2 + beta * s2) + beta**2 * q / 2
        V.append(4 * K[l + 1] ** 2 * r2)
    return np.array(V)
