"""The arithmetic of balls for the recursion over layers, at the precision of ``flint.ctx``."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import sympy as sp

from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.compiling.numeric_functions import call
from fieldtheory.precision import enclosures
from fieldtheory.precision.arithmetic import Arithmetic
from fieldtheory.precision.balls import arb, constant, real_functions
from fieldtheory.theory.elementary_averages import LayerAverages, X, Y


def ball_arithmetic() -> Arithmetic:
    """Numbers, functions and averages as balls, at the present precision.

    >>> print(ball_arithmetic().number(sp.Rational(1, 3)).str(8))
    [0.33333333 +/- 3.34e-9]
    """
    return Arithmetic(constant, real_functions(), _resolved, _correlators)


def _resolved(node: AverageNode, functions: dict[str, Callable[..., Any]]) -> sp.Expr:
    """A call of `enclosures.average`."""
    (F,), variables, K = node.functions, tuple(node.variables), node.covariance
    if len(variables) == 1:
        return call(lambda a: enclosures.average(F, variables, [[a]]), [K[0, 0]], functions)
    return call(
        lambda a, b, c: enclosures.average(F, variables, [[a, c], [c, b]]),
        [K[0, 0], K[1, 1], K[0, 1]],
        functions,
    )


def _correlators(averages: LayerAverages, K: list[list[Any]], used: list[bool]) -> Any:
    """⟨g(h^(k)) ; g(h^(l))⟩ of all pairs of layers, see `arithmetic.Correlators`."""
    F, size = averages.square, len(used)
    values = [[arb(0)] * size for _ in range(size)]
    layers = [l for l, enters in enumerate(used) if enters]
    for i, l in enumerate(layers):
        mean, own = (enclosures.average(F**n, [X], [[K[l][l]]]) for n in (1, 2))
        values[l][l] = own - mean * mean
        for k in layers[:i]:
            entries = [[K[k][k], K[k][l]], [K[k][l], K[l][l]]]
            values[k][l] = values[l][k] = enclosures.correlator(F, F.subs(X, Y), (X, Y), entries)
    return SimpleNamespace(connected=values)
