"""Averages over two Gaussian signals of functions that are analytic but at zero.

Curvatures that grow towards zero, as those of |h|^(3/2) and h log|h| do, leave panels nothing to
be smooth on. In the logarithms of the signals' sizes they are powers, which need no panels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy as sp
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.exact_differences import determinant
from fieldtheory.averages.logarithmic_signals import Function, Values, on_a_line, on_a_plane
from fieldtheory.averages.steps import branch

# ρ between which the power as which a function behaves at zero is seen.
_PLACES = np.array([-300.0, -290.0])
# Where a cusp at zero is told from a kink, how much derivatives then grow, and which: panels
# resolve what comes after.
_CLOSE, _GROWS, _UNBOUNDED = (sp.Rational(1, 10**4), sp.Rational(1, 10**12)), 10, 4
# ρ of the largest signals, as far as functions stay within float64, and the smallest signals.
_FAR, _SMALLEST = np.linspace(0.0, 4.0, 161), 1e-300


def has_cusp(f: sp.Expr, x: sp.Symbol) -> bool:
    """Whether one of f'' to f⁗ grows without bound towards zero, on one side of it.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> has_cusp(h * sp.log(sp.Abs(h)), h), has_cusp(h * sp.Abs(h), h)
    (True, False)
    """
    for side in (1, -1):
        derivative = branch(f, x, sp.Integer(side)).diff(x)
        for _ in range(_UNBOUNDED - 1):
            derivative = derivative.diff(x)
            far, near = (abs(derivative.subs(x, side * place).evalf()) for place in _CLOSE)
            if near > _GROWS * far:
                return True
    return False


def at_cusps(
    f: Callable, g: Callable, K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray
) -> np.ndarray:
    """⟨f(x) g(y)⟩ of functions that are analytic but at zero, such as |h|^(1/2) or h log|h|.

    Parameters
    ----------
    f, g : callable
        Vectorised.
    K_xx, K_yy, K_xy : ndarray
        Variances > 0 and covariances, of one shape.

    Returns
    -------
    ndarray, the same shape

    Raises
    ------
    QuadratureError
        If an integral does not converge, or diverges.

    Examples
    --------
    >>> K = np.ones(1)
    >>> found = at_cusps(np.abs, lambda h: np.sqrt(np.abs(h)), K, K, 0 * K)
    >>> float((found[0] * np.pi / mp.gamma(0.75) / 2**0.75))
    1.0
    """
    found = np.empty(K_xx.shape)
    for at in np.ndindex(found.shape):
        K = [float(each[at]) for each in (K_xx, K_yy, K_xy)]
        size = np.sqrt(K[0]) * np.sqrt(K[1])
        c = float(np.clip(K[2] / size, -1, 1))
        away = float(determinant(K_xx[at], K_yy[at], K_xy[at]) / (size * (size + abs(K[2]))))
        x, y = _in_float64(f, K[0]), _in_float64(g, K[1])
        found[at] = float(on_a_plane(x, y, c, away) if away else on_a_line(x, y, opposite=c < 0))
    if not np.isfinite(found).all():
        raise QuadratureError("the average exceeds float64, or needs signals that do")
    return found


def _in_float64(f: Callable, variance: float) -> Function:
    def values(rho: np.ndarray) -> Values:
        # Nothing depends on what is smaller.
        signals = np.maximum(np.sqrt(variance) * np.exp(rho), _SMALLEST)
        with np.errstate(all="ignore"):
            both = np.stack([f(signals), f(-signals)])
            return Values(np.sign(both), np.log(np.abs(both)))

    near, far = values(_PLACES).logs.max(axis=0)
    # High powers are nothing at these places.
    power = min((far - near) / (_PLACES[1] - _PLACES[0]), 0.0) if np.isfinite(near) else 0.0
    finite = np.isfinite(np.exp(values(_FAR).logs)).all(axis=0)
    largest = _FAR[finite].max(initial=_FAR[0])
    return Function(lambda *_: values, mp.one, largest=largest, power=power)
