"""Correlators of smooth functions of two signals each by the trapezoidal rule, at any width.

Two signals h = A z and two others h' = B w are made of independent z and w of variance one with the
canonical correlations ⟨z wᵀ⟩ = diag(s_1, s_2), so that

    ⟨f(h) ; g(h')⟩ = ⟨f(Az) (M_1 M_2 g)(z)⟩_connected,   (M g)(z) = ⟨g(s z + √(1 − s²) n)⟩,

a sum over a plane of nodes of either pair and two products of matrices instead of four dimensions.
The rule converges exponentially for functions that are analytic in a strip, as in
`averages.integrals.tensor`; directions that the signals have in common, s = 1, and signals that
are multiples of each other cost less, not more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.polynomial_pieces.signs import rotations
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.numerics.observables.pair_modes import correlations, triangle

# Largest steps: for the Gaussian, and in units of the signals; the refinements tried.
_GAUSSIAN_STEP, _SIGNAL_STEP = 0.8, 0.5
_REFINEMENTS = (1.2, 0.95, 0.75, 0.6, 0.45, 0.3, 0.2)
# Steps of the trapezoidal rule in a deviation of the Gaussian that it has to resolve.
_STEPS = 1.6
_REACH = 8.6
# Allowed difference of two refinements relative to the deviations of the two functions, and that
# relative to their sizes which may be rounding.
_ALLOWED, _ROUNDING = 1e-10, 5e-13
# Sizes of correlators relative to the deviations that are rounding, and that are small.
NOTHING, _SMALL = 1e-14, 1e-2
# Errors that one may want to take.
_ACCEPTABLE = 0.05
# 1 − s that is rounding.
_EQUAL = 1e-13
# Nodes of a plane, and those that are held at once.
_MOST_NODES, _TOGETHER = 1 << 26, 1 << 17

Observable = Callable[[np.ndarray, np.ndarray], np.ndarray]


class _Axis(NamedTuple):
    """One canonical direction.

    Parameters
    ----------
    z, weights : ndarray, shape (n,)
    w : ndarray, shape (m,) or (n q,)
        Nodes of the other pair.
    transfer : ndarray, shape (n, m) or (q,)
        M as a matrix, or as the weights of the q nodes that belong to each z.
    """

    z: np.ndarray
    weights: np.ndarray
    w: np.ndarray
    transfer: np.ndarray

    @property
    def together(self) -> int:
        """How many w belong to each z alone, 0 for all to all."""
        return len(self.transfer) if self.transfer.ndim == 1 else 0

    def of_first(self, values: np.ndarray) -> np.ndarray:
        """M along the first axis."""
        if self.together:
            values = values.reshape(-1, self.together, values.shape[1])
        return self.transfer @ values

    def of_last(self, values: np.ndarray) -> np.ndarray:
        """M along the last axis."""
        if self.together:
            return values.reshape(len(values), -1, self.together) @ self.transfer
        return values @ self.transfer.T


def own_scale(value: float, scale: float, odd: bool) -> float:
    """What the error of a correlator is relative to: the deviations, or its size if φ is odd.

    Correlators of odd φ that are small are small because correlations are, or zero but for
    rounding.
    """
    small = NOTHING * scale < abs(value) < _SMALL * scale
    return abs(value) if odd and small else scale


def _lowest_order(A: np.ndarray, B: np.ndarray, s: np.ndarray) -> float:
    """What the least orders of odd φ have of the deviations: one of either direction."""
    alone = not (A[:, 1].any() and B[:, 1].any())
    return float(s[0] * (s[0] if alone else s[1]))


def not_converged(variances: np.ndarray, error: float, allowed: float) -> QuadratureError:
    """What is wrong with a correlator of signals of these variances, and what to do about it."""
    taken = f"; solve(..., rtol={2 * error:.1g}) takes it" if error < _ACCEPTABLE else ""
    return QuadratureError(
        f"the fluctuations of signals of the variances {variances} did not converge: two rules "
        f"differ by {error:.1e}, allowed is {allowed:.1e}{taken}"
    )


def connected(
    f: Observable, first: np.ndarray, second: np.ndarray, across: np.ndarray, odd: bool = False
) -> float:
    """⟨f(h_a, h_b) ; f(h_c, h_d)⟩.

    Parameters
    ----------
    f : callable
        Of two arrays.
    first, second : ndarray, shape (2, 2)
        Covariances of h_a and h_b, and of h_c and h_d, positive semidefinite.
    across : ndarray, shape (2, 2)
        Those of h_a and h_b with h_c and h_d.
    odd : bool
        Whether f(x, y) is odd in x and in y, see `own_scale`.

    Raises
    ------
    QuadratureError
        If two refinements differ by more than 1e-10 of the deviations, or a larger tolerance.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> round(connected(lambda x, y: x * y, K, K, K), 9)  # K_xx K_yy + K_xy²
    7.0
    """
    A, B, s = canonical(first, second, across)
    previous, error, resort = np.nan, np.inf, None
    allowed = max(_ALLOWED, tolerance())
    for refinement in _REFINEMENTS:
        axes = [_axis(s[i], _width(A, i), _width(B, i), refinement) for i in range(2)]
        if max(_held(axis) for axis in axes) * len(axes[1].z) > _MOST_NODES:
            break
        value, deviation, size = _by_rule(f, A, B, axes)
        scale = max(deviation, _ROUNDING / allowed * size)
        # A bell between the nodes looks like zero.
        error, off = np.inf, abs(value - previous)
        if scale > np.finfo(float).tiny:
            error = off / own_scale(value, scale, odd)
            if resort is None and odd and off <= allowed * _lowest_order(A, B, s) * scale:
                resort = value
        if error <= allowed:
            return value
        previous = value
    # Waves may leave much less than correlations do, and rounding is all there is of it.
    if resort is not None:
        return resort
    raise not_converged(np.concatenate([np.diag(first), np.diag(second)]), error, allowed)


def _held(axis: _Axis) -> int:
    return len(axis.z) if axis.together else max(axis.transfer.shape)


def nodes(first: np.ndarray, second: np.ndarray, across: np.ndarray) -> float:
    """About how many nodes `connected` takes."""
    A, B, s = canonical(first, second, across)
    axes = [_sizes(s[i], _width(A, i), _width(B, i), _REFINEMENTS[1]) for i in range(2)]
    of_f = axes[0][0] * axes[1][0]
    return 2.0 * (of_f + axes[0][1] * axes[1][1])


def canonical(
    first: np.ndarray, second: np.ndarray, across: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and the canonical correlations."""
    R, S = (triangle(np.diag(K), K[0, 1]) for K in (first, second))
    u, v, large, small = rotations(correlations(R, across, S))
    A, B = R @ _rotation(u), S @ _rotation(v)
    B[:, 1] *= -1.0 if small < 0 else 1.0
    s = np.clip([large, abs(small)], 0.0, 1.0)
    return A, B, np.where(1 - s <= _EQUAL, 1.0, s)


