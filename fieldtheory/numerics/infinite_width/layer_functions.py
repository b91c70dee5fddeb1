"""The averages of one layer as NumPy functions of kernels: M, ⟨φφ⟩ and their derivatives.

Each is the closed form that the theory derives from the action, if it has one, else an average of
the engine: Hermite coefficients of φ² for M and its derivatives, Mehler's series or nested panels
for ⟨φφ⟩. Derivatives come from the coefficients of the undifferentiated φ (Price's theorem), so
that kinks and jumps need no case of their own. Where a closed form is 0/0, for parallel inputs and
vanishing variances, the engine is asked instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.breakpoints import pieces_of
from fieldtheory.averages.integrands.exact_differences import narrow_precise
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.one_variable import coefficients_of, integrated
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import PairAverages
from fieldtheory.compiling.functions import lambdify
from fieldtheory.compiling.translation import closed_function, is_closed
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.infinite_width.homogeneous import Lines, lines_of
from fieldtheory.numerics.infinite_width.second_moments import Moments, asked, limits
from fieldtheory.theory.elementary_averages import (
    K_XX,
    K_XY,
    K_YY,
    Features,
    LayerAverages,
    X,
    layer_averages,
)

# Gaps 1 − |c| that are taken from series of these orders, with what they may leave out.
_SMALL_GAP, _ORDERS, _ROUNDING = 1e-2, (40, 128), 1e-13


@dataclass(frozen=True)
class LayerFunctions:
    """The averages of a layer as vectorised functions, compiled when first used.

    They are those of the observable g(x, y) = Σ_k ψ_k(x) ψ_k(y), for a residual network of
    φ(x) φ(y). Those of one variable take its variance; those of two take (K_xx, K_yy, K_xy).

    With NumPy their errors are below 1e-12 of the natural size, √(⟨φ²⟩⟨φ²⟩), over variances for
    derivatives. A variance of zero is the limit of small ones.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> float(layer_functions(as_activation("relu")).susceptibility(2.0))
    0.5
    """

    averages: LayerAverages
    # The ψ_k in the symbol ``X``.
    features: tuple[sp.Expr, ...]
    # "numpy" or "mpmath".
    backend: str = "numpy"
    # Layers are alike, and carry on what they read.
    stream: ClassVar[None] = None
    layers_differ: ClassVar[Literal[False]] = False

    def layer(self, l: int) -> LayerFunctions:
        """Those of layer l, as of `BlockFunctions`."""
        return self

    def every(self, name: str, *K: np.ndarray) -> Any:
        """A function of all layers, of kernels (L + 1, ...)."""
        return getattr(self, name)(*K)

    def signal_slopes(self, *K: np.ndarray) -> list[tuple[Any, Any, Any]]:
        """Of weights between the stream and the signals there are none."""
        return []

    @cached_property
    def second_moment(self) -> Callable[..., Any]:
        """M(K) = ⟨g(h, h)⟩ = ⟨φ²⟩."""
        return self._of_moment(0)

    @cached_property
    def susceptibility(self) -> Callable[..., Any]:
        """M'(K) = ⟨φ'² + φφ''⟩; at K = 0 the limit from above."""
        return self._of_moment(1)

    @cached_property
    def curvature(self) -> Callable[..., Any]:
        """M''(K)."""
        return self._of_moment(2)

    def moments(self, K: np.ndarray) -> list[np.ndarray]:
        """M, M' and M'' of variances (m,) by the engine."""
        return list(self._moments(K))

    @cached_property
    def slope_square(self) -> Callable[..., Any]:
        """⟨φ'²⟩; a ValueError if φ jumps, for which it is infinite."""
        return self._of_variance(self.averages.slope_square, lambda K: self._slope_moments(K)[0])

    @cached_property
    def slope_square_change(self) -> Callable[..., Any]:
        """∂⟨φ'²⟩/∂K."""
        change = self.averages.slope_square.diff(K_XX)
        return self._of_variance(change, lambda K: self._slope_moments(K)[1])

    @cached_property
    def covariance(self) -> Callable[..., Any]:
        """⟨φ(x)φ(y)⟩."""
        product = self.averages.covariance
        return self._of_pair(product, lambda *K: self.of_pairs(*K, kinds=1)[0], product)

    @cached_property
    def covariance_susceptibility(self) -> Callable[..., Any]:
        """∂⟨φ(x)φ(y)⟩/∂K_xy = ⟨φ'(x)φ'(y)⟩; infinite where signals jump together."""
        product = self.averages.covariance
        return self._of_pair(product.diff(K_XY), lambda *K: self.of_pairs(*K, kinds=2)[1], product)

    @cached_property
    def covariance_gain(self) -> Callable[..., Any]:
        """⟨φφ⟩ and ⟨φ'φ'⟩, a list of two."""
        product = self.averages.covariance
        entries = [product, product.diff(K_XY)]
        return self._of_pair(entries, lambda *K: self.of_pairs(*K, kinds=2), product)

    @cached_property
    def cross_susceptibility(self) -> Callable[..., Any]:
        """∂⟨φ(x)φ(y)⟩/∂K_xx = (1/2)⟨φ''(x)φ(y)⟩."""
        product = self.averages.covariance
        return self._of_pair(product.diff(K_XX), lambda *K: self.of_pairs(*K)[2], product)

    @cached_property
    def covariance_flow(self) -> Callable[..., Any]:
        """Function that returns ⟨φφ⟩, its gradient and that of its response, a list of seven."""
        variables = (K_XX, K_YY, K_XY)
        product = self.averages.covariance
        slope = product.diff(K_XY)
        entries = [product, *map(product.diff, variables), *map(slope.diff, variables)]

        def engine(*K: np.ndarray) -> list[np.ndarray]:
            value, by_t, by_a, by_b = self.of_pairs(*K)
            _, of_t, of_a, of_b = _summed(self._slope_pairs, *K)
            return [value, by_a, by_b, by_t, of_a, of_b, of_t]

        return self._of_pair(entries, engine, product)

    @cached_property
    def connected(self) -> Callable[..., Any]:
        """⟨φ²(x) ; φ²(y)⟩."""
        connected = self.averages.connected
        return self._of_pair(
            connected, lambda *K: _summed(self._connected_pairs, *K, kinds=1)[0], connected
        )

    @cached_property
    def connected_slope(self) -> Callable[..., Any]:
        """∂⟨g(x) ; g(y)⟩/∂K_xx."""
        connected = self.averages.connected
        slope = connected.diff(K_XX)
        return self._of_pair(slope, lambda *K: _summed(self._connected_pairs, *K)[2], connected)

    @cached_property
    def lines(self) -> Lines | None:
        """The lines on either side of zero that φ is, None if it is something else."""
        return lines_of(self.functions[0]) if len(self.functions) == 1 else None

    def small_gaps(self, a: np.ndarray, b: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """1 ∓ ⟨φφ⟩/√(MM) by 1 ∓ c where the smaller is small, from Mehler's series; else NaN.

            1 − c_φ = (1/2) Σ_n (f_n − g_n)² + Σ_n f_n g_n (1 − cⁿ),

        f_n and g_n the Hermite coefficients of φ over their norms; those of one variance cancel
        exactly. NaN where their squares, times n, are not down to rounding: for φ with kinks.
        """
        phi_gaps = np.full(gaps.shape, np.nan)
        small = (gaps.min(axis=0) < _SMALL_GAP) & (a > 0) & (b > 0)
        if len(self.functions) > 1 or len(self.functions[0].kinks) or not small.any():
            return phi_gaps
        x, y, near = a[small], b[small], gaps[:, small].min(axis=0)
        signs = np.where(gaps[1, small] < gaps[0, small], -1.0, 1.0)[:, None]
        values = np.full((2, len(x)), np.nan)
        for order in _ORDERS:
            f, g = (coefficients_of(self.functions[0], order)(K)[0][:, :-1] for K in (x, y))
            f, g = (each / np.sqrt((each**2).sum(axis=1))[:, None] for each in (f, g))
            n = np.arange(order + 1.0)
            size = np.minimum((n * f**2).sum(axis=1), (n * g**2).sum(axis=1))
            left = order**2 * np.maximum(f[:, -4:] ** 2, g[:, -4:] ** 2).max(axis=1)
            g = g * signs**n
            lost = -np.expm1(n * np.log1p(-near)[:, None])
            # Opposite inputs of odd φ have opposite features.
            side = np.where((f * g).sum(axis=1) < 0, -1.0, 1.0)[:, None]
            gap = ((f - side * g) ** 2).sum(axis=1) / 2 + (side * f * g * lost).sum(axis=1)
            done = (left < _ROUNDING * size) & np.isnan(values[0])
            both = np.where(side[:, 0] > 0, [gap, 2 - gap], [2 - gap, gap])
            values[:, done] = both[:, done]
            if not np.isnan(values[0]).any():
                break
        phi_gaps[:, small] = values
        return phi_gaps

    @property
    def jumps(self) -> bool:
        """Whether φ jumps somewhere."""
        return any(len(psi.jumping) for psi in self.functions)

    def collinear_susceptibility(self, K: float, factor: float) -> float:
        """∂⟨φ(h) φ(λh)⟩/∂K_xy with variances K and λ²K that move with it: ⟨(h² − K) φφ⟩/(2λK²)."""
        total = 0.0
        for psi in self.functions:
            kinks = {*psi.kinks.tolist(), *(psi.kinks / factor).tolist()}
            product = Function(
                lambda h, psi=psi: psi.value(h) * psi.value(factor * h), kinks=tuple(kinks)
            )
            total += integrated(product, K, 2)[0][2]
        return float(total / (np.sqrt(2) * factor * K))

    # The engine.

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The ψ_k as numeric functions."""
        return tuple(function_of(psi, X) for psi in self.features)

    @cached_property
    def _slopes(self) -> tuple[Function, ...]:
        """ψ_k' between jumps."""
        if self.jumps:
            raise ValueError(
                f"{self.features} must not jump for derivatives of ⟨φ'φ'⟩: they diverge, or have "
                "no closed form"
            )
        return tuple(function_of(pieces_of(psi, X).slope, X) for psi in self.features)

    @cached_property
    def _square(self) -> Function:
        """g(h, h)."""
        if len(self.functions) == 1:
            return self.functions[0].square
        return function_of(self.averages.square, X)

    @cached_property
    def _moments(self) -> Callable[[np.ndarray], np.ndarray]:
        return Moments(self._square)

    @cached_property
    def _slope_moments(self) -> Callable[[np.ndarray], np.ndarray]:
        parts = [Moments(slope.square) for slope in self._slopes]
        return lambda K: np.sum([part(K) for part in parts], axis=0)

    def of_pairs(self, *K: np.ndarray, kinds: int = 4, many: bool = False) -> list[np.ndarray]:
        """⟨φφ⟩ of pairs (m,) and its derivatives by K_xy, K_xx and K_yy by the engine."""
        return _summed(self._pairs, *K, kinds=kinds, many=many)

    @cached_property
    def _pairs(self) -> list[PairAverages]:
        return [PairAverages(psi) for psi in self.functions]

    @cached_property
    def _slope_pairs(self) -> list[PairAverages]:
        return [PairAverages(psi) for psi in self._slopes]

    @cached_property
    def _connected_pairs(self) -> list[PairAverages]:
        return [PairAverages(self._square, connected=True)]

    # Closed forms, and the engine where there is none.

    def _of_moment(self, order: int) -> Callable[..., Any]:
        moment = self.averages.moment
        expression = moment.diff(*[K_XX] * order) if order else moment
        return self._of_variance(expression, lambda K: self._moments(K)[order], moment)

    def _of_variance(
        self,
        expression: sp.Expr,
        engine: Callable[[np.ndarray], np.ndarray],
        of: sp.Expr | None = None,
    ) -> Callable[..., Any]:
        """The function of an expression in K_xx; it has a closed form if ``of`` has one."""
        if self.backend != "numpy":
            return lambdify([K_XX], expression, self.backend)
        if not all(map(is_closed, [expression if of is None else of, expression])):
            return self._in_engine(engine)
        return closed_function([K_XX], expression, engine)

    def _of_pair(
        self, expression: Any, engine: Callable[..., Any], of: sp.Expr
    ) -> Callable[..., Any]:
        """The function of an expression, or a list of them, in K_xx, K_yy and K_xy."""
        variables = [K_XX, K_YY, K_XY]
        if self.backend != "numpy":
            average = lambdify(variables, expression, self.backend)
            pieces = pieces_of(self.averages.observable, X)
            jumps = zip(pieces.points, pieces.jumps, strict=True)
            if not any(at == 0 and jump for at, jump in jumps):
                return average
            return lambda *K: average(*narrow_precise(*K))
        entries = expression if isinstance(expression, list) else [expression]
        # Closed forms of averages with δ-functions are slow to look for: φ itself is asked first.
        if not all(map(is_closed, [of, *entries])):
            return self._in_engine(engine)
        return closed_function(variables, expression, engine)

    @staticmethod
    def _in_engine(engine: Callable[..., Any]) -> Callable[..., Any]:
        """A function of arrays of one shape as one that broadcasts."""

        def function(*K: Any) -> Any:
            arrays = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
            shape = arrays[0].shape
            values = engine(*(k.ravel() for k in arrays))
            if isinstance(values, list):
                return [each.reshape(shape)[()] for each in values]
            return values.reshape(shape)[()]

        return function


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _summed(
    averages: Sequence[PairAverages], *K: np.ndarray, kinds: int = 4, many: bool = False
) -> list[np.ndarray]:
    """Sums of averages of pairs (m,), and their derivatives by K_xy, K_xx and K_yy."""
    finite = np.isfinite(K).all(axis=0)
    a, b, t = (np.where(finite, k, 1.0) for k in K)
    parts = [each(a, b, t, asked(), kinds, many)[0][:kinds] for each in averages]
    sums = np.where(finite, np.sum(parts, axis=0), np.nan)
    return list(limits(sums, (a == 0) | (b == 0)))


@lru_cache(maxsize=64)
def layer_functions(
    activation: Activation,
    backend: str = "numpy",
    features: Features = ResidualNetwork.features,
    parameters: tuple[tuple[str, Any], ...] = (),
) -> LayerFunctions:
    """The averages of an activation, shared by all networks that use it."""
    averages = layer_averages(features, activation, parameters)
    return LayerFunctions(averages, tuple(features(activation, X, dict(parameters))), backend)
