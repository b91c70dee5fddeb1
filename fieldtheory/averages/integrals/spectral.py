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

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import fft
from scipy.special import erfc

from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.integrands.tails import fades

# Steps in units of the argument of the functions, tried one after the other.
_STEPS = (0.2, 0.1, 0.05)
# By how much the first may be coarser, and what of the allowed size of transforms it leaves then.
_COARSER, _SAFELY = (2.0, 1.75, 1.5, 1.25), 0.1
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
# Deviations of a Gaussian beyond which it is nothing.
_FAINT = 9.8
_BLOCK = 1 << 18
_LONGEST = 1 << 20


class Digits(NamedTuple):
    """Steps and reach of a grid, its taper, and what is allowed: ends, transforms, rounding.

    The ranges of pairs that share one differ by the factor ``shared``.
    """

    steps: tuple[float, ...] = _STEPS
    reach: float = _REACH
    taper: float = _TAPER
    shared: float = _CLASS
    end: float = _END
    aliased: float = _ALIASED
    noise: float = _NOISE


EXACT = Digits()
# Of values to about 1e-5.
ROUGH = Digits((0.3, 0.15), 6.0, 8.0, 2.0, 1e-5, 1e-11, 1e-5)


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
    values, converged = averages([(f, g)], K_xx, K_yy, K_xy, means=means)
    return values[0], converged


