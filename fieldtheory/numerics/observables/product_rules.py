"""Integrals that Hermite coefficients of a product f(x) g(y) of two signals are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import sqrt
from typing import NamedTuple, Protocol

import numpy as np

from fieldtheory.averages.integrals.panels import evenly
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.numerics.hermite_coefficients import HermiteCoefficients
from fieldtheory.numerics.neurons.hermite_modes import Modes, grid_modes, modes_on

# Even nodes are those of as many orders at least, and of this share of those of g(y).
_FEWEST, _SHARE = 114, 4
# Nodes of a panel of width one, on which products of 448 and 1088 orders are resolved, and where
# the lower ones end beyond their turning points.
_NODES, _MARGIN = 32, 9.0

Function = Callable[..., np.ndarray]


class ProductRule(Protocol):
    """How ⟨g(σ z) h_i(z)⟩ and ⟨h_k(z) f(σ z) h_i(z)⟩ are found."""

    @property
    def factors(self) -> np.ndarray:
        """√((i+j)!/(i! j!)), shape (orders of g, orders kept)."""

    def single(self, f: Function, widths: np.ndarray) -> np.ndarray:
        """⟨f(σ z) h_i(z)⟩ of several σ, shape (widths, orders of g)."""

    def matrix(self, f: Function, width: float, most: int) -> np.ndarray:
        """⟨h_k(z) f(σ z) h_i(z)⟩, k among the orders kept, i < ``most``."""


class EvenRule(NamedTuple):
    """On even nodes, for smooth functions."""

    nodes: np.ndarray
    basis: np.ndarray
    higher: np.ndarray
    fine: Modes
    factors: np.ndarray

    def single(self, f: Function, widths: np.ndarray) -> np.ndarray:
        """⟨f(σ z) h_i(z)⟩."""
        return self.fine.project(f(widths[:, None] * self.fine.nodes))

    def matrix(self, f: Function, width: float, most: int) -> np.ndarray:
        """⟨h_k(z) f(σ z) h_i(z)⟩."""
        return (self.basis * f(width * self.nodes)) @ self.higher[:most].T


class PanelRule(NamedTuple):
    """On panels that end where functions are not smooth."""

    kinks: tuple[float, ...]
    kept: int
    most: int
    factors: np.ndarray

    def single(self, f: Function, widths: np.ndarray) -> np.ndarray:
        """⟨f(σ z) h_i(z)⟩."""
        return HermiteCoefficients(f, self.kinks).integrated(widths**2, self.most)[0]

    def matrix(self, f: Function, width: float, most: int) -> np.ndarray:
        """⟨h_k(z) f(σ z) h_i(z)⟩."""
        kinks = tuple(kink / width for kink in self.kinks)
        z, basis = on_panels(kinks, self.kept, self.most)
        return (basis[: self.kept] * f(width * z)) @ basis[:most].T


@lru_cache(maxsize=8)
def even_rule(count: int, most: int) -> EvenRule:
    """For so many orders that are kept, and of g."""
    modes = grid_modes(max(count, _FEWEST, most // _SHARE), False)
    z = modes.nodes
    higher = modes_on(most, False, z, np.full_like(z, z[1] - z[0])).basis
    return EvenRule(z, modes.basis[:count], higher, grid_modes(most, False), factors(count, most))


@lru_cache(maxsize=8)
def panel_rule(count: int, most: int, kinks: tuple[float, ...]) -> PanelRule:
    """For so many orders that are kept, and of g, and where functions are not smooth."""
    return PanelRule(kinks, count, most, factors(count, most))


@lru_cache(maxsize=8)
def factors(count: int, most: int) -> np.ndarray:
    """√((i+j)!/(i! j!)), shape (most, count)."""
    i, j = np.arange(most)[:, None], np.arange(1, count)
    return np.cumprod(np.hstack([np.ones((most, 1)), np.sqrt((i + j) / j)]), axis=1)


@lru_cache(maxsize=4)
def on_panels(kinks: tuple[float, ...], count: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, and so many orders there times square roots of weights."""
    reach = 2 * sqrt(count) + _MARGIN
    inside = [kink for kink in kinks if abs(kink) < reach]
    z, weights = composite(np.union1d(evenly(1.0, reach), inside), _NODES)
    return z, modes_on(most, False, z, weights).basis
