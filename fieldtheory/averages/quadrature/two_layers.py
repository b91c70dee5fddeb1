"""Covariances of φ(x₁)φ(x₂) of one layer and φ(y₁)φ(y₂) of a later one: four Gaussian variables.

Layers are a Markov chain, y_i = A x_i + ζ_i with independent ζ. Given all Hermite coefficients of
one input in its own two independent variables,

    A_mn = ⟨φ(x)φ(y) h_m(x/√a) h_n(ζ/√s)⟩,

Mehler's series in both gives ⟨φ(x₁)φ(y₁)φ(x₂)φ(y₂)⟩ = Σ_mn A_mn A'_mn c_x^m c_ζ^n with the
correlations of the inputs in x and in ζ. Every input has one matrix for a pair of layers, every
pair of inputs one sum. Layers may be as near as they like: kinks are ends of panels of x and ζ.
What is left out is at most c^(N+1) √(rest rest), rest = ⟨(φφ)²⟩ − Σ A_mn², with the larger c.
"""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.functions import ORDER, WEIGHTS, Function
from fieldtheory.averages.quadrature.panels import (
    edges_with_widths,
    nodes_of,
    panels_of_lines,
    subdivided,
)
from fieldtheory.averages.quadrature.single import hermite_polynomials

_REACH, _NEAR = 12.5, np.array([0.0, 1.2, 2.5, 4.0, 6.0, 9.0])
# Orders of Hermite polynomials at most.
_MOST = 200


class Input:
    """The coefficients of one input with variances a and b and the covariance t of x and y.

    Of φ(x)^i φ(y)^j for every (i, j) in ``powers``.
    """

    def __init__(
        self, function: Function, a: float, b: float, t: float, powers: list, order: int
    ) -> None:
        sigma, noise, slope = np.sqrt(a), np.sqrt(max(b - t * t / a, 0.0)), t / a
        width = min(1.7, 10 / np.sqrt(order + 1))
        # Kinks of φ(y) are smooth in x on the scale of the noise.
        smooth = function.kinks + noise * np.append(-_NEAR, _NEAR)[:, None]
        edges = np.unique(np.append(function.edges(_REACH * sigma), smooth / slope))
        edges = subdivided(edges, -_REACH * sigma, _REACH * sigma, width * sigma)
        x, weight = _weighted(*nodes_of(edges[:-1] / sigma, edges[1:] / sigma))
        phi, polynomials = function(sigma * x), hermite_polynomials(x, order) * weight
        mean = slope * sigma * x
        seen, widths = edges_with_widths(function, _REACH * np.sqrt(b))
        ends = (seen - mean[:, None]) / noise
        widths = np.broadcast_to(widths / noise, ends.shape)
        line, nodes, half = panels_of_lines(ends, widths, _REACH, width)
        z, weight_z = _weighted(nodes, half)
        y = function(np.repeat(mean[line], ORDER) + noise * z)
        starts = np.searchsorted(line, np.arange(len(x))) * ORDER
        inner = {
            j: _inner(z, y**j * weight_z, starts, order if j in {p[1] for p in powers} else 0)
            for j in {k for _, j in powers for k in (j, 2 * j)}
        }
        self.matrices = {(i, j): (polynomials * phi**i) @ inner[j].T for i, j in powers}
        self.squares = {(i, j): float(weight * phi ** (2 * i) @ inner[2 * j][0]) for i, j in powers}


def _weighted(nodes: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All nodes of panels, and their weights times the density of a standard Gaussian."""
    weight = half[:, None] * WEIGHTS * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    return nodes.ravel(), weight.ravel()


def _inner(z: np.ndarray, values: np.ndarray, starts: np.ndarray, order: int) -> np.ndarray:
    """⟨φ(y)^j h_n⟩ given x, shape (order + 1, m), by recurrence: no large array is kept."""
    found, before, now = np.empty((order + 1, len(starts))), np.zeros_like(z), np.ones_like(z)
    for n in range(order + 1):
        found[n] = np.add.reduceat(now * values, starts)
        before, now = now, (z * now - np.sqrt(n) * before) / np.sqrt(n + 1)
    return found


def averaged(one: np.ndarray, other: np.ndarray, c_x: float, c_z: float) -> float:
    """Σ A_mn A'_mn c_x^m c_ζ^n."""
    n = np.arange(len(one))
    return float((one * other * np.power(c_x, n)[:, None] * np.power(c_z, n)).sum())


def left_out(first: Input, second: Input, powers: tuple, c: float) -> float:
    """A bound of what sums up to the order leave out."""
    rests = [
        max(each.squares[p] - (each.matrices[p] ** 2).sum(), 1e-15 * each.squares[p])
        for each, p in zip((first, second), powers, strict=True)
    ]
    return c ** len(first.matrices[powers[0]]) * float(np.sqrt(rests[0] * rests[1]))


def covariance(
    function: Function, K: np.ndarray, later: np.ndarray, carried: float, rtol: float = 1e-12
) -> tuple[float, float]:
    """⟨φ(x₁)φ(x₂);φ(y₁)φ(y₂)⟩ of covariances K (2, 2) of x and later of y, ⟨x yᵀ⟩ = carried K.

    With its error. Raises QuadratureError where inputs are too nearly parallel.
    """
    noise = later - carried**2 * K
    c_x, c_z = (each[0, 1] / np.sqrt(each[0, 0] * each[1, 1]) for each in (K, noise))
    largest = min(max(abs(c_x), abs(c_z), 0.1), 0.999)
    order = int(np.clip(np.log(rtol / 30) / np.log(largest), 24, _MOST))
    kinds = [(1, 1), (1, 0), (0, 1)]
    inputs = [
        Input(function, K[i, i], later[i, i], carried * K[i, i], kinds, order) for i in range(2)
    ]
    both, *apart = (averaged(*(one.matrices[p] for one in inputs), c_x, c_z) for p in kinds)
    error = sum(left_out(*inputs, (p, p), largest) for p in kinds)
    if error > rtol * np.sqrt(inputs[0].squares[1, 1] * inputs[1].squares[1, 1]):
        raise QuadratureError(
            f"a covariance of two layers and inputs with the correlation {largest:.4g} misses the "
            f"relative error {rtol:g} by {order} orders"
        )
    return both - apart[0] * apart[1], error
