"""The entries of the recursions as NumPy functions, lambdified from Gaussian averages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, numeric
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.vectorising import kinks_of
from fieldtheory.averages.integrands.exponentials import expanded, with_masks
from fieldtheory.averages.integrands.narrow import is_fine
from fieldtheory.averages.integrands.steps import (
    branch,
    first_derivative,
    has_cusp,
    has_steps,
    jumps,
    second_derivative,
    sift,
    slope_of_pieces,
)
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.averages.vanishing import narrow_precise
from fieldtheory.compiling.functions import lambdify
from fieldtheory.compiling.translation import is_closed
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.layer_averages.parallel_signals import (
    with_gradient_by_scaling,
    with_parallel_limit,
)
from fieldtheory.numerics.layer_averages.wide_pairs import with_wide_signals
from fieldtheory.theory.elementary_averages import (
    K_XX,
    K_XY,
    K_YY,
    Features,
    LayerAverages,
    X,
    Y,
    feature_parameters,
    layer_averages,
)

# Variance below which the transforms of a connected correlator lose digits to cancellation.
_NARROWEST = 0.06
# Variance below which powers of it in closed forms may underflow.
_UNDERFLOWING = 1e-150
# What is left of a polynomial part of φ² where its rest cancels it.
_CANCELLED = 1e-2
# Closer to zero than any other kink.
_BESIDE_ZERO = sp.Rational(1, 10**20)


@dataclass(frozen=True)
class Entries:
    """The averages of a layer as vectorised functions, compiled when first used.

    They are those that the theory derives from the action (`layer_averages`), for a residual
    network of the observable g(x, y) = φ(x) φ(y). Those of one variable take its variance; those of
    two take (K_xx, K_yy, K_xy). All derivatives are taken of the symbolic average, that is, by
    Price's theorem.

    With NumPy, relative errors are below 1e-12 for variances from 1e-12 to 1e6 and all
    correlations, but for one case: ⟨φφ⟩ of functions that vanish on one side (ReLU, GELU) and
    nearly opposite inputs, where it vanishes with the determinant of the covariance. It is the
    small difference of terms of the size of √det (ReLU) or √(1 + K_xx + K_yy + det) (GELU), and
    its absolute error is 2e-16 times that; a rounding of K_xy alone changes it as much.

    Parameters
    ----------
    averages : LayerAverages
    backend : {"numpy", "mpmath"}

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> float(entries(as_activation("relu")).susceptibility(2.0))
    0.5
    """

    averages: LayerAverages
    backend: str = "numpy"

    @cached_property
    def second_moment(self) -> Callable:
        """M(K) = ⟨g(h, h)⟩ = ⟨φ²⟩."""
        return self._of_variance(self.averages.moment)

    @cached_property
    def susceptibility(self) -> Callable:
        """M'(K) = ⟨φ'² + φφ''⟩ = ⟨h φφ'⟩/K.

        At K = 0 it is the limit from above, for φ with a kink at zero the mean of both sides.
        """
        return self._of_moment(1, lambda psi: [X * _between_jumps(psi) / (2 * K_XX)])

    @cached_property
    def curvature(self) -> Callable:
        """M''(K) = ⟨ψ''''⟩/4 = ⟨hψ'''⟩/(4K) = ⟨(h² − K) ψ''⟩/(4K²) = ..., ψ = φ²."""
        return self._of_moment(
            2,
            lambda psi: [
                (X**3 - 3 * K_XX * X) * psi.diff(X) / (4 * K_XX**3),
                (X**2 - K_XX) * psi.diff(X, 2) / (4 * K_XX**2),
                X * psi.diff(X, 3) / (4 * K_XX),
            ],
        )

    @cached_property
    def slope_square(self) -> Callable:
        """⟨φ'²⟩; at K = 0 its limit, the mean of both sides where φ has a kink at zero."""
        average = self._of_variance(self.averages.slope_square)
        if self.backend != "numpy" or not has_steps(self.averages.observable):
            return average
        square = self.averages.slopes
        return _with_limit(average, lambda: float(sum(_at_zero(square)) / 2))

    @cached_property
    def slope_square_change(self) -> Callable:
        """∂⟨φ'²⟩/∂K."""
        return self._of_variance(self.averages.slope_square.diff(K_XX))

    @cached_property
    def covariance(self) -> Callable:
        """⟨φ(x)φ(y)⟩."""
        return self._of_pair(self.averages.covariance, ("covariance",))

    @cached_property
    def covariance_susceptibility(self) -> Callable:
        """∂⟨φ(x)φ(y)⟩/∂K_xy = ⟨φ'(x)φ'(y)⟩."""
        return self._of_pair(self.averages.covariance.diff(K_XY), ("slopes",))

    @cached_property
    def slope_of_jumps(self) -> Callable | None:
        """⟨φ'φ'⟩ of (K_xx, K_yy, K_xy, K_xx K_yy − K_xy²) where φ jumps, else None.

        It grows as one over the root of the last, which K_xy alone does not hold at small angles.
        """
        slope = self.averages.covariance.diff(K_XY)
        if self.backend != "numpy" or not slope.has(sp.DiracDelta):
            return None
        slope = slope.doit()
        left = sp.Dummy("D", positive=True)
        # Averages that are left, of a signal with a mean, are functions of K alone.
        masks = {node: sp.Dummy() for node in slope.atoms(GaussianAverage)}
        of_left = slope.xreplace(masks).subs(K_XX * K_YY - K_XY**2, left)
        of_left = of_left.xreplace({mask: node for node, mask in masks.items()})
        return lambdify([K_XX, K_YY, K_XY, left], of_left)

    @cached_property
    def covariance_gain(self) -> Callable:
        """⟨φφ⟩ and ⟨φ'φ'⟩, a list of two with their common parts computed once."""
        product = self.averages.covariance
        return self._of_pair([product, product.diff(K_XY)], ("covariance", "slopes"))

    @cached_property
    def covariance_gradient(self) -> Callable:
        """⟨φφ⟩ and its gradient by (K_xx, K_yy, K_xy), a list of four."""
        product = self.averages.covariance
        entries = [product, *map(product.diff, (K_XX, K_YY, K_XY))]
        gradient = lambdify([K_XX, K_YY, K_XY], entries, self.backend)
        if self.backend != "numpy" or not has_steps(self.averages.observable):
            return gradient
        return with_gradient_by_scaling(gradient, lambda: self._scaled_product)

    @cached_property
    def _scaled_product(self) -> Callable:
        """⟨φφ⟩, its derivatives by K_xx and K_yy at a fixed correlation, and ⟨φ'φ'⟩."""
        product = self.averages.observable
        slope = self.averages.covariance.diff(K_XY)
        return self._of_pair([*_with_scaling(product), slope])

    @cached_property
    def cross_susceptibility(self) -> Callable:
        """∂⟨φ(x)φ(y)⟩/∂K_xx = (1/2)⟨φ''(x)φ(y)⟩."""
        return self._of_pair(self.averages.covariance.diff(K_XX))

    @cached_property
    def covariance_flow(self) -> Callable:
        """What moves ⟨φφ⟩ and its response, a list of seven with their common parts computed once.

        ⟨φφ⟩, its gradient by (K_xx, K_yy, K_xy), and the gradient of ⟨φ'φ'⟩.
        """
        variables = (K_XX, K_YY, K_XY)
        product = self.averages.covariance
        slope = product.diff(K_XY)
        return self._of_pair([product, *map(product.diff, variables), *map(slope.diff, variables)])

    @cached_property
    def covariance_scaling(self) -> Callable:
        """What moves ⟨φφ⟩ and ⟨φ'φ'⟩ at a fixed correlation, a list of seven.

        F = φφ and its derivatives by K_xx and K_yy, the same of F = φ'φ', and ∂⟨φ'φ'⟩/∂K_xy. At a
        fixed correlation K_xx is a scale of x, so that ∂⟨F⟩/∂K_xx = ⟨x ∂_x F⟩/(2 K_xx), which is
        finite for φ with kinks and parallel inputs too; the last of the list alone is not.
        """
        product = self.averages.observable
        slope = second_derivative(product, X, Y)
        found = [*_with_scaling(product), *_with_scaling(slope)]
        return self._of_pair([*found, self.averages.covariance.diff(K_XY, 2)])

    @cached_property
    def covariance_curvature(self) -> Callable:
        """∂²⟨φφ⟩ by K_xx twice, by K_xx and K_yy, by K_xx and K_xy, by K_xy twice, a list."""
        twice = [(K_XX, K_XX), (K_XX, K_YY), (K_XX, K_XY), (K_XY, K_XY)]
        return self._of_pair([self.averages.covariance.diff(*by) for by in twice])

    @cached_property
    def connected(self) -> Callable:
        """⟨φ²(x) ; φ²(y)⟩."""
        return self._of_pair(self.averages.connected)

    @cached_property
    def connected_slope(self) -> Callable:
        """∂⟨g(x) ; g(y)⟩/∂K_xx."""
        return self._of_pair(self.averages.connected.diff(K_XX))

    @cached_property
    def connected_steps(self) -> Callable:
        """⟨φ²(x) ; φ²(x + w)⟩ of variances (n,) of x and (m,) of an independent w, shape (n, m)."""
        square, connected = self.averages.square, self.connected

        def one_by_one(K: np.ndarray, steps: np.ndarray) -> np.ndarray:
            first, step = (k.ravel() for k in np.broadcast_arrays(K[:, None], steps))
            return connected(first + step, first, first).reshape(len(K), len(steps))

        K = [[K_XX, K_XY], [K_XY, K_YY]]
        closed = numeric.inner_average(square, square.subs(X, Y), (X, Y), K)
        if has_steps(square) or closed is not None or is_fine(square, X):
            return one_by_one
        together = numeric.connected_steps(square, X)

        def all_at_once(K: np.ndarray, steps: np.ndarray) -> np.ndarray:
            values = np.full((len(K), len(steps)), np.nan)
            # Variances of one power of four share a grid, as fine and as wide as they need.
            power = np.floor(np.log2(np.maximum(K, 1e-30)) / 2)
            reach = np.floor(np.log2(steps + 1) / 6)
            for row, column in product({p for p in power if 4**p >= _NARROWEST}, set(reach)):
                rows, columns = np.nonzero(power == row)[0], np.nonzero(reach == column)[0]
                values[np.ix_(rows, columns)] = together(K[rows], steps[columns])
            rows, columns = np.nonzero(np.isnan(values))
            if len(rows):
                first = K[rows]
                values[rows, columns] = connected(first + steps[columns], first, first)
            return values

        return all_at_once

    @cached_property
    def has_closed_kinks(self) -> bool:
        """Whether φ² has kinks, and ⟨φ²(x) ; φ²(y)⟩ a closed form in spite of them."""
        square = self.averages.square
        # Orthants have closed forms, other wedges have none.
        if not has_steps(square) or any(kinks_of(square, X)):
            return False
        return not self.averages.connected.doit().has(ConnectedCorrelator)

    @cached_property
    def connected_layers(self) -> Callable | None:
        """⟨φ²(x_k) ; φ²(x_l)⟩ of signals that add up, as a function of their variances K > 0.

        For functions with kinks whose correlator has no closed form, else None; None for cusps,
        which leave panels nothing to be smooth on.
        """
        square = self.averages.square
        if not has_steps(square) or self.has_closed_kinks or has_cusp(square, X):
            return None
        return numeric.connected_layers(square, X)

    def _of_moment(self, order: int, by_parts: Callable) -> Callable:
        """A derivative of M; with kinks, at K = 0 its limit from above, which may be infinite."""
        average = self._by_parts(order, by_parts)
        if self.backend != "numpy" or not has_steps(self.averages.square):
            return average
        return _with_limit(average, lambda: _moment_at_zero(self.averages.square, order))

    def _by_parts(self, order: int, by_parts: Callable) -> Callable:
        """A derivative of M; without a closed form by parts (Stein's lemma) where that is better.

        The terms of the derivative itself cancel for large variances, those of the integrals by
        parts for small ones. Polynomials in φ² would cancel too and are taken exactly.
        """
        try:
            derivative = self.averages.moment.diff(*[K_XX] * order)
            plain = self._by_itself(derivative)
        except ValueError:
            # Beside kinks such as that of h log|h| integrals by parts alone exist.
            if self.backend != "numpy":
                raise
            forms = [form for form in by_parts(self.averages.square) if not form.has(sp.DiracDelta)]
            return numeric.by_parts(forms, X, K_XX, _only_by_parts)
        if self.backend != "numpy" or not derivative.doit().has(GaussianAverage):
            return plain
        if order == 1 and (moved := _of_jumps(self.averages.square)):
            of_jumps = self._of_variance(moved)
            smooth = numeric.by_parts(
                by_parts(self.averages.square), X, K_XX, lambda K: plain(K) - of_jumps(K)
            )
            return lambda K: smooth(K) + of_jumps(K)
        polynomial, rest = self._even_square

        def of(square: sp.Expr, otherwise: Callable) -> Callable:
            forms = [form for form in by_parts(square) if not form.has(sp.DiracDelta)]
            return numeric.by_parts(forms, X, K_XX, otherwise)

        if polynomial == 0:
            return of(rest, plain)
        exact = self._of_variance(GaussianAverage(polynomial, X, K_XX).doit().diff(K_XX, order))
        if rest == 0:
            return exact
        remainder = of(rest, lambda K: plain(K) - exact(K))
        found = _where_not_cancelling(exact, remainder, plain)
        # What converges beside a polynomial need not do so alone; in M'' the polynomial cancels.
        return _with_resort(found, of(self.averages.square, plain)) if order == 1 else found

    def _by_itself(self, derivative: sp.Expr) -> Callable:
        """A derivative of M as it stands, without kinks compiled when called: few variances ask."""
        if self.backend != "numpy" or has_steps(self.averages.square):
            return self._of_variance(derivative)
        compiled = lru_cache(maxsize=1)(lambda: self._of_variance(derivative))
        return lambda K: compiled()(K)

    @property
    def _even_square(self) -> tuple[sp.Expr, sp.Expr]:
        """The even part of φ², which alone counts, as a polynomial and the rest."""
        square = self.averages.square
        if has_steps(square):
            return sp.S.Zero, square
        # Exponentials whole: apart they are 0 times ∞.
        even = with_masks((square + square.subs(X, -X)) / 2, expanded)
        # tanh² as 1 − (1 − tanh²), the bracket falling off exponentially.
        squares = {t**2: 1 - sp.Dummy() for t in even.atoms(sp.tanh)}
        even = with_masks(even.xreplace(squares), expanded)
        terms = sp.Add.make_args(even)
        polynomial = sp.Add(*[t for t in terms if t.is_polynomial(X) and t.free_symbols <= {X}])
        if polynomial == 0:
            # As it was given: expanded, the square of mish has ten times the terms.
            return sp.S.Zero, square
        back = {1 - one_minus: 1 - square for square, one_minus in squares.items()}
        return polynomial, (even - polynomial).xreplace(back)

    def _of_variance(self, expression: sp.Expr) -> Callable:
        return lambdify([K_XX], expression, self.backend)

    def _of_pair(self, expression: sp.Expr | list, names: tuple[str, ...] = ()) -> Callable:
        """The function of an expression; the names are those of `with_wide_signals`."""
        average = lambdify([K_XX, K_YY, K_XY], expression, self.backend)
        if self.backend != "numpy":
            if not _jumps_at_zero(self.averages.observable):
                return average
            return lambda *K: average(*narrow_precise(*K))
        if names and not is_closed(self.averages.covariance):
            average = with_wide_signals(average, self.averages, names)
        return with_parallel_limit(average) if has_steps(self.averages.observable) else average


