"""Vertices of a network in numbers: moments of the signals of up to a few layers by quadrature.

The symbolic vertices are polynomials in moments ⟨Π_i ∂^p_i g(h_i)^s_i⟩. All those of one set of
layers are taken on the same nodes, of observables less their means, so that what cancels in a
cumulant cancels before it is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, permutations
from math import comb
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages.integrals import tensor
from fieldtheory.averages.integrals.vectorising import kinks_of, vectorised
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.kernels import variances
from fieldtheory.numerics.one_input.fluctuations import signal_covariance
from fieldtheory.theory.elementary_averages import K_XX, LayerAverages, X, network_averages
from fieldtheory.theory.signal_vertices import Moment, signal_vertex

# Derivatives of ⟨g⟩ up to this one are compiled, which keeps the digits of closed forms.
_CLOSED = 2


@dataclass(frozen=True, eq=False)
class VertexNumbers:
    """The derivatives of the action of a network at its saddle point, over N.

    Parameters
    ----------
    network : LayeredNetwork
    K0 : float
        Variance of the input.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> linear = ResidualNetwork(depth=1, activation="linear", weight_variance=1, bias_variance=0)
    >>> VertexNumbers(linear, 0.5)(2, 0).round(12)  # S22/N = 2 K^(k,l)²
    array([[0. , 0. , 0. ],
           [0. , 0.5, 0.5],
           [0. , 0.5, 2. ]])
    """

    network: LayeredNetwork
    K0: float

    def __call__(self, conjugates: int, kernels: int) -> np.ndarray:
        """∂^(n+m) S / ∂C̃^n ∂C^m over N, shape (L + 2,) * (n + m)."""
        key = (conjugates, kernels)
        if key not in self._known:
            self._known[key] = self._tensor(*key)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[int, int], np.ndarray]:
        return {}

    @cached_property
    def covariance(self) -> np.ndarray:
        """Cov(h^(k), h^(l)), shape (L + 1, L + 1)."""
        _, K = variances(self.network, np.asarray(float(self.K0)))
        return signal_covariance(self.network, K[:-1])

    @cached_property
    def _skip(self) -> np.ndarray:
        """A_lm, shape (L + 1, L + 2); no signal holds the kernel of the readout."""
        depth = self.network.depth
        gamma = np.broadcast_to(self.network.skip_scales, (depth,))
        A = np.zeros((depth + 1, depth + 2))
        for l in range(depth + 1):
            A[l, l] = 1.0
            if l:
                A[l, :l] = gamma[l - 1] * A[l - 1, :l]
        return A

    def _tensor(self, n: int, m: int) -> np.ndarray:
        size = self.network.depth + 2
        weights = layer_coefficients(self.network).weights
        found = np.zeros((size,) * (n + m))
        for layers in combinations_with_replacement(range(1, size), n):
            signals = tuple(sorted({l - 1 for l in layers}))
            powers = tuple(layers.count(s + 1) for s in signals)
            block = np.prod(weights[list(layers)]) * self._block(signals, powers, m)
            for order in set(permutations(layers)):
                found[order] = block
        return found

    def _block(self, signals: tuple[int, ...], powers: tuple[int, ...], m: int) -> np.ndarray:
        """The derivatives of one cumulant by m kernels, shape (L + 2,) * m."""
        vertex = signal_vertex(powers, m)
        K = self.covariance[np.ix_(signals, signals)]
        if powers == (1,) and m <= _CLOSED:
            slopes = np.array([float(_moment_slope(self._averages, m)(K[0, 0]))])
        else:
            values = self._moments(K, tuple(vertex.moments.values()))
            slopes = _compiled(powers, m)(*values)
        # ∂K_ij/∂C_l = A_il A_jl.
        A = self._skip[list(signals)]
        jacobian = np.array([A[i] * A[j] for i, j in vertex.entries])
        full = np.zeros((len(vertex.entries),) * m)
        for places, slope in zip(vertex.derivatives, slopes, strict=True):
            for order in set(permutations(places)):
                full[order] = slope
        for _ in range(m):
            full = np.tensordot(full, jacobian, axes=(0, 0))
        return full

    @cached_property
    def _averages(self) -> LayerAverages:
        return network_averages(self.network)

    def _moments(self, K: np.ndarray, moments: Sequence[Moment]) -> np.ndarray:
        highest = max(order for moment in moments for _, order in moment)
        g = _derivatives(self._averages.square, highest)
        mean = _moment_slope(self._averages, 0)
        centres = [float(mean(variance)) for variance in np.diagonal(K)]
        return joint_moments(g, _kinks(self._averages.square), centres, K, moments)


def joint_moments(
    derivatives: Sequence[Callable[..., Any]],
    kinks: Sequence[float],
    centres: Sequence[float],
    K: np.ndarray,
    moments: Sequence[Moment],
) -> np.ndarray:
    """⟨Π_i ∂^p_i (g(h_i) − c_i)^s_i⟩ for several (s_i, p_i), on the same nodes.

    Parameters
    ----------
    derivatives : sequence of callable
        g and its derivatives as far as they are functions. Beyond that the average is taken by
        parts, ⟨∂_i F⟩ = ⟨F (K⁻¹h)_i⟩.
    kinks : sequence of float
        Where g is not smooth.
    centres : sequence of float
        c_i.
    K : ndarray, shape (d, d)
    moments : sequence of tuples of d pairs (s, p)

    Returns
    -------
    ndarray, shape (len(moments),)

    Raises
    ------
    QuadratureError
        If they miss a tolerance of 1e-10 of the modulus.
    ValueError
        If derivatives are taken by parts and K is singular.

    Examples
    --------
    >>> square = [lambda x: x**2, lambda x: 2 * x]
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> joint_moments(square, (), (0, 0), K, [((1, 0), (1, 0)), ((1, 1), (1, 1))]).round(9)
    array([1.5, 2. ])
    """
    smooth = len(derivatives) - 1
    size = len(K)
    by_parts = {tuple(max(p - smooth, 0) for _, p in moment) for moment in moments}
    if by_parts == {(0,) * size}:
        precision = np.zeros_like(K)
    elif np.linalg.cond(K) < 1e12:
        precision = np.linalg.inv(K)
    else:
        raise ValueError(
            f"the signals of an activation with kinks must not determine each other, got the "
            f"covariance {K.tolist()} of signals of different layers"
        )
    used = [sorted({moment[i] for moment in moments}) for i in range(size)]

    def integrands(nodes: np.ndarray) -> np.ndarray:
        factors: list[dict[tuple[int, int], np.ndarray]] = []
        for i, h in enumerate(nodes):
            # Where powers of cosh(h) overflow, derivatives of tanh(h) are nothing.
            with np.errstate(over="ignore"):
                jet = [f(h) + np.zeros_like(h) for f in derivatives]
            jet[0] = jet[0] - centres[i]
            powers = _powers(jet, max(s for s, _ in used[i]))
            factors.append({(s, p): powers[s][min(p, smooth)] for s, p in used[i]})
        dual = precision @ nodes
        polynomials = {a: _hermite(a, dual, precision) for a in by_parts}
        values = np.empty((len(moments), nodes.shape[1]))
        for row, moment in zip(values, moments, strict=True):
            row[:] = polynomials[tuple(max(p - smooth, 0) for _, p in moment)]
            for factor, key in zip(factors, moment, strict=True):
                row *= factor[key]
        return values

    return tensor.integrals(integrands, [kinks] * size, K, "moments of signals")


def _powers(jet: Sequence[np.ndarray], highest: int) -> list[list[np.ndarray]]:
    """The derivatives of the powers of a function with given derivatives, by Leibniz' rule."""
    zero = np.zeros_like(jet[0])
    found = [[zero + 1.0, *[zero] * (len(jet) - 1)]]
    for _ in range(highest):
        last = found[-1]
        found.append(
            [
                sum((comb(p, q) * last[q] * jet[p - q] for q in range(p + 1)), start=zero)
                for p in range(len(jet))
            ]
        )
    return found


