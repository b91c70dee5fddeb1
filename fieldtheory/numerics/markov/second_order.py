"""The order 1/N² of a chain of mean squares: one input of a network of blocks.

Given the mean square X of the stream in one layer, that of the next one has the cumulants

    μ(X) = F − (δ/N) C̄,   F = γ² s + C̄,   v(X)/N + w(X)/N²,   t(X)/N²,
    v = 4 γ² s C̄ + 2 C̄² + B,   w = 2 B − δ (2 C̄² + 2 B),
    t = 24 γ² s C̄² + 8 C̄³ + 12 B (γ² s + C̄) + T,

noncentral χ² of N − δ units, δ = 1 without their mean, whose variance C is a mean over M hidden
units: B = (N/M) a² ⟨a² ; a²⟩ and T = (N/M)² a³ ⟨a² ; a² ; a²⟩. With the cumulants m_1/N + m_2/N²,
V_1/N + V_2/N², κ/N² of X about its value K for N → ∞, the laws of total cumulance give

    m_1' = F' m_1 + F'' V_1/2 − δ C̄
    m_2' = F' m_2 + F'' (V_2 + m_1²)/2 + F''' (κ + 3 m_1 V_1)/6 + F'''' V_1²/8
           − δ (C̄' m_1 + C̄'' V_1/2)
    V_2' = w + v' m_1 + v'' V_1/2 + F'² V_2 + 2 F' F'' m_1 V_1 + F' F'' κ
           + (F''²/2 + F' F''') V_1² − 2 δ F' C̄' V_1
    κ'   = t + 3 F' v' V_1 + F'³ κ + 3 F'² F'' V_1²
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from math import factorial
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.one_variable import coefficients_of
from fieldtheory.networks.activations import h
from fieldtheory.numerics.infinite_width.block_functions import Entry
from fieldtheory.numerics.markov.block_chain import BlockChain
from fieldtheory.numerics.one_input import order_ratio, resummed
from fieldtheory.numerics.validity import warn_if_orders_are_close

# Derivatives that the order 1/N² asks for, and the error of their averages.
_ORDER, _ALLOWED = 4, 1e-8


_T = TypeVar("_T", float, np.ndarray)


class Cumulants(NamedTuple, Generic[_T]):
    """m_1, m_2, V_1, V_2 and κ, of one layer or each (layers,)."""

    m1: _T
    m2: _T
    V1: _T
    V2: _T
    third: _T


def _times(*series: np.ndarray) -> np.ndarray:
    """The product of Taylor series, (_ORDER + 1,)."""
    return reduce(lambda a, b: np.convolve(a, b)[: _ORDER + 1], series)


def _of(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """The Taylor series of a function of a function."""
    change = np.array([0.0, *inner[1:]])
    value = np.zeros(_ORDER + 1)
    for coefficient in outer[::-1]:
        value = _times(value, change)
        value[0] += coefficient
    return value


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """The fields of order 1/N² of one input, with their powers of 1/N; see `Solution`."""

    # Of one input.
    chain: BlockChain

    @property
    def mean_shift_2(self) -> np.ndarray:
        """The term of ⟨C^(l)⟩ of order 1/N²."""
        return self._residual.m2 / self._width**2

    @property
    def kernel_shift_2(self) -> np.ndarray:
        """The term of ⟨R^(l)⟩ of order 1/N², last that of the output."""
        stream = self.cumulants[1].m2
        return np.append(stream, self._residual.m2[-1]) / self._width**2

    @property
    def variance_2(self) -> np.ndarray:
        """The term of Var C^(l) of order 1/N²."""
        return self._residual.V2 / self._width**2

    @property
    def third_cumulant(self) -> np.ndarray:
        """⟨(C^(l) − ⟨C^(l)⟩)³⟩ to order 1/N²."""
        return self._residual.third / self._width**2

    @property
    def four_point_2(self) -> np.ndarray:
        """The term of V^(l) of order 1/N."""
        K, R = self.chain.stream[:, 0], self.cumulants[1]
        return (4 * K**2 - 2 * (2 * K * R.m1 + R.V1) + R.V2) / self._width

    @cached_property
    def order_ratio(self) -> np.ndarray:
        """See `one_input.order_ratio`."""
        relative = order_ratio(*self._terms)
        warn_if_orders_are_close(self.chain.field.network, relative)
        return relative

    @property
    def resummed(self) -> tuple[np.ndarray, np.ndarray]:
        """⟨C⟩ and Var C, see `Solution.resummed_variance`."""
        return resummed(*self._terms)

    @property
    def _terms(self) -> tuple[np.ndarray, ...]:
        """C*, and the terms of ⟨C⟩ and Var C of order 1/N, then those of order 1/N²."""
        C, N = self._residual, self._width
        return self.chain.states[0][:, 0], C.m1 / N, C.V1 / N, C.m2 / N**2, C.V2 / N**2

    @property
    def _width(self) -> int:
        return self.chain.field.network.width

    @property
    def _residual(self) -> Cumulants[np.ndarray]:
        return self.cumulants[0]

    @cached_property
    def cumulants(self) -> tuple[Cumulants[np.ndarray], Cumulants[np.ndarray]]:
        """Those of C^(l), l = 0, ..., L + 1, and of R^(l), l = 0, ..., L."""
        network = self.chain.functions.network
        lost = float(network.centred)
        K0 = self.chain.states[0][0, 0]
        x = Cumulants(-lost * K0, 0.0, 2 * K0**2, -2 * lost * K0**2, 8 * K0**3)
        zero = np.zeros(_ORDER + 1)
        residual, stream = [Cumulants(*[0.0] * 5)], []
        for l in range(network.depth + 1):
            s = self._stream(l)
            stream.append(_moved(x, s, zero, zero, zero, zero))
            if l == network.depth:
                (read,), layers = self.chain.functions.readout.signals, self.chain.field.layers
                taylor = layers.weights[-1, 0] * self._taylor(read, l)
                taylor[0] += layers.biases[-1, 0]
                residual.append(_moved(x, taylor, zero, zero, zero, zero))
                break
            C, B, T = self._branch(l)
            residual.append(_moved(x, C, zero, B, zero, T))
            carried = self.chain.skips[l + 1] * s
            v = 4 * _times(carried, C) + 2 * _times(C, C) + B
            w = 2 * B - lost * (2 * _times(C, C) + 2 * B)
            t = 24 * _times(carried, C, C) + 8 * _times(C, C, C) + 12 * _times(B, carried + C) + T
            x = _moved(x, carried + C, lost * C, v, w, t)
        return Cumulants(*np.array(residual).T), Cumulants(*np.array(stream).T)

    def _taylor(self, entry: Entry, l: int) -> np.ndarray:
        """Of an entry as a function of X^(l), by X itself."""
        derivatives = entry.own(self.chain.states[1][l : l + 1, :1], _ORDER)
        return np.array([float(d.flat[0]) / factorial(n) for n, d in enumerate(derivatives)])

    def _stream(self, l: int) -> np.ndarray:
        stream = self.chain.functions.stream
        if stream is None:
            return np.eye(2, _ORDER + 1)[1] + self.chain.states[1][l, 0] * np.eye(1, _ORDER + 1)[0]
        return self._taylor(stream, l)

    def _branch(self, l: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """C̄, B and T of layer l + 1 as functions of X^(l)."""
        functions, network = self.chain.functions, self.chain.functions.network
        signals = [self._taylor(signal, l) for signal in functions.layer(l + 1).signals]
        moments = []
        for power in (1, 2, 3):
            parts = [
                _of(_moment(factor.expression, 2 * power, Q[0]), Q)
                for factor, Q in zip(network.factors, signals, strict=True)
            ]
            moments.append(_times(*parts) if len(parts) > 1 else parts[0])
        one, two, three = moments
        units = network.width / network.hidden_width
        layers = self.chain.field.layers
        a, c = float(layers.weights[l + 1, 0]), float(layers.biases[l + 1, 0])
        mean = a * one
        mean[0] += c
        variance = two - _times(one, one)
        third = three - 3 * _times(two, one) + 2 * _times(one, one, one)
        return mean, units * a**2 * variance, units**2 * a**3 * third


def _moment(phi: sp.Expr, power: int, K: float) -> np.ndarray:
    """⟨φ^power⟩ as a Taylor series in the variance: ⟨f^(2n)⟩/(2ⁿ n!) from Hermite coefficients."""
    coefficients = coefficients_of(function_of(phi**power, h), 2 * _ORDER)
    (values,), (errors,) = coefficients(np.array([K]))
    if not (errors[: 2 * _ORDER + 1] <= _ALLOWED * np.abs(values[-1]) ** 0.5).all():
        raise QuadratureError(
            f"at order 1/N²: ⟨φ^{power}⟩ at the variance {K:.6g} misses the relative error "
            f"{_ALLOWED:g}; order=1 does without it"
        )
    n = np.arange(_ORDER + 1)
    scales = [np.sqrt(float(factorial(2 * k))) / (factorial(k) * (2 * K) ** k) for k in n]
    return np.asarray(values[2 * n] * scales)


def _moved(
    x: Cumulants[float],
    F: np.ndarray,
    lost: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
    t: np.ndarray,
) -> Cumulants[float]:
    """The cumulants of the next mean square, from the Taylor series of F, δ C̄, v, w and t."""
    f1, f2, f3, f4 = (factorial(n) * F[n] for n in range(1, _ORDER + 1))
    m1, m2, V1, V2, third = x
    return Cumulants(
        f1 * m1 + f2 * V1 / 2 - lost[0],
        f1 * m2
        + f2 * (V2 + m1**2) / 2
        + f3 * (third + 3 * m1 * V1) / 6
        + f4 * V1**2 / 8
        - (lost[1] * m1 + lost[2] * V1),
        v[0] + f1**2 * V1,
        w[0]
        + v[1] * m1
        + v[2] * V1
        + f1**2 * V2
        + 2 * f1 * f2 * m1 * V1
        + f1 * f2 * third
        + (f2**2 / 2 + f1 * f3) * V1**2
        - 2 * f1 * lost[1] * V1,
        t[0] + 3 * f1 * v[1] * V1 + f1**3 * third + 3 * f1**2 * f2 * V1**2,
    )
