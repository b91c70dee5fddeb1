"""Averages ⟨ψ(x)ψ(y)⟩ over the neurons of wide networks, whose signals are a start and a Gaussian.

Averages of functions that are analytic in x_0 do not need every neuron: the functions are those of
Chebyshev polynomials through a few nodes, and the average of two polynomials over the neurons is
taken once, E[f(x_i) g(x_j)] = Σ_uv f(ξ_u) W_uv^ij g(ξ_v).

The Gaussian is averaged by Mehler's series of the Hermite coefficients f_n = ⟨ψ(m + s ξ) h_n(ξ)⟩ of
each signal, ⟨ψ(x)ψ(y)⟩ = Σ_n f_n(x) f_n(y) cⁿ with the correlation c, whose products are averaged
over all neurons at once; what it does not resolve by nested panels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from numpy.polynomial import chebyshev

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


@dataclass(frozen=True, eq=False)
class Starts:
    """The layer x_0 of P inputs: different neurons (u, P), and the part of all that is as each."""

    values: np.ndarray
    shares: np.ndarray

    @cached_property
    def mean(self) -> np.ndarray:
        """(P,)."""
        return self.shares @ self.values

    @cached_property
    def second(self) -> np.ndarray:
        """⟨x_i x_j⟩ over neurons, (P, P)."""
        return (self.values * self.shares[:, None]).T @ self.values

    @property
    def neurons(self) -> Neurons:
        """All of them."""
        return Neurons(self.values, np.broadcast_to(self.shares[:, None], self.values.shape))

    def interpolated(self, psi: Callable[[np.ndarray], np.ndarray]) -> Neurons:
        """The nodes that stand for many neurons where ψ has no kinks, or all neurons.

        >>> x = np.random.default_rng(0).normal(size=(5000, 2))
        >>> nodes = Starts(x, np.full(5000, 1 / 5000)).interpolated(np.tanh)
        >>> f = np.tanh(nodes.values)[None]
        >>> bool(np.allclose(nodes.across(f, f)[0], np.tanh(x).T @ np.tanh(x) / 5000, rtol=1e-13))
        True
        """
        middle = (self.values.max(axis=0) + self.values.min(axis=0)) / 2
        half = np.maximum((self.values.max(axis=0) - self.values.min(axis=0)) / 2, 1e-3)
        neurons, inputs = self.values.shape
        for count in SETTINGS.start_nodes if inputs <= SETTINGS.start_inputs else ():
            if neurons < 4 * count:
                break
            places = chebyshev.chebpts1(count)
            basis = chebyshev.chebvander(places, count - 1).T * (2 / count)
            basis[0] /= 2
            nodes = middle + half * places[:, None]
            terms = np.abs(basis @ np.concatenate([psi(nodes), psi(nodes) ** 2], axis=1))
            left = terms[-count // 4 :].max(axis=0)
            if (left > SETTINGS.start_rounding * count * terms.max(axis=0)).any():
                continue
            joint = np.empty((inputs, inputs, count, count))
            scaled = (self.values - middle) / half
            for i, j in combinations_with_replacement(range(inputs), 2):
                first, second = (chebyshev.chebvander(scaled[:, k], count - 1) for k in (i, j))
                joint[i, j] = basis.T @ ((first.T * self.shares) @ second) @ basis
                joint[j, i] = joint[i, j].T
            # A polynomial and one, the sum over all nodes of the other input.
            own = joint[:, 0].sum(axis=-1).T
            return Neurons(nodes, own, joint)
        return self.neurons


@dataclass(frozen=True, eq=False)
class Neurons:
    """Neurons (u, P) and their weights in averages over one input (u, P).

    With ``joint`` (P, P, u, u) those of two inputs are weights of pairs of nodes.
    """

    values: np.ndarray
    weights: np.ndarray
    joint: np.ndarray | None = None

    def shifted(self, mean: np.ndarray) -> Neurons:
        """With a mean (P,) added to all."""
        return replace(self, values=self.values + mean)

    def across(self, f: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Averages of f(x_i) g(x_j) for all pairs of inputs, (n, P, P), of values (n, u, P)."""
        if self.joint is None:
            return np.asarray((f * self.weights[:, :1]).swapaxes(1, 2) @ g)
        averages = np.empty((len(f), *self.joint.shape[:2]))
        for i, j in np.ndindex(*self.joint.shape[:2]):
            averages[:, i, j] = ((f[:, :, i] @ self.joint[i, j]) * g[:, :, j]).sum(axis=1)
        return averages

    def pairs(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of inputs i and j (m,) and their weights, (k, m) each."""
        first, second = self.values[:, i], self.values[:, j]
        if self.joint is None:
            return first, second, self.weights[:, i]
        shape = len(first), len(first), len(i)
        both = (np.broadcast_to(x, shape) for x in (first[:, None], second[None]))
        a, b, w = (x.reshape(-1, len(i)) for x in (*both, np.moveaxis(self.joint[i, j], 0, -1)))
        return a, b, w


def feature_gram(psi: Function, neurons: Neurons, covariance: np.ndarray) -> np.ndarray:
    """⟨ψ(x_i)ψ(x_j)⟩ of all pairs of P inputs, averaged over neurons of different means.

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