def _only_by_parts(K: np.ndarray) -> np.ndarray:
    raise QuadratureError(
        f"a derivative of ⟨φ²⟩ at the variance {np.min(K):.6g} did not reach the relative "
        f"tolerance {tolerance():g}: φ² has kinks with infinite slopes"
    )


def _between_jumps(psi: sp.Expr) -> sp.Expr:
    """ψ' without δ-functions; pieces hide waves, so that what does not jump stays whole."""
    slope = psi.diff(X)
    return slope_of_pieces(psi, X) if slope.has(sp.DiracDelta) else slope


def _of_jumps(psi: sp.Expr) -> sp.Expr:
    """What jumps of ψ add to ∂⟨ψ⟩/∂K = ⟨hψ'⟩/(2K) in K: those at zero do not move."""
    found = jumps(psi, X) if psi.diff(X).has(sp.DiracDelta) else []
    terms = [a * (above - below) * sp.exp(-(a**2) / (2 * K_XX)) for a, below, above in found]
    return sp.Add(*terms) / sp.sqrt(8 * sp.pi * K_XX**3)


def _jumps_at_zero(observable: sp.Expr) -> bool:
    """Whether g(x, y) is another on either side of x = 0."""
    return any(at == 0 and above != below for at, below, above in jumps(observable, X))


