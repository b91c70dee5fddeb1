"""The flow of two variances and their covariance, and its response: symbols, then functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.numerics.pair_maps.pair_averages import PairFunctions
from fieldtheory.numerics.recursion import residual_kernel
from fieldtheory.theory import notation as sym
from fieldtheory.theory.depth_flow import KERNEL, STEP, flow_rate, modified_flow, step_rate
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, LayerAverages, layer_averages

P, Q = sp.symbols("p q", positive=True)
R = sp.Symbol("r", real=True)
_STATE = (P, Q, R)
_CHANGE = sp.symbols("z_p z_q z_r", real=True)
_GROWTH, _LOSS = sp.symbols("E b", real=True)


def flow_rates(
    averages: LayerAverages | None = None,
) -> tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr]:
    """The flow of two variances p, q and their covariance r, and the gain of the response.

    Examples
    --------
    >>> [entry.free_symbols >= {R} for entry in flow_rates()]
    [False, False, True, True]
    """
    formulas = averages or layer_averages()
    F = flow_rate(formulas)
    covariance = formulas.covariance.subs({K_XX: P, K_YY: Q, K_XY: R}, simultaneous=True)
    G = step_rate(covariance)
    return F.subs(KERNEL, P), F.subs(KERNEL, Q), G, sp.diff(G, R)


class Response(NamedTuple):
    """The logarithm of the response of a covariance along the flow.

    ``rates`` are those of p, q, r and of ln ∂r/∂r_0. ``height`` is ln ⟨φ'φ'⟩; ``slope`` is the
    derivative of the whole logarithm by the time, ``curvature`` that of ``slope``. To first order
    in h the modified flow has y + h z, whose rates ``change_rates`` are those of z and of the
    change of the integral b; ``change`` is that of the logarithm, ``change_slope`` its derivative
    by the time.
    """

    rates: Any
    height: Any
    slope: Any
    curvature: Any
    change_rates: Any
    change: Any
    change_slope: Any


def response(rates: tuple[sp.Expr, ...]) -> Response:
    """The response along a flow, and its change in the modified flow."""
    *field, gain = rates
    height = sp.log(gain / sym.WEIGHT**2)
    slope = _along(height, field) + gain

    def along(expression: sp.Expr) -> sp.Expr:
        return _along(expression, field)

    def variation(expression: sp.Expr) -> sp.Expr:
        return sum(sp.diff(expression, y) * z for y, z in zip(_STATE, _CHANGE, strict=True))

    # E = ∂r/∂r_0 takes Euler steps too.
    modified = modified_flow([*field, gain * _GROWTH], [*_STATE, _GROWTH])
    corrections = [sp.diff(rate, STEP) for rate in modified]
    changes = [variation(v) + c for v, c in zip(field, corrections, strict=False)]
    loss = variation(gain) + sp.expand(corrections[-1] / _GROWTH)
    change = variation(height)
    slopes = [sp.diff(change, z) * rate for z, rate in zip(_CHANGE, changes, strict=True)]
    return Response(
        rates=list(rates),
        height=height,
        slope=slope,
        curvature=along(slope),
        change_rates=[*changes, loss],
        change=change + _LOSS,
        change_slope=along(change) + sum(slopes) + loss,
    )


def _along(expression: sp.Expr, field: Sequence[sp.Expr]) -> sp.Expr:
    """The derivative of an expression by the time of a flow."""
    return sum(sp.diff(expression, y) * v for y, v in zip(_STATE, field, strict=True))


@lru_cache(maxsize=16)
def compiled(averages: LayerAverages) -> tuple[Any, ...]:
    """``curvature``, ``change_rates``, ``change`` and ``change_slope`` as functions."""
    # Of the state, of z and b for all but the first, of σ_w and σ_b.
    *_, curvature, rates, change, slope = response(flow_rates(averages))
    changed = [*_STATE, *_CHANGE, _LOSS, sym.WEIGHT, sym.BIAS]
    functions = (lambdify(changed, expression) for expression in (rates, change, slope))
    return lambdify([*_STATE, sym.WEIGHT, sym.BIAS], curvature), *functions


class Flow:
    """The flow of pairs of a network and the logarithm of their response, to leading order."""

    def __init__(self, averages: PairFunctions, weight: float, bias: float):
        self._averages, self._weight, self._bias = averages, weight, bias

    def rates(self, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Those of p, q, r and of ln ∂r/∂r_0, shape (4, pairs)."""
        own, pairs = _shared(p, q)
        G, gain = self._averages.covariance_gain(own, pairs, r)
        return np.stack([*self._rates(own, pairs, G), self._weight * gain])

    def height(self, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """ln ⟨φ'φ'⟩."""
        with np.errstate(all="ignore"):
            return np.log(self._averages.covariance_gain(*_shared(p, q), r)[1])

    def slope(self, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The derivative of the logarithm of the response by the time."""
        own, pairs = _shared(p, q)
        G, _, _, gain, *gradient = self._averages.covariance_flow(own, pairs, r)
        rates = self._rates(own, pairs, G)
        change = sum(by * rate for by, rate in zip(gradient, rates, strict=True))
        with np.errstate(all="ignore"):
            return change / gain + self._weight * gain

    def _rates(self, own: np.ndarray, pairs: np.ndarray, G: np.ndarray) -> list[np.ndarray]:
        """The rates of p, q and r."""
        M = self._averages.second_moment(own)[pairs]
        return [residual_kernel(self._weight, self._bias, average) for average in (*M, G)]


def _shared(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different variances, and which of them are those of each pair."""
    own, pairs = np.unique(np.stack([p, q]), return_inverse=True)
    return own, pairs.reshape(2, -1)