def _rotation(angle: np.ndarray) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def _width(A: np.ndarray, i: int) -> float:
    return float(np.abs(A[:, i]).max())


def _step(width: float, refinement: float) -> float:
    return refinement / float(np.hypot(1 / _GAUSSIAN_STEP, width / _SIGNAL_STEP))


def _grid(step: float) -> np.ndarray:
    """Off the symmetric positions, where the two halves are mirror images."""
    number = int(_REACH / step) + 1
    return step * (np.arange(-number, number) + 0.25)


def _sizes(
    s: float, own: float, other: float, refinement: float
) -> tuple[float, float, float, int]:
    """The numbers of nodes z and w, the step of w, and how many w belong to each z, 0 for all."""
    noise = float(np.sqrt((1 - s) * (1 + s)))
    # What the noise leaves to see of the other pair.
    seen = s * min(other, _SIGNAL_STEP * _STEPS / noise) if noise else other
    z = 2 * _REACH / _step(max(own, seen), refinement)
    if s == 1:
        return z, z, 0.0, 1
    step = min(_step(other, refinement), refinement * noise / _STEPS)
    # The coefficients of the noise fall off as exp(−√(2n) a/σ) in a strip a.
    few = 4 + int(np.ceil((4.0 * noise * other / (_SIGNAL_STEP * refinement)) ** 2))
    if z * few < 2 * _REACH / step:
        return z, z * few, 0.0, few
    return z, 2 * _REACH / step, step, 0


def _axis(s: float, own: float, other: float, refinement: float) -> _Axis:
    count, _, step, few = _sizes(s, own, other, refinement)
    z = _grid(2 * _REACH / count)
    weights = (z[1] - z[0]) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    noise = np.sqrt((1 - s) * (1 + s))
    if few:
        n, of_noise = np.polynomial.hermite_e.hermegauss(few)
        w = s * z[:, None] + noise * n
        return _Axis(z, weights, w.ravel(), of_noise / of_noise.sum())
    w = _grid(step)
    distance = (w - s * z[:, None]) / noise
    transfer = np.exp(-(distance**2) / 2) * (step / (np.sqrt(2 * np.pi) * noise))
    return _Axis(z, weights, w, transfer)


def _by_rule(
    f: Observable, A: np.ndarray, B: np.ndarray, axes: list[_Axis]
) -> tuple[float, float, float]:
    """The correlator, the product of the deviations, and that of the sizes of f and M f."""
    one, two = axes
    # Rows of w in blocks, whose z follow at once if they have w of their own.
    grouped = one.w.reshape(-1, max(1, one.together))
    rows = []
    for part in _parts(len(grouped), len(two.w) * grouped.shape[1]):
        half = two.of_last(_values(f, B, grouped[part].ravel(), two.w))
        rows.append(one.of_first(half) if one.together else half)
    seen = np.concatenate(rows)
    if not one.together:
        seen = one.of_first(seen)
    mean = one.weights @ seen @ two.weights
    seen -= mean
    sums = np.zeros(4)
    for part in _parts(len(one.z), len(two.z)):
        values = _values(f, A, one.z[part], two.z)
        joint = seen[part] * two.weights
        along = one.weights[part]
        sums += [
            along @ (values @ two.weights),
            along @ (values**2 @ two.weights),
            along @ np.einsum("ij,ij->i", joint, values),
            along @ np.einsum("ij,ij->i", joint, seen[part]),
        ]
    own, square, value, variance = sums
    spread = np.sqrt(max(square - own**2, 0.0) * max(variance, 0.0))
    return float(value), float(spread), float(np.sqrt(square * (variance + mean**2)))


def _parts(count: int, width: int) -> list[slice]:
    rows = max(1, _TOGETHER // width)
    return [slice(start, start + rows) for start in range(0, count, rows)]


def _values(f: Observable, A: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """f(A z) at z = (x_i, y_j)."""
    signals = [A[i, 0] * x[:, None] + A[i, 1] * y for i in range(2)]
    return f(*signals)