def _with_scaling(F: sp.Expr) -> list[sp.Expr]:
    """⟨F⟩ and its derivatives by K_xx and K_yy at a fixed correlation."""
    K = [[K_XX, K_XY], [K_XY, K_YY]]
    found = [GaussianAverage(F, (X, Y), K)]
    for h, variance in ((X, K_XX), (Y, K_YY)):
        scaled = sift(sp.expand(h * first_derivative(F, h)), (X, Y))
        found.append(GaussianAverage(scaled, (X, Y), K) / (2 * variance))
    return found


def _where_not_cancelling(first: Callable, second: Callable, instead: Callable) -> Callable:
    """The sum of two functions of variances, a third one where it is small against them."""

    def everywhere(K: np.ndarray) -> np.ndarray:
        one = first(K)
        total = np.asarray(one + second(K))
        if (lost := np.abs(total) < _CANCELLED * np.abs(one)).any():
            total[lost] = instead(np.asarray(K, dtype=float)[lost])
        return total[()]

    return everywhere


def _with_resort(function: Callable, other: Callable) -> Callable:
    """Another function where the first does not converge."""

    def resorting(K: np.ndarray) -> np.ndarray:
        try:
            return function(K)
        except QuadratureError:
            return other(K)

    return resorting


def _at_zero(F: sp.Expr) -> list[sp.Expr]:
    """The limits of F(x) from above and from below."""
    sides = ((1, "+"), (-1, "-"))
    return [sp.limit(branch(F, X, n * _BESIDE_ZERO), X, 0, side) for n, side in sides]


