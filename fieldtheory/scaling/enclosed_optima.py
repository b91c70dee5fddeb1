"""Optima of the response in intervals that are proven to contain them (ball arithmetic)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.precision import enclosures
from fieldtheory.precision.ball_arithmetic import ball_arithmetic
from fieldtheory.precision.balls import arb, attempts, constant, ctx
from fieldtheory.precision.layer_recursion import exact_coefficients
from fieldtheory.theory.elementary_averages import K_XX, X, network_averages

# Relative distance of the first two points of the secant method, and its steps.
_APART, _STEPS = 1e-6, 12
# By how much a panel shrinks until 1/F is bounded around it.
_SHRINK = 0.75


def output_variance(network: LayeredNetwork, start: float, digits: int) -> Any:
    """K*_out about ``start``, where M'(K) F(K) is stationary, F = σ²_w M + σ²_b.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> print(output_variance(ResidualNetwork(depth=1, bias_variance=0.0), 0.3054, 12).str(12))
    [0.305400336104 +/- 4.41e-13]
    """

    def slopes() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        weight, bias = _branch(network)
        moments = _moments(network, 3)

        def first(K: Any) -> Any:
            M, gain, curvature, _ = moments(K)
            return curvature * (weight * M + bias) + weight * gain**2

        def second(K: Any) -> Any:
            M, gain, curvature, third = moments(K)
            return third * (weight * M + bias) + 3 * weight * gain * curvature

        return first, second

    return _sign_change(slopes, start, digits)


def scaling(network: LayeredNetwork, K0: sp.Expr, start: float, digits: int) -> Any:
    """ρ* about ``start``, where the response χ^out(ρ) of a variance is stationary.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> print(scaling(ResidualNetwork(depth=10), sp.Rational(1, 20), 0.326, 12).str(12))
    [0.326509160260 +/- 3.29e-14]
    """

    def slopes() -> tuple[Callable[[Any], Any], None]:
        (weight, bias), kernel = _branch(network), constant(sp.sympify(K0))
        moments = _moments(network, 2)
        skips = [constant(layer.skip) ** 2 for layer in exact_coefficients(network)[1:-1]]

        def first(square: Any) -> Any:
            K, derivative, total = kernel, arb(0), arb(0)
            for skip in skips:
                M, gain, curvature = moments(K)
                growth = skip + square * weight * gain
                total += (weight * gain + square * weight * curvature * derivative) / growth
                derivative = growth * derivative + weight * M + bias
                K = skip * K + square * (weight * M + bias)
            _, gain, curvature = moments(K)
            return total + curvature * derivative / gain

        return first, None

    square = _sign_change(slopes, start**2, digits + 1)
    with ctx.workprec(attempts(digits)[-1]):
        return square.sqrt()


def deep_scaling(network: LayeredNetwork, K0: sp.Expr, end: Any, digits: int) -> Any:
    """c*/√L, c*² = ∫ dK/F(K) from K^(0) > 0 to a ball ``end`` that contains K*_out > K^(0).

    On panels by Gauss-Legendre rules. In the disc |K − k| <= θk around the middle of a panel

        |M(K) − M(k)| <= ‖φ² − M‖ √((1 − θ²)^(−1/2) − 1),

    by Cauchy-Schwarz from M^(j)(k) = ⟨φ² He_2j⟩/(2k)^j, so that a θ is known for which
    |1/F| <= 2/F(k) there, and the error of n nodes is at most 64 B ρ^(2−2n)/(15 (1 − ρ^(−2))) of
    half the width, for |1/F| <= B in the Bernstein ellipse of ρ (Trefethen, Approximation Theory
    and Approximation Practice, theorem 19.3).

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> print(deep_scaling(ResidualNetwork(depth=1), sp.Rational(1, 4), arb(1), 8).str(9))
    [1.23939406 +/- 3.80e-9]
    """
    for bits in attempts(digits):
        with ctx.workprec(bits):
            time = _time(network, constant(sp.sympify(K0)), end, digits + 3)
            ball = (time / network.depth).sqrt()
            if ball.is_finite() and ball.rad() <= ball.abs_lower() * arb(10) ** -digits:
                return ball
    raise PrecisionError(f"c* was not enclosed to {digits} digits, but in {ball}")


def _time(network: LayeredNetwork, start: Any, end: Any, digits: int) -> Any:
    """∫ dK/F from an exact start to an end in a ball."""
    weight, bias = _branch(network)
    square = network_averages(network).square

    def rate(K: Any) -> Any:
        return weight * enclosures.average(square, [X], [[K]]) + bias

    ellipse, last, low = 2 + arb(3).sqrt(), end.mid(), start
    n = 2 + math.ceil(digits * math.log(10) / (2 * math.log(float(ellipse))))
    rule = [arb.legendre_p_root(n, i, weight=True) for i in range(n)]
    left_out = 64 * ellipse ** (2 - 2 * n) / (15 * (1 - ellipse**-2))
    total = arb(0, (end.rad() / rate(end)).abs_upper())
    while low < last:
        width, bound = low, None
        while bound is None:
            high = (low + width).mid() if low + width < last else last
            width *= _SHRINK
            middle, half = (low + high) / 2, (high - low) / 2
            # The ellipse of this ρ is twice as wide as the panel.
            bound = _inverse_bound(square, weight, rate(middle), middle, 2 * half / middle)
        total += half * sum((w / rate(middle + half * x) for x, w in rule), arb(0))
        total += arb(0, (bound * half * left_out).abs_upper())
        low = high
    return total


def _inverse_bound(square: sp.Expr, weight: Any, F: Any, k: Any, theta: Any) -> Any | None:
    """A bound of |1/F| in the disc |K − k| <= θk, at most 2/F(k), or None."""
    if not theta < 1:
        return None
    mean, own = (enclosures.average(square**n, [X], [[k]]) for n in (1, 2))
    deviation = (own - mean * mean).nonnegative_part().sqrt()
    left = F - weight * deviation * ((1 - theta**2).rsqrt() - 1).sqrt()
    return 1 / left if left > F / 2 else None


def _branch(network: LayeredNetwork) -> tuple[Any, Any]:
    """σ²_w and σ²_b."""
    unit_branch(network)
    coefficients = exact_coefficients(network.replace(branch_scale=1.0))[1]
    return constant(coefficients.weight), constant(coefficients.bias)


def _moments(network: LayeredNetwork, order: int) -> Callable[[Any], Any]:
    """M, M', ... up to the derivative of an order, as a function of K."""
    moment = network_averages(network).moment
    return ball_arithmetic().compiled([K_XX], [moment.diff(K_XX, n) for n in range(order + 1)])


def _sign_change(slopes: Callable[[], tuple[Any, ...]], start: float, digits: int) -> Any:
    """An interval at whose ends a slope is positive and negative."""
    for bits in attempts(digits):
        with ctx.workprec(bits):
            first, second = slopes()
            x = _secant(first, arb(start))
            half = (x * arb(10) ** -digits / 2).mid()
            interval = arb(x, half)
            if first(x - half) > 0 > first(x + half) and (second is None or second(interval) < 0):
                return interval
    raise PrecisionError(f"no maximum was proven to lie near {start:g} to {digits} digits")


def _secant(function: Callable[[Any], Any], start: Any) -> Any:
    """About a root, an exact number."""
    x, y = start, (start * (1 + arb(_APART))).mid()
    fx, fy = function(x), function(y)
    for _ in range(_STEPS):
        if fx.overlaps(fy):
            break
        x, y = y, (y - fy * (y - x) / (fy - fx)).mid()
        fx, fy = fy, function(y)
    return y
