"""Averages ⟨ψ(x)ψ(y)⟩ over Gaussian numbers with means, for any ψ.

By Mehler's series of the Hermite coefficients f_n = ⟨ψ(m + s ξ) h_n(ξ)⟩ of each signal,
⟨ψ(x)ψ(y)⟩ = Σ_n f_n(x) f_n(y) cⁿ with the correlation c, whose products are averaged over all
neurons at once; what it does not resolve by nested panels.
"""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import (
    narrow_alone,
    not_vanishing,
    one_minus_correlation,
)
from fieldtheory.averages.quadrature.mehler import LAST, left_out
from fieldtheory.averages.quadrature.nested import NestedPanels
from fieldtheory.averages.quadrature.one_variable import integrated_each
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.routes import SETTINGS as AVERAGES
from fieldtheory.diffusions.diffusion_settings import SETTINGS
from fieldtheory.diffusions.starts import Neurons


def feature_gram(psi: Function, neurons: Neurons, covariance: np.ndarray) -> np.ndarray:
    """⟨ψ(x_i)ψ(x_j)⟩ of all pairs of P inputs, averaged over neurons of different means.

    Parameters
    ----------
    psi : Function
    neurons : Neurons
        The different means.
    covariance : ndarray, shape (P, P)

    Returns
    -------
    ndarray, shape (P, P)

    Examples
    --------
    >>> relu, starts = Function(lambda x: np.maximum(x, 0)), np.zeros((1, 2))
    >>> gram = feature_gram(relu, Neurons(starts, starts + 1), np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> closed = (np.sqrt(0.75) + 0.5 * (np.pi - np.arccos(0.5))) / (2 * np.pi)
    >>> bool(abs(gram[0, 1] - closed) < 1e-14)
    True
    """
    variances = np.diagonal(covariance)
    i, j = np.triu_indices(len(covariance), 1)
    a, b, t = not_vanishing(variances[i], variances[j], covariance[i, j])
    gap, c = one_minus_correlation(a, b, t), np.eye(len(covariance))
    c[i, j] = c[j, i] = np.sign(t) * (1 - gap)
    # A single input needs ⟨ψ²⟩ alone.
    for order in AVERAGES.series_orders[1:3] if len(i) else (0,):
        f, squares = _coefficients(psi, neurons.values, variances, order)
        own = (neurons.weights * squares).sum(axis=0)
        products = neurons.across(f, f)
        gram = (products * c ** np.arange(order + 1)[:, None, None]).sum(axis=0)
        np.fill_diagonal(gram, own)
        # By Cauchy, Schwarz and Parseval, or as coefficients fall off.
        beyond = np.sqrt(np.maximum(squares - (f**2).sum(axis=0), 0.0))[None]
        left = neurons.across(beyond, beyond)[0][i, j] * (1 - gap) ** (order + 1)
        last = np.abs(products[-LAST:]).max(axis=0)[i, j] * left_out(order, 1 - gap)[0]
        open_ = np.minimum(left, last) > SETTINGS.left_of_series * np.sqrt(own[i] * own[j])
        if not open_.any():
            return gram
    i, j = i[open_], j[open_]
    first, second, weights = neurons.pairs(i, j)
    rows = np.stack([a, b, gap, np.sign(t)])[:, None, open_]
    pairs = np.concatenate([np.broadcast_to(rows, (4, *first.shape)), [first, second]])
    averages = _nested(psi, pairs.reshape(6, -1)).reshape(first.shape)
    gram[i, j] = gram[j, i] = (weights * averages).sum(axis=0)
    return gram


def _coefficients(
    psi: Function, means: np.ndarray, variances: np.ndarray, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """f_n (order + 1, u, P), and ⟨ψ²⟩ (u, P)."""
    m, K = means.ravel(), np.tile(narrow_alone(variances), len(means))
    parts = np.array_split(np.arange(len(m)), 1 + len(m) * len(psi.kinks) // SETTINGS.kinks_at_once)
    each = [integrated_each(psi, K[some], order, m[some]) for some in parts]
    values, errors = (np.concatenate(part) for part in zip(*each, strict=True))
    _require(errors[:, :-1].max(axis=1), np.sqrt(values[:, -1]), K)
    certain = np.tile(variances == 0, len(means))
    sides = psi(np.nextafter(m[certain], [[-np.inf], [np.inf]]))
    values[certain, 0], values[certain, -1] = sides.mean(axis=0), (sides**2).mean(axis=0)
    values[certain, 1:-1] = 0.0
    values = values.T.reshape(order + 2, *means.shape)
    return values[:-1], values[-1]


def _nested(psi: Function, pairs: np.ndarray) -> np.ndarray:
    """⟨ψ(x)ψ(y)⟩ (n,) of variances, 1 − |c|, the sign of c, and means, (6, n)."""
    averages = np.empty(pairs.shape[1])
    for sign, second in ((1, psi), (-1, psi.reflected)):
        (some,) = np.nonzero(np.where(pairs[3] < 0, -1, 1) == sign)
        for start in range(0, len(some), SETTINGS.pairs_at_once):
            part = some[start : start + SETTINGS.pairs_at_once]
            a, b, gap, _, m, n = pairs[:, part]
            panels = NestedPanels(psi, second, SETTINGS.settled, 1)
            values, errors, sizes = panels(a, b, gap, about=np.stack([m, sign * n]))
            _require(errors[0], sizes[0], np.maximum(a, b))
            averages[part] = values[0]
    return averages


def _require(errors: np.ndarray, sizes: np.ndarray, K: np.ndarray) -> None:
    if not (errors <= SETTINGS.settled * sizes).all():
        raise QuadratureError(
            "averages over input_activation did not settle: it is too steep for signals of "
            f"variance {K.max():.3g}"
        )
