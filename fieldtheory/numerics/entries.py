"""The entries of the recursions as NumPy functions, lambdified from Gaussian averages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import sympy as sp

from fieldtheory.activations import Activation
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.lambdify import lambdify

_x, _y = sp.symbols("x y", real=True)
K_XX, K_YY = sp.symbols("K_xx K_yy", positive=True)
K_XY = sp.Symbol("K_xy", real=True)


@dataclass(frozen=True)
class Entries:
    """Averages of an activation function as vectorised functions, compiled when first used.

    Those of one variable take its variance; those of two take (K_xx, K_yy, K_xy). All derivatives
    are taken of the symbolic average, that is, by Price's theorem.

    Parameters
    ----------
    activation : Activation
    backend : {"numpy", "mpmath"}

    Examples
    --------
    >>> from fieldtheory.activations import as_activation
    >>> float(Entries(as_activation("relu")).susceptibility(2.0))
    0.5
    """

    activation: Activation
    backend: str = "numpy"

    @cached_property
    def second_moment(self) -> Callable:
        """M(K) = ⟨φ²⟩."""
        return self._of_variance(self._moment)

    @cached_property
    def susceptibility(self) -> Callable:
        """M'(K) = ⟨φ'² + φφ''⟩."""
        return self._of_variance(self._moment.diff(K_XX))

    @cached_property
    def curvature(self) -> Callable:
        """M''(K)."""
        return self._of_variance(self._moment.diff(K_XX).diff(K_XX))

    @cached_property
    def covariance(self) -> Callable:
        """⟨φ(x)φ(y)⟩."""
        return self._of_pair(self._product)

    @cached_property
    def covariance_susceptibility(self) -> Callable:
        """∂⟨φ(x)φ(y)⟩/∂K_xy = ⟨φ'(x)φ'(y)⟩."""
        return self._of_pair(self._product.diff(K_XY))

    @cached_property
    def cross_susceptibility(self) -> Callable:
        """∂⟨φ(x)φ(y)⟩/∂K_xx = (1/2)⟨φ''(x)φ(y)⟩."""
        return self._of_pair(self._product.diff(K_XX))

    @cached_property
    def covariance_curvature(self) -> Callable:
        """The gradient of ⟨φ'(x)φ'(y)⟩ by (K_xx, K_yy, K_xy), a list of three."""
        slope = self._product.diff(K_XY)
        return self._of_pair([slope.diff(k) for k in (K_XX, K_YY, K_XY)])

    @cached_property
    def connected(self) -> Callable:
        """⟨φ²(x) ; φ²(y)⟩."""
        square = self.activation(_x) ** 2
        covariance = [[K_XX, K_XY], [K_XY, K_YY]]
        return self._of_pair(
            ConnectedCorrelator(square, self.activation(_y) ** 2, (_x, _y), covariance)
        )

    @property
    def _moment(self) -> sp.Expr:
        return GaussianAverage(self.activation(_x) ** 2, _x, K_XX)

    @property
    def _product(self) -> sp.Expr:
        F = self.activation(_x) * self.activation(_y)
        return GaussianAverage(F, (_x, _y), [[K_XX, K_XY], [K_XY, K_YY]])

    def _of_variance(self, expression: sp.Expr) -> Callable:
        return lambdify([K_XX], expression, self.backend)

    def _of_pair(self, expression: sp.Expr | list) -> Callable:
        return lambdify([K_XX, K_YY, K_XY], expression, self.backend)


@lru_cache(maxsize=64)
def entries(activation: Activation, backend: str = "numpy") -> Entries:
    """The compiled entries of an activation, shared by all networks that use it."""
    return Entries(activation, backend)