def averages(
    products: Sequence[tuple[Callable, Callable]],
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    digits: Digits = EXACT,
    means: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """`average` of several products on common grids: values (n, m), and where all converged.

    Parameters
    ----------
    products : sequence of pairs (f, g)
    digits : Digits
        Of what the grids are asked.
    means : pair of ndarray, shape (m,), optional
        Those of f and g if there is one product.

    Examples
    --------
    >>> K = np.array([100.0])
    >>> products = [(np.tanh, np.tanh), (np.arctan, np.tanh)]
    >>> values, converged = averages(products, K, K, np.array([80.0]), ROUGH)
    >>> values[:, 0].round(4).tolist(), converged.tolist()
    ([0.5835, 0.8411], [True])
    """
    values, converged = np.zeros((len(products), len(K_xx))), np.zeros(len(K_xx), dtype=bool)
    strong = np.abs(K_xy) >= WEAKEST * np.sqrt(K_xx * K_yy)
    for f, g in products:
        strong &= fades(f, g, K_xx, K_yy, K_xy, _REACH)
    with np.errstate(all="ignore"):
        for swapped in (False, True):
            # The narrower variable is x, so that f is not the steeper function of u.
            (index,) = np.nonzero(strong & (K_xx > 0) & (K_yy > 0) & ((K_yy < K_xx) == swapped))
            if not len(index):
                continue
            turn = -1 if swapped else 1
            chosen = (K_xx, K_yy)[::turn] + (K_xy,) + (means[::turn] if means else ())
            parts = [k[index] for k in chosen]
            ordered = [(g, f) for f, g in products] if swapped else products
            values[:, index], converged[index] = _ordered(ordered, parts, digits)
    return values, converged


def _ordered(
    products: Sequence[tuple[Callable, Callable]], parts: list, digits: Digits
) -> tuple[np.ndarray, np.ndarray]:
    a, b, c = parts[:3]
    values, converged = np.zeros((len(products), len(a))), np.zeros(len(a), dtype=bool)
    slope = c / a
    reach = digits.reach * (np.abs(slope) * np.sqrt(a) + np.sqrt(determinant(a, b, c) / a))
    ranges = np.ceil(np.log(reach + digits.taper) / np.log(digits.shared)).astype(int)
    steep = np.floor(np.log(np.minimum(np.abs(slope), 1.0)) / np.log(_CLASS)).astype(int)
    for step in digits.steps:
        left = ~converged
        for key in set(zip(ranges[left], steep[left], strict=True)):
            (index,) = np.nonzero(left & (ranges == key[0]) & (steep == key[1]))
            radius = digits.shared ** key[0]
            points = 2 * radius / (step * _CLASS ** key[1])
            if not points < _LONGEST:
                continue
            count = fft.next_fast_len(int(points) + 2, real=True)
            if count > _LONGEST:
                continue
            rows = max(1, _BLOCK // count)
            for start in range(0, len(index), rows):
                some = index[start : start + rows]
                chosen = [p[some] for p in parts]
                found = _on_grid(products, chosen, radius, count, digits)
                values[:, some], converged[some] = found
    return values, converged


def coarsest(functions: Sequence[Callable], digits: Digits = EXACT) -> Digits:
    """The digits with a coarser first step, if one resolves the functions.

    Examples
    --------
    >>> [round(coarsest([f]).steps[0], 2) for f in (lambda x: 1 / (1 + np.exp(-x)), np.tanh)]
    [0.35, 0.2]
    """
    radius = digits.reach + 4 * digits.taper
    for more in _COARSER:
        step = more * digits.steps[0]
        count = int(2 * radius / step)
        u = step * (np.arange(count) - count // 2)
        with np.errstate(all="ignore"):
            transforms = [fft.rfft(f(u) * _taper(u, radius, digits.taper)) for f in functions]
        if all(_resolved(G, G, _SAFELY * digits.aliased) for G in transforms):
            return digits._replace(steps=(step, *digits.steps))
    return digits


def on_tensor(
    functions: Sequence[Callable],
    K: np.ndarray,
    slopes: np.ndarray,
    rests: np.ndarray,
    digits: Digits = EXACT,
) -> np.ndarray | None:
    """⟨f(x) f(y)⟩ of y = s x + w for all variances of x, slopes s and variances of w.

    A transform belongs to a variance of x and a slope, Gaussian factors to the variances of w.

    Parameters
    ----------
    functions : sequence of callable
        Smooth, vectorised; each f has its average.
    K : ndarray, shape (n,)
        Variances of x, > 0.
    slopes : ndarray, shape (m,)
        s > 0.
    rests : ndarray, shape (k,)
        Variances of w, >= 0.
    digits : Digits
        Of what the grids are asked.

    Returns
    -------
    ndarray, shape (functions, n, m, k), or None
        None where the grids do not resolve f or rounding is above 2e-13 of a value.

    Examples
    --------
    >>> values = on_tensor([np.tanh], np.array([100.0]), np.array([0.8]), np.array([36.0]))
    >>> float(values[0, 0, 0, 0].round(10))
    0.5834850911
    """
    x, s = (k.ravel() for k in np.broadcast_arrays(K[:, None], slopes))
    rests = np.asarray(rests, dtype=float)
    reach = digits.reach * (s * np.sqrt(x) + np.sqrt(rests.max())) + digits.taper
    classes = np.ceil(np.log(reach) / np.log(_CLASS))
    least = min(1.0, slopes.min(), 4 * float((s * np.sqrt(x)).min()))
    values = np.empty((len(functions), len(x), len(rests)))
    with np.errstate(all="ignore"):
        widest = x, s * s * x + rests.max(), s * x
        if not all(fades(f, f, *widest, _REACH).all() for f in functions):
            return None
        for number in np.unique(classes):
            same = classes == number
            found = _of_rests(functions, x[same], s[same], rests, _CLASS**number, least, digits)
            if found is None:
                return None
            values[:, same] = found
    return values.reshape(len(functions), len(K), len(slopes), -1)


def of_shared_parts(
    functions: Sequence[Callable],
    rests: np.ndarray,
    shared: np.ndarray,
    digits: Digits = EXACT,
) -> np.ndarray | None:
    """⟨f(a + v) f(a + w)⟩ for all variances of a and all common variances of v and w.

    Signals of one variance have such a part a in common, and independent rests. The average over
    the rests is one transform of f with a Gaussian factor, F, and ⟨F(a)²⟩ a sum.

    Parameters
    ----------
    functions : sequence of callable
        Smooth, vectorised; each f has its average.
    rests : ndarray, shape (n,)
        Variances of v and w, > 0.
    shared : ndarray, shape (m,)
        Variances of a, > 0.
    digits : Digits
        Of what the grid is asked.

    Returns
    -------
    ndarray, shape (functions, n, m), or None
        None where the grid does not resolve f or rounding is above 2e-13 of a value.

    Examples
    --------
    >>> values = of_shared_parts([np.tanh], np.array([20.0]), np.array([80.0]))
    >>> float(values[0, 0, 0].round(10))
    0.5834850911
    """
    own, common = (np.array([k]) for k in (rests.max() + shared.max(), shared.max()))
    radius = digits.reach * (np.sqrt(rests.max()) + np.sqrt(shared.max())) + digits.taper
    with np.errstate(all="ignore"):
        if not all(fades(f, f, own, own, common, _REACH).all() for f in functions):
            return None
        for step in digits.steps:
            step = min(step, _PER_DEVIATION * float(np.sqrt(shared.min())))
            points = 2 * radius / step
            if not points * max(len(rests), len(shared)) < _LONGEST:
                return None
            count, u = _even_grid(radius, points)
            tapered = np.stack([f(u) for f in functions]) * _taper(u, radius, digits.taper)
            transforms = fft.rfft(tapered)
            if not all(_resolved(G, G, digits.aliased) for G in transforms):
                continue
            # What is smooth after the rests needs fewer nodes.
            k = np.pi / radius * np.arange(min(len(transforms[0]), _kept_waves(radius, rests)))
            least = max(2 * len(k), 2 * radius / _PER_DEVIATION / float(np.sqrt(shared.min())))
            fewer, u = _even_grid(radius, min(least, count - 2))
            of_rests = transforms[:, None, : len(k)] * np.exp(-0.5 * np.outer(rests, k * k))
            smooth = fft.irfft(of_rests, fewer) * (fewer / count)
            dev = np.sqrt(shared)
            z = u / dev.max()
            bell = _bell(u / dev[:, None], 2 * radius / fewer / dev, digits.reach)
            values = smooth**2 @ bell.T
            noise = 2 * _ROUNDING * np.sqrt((tapered**2).mean(axis=1)[:, None, None] * values)
            good = _inside(smooth * bell[dev.argmax()], z, digits).all()
            return values if good and (noise <= digits.noise * values).all() else None
    return None


def _even_grid(radius: float, points: float) -> tuple[int, np.ndarray]:
    """An even number of nodes, more than so many, and the nodes from −radius on."""
    count = 2 * fft.next_fast_len(int(points / 2) + 1, real=True)
    return count, 2 * radius / count * np.arange(count) - radius


def _kept_waves(radius: float, rests: np.ndarray) -> int:
    """How many wave numbers of a grid averages over rests of these variances leave."""
    return 2 + int(_FAINT / np.sqrt(rests.min()) * radius / np.pi)


def _of_rests(
    functions: Sequence[Callable],
    K: np.ndarray,
    slopes: np.ndarray,
    rests: np.ndarray,
    radius: float,
    least: float,
    digits: Digits,
) -> np.ndarray | None:
    """⟨f(x) f(s x + w)⟩ of pairs (K, s), shape (m,), on one grid for all variances of w (k,).

    Shape (functions, m, k); None if they are not resolved.
    """
    dev = (slopes * np.sqrt(K))[:, None]
    for step in digits.steps:
        points = 2 * radius / (step * least)
        if not points * len(K) < _LONGEST:
            return None
        count = fft.next_fast_len(int(points) + 2, real=True)
        step = 2 * radius / count
        u = step * (np.arange(count) - count // 2)
        z, x, k = u / dev, u / slopes[:, None], 2 * np.pi * fft.rfftfreq(count, step)
        taper, bell = _taper(u, radius, digits.taper), _bell(z, step / dev[:, 0], digits.reach)
        factors = np.exp(-0.5 * np.outer(k * k, rests)) * (_multiplicities(count) / count)[:, None]
        values, good = [], True
        for f in functions:
            tapered, weighted = f(u) * taper, np.where(bell > 0, f(x) * bell, 0.0)
            F, G = fft.rfft(weighted), fft.rfft(tapered)
            if not _resolved(F, G, digits.aliased).all():
                break
            values.append((F.real * G.real + F.imag * G.imag) @ factors)
            noise = _noise(weighted, tapered)[:, None]
            good &= bool((noise <= digits.noise * np.abs(values[-1])).all())
            good &= bool(_inside(weighted, z, digits).all())
        else:
            return np.stack(values) if good else None
    return None


def _on_grid(
    products: Sequence[tuple[Callable, Callable]],
    parts: list,
    radius: float,
    count: int,
    digits: Digits,
) -> tuple[np.ndarray, np.ndarray]:
    a, b, c, *means = parts
    slope = c / a
    step = 2 * radius / count
    u = step * (np.arange(count) - count // 2)
    z = u / (slope * np.sqrt(a))[:, None]
    # One row where all pairs have the same slope, as the signals of two layers do.
    x = u / slope[:1] if (slope == slope[0]).all() else u / slope[:, None]
    taper, steps = _taper(u, radius, digits.taper), step / np.abs(slope * np.sqrt(a))
    bell = _bell(z, steps, digits.reach)
    k = 2 * np.pi * fft.rfftfreq(count, step)
    factors = np.exp(-0.5 * (determinant(a, b, c) / a)[:, None] * k * k)
    factors *= _multiplicities(count) / count
    values, good = np.empty((len(products), len(a))), np.ones(len(a), dtype=bool)
    for row, (f, g) in zip(values, products, strict=True):
        outer, inner = g(u), f(x)
        if means:
            # Any constant may be left out of g, since f − ⟨f⟩ has no mean.
            outer, inner = outer - means[1].mean(), inner - means[0][:, None]
        tapered, weighted = outer * taper, np.where(bell > 0, inner * bell, 0.0)
        F, G = fft.rfft(weighted), fft.rfft(tapered)
        row[:] = ((F.real * G.real + F.imag * G.imag) * factors).sum(axis=1)
        good &= _resolved(F, G, digits.aliased) & _inside(weighted, z, digits)
        good &= _noise(weighted, tapered) <= digits.noise * np.abs(row)
    return values, good


def _taper(u: np.ndarray, radius: float, width: float = _TAPER) -> np.ndarray:
    """One, and zero towards the ends of the grid, where a period would have a jump."""
    return erfc((np.abs(u) - radius + width / 2) / _SMEARING) / 2


def _weighted(values: np.ndarray, z: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Values times the Gaussian at z, as far as it counts, and the step of z in each row."""
    bell = _bell(z, steps, _REACH)
    return np.where(bell > 0, values * bell, 0.0)


def _bell(z: np.ndarray, steps: np.ndarray, reach: float) -> np.ndarray:
    """The Gaussian at z, zero beyond the reach, times the step of z in each row."""
    bell = np.exp(-z * z / 2) * (steps / np.sqrt(2 * np.pi))[:, None]
    return np.where(np.abs(z) <= reach, bell, 0.0)


def _inside(weighted: np.ndarray, z: np.ndarray, digits: Digits = EXACT) -> np.ndarray:
    """Whether the values where the Gaussian is cut off are negligible."""
    ends = np.where(np.abs(z) > digits.reach - 0.5, np.abs(weighted), 0.0)
    return ends.max(axis=-1) <= digits.end * np.abs(weighted).max(axis=-1)


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


def _resolved(F: np.ndarray, G: np.ndarray, aliased: float = _ALIASED) -> np.ndarray:
    """Whether both transforms are negligible at the end of the band."""
    end = -max(1, len(G) // 16)
    ends = [np.abs(T[..., end:]).max(axis=-1) / np.abs(T).max(axis=-1) for T in (F, G)]
    return np.maximum(*ends) ** 2 <= aliased


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
