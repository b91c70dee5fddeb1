"""Averages of products f(x) g(y) of strongly correlated variables by Fourier transforms.

Given x, the other variable is Gaussian with mean s x, s = K_xy/K_xx, and variance
D = K_yy − s K_xy. A convolution with a Gaussian is a factor in Fourier space, so that

    ⟨f(x) g(y)⟩ = ∫ dk/2π  F̂(k)* ĝ(k) exp(−D k²/2),   F(u) = f(u/s) N(u; 0, s² K_xx)

and for smooth f and g the trapezoidal rule converges exponentially: the number of nodes grows with
the standard deviation, not with the variance as the order of a Mehler series does. The transforms
at the highest wave numbers of the grid tell the error; a pair that misses the tolerance is
reported, not returned.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import fft
from scipy.special import erfc

from fieldtheory.averages.exact_differences import determinant
from fieldtheory.averages.tails import fades

# Steps in units of the argument of the functions, tried one after the other.
_STEPS = (0.2, 0.1, 0.05)
# Weaker correlations lose digits to cancellation and suit the Mehler series.
WEAKEST = 0.4
# Standard deviations beyond which the Gaussian is left out.
_REACH = 9.8
# Largest relative size of the integrand there.
_END = 1e-14
# Width over which g is tapered to zero outside the reach, and that of its error function.
_TAPER, _SMEARING = 16.0, 1.0
# Largest relative size of the transforms at the end of the band, squared.
_ALIASED = 1e-17
# Rounding of a transform relative to the root mean square, and what is allowed of the value.
_ROUNDING, _NOISE = 2e-16, 2e-13
# Ratio of the largest and the smallest range of pairs that share one grid.
_CLASS = 1.25
# Step of a grid in units of the smallest standard deviation on it.
_PER_DEVIATION = 0.45
_BLOCK = 1 << 18
_LONGEST = 1 << 20


def average(
    f: Callable,
    g: Callable,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    means: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """⟨f(x) g(y)⟩, or ⟨f(x) ; g(y)⟩ if the two means are given, for arrays of one shape.

    Parameters
    ----------
    f, g : callable
        Smooth, vectorised functions of one variable.
    K_xx, K_yy, K_xy : ndarray, shape (m,)
        Variances and covariances, K_xy² <= K_xx K_yy.
    means : pair of ndarray, shape (m,), optional
        ⟨f(x)⟩ and ⟨g(y)⟩.

    Returns
    -------
    values : ndarray, shape (m,)
    converged : ndarray of bool, shape (m,)
        False where a correlation is below 0.4 or the grid does not resolve the functions.

    Examples
    --------
    >>> K = np.array([100.0])
    >>> values, converged = average(np.tanh, np.tanh, K, K, np.array([80.0]))
    >>> float(values[0].round(10)), bool(converged[0])
    (0.5834850911, True)
    """
    values, converged = np.zeros(len(K_xx)), np.zeros(len(K_xx), dtype=bool)
    strong = np.abs(K_xy) >= WEAKEST * np.sqrt(K_xx * K_yy)
    strong &= fades(f, g, K_xx, K_yy, K_xy, _REACH)
    with np.errstate(all="ignore"):
        for swapped in (False, True):
            # The narrower variable is x, so that f is not the steeper function of u.
            (index,) = np.nonzero(strong & (K_xx > 0) & (K_yy > 0) & ((K_yy < K_xx) == swapped))
            functions, kernels, known = (f, g), (K_xx, K_yy), means
            if swapped:
                functions, kernels = (g, f), (K_yy, K_xx)
                known = means[::-1] if means else None
            parts = [k[index] for k in (*kernels, K_xy, *(known or ()))]
            values[index], converged[index] = _ordered(*functions, parts)
    return values, converged


def _ordered(f: Callable, g: Callable, parts: list) -> tuple[np.ndarray, np.ndarray]:
    a, b, c = parts[:3]
    values, converged = np.zeros(len(a)), np.zeros(len(a), dtype=bool)
    slope = c / a
    reach = _REACH * (np.abs(slope) * np.sqrt(a) + np.sqrt(determinant(a, b, c) / a))
    ranges = np.ceil(np.log(reach + _TAPER) / np.log(_CLASS)).astype(int)
    steep = np.floor(np.log2(np.minimum(np.abs(slope), 1.0))).astype(int)
    for step in _STEPS:
        left = ~converged
        for key in set(zip(ranges[left], steep[left], strict=True)):
            (index,) = np.nonzero(left & (ranges == key[0]) & (steep == key[1]))
            radius = _CLASS ** key[0]
            points = 2 * radius / (step * 2.0 ** key[1])
            if not points < _LONGEST:
                continue
            count = fft.next_fast_len(int(points) + 2, real=True)
            if count > _LONGEST:
                continue
            rows = max(1, _BLOCK // count)
            for start in range(0, len(index), rows):
                some = index[start : start + rows]
                chosen = [p[some] for p in parts]
                values[some], converged[some] = _on_grid(f, g, chosen, radius, count)
    return values, converged


def on_tensor(
    f: Callable, K: np.ndarray, slopes: np.ndarray, rests: np.ndarray
) -> np.ndarray | None:
    """⟨f(x) f(y)⟩ of y = s x + w for all variances of x, slopes s and variances of w.

    A transform belongs to a variance of x and a slope, Gaussian factors to the variances of w.

    Parameters
    ----------
    f : callable
        Smooth, vectorised.
    K : ndarray, shape (n,)
        Variances of x, > 0.
    slopes : ndarray, shape (m,)
        s > 0.
    rests : ndarray, shape (k,)
        Variances of w, >= 0.

    Returns
    -------
    ndarray, shape (n, m, k), or None
        None where the grids do not resolve f or rounding is above 2e-13 of a value.

    Examples
    --------
    >>> values = on_tensor(np.tanh, np.array([100.0]), np.array([0.8]), np.array([36.0]))
    >>> float(values[0, 0, 0].round(10))
    0.5834850911
    """
    x, s = (k.ravel() for k in np.broadcast_arrays(K[:, None], slopes))
    rests = np.asarray(rests, dtype=float)
    reach = _REACH * (s * np.sqrt(x) + np.sqrt(rests.max())) + _TAPER
    classes = np.ceil(np.log(reach) / np.log(_CLASS))
    step = min(1.0, slopes.min(), 4 * float((s * np.sqrt(x)).min()))
    values = np.empty((len(x), len(rests)))
    with np.errstate(all="ignore"):
        if not fades(f, f, x, s * s * x + rests.max(), s * x, _REACH).all():
            return None
        for number in np.unique(classes):
            same = classes == number
            found = _of_rests(f, x[same], s[same], rests, _CLASS**number, step)
            if found is None:
                return None
            values[same] = found
    return values.reshape(len(K), len(slopes), -1)


def _of_rests(
    f: Callable, K: np.ndarray, slopes: np.ndarray, rests: np.ndarray, radius: float, least: float
) -> np.ndarray | None:
    """⟨f(x) f(s x + w)⟩ of pairs (K, s), shape (m,), on one grid for all variances of w (k,).

    Shape (m, k); None if they are not resolved.
    """
    dev = (slopes * np.sqrt(K))[:, None]
    for step in _STEPS:
        points = 2 * radius / (step * least)
        if not points * len(K) < _LONGEST:
            return None
        count = fft.next_fast_len(int(points) + 2, real=True)
        step = 2 * radius / count
        u = step * (np.arange(count) - count // 2)
        z = u / dev
        tapered = f(u) * _taper(u, radius)
        weighted = _weighted(f(u / slopes[:, None]), z, step / dev[:, 0])
        F, G = fft.rfft(weighted), fft.rfft(tapered)
        if _resolved(F, G).all():
            k = 2 * np.pi * fft.rfftfreq(count, step)
            products = (F.conj() * G).real * _multiplicities(count) / count
            values = products @ np.exp(-0.5 * np.outer(k * k, rests))
            noise = _noise(weighted, tapered)[:, None]
            good = (noise <= _NOISE * np.abs(values)).all() and _inside(weighted, z).all()
            return values if good else None
    return None


def _on_grid(
    f: Callable, g: Callable, parts: list, radius: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    a, b, c, *means = parts
    slope = c / a
    step = 2 * radius / count
    u = step * (np.arange(count) - count // 2)
    outer = g(u)
    if means:
        # Any constant may be left out of g, since f − ⟨f⟩ has no mean.
        outer = outer - means[1].mean()
    tapered = outer * _taper(u, radius)
    G = fft.rfft(tapered)
    z = u / (slope * np.sqrt(a))[:, None]
    # One row where all pairs have the same slope, as the signals of two layers do.
    inner = f(u / slope[:1] if (slope == slope[0]).all() else u / slope[:, None])
    if means:
        inner = inner - means[0][:, None]
    weighted = _weighted(inner, z, step / np.abs(slope * np.sqrt(a)))
    F = fft.rfft(weighted)
    k = 2 * np.pi * fft.rfftfreq(count, step)
    products = (F.conj() * G).real
    products *= np.exp(-0.5 * (determinant(a, b, c) / a)[:, None] * k * k)
    values = products @ _multiplicities(count) / count
    good = _resolved(F, G) & (_noise(weighted, tapered) <= _NOISE * np.abs(values))
    return values, good & _inside(weighted, z)


def _taper(u: np.ndarray, radius: float) -> np.ndarray:
    """One, and zero towards the ends of the grid, where a period would have a jump."""
    return erfc((np.abs(u) - radius + _TAPER / 2) / _SMEARING) / 2


def _weighted(values: np.ndarray, z: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Values times the Gaussian at z, as far as it counts, and the step of z in each row."""
    bell = np.exp(-z * z / 2) * (steps / np.sqrt(2 * np.pi))[:, None]
    return np.where(np.abs(z) <= _REACH, values * bell, 0.0)