def _hermite(orders: tuple[int, ...], dual: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """(−1)^|n| ∂^n p / p of the density p of the signals, with dual = K⁻¹ h."""
    first = next((i for i, n in enumerate(orders) if n), None)
    if first is None:
        return np.ones(dual.shape[1])
    rest = tuple(n - (i == first) for i, n in enumerate(orders))
    value = dual[first] * _hermite(rest, dual, precision)
    for j, n in enumerate(rest):
        if n:
            lower = tuple(k - (i == j) for i, k in enumerate(rest))
            value = value - n * precision[first, j] * _hermite(lower, dual, precision)
    return value


def _derivatives(square: sp.Expr, highest: int) -> list[Callable[..., Any]]:
    """The observable and its derivatives up to the highest that is a function."""
    found = []
    for order in range(highest + 1):
        derivative = _derivative(square, order)
        if derivative is None:
            break
        found.append(derivative)
    return found


@lru_cache(maxsize=256)
def _derivative(square: sp.Expr, order: int) -> Callable[..., Any] | None:
    """A derivative of the observable, None if it is no function."""
    if order and _jumps(square, order - 1):
        return None
    derivative = square.diff(X, order) if order else square
    return None if derivative.has(sp.DiracDelta) else vectorised([X], derivative)


def _jumps(square: sp.Expr, order: int) -> bool:
    """Whether a derivative jumps at a kink."""
    below = _derivative(square, order)
    if below is None:
        return True
    for kink in _kinks(square):
        step = 1e-9 * max(1.0, abs(kink))
        left, right = (float(below(np.array([kink + side]))[0]) for side in (-step, step))
        if abs(right - left) > 1e-6 * (1 + abs(left)):
            return True
    return False


@lru_cache(maxsize=64)
def _kinks(square: sp.Expr) -> tuple[float, ...]:
    return tuple(kinks_of(square, X))


@lru_cache(maxsize=64)
def _moment_slope(averages: LayerAverages, order: int) -> Callable[..., Any]:
    """∂^m ⟨g⟩/∂K^m."""
    moment = averages.moment.diff(K_XX, order) if order else averages.moment
    return lambdify([K_XX], moment)


@lru_cache(maxsize=64)
def _compiled(powers: tuple[int, ...], order: int) -> Callable[..., Any]:
    vertex = signal_vertex(powers, order)
    return sp.lambdify(list(vertex.moments), list(vertex.derivatives.values()), cse=True)
