"""What the recursion over layers needs of an arithmetic: numbers, functions, averages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import sympy as sp
from sympy.printing.pycode import MpmathPrinter

from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.compiling.translation import translate
from fieldtheory.theory.elementary_averages import LayerAverages


class Correlators(Protocol):
    """The connected correlators of one neuron's signals h^(0), ..., h^(L) at one input."""

    @property
    def connected(self) -> list[list[Any]]:
        """⟨g(h^(k)) ; g(h^(l))⟩, (L + 1, L + 1); 0 where a layer does not enter."""

    @property
    def slopes(self) -> list[list[Any]]:
        """∂⟨g(x) ; g(y)⟩/∂K_xx for x = h^(l), y = h^(k), k < l, else 0; for the mean shift."""


@dataclass(frozen=True)
class Arithmetic:
    """Numbers, elementary functions and Gaussian averages of one kind."""

    # An exact number of SymPy in this arithmetic.
    number: Callable[[sp.Expr], Any]
    # By the names that SymPy's `MpmathPrinter` prints, such as mpf, sqrt, pi, erf, atan2.
    functions: Mapping[str, Any]
    # An average in closed form, or in calls of functions that are entered in the second argument.
    resolved: Callable[[AverageNode, dict[str, Callable[..., Any]]], sp.Expr]
    # Those of signals with covariances (L + 1, L + 1), for the layers that are used.
    correlators: Callable[[LayerAverages, list[list[Any]], list[bool]], Correlators]

    def compiled(self, arguments: Sequence[sp.Symbol], expression: Any) -> Callable[..., Any]:
        """A symbolic result, or a list of them, as a function of numbers of this arithmetic."""
        calls: dict[str, Callable[..., Any]] = {}
        translated = translate(expression, cache(lambda node: self.resolved(node, calls)))
        printer = MpmathPrinter(
            {
                "fully_qualified_modules": False,
                "inline": True,
                "allow_unknown_functions": True,
                "user_functions": {name: name for name in calls},
            }
        )
        modules = [calls, dict(self.functions)]
        return sp.lambdify(list(arguments), translated, modules=modules, printer=printer, cse=True)