def _moment_at_zero(psi: sp.Expr, order: int) -> float:
    """A derivative of ⟨ψ⟩_K by K at K = 0, from the derivatives of ψ on either side.

    ⟨|h|^k⟩ grows as K^(k/2), so that odd powers that do not cancel make it infinite; else it is the
    mean of both sides of ψ^(2 order) over 2^order.
    """
    sides = [branch(psi, X, sign * _BESIDE_ZERO) for sign in (1, -1)]
    for k in range(1, 2 * order, 2):
        above, below = (side.diff(X, k).subs(X, 0) for side in sides)
        if (odd := sp.simplify(above - below)) != 0:
            growth = sp.ff(sp.Rational(k, 2), order)
            return float(np.copysign(np.inf, float(odd * growth)))
    return float(sum(side.diff(X, 2 * order).subs(X, 0) for side in sides) / 2 ** (order + 1))


def _with_limit(average: Callable, limit: Callable[[], float]) -> Callable:
    """A function of variances whose value at zero is told, and so small that a form is 0/0."""

    def everywhere(K: np.ndarray) -> np.ndarray:
        vanishing = np.equal(K, 0)
        if vanishing.any():
            return np.where(vanishing, limit(), everywhere(np.where(vanishing, 1.0, K)))[()]
        if not np.less(K, _UNDERFLOWING).any():
            return average(K)
        with np.errstate(invalid="ignore"):
            found = average(K)
        if (lost := np.isnan(found) & np.less(K, _UNDERFLOWING)).any():
            return np.where(lost, limit(), found)[()]
        return found

    return everywhere


@lru_cache(maxsize=64)
def entries(
    activation: Activation,
    backend: str = "numpy",
    features: Features = ResidualNetwork.features,
    parameters: tuple[tuple[str, Any], ...] = (),
) -> Entries:
    """The compiled entries of an activation, shared by all networks that use it.

    The parameters are those of `layer_averages`; without ``features``, of a residual network.
    """
    return Entries(layer_averages(features, activation, parameters), backend)


def network_entries(network: LayeredNetwork) -> Entries:
    """The compiled entries of a network.

    Examples
    --------
    >>> float(network_entries(ResidualNetwork(depth=2, activation="relu")).second_moment(2.0))
    1.0
    """
    features = type(network).features
    return entries(network.activation, "numpy", features, feature_parameters(network))
