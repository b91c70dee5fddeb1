"""⟨F(h^(k)) ; F(h^(l))⟩ of all layers by Mehler's series, where layers correlate little.

    ⟨F ; F⟩ = Σ_{n>0} f_n(K_k) f_n(K_l) cⁿ,   f_n(K) = ⟨F(√K z) h_n(z)⟩

One integral over z for every layer and order gives all pairs. Signals that grow from layer to layer
have such correlations, up to any variance.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log

import numpy as np

from fieldtheory.numerics.hermite_coefficients import HermiteCoefficients

# Fewer layers are quick by any rule. The most orders; powers of the correlation left out.
_LEAST_LAYERS, _MOST_ORDERS, _LEFT_OUT = 6, 512, 1e-17
# Nodes on a panel and those that check them, and the change that is allowed.
_NODES, _CHECKS, _ERROR = 20, 26, 2e-13
# ⟨F²⟩ over its connected part, up to which the difference keeps its digits.
_CANCELLING = 1e2


def connected_by_series(
    F: Callable[..., np.ndarray], kinks: tuple[float, ...], K: np.ndarray, covariance: np.ndarray
) -> np.ndarray | None:
    """⟨F ; F⟩ of all pairs of layers, or None where they correlate too much or a sum fails.

    Parameters
    ----------
    F : callable
        Vectorised, of one array.
    kinks : tuple of float
    K : ndarray, shape (n,)
        Variances of the signals.
    covariance : ndarray, shape (n, n)
        Of the signals of two layers.

    Returns
    -------
    ndarray, shape (n, n), or None
        20 and 26 nodes on a panel agree to 2e-13.

    Examples
    --------
    >>> K = 4.0 ** np.arange(8)
    >>> found = connected_by_series(np.square, (), K, np.minimum.outer(K, K))
    >>> np.allclose(found, 2 * np.minimum.outer(K, K) ** 2, rtol=1e-12)
    True
    """
    if len(K) < _LEAST_LAYERS or not (K > 0).all() or not np.isfinite(K).all():
        return None
    root = np.sqrt(K)
    c = covariance / root / root[:, None]
    np.fill_diagonal(c, 0.0)
    largest = float(np.abs(c).max())
    orders = 8 if largest == 0 else 2 + ceil(log(_LEFT_OUT) / log(min(largest, 1 - 1e-9)))
    if orders > _MOST_ORDERS:
        return None
    coefficients = HermiteCoefficients(F, kinks)
    with np.errstate(all="ignore"):
        rough, found = (
            _sums(*coefficients.integrated(K, orders, count), c) for count in (_NODES, _CHECKS)
        )
        good = np.abs(found - rough) <= _ERROR * np.abs(found)
    return found if good.all() else None


def _sums(f: np.ndarray, square: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The series off the diagonal, and ⟨F²⟩ − ⟨F⟩² on it."""
    total = np.zeros_like(c)
    for of_order in f[:, :0:-1].T:
        total = c * (np.outer(of_order, of_order) + total)
    own = square - f[:, 0] ** 2
    np.fill_diagonal(total, np.where(_CANCELLING * own > square, own, np.nan))
    return total