def _inside(weighted: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Whether the values where the Gaussian is cut off are negligible."""
    ends = np.where(np.abs(z) > _REACH - 0.5, np.abs(weighted), 0.0)
    return ends.max(axis=-1) <= _END * np.abs(weighted).max(axis=-1)


def _multiplicities(count: int) -> np.ndarray:
    """Of wave numbers k >= 0; the mean and, for even counts, the last have no partner at −k."""
    twice = np.full(count // 2 + 1, 2.0)
    twice[0] = 1.0
    if count % 2 == 0:
        twice[-1] = 1.0
    return twice


def _noise(weighted: np.ndarray, tapered: np.ndarray) -> np.ndarray:
    """Rounding of the transforms, which is spread evenly over all nodes."""
    return _ROUNDING * np.sqrt((weighted**2).sum(axis=-1) * (tapered**2).mean())


def _resolved(F: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Whether both transforms are negligible at the end of the band."""
    end = -max(1, len(G) // 16)
    ends = [np.abs(T[..., end:]).max(axis=-1) / np.abs(T).max(axis=-1) for T in (F, G)]
    return np.maximum(*ends) ** 2 <= _ALIASED


def connected_steps(f: Callable, means: np.ndarray, K: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """⟨f(x) ; f(x + w)⟩ for all variances of x and all variances of an independent step w.

    On one grid the transforms belong to the variances and the Gaussian factors to the steps, so
    that all pairs are one product of matrices.

    Parameters
    ----------
    f : callable
        Smooth, vectorised.
    means : ndarray, shape (n,)
        ⟨f(x)⟩.
    K : ndarray, shape (n,)
        Variances of x, not below 0.01.
    steps : ndarray, shape (m,)
        Variances of w, >= 0.

    Returns
    -------
    ndarray, shape (n, m)
        NaN where the grid does not resolve f or rounding is above 2e-13 of the value.

    Examples
    --------
    >>> connected_steps(np.square, np.ones(1), np.ones(1), np.array([0.0, 2.0])).round(10)
    array([[2., 2.]])
    """
    radius = _REACH * (np.sqrt(K.max()) + np.sqrt(steps.max())) + _TAPER
    for step in _STEPS:
        step = min(step, _PER_DEVIATION * float(np.sqrt(K.min())))
        count = fft.next_fast_len(int(2 * radius / step) + 2, real=True)
        if count * len(K) > _LONGEST:
            break
        step = 2 * radius / count
        u = step * (np.arange(count) - count // 2)
        with np.errstate(all="ignore"):
            values = f(u)
            tapered = (values - means.mean()) * _taper(u, radius)
            z = u / np.sqrt(K)[:, None]
            weighted = _weighted(values - means[:, None], z, step / np.sqrt(K))
        F, G = fft.rfft(weighted), fft.rfft(tapered)
        if _resolved(F, G).all():
            k = 2 * np.pi * fft.rfftfreq(count, step)
            factors = _multiplicities(count)[:, None] * np.exp(-0.5 * np.outer(k * k, steps))
            values = (F.conj() * G).real @ factors / count
            noise = _noise(weighted, tapered)[:, None]
            good = (noise <= _NOISE * np.abs(values)) & _inside(weighted, z)[:, None]
            return np.where(good, values, np.nan)
    return np.full((len(K), len(steps)), np.nan)
