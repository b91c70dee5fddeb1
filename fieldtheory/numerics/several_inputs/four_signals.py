"""Averages ⟨φφ⟩ and ⟨φφφφ⟩ over the signals of one neuron, of which at most three differ.

Two different signals of a layer are averages over two variables, as exact as ⟨φφ⟩; three of any
layers are integrals on panels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature import products
from fieldtheory.averages.quadrature.one_variable import Coefficients
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import PairAverages
from fieldtheory.averages.routes import SETTINGS
from fieldtheory.numerics.several_inputs.pair_expansions import Signals


def means(signals: Signals) -> np.ndarray:
    """⟨g_αβ⟩ in all layers, shape (L + 1, p)."""
    (alpha, beta), (a, b, t) = signals.pairs, signals.entries
    own = np.diagonal(signals.K, axis1=1, axis2=2)
    total = np.zeros(a.shape)
    for psi in signals.functions:
        values = _coefficients(psi, 4)(own.ravel())[0].reshape(*own.shape, -1)
        nonzero = (a > 0) & (b > 0)
        # A signal that vanishes has the mean φ(0), one of a pair or both.
        some = np.where(a * b == 0, values[:, alpha, 0] * values[:, beta, 0], 0.0)
        some[nonzero] = _of_powers(psi, 1, 1, a[nonzero], b[nonzero], t[nonzero])
        total += some
    return total


class WithinLayers(NamedTuple):
    """⟨φφφφ⟩ of every two pairs of inputs in a layer, where at most two of the inputs differ."""

    # (4, m): The different sorted inputs of two pairs.
    four: np.ndarray
    # (p, p): Which of them every two pairs have.
    which: np.ndarray
    # (L + 1, m)
    averages: np.ndarray
    # (L + 1, m): Where they are computed, for one feature and signals that do not vanish.
    exact: np.ndarray

    @classmethod
    def of(cls, signals: Signals) -> WithinLayers:
        """Those of all layers."""
        alpha, beta = signals.pairs
        rows, columns = np.indices((len(alpha),) * 2).reshape(2, -1)
        four = np.sort(np.stack([alpha[rows], beta[rows], alpha[columns], beta[columns]]), axis=0)
        four, which = np.unique(four, axis=1, return_inverse=True)
        one, other = four[0], four[3]
        own = np.diagonal(signals.K, axis1=1, axis2=2)
        a, b, t = own[:, one], own[:, other], signals.K[:, one, other]
        exact = np.all((four == one) | (four == other), axis=0) & (a > 0) & (b > 0)
        exact &= len(signals.functions) == 1
        averages, times = np.zeros(a.shape), np.count_nonzero(four == one, axis=0)
        for power in range(1, 5):
            some = exact & (times == power)
            if not some.any():
                continue
            psi = signals.functions[0]
            if power == 4:
                averages[some] = _coefficients(psi.square, 4)(a[some])[0][:, -1]
            else:
                averages[some] = _of_powers(psi, power, 4 - power, a[some], b[some], t[some])
        return cls(four, which.reshape(len(alpha), -1), averages, exact)


def of_three(signals: Signals, members: tuple[tuple[int, int], ...]) -> float | None:
    """⟨φφφφ⟩ of four signals (layer, input), some of which are the same; None of singular ones."""
    (psi,), different = signals.functions, sorted(set(members))
    l, inputs = np.array(different).T
    lower = np.minimum(l[:, None], l)
    K = signals.K[lower, inputs[:, None], inputs] * signals.passed[np.maximum(l[:, None], l), lower]
    powers = [_power(psi, members.count(each)) for each in different]
    try:
        return products.average(powers, K, SETTINGS.three_signals)
    except QuadratureError:
        return None


# Tables that are kept.
_coefficients = lru_cache(maxsize=64)(Coefficients)


def _of_powers(
    psi: Function, one: int, other: int, a: np.ndarray, b: np.ndarray, t: np.ndarray
) -> np.ndarray:
    """⟨ψⁿ(x)ψᵐ(y)⟩."""
    return _table_of_powers(psi, one, other)(a, b, t, SETTINGS.pair_correlators / 10, kinds=1)[
        0
    ].value


@lru_cache(maxsize=64)
def _table_of_powers(psi: Function, one: int, other: int) -> PairAverages:
    powers = (_power(psi, one), _power(psi, other) if one != other else None)
    return PairAverages(*powers)


def _power(function: Function, power: int) -> Function:
    if power == 1:
        return function
    return Function(lambda h: function.value(h) ** power, None, tuple(function.kinks))
