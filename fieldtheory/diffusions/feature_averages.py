"""Averages ⟨ψ(x)ψ(y)⟩ over Gaussian numbers with means, for any ψ.

By Mehler's series of the Hermite coefficients f_n = ⟨ψ(m + s ξ) h_n(ξ)⟩ of each signal,
⟨ψ(x)ψ(y)⟩ = Σ_n f_n(x) f_n(y) cⁿ with the correlation c; strongly correlated signals of steep ψ and
those of ψ with kinks by integrals in two variables, on panels that are split where a kink is
crossed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.diffusions.starts import Neurons
from fieldtheory.networks.activations import Activation, h


@dataclass(frozen=True)
class _Settings:
    """Numbers of the rules and of the series.

    Parameters
    ----------
    reach : float
        In deviations; the Gaussian tail beyond is 2e-19.
    points : int
        Of the trapezoidal rule, for ψ without kinks.
    panels : int
        For ψ with kinks.
    order : int
        Nodes of a panel.
    far : float
        Reach of the coefficients of the series.
    orders : int
        Their number.
    last : int
        The last ones, that show whether the series has ended.
    left : float
        What they may be, relative to √(⟨ψ²⟩⟨ψ²⟩).
    block : int
        Nodes of one block of pairs at most.
    """

    reach: float = 9.0
    points: int = 73
    panels: int = 6
    order: int = 16
    far: float = 13.0
    orders: int = 128
    last: int = 16
    left: float = 2e-14
    block: int = 1 << 21


_SETTINGS = _Settings()
# Distances from where a kink of the inner variable is crossed, in its width.
_GRADED = np.array([-9.0, -3.0, -1.0, 0.0, 1.0, 3.0, 9.0])


@dataclass(frozen=True, eq=False)
class FeatureAverages:
    """⟨ψ(x)ψ(y)⟩ of many pairs at once.

    Parameters
    ----------
    activation : Activation
        ψ.
    parts : int
        Into which the panels of the integrals are cut, for steep ψ.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> one, zero = np.ones(1), np.zeros(1)
    >>> law = np.stack([zero, zero, one, one, zero + 0.5])
    >>> average = FeatureAverages(as_activation("relu")).of_pairs(law)
    >>> closed = (np.sqrt(0.75) + 0.5 * (np.pi - np.arccos(0.5))) / (2 * np.pi)
    >>> bool(abs(average[0] - closed) < 1e-14)
    True
    """

    activation: Activation
    parts: int = 1

    def gram(self, neurons: Neurons, covariance: np.ndarray) -> np.ndarray:
        """⟨ψ(x_i)ψ(x_j)⟩ of all pairs of P inputs, averaged over neurons of different means.

        Parameters
        ----------
        neurons : Neurons
            The different means.
        covariance : ndarray, shape (P, P)

        Returns
        -------
        ndarray, shape (P, P)
        """
        means = neurons.values
        count, inputs = means.shape
        variances = np.diagonal(covariance)
        spread = np.sqrt(variances)
        squares = self.of_squares(means.ravel(), np.tile(variances, count))
        gram = np.diag((neurons.weights * squares.reshape(count, inputs)).sum(axis=0))
        if inputs == 1:
            return gram
        c = np.clip(_standard(covariance, np.multiply.outer(spread, spread), at_zero=0.0), -1, 1)
        f = self._coefficients(means, spread)
        series, left = _summed(f, neurons, c)
        i, j = np.triu_indices(inputs, 1)
        size = np.sqrt(np.diagonal(gram))
        open_ = left[i, j] > _SETTINGS.left * size[i] * size[j]
        gram[i, j] = gram[j, i] = series[i, j]
        i, j = i[open_], j[open_]
        if len(i):
            rows = [variances[i], variances[j], covariance[i, j]]
            first, second, weights = neurons.pairs(i, j)
            law = np.stack([first.ravel(), second.ravel(), *np.tile(rows, len(first))])
            averages = self.of_pairs(law).reshape(weights.shape)
            gram[i, j] = gram[j, i] = (weights * averages).sum(axis=0)
        return gram

    def _coefficients(self, means: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """f_n, (orders, u, P)."""
        centre = means[..., None]
        scale = np.broadcast_to(spread, means.shape)[..., None]
        xi, widths = self._nodes(_standard(self._kinks - centre, scale), _SETTINGS.far, finer=2)
        values = self.psi(centre + scale * xi) * (widths * _density(xi))
        # h_n of the nodes, which are the same for all where ψ has no kinks.
        before, now = np.zeros_like(xi), np.ones_like(xi)
        coefficients = np.empty((_SETTINGS.orders, *means.shape))
        for n in range(_SETTINGS.orders):
            coefficients[n] = values @ now if now.ndim == 1 else (values * now).sum(axis=-1)
            before, now = now, (xi * now - np.sqrt(n) * before) / np.sqrt(n + 1)
        return coefficients

    @cached_property
    def psi(self) -> Callable[[np.ndarray], np.ndarray]:
        """ψ of arrays."""
        # Branches that are not taken may divide by zero.
        quiet = np.errstate(divide="ignore", invalid="ignore")
        return quiet(function_of(self.activation.expression, h).value)

    @cached_property
    def _kinks(self) -> np.ndarray:
        return function_of(self.activation.expression, h).kinks

    @property
    def has_kinks(self) -> bool:
        """Whether ψ or a derivative jumps somewhere."""
        return len(self._kinks) > 0

    def of_squares(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """⟨ψ(x)²⟩ of means and variances, (n,) each."""
        spread = np.sqrt(variance)
        cuts = _standard(self._kinks - mean[:, None], spread[:, None])
        xi, widths = self._nodes(cuts, finer=4)
        weights = widths * _density(xi)
        return (weights * self.psi(mean[:, None] + spread[:, None] * xi) ** 2).sum(axis=-1)

    def of_pairs(self, law: np.ndarray) -> np.ndarray:
        """⟨ψ(x)ψ(y)⟩, (n,), of pairs given by their means, variances and covariance, (5, n)."""
        panels = _SETTINGS.panels * self.parts + len(self._kinks) * np.array([1, 1 + len(_GRADED)])
        nodes = (
            np.prod(panels * _SETTINGS.order)
            if len(self._kinks)
            else (_SETTINGS.points * self.parts) ** 2
        )
        size = max(1, int(_SETTINGS.block // nodes))
        blocks = range(0, law.shape[1], size)
        return np.concatenate([self._block(law[:, start : start + size]) for start in blocks])

    def _block(self, law: np.ndarray) -> np.ndarray:
        a, b, v, w, covariance = law
        s, t = np.sqrt(v), np.sqrt(w)
        c = np.clip(_standard(covariance, s * t, at_zero=0.0), -1.0, 1.0)
        det = np.maximum(v * w - covariance**2, 0.0)
        distance = np.where(v * w > 0, np.sqrt(_standard(det, v * w, at_zero=0.0)), 1.0)
        c, distance = c[:, None], distance[:, None]
        kinks = _standard(self._kinks - a[:, None], s[:, None])
        others = _standard(self._kinks - b[:, None], t[:, None])
        crossing = _standard(others[..., None] + distance[..., None] * _GRADED, c[..., None])
        cuts = np.concatenate([kinks, crossing.reshape(len(a), -1)], axis=-1)
        xi, widths = self._nodes(cuts)
        outer = widths * _density(xi)
        inside = _standard(others[:, None] - (c * xi)[..., None], distance[..., None])
        eta, widths = self._nodes(inside)
        inner = widths * _density(eta)
        y = b[:, None, None] + t[:, None, None] * ((c * xi)[..., None] + distance[..., None] * eta)
        conditional = (inner * self.psi(y)).sum(axis=-1)
        return (outer * self.psi(a[:, None] + s[:, None] * xi) * conditional).sum(axis=-1)

    def _nodes(
        self, cuts: np.ndarray, reach: float = _SETTINGS.reach, finer: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights (..., m) of panels with more cuts (..., k); (m,) without kinks."""
        if not len(self._kinks):
            nodes = np.linspace(-reach, reach, (_SETTINGS.points - 1) * self.parts * finer + 1)
            return nodes, np.full(len(nodes), nodes[1] - nodes[0])
        base = np.linspace(-reach, reach, _SETTINGS.panels * self.parts * finer + 1)
        even = np.broadcast_to(base, (*cuts.shape[:-1], len(base)))
        edges = np.sort(np.concatenate([even, np.clip(cuts, -reach, reach)], axis=-1), axis=-1)
        x, w = np.polynomial.legendre.leggauss(_SETTINGS.order)
        half = np.diff(edges)[..., None] / 2
        nodes = edges[..., :-1, None] + half * (1 + x)
        flat = (*edges.shape[:-1], -1)
        return nodes.reshape(flat), (half * w + np.zeros_like(nodes)).reshape(flat)


def _summed(f: np.ndarray, neurons: Neurons, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ_n f_n f_n cⁿ, (P, P), and a bound of what is left behind the last of them."""
    products = neurons.across(f, f)
    powers = c ** np.arange(len(f))[:, None, None]
    sizes = np.abs(products[-_SETTINGS.last :] * powers[-_SETTINGS.last :]).sum(axis=0)
    with np.errstate(divide="ignore"):
        left = sizes / np.minimum(_SETTINGS.last * (1 - np.abs(c)), 1.0)
    return (products * powers).sum(axis=0), left


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def _standard(value: np.ndarray, scale: np.ndarray, at_zero: float | None = None) -> np.ndarray:
    """value/scale; where the scale is 0, ±infinity by the sign of the value, or ``at_zero``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = value / scale
    if at_zero is None:
        return np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.where(np.asarray(scale) == 0, at_zero, ratio)
