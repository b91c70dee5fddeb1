"""Functions of the entries of a Gram matrix with their derivatives, derived and compiled once.

An entry F_αβ of the next layer depends on X_αα, X_ββ and X_αβ alone, a variance F_αα on X_αα.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.gram import GramEntry, GramNetwork

_XX, _YY = sp.symbols("X_xx X_yy", positive=True)
_XY = sp.Symbol("X_xy", real=True)
_OF_PAIR, _OF_ONE = (_XX, _YY, _XY), (_XX,)
_ENTRY = {_OF_PAIR: GramEntry(_XY, _XX, _YY), _OF_ONE: GramEntry(_XX, _XX, _XX)}


class Jet(NamedTuple):
    """A function of n entries with its derivatives: (X_αα, X_ββ, X_αβ), or X_αα alone.

    Parameters
    ----------
    value : ndarray, shape (...)
    gradient : ndarray, shape (n, ...)
    hessian : ndarray, shape (n, n, ...)
    """

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray

    def of(self, inner: Sequence[Jet]) -> Jet:
        """The function of functions."""
        slopes, curvatures = (np.array([each[k] for each in inner]) for k in (1, 2))
        hessian = np.einsum("fg...,fd...,ge...->de...", self.hessian, slopes, slopes)
        return Jet(
            self.value,
            np.einsum("f...,fe...->e...", self.gradient, slopes),
            hessian + np.einsum("f...,fde...->de...", self.gradient, curvatures),
        )

    def times(self, other: Jet) -> Jet:
        """The product of two functions."""
        mixed = self.gradient[:, None] * other.gradient
        return Jet(
            self.value * other.value,
            self.gradient * other.value + self.value * other.gradient,
            self.hessian * other.value
            + mixed
            + np.swapaxes(mixed, 0, 1)
            + self.value * other.hessian,
        )

    def scaled(self, weight: Any, bias: Any = 0.0) -> Jet:
        """weight · F + bias."""
        return Jet(self.value * weight + bias, self.gradient * weight, self.hessian * weight)

    def followed_by(self, last: Jet) -> Jet:
        """The same with the last layer of another behind it; layers are the first axis."""
        return Jet(
            *(
                np.concatenate([one, other.take([-1], axis)], axis)
                for axis, (one, other) in enumerate(zip(self, last, strict=True))
            )
        )


def product(jets: Sequence[Jet]) -> Jet:
    """The product of functions of the same entries."""
    return reduce(Jet.times, jets)


class EntryFunctions(NamedTuple):
    """Entries of a layer as functions ``f(entries, parameters)``: a `Jet`, of order 0 the value.

    Parameters
    ----------
    stream, read : callable
        Of the Gram matrices of what the skip connection carries and of what is read.
    signals : tuple of callable
        The Q_k.
    """

    stream: Callable[..., Jet]
    read: Callable[..., Jet]
    signals: tuple[Callable[..., Jet], ...]


@lru_cache(maxsize=64)
def entry_functions(network: GramNetwork, one: bool) -> EntryFunctions:
    """Those of a network, of a variance (``one``) or of a covariance."""
    variables = _OF_ONE if one else _OF_PAIR
    # What norms depend on is the same in all layers.
    parameters = {name: sp.Symbol(name, positive=True) for name in sorted(network.parameters)}
    entry = _ENTRY[variables]
    read = network.read(entry, parameters)

    def compiled(expression: Any) -> Callable[..., Jet]:
        F, count = sp.sympify(expression), len(variables)
        names = [name for name, symbol in parameters.items() if F.has(symbol)]
        gradient = [F.diff(x) for x in variables]
        hessian = [slope.diff(x) for slope in gradient for x in variables]
        arguments = [*variables, *map(parameters.get, names)]
        alone, all_of_it = (lambdify(arguments, each) for each in ([F], [F, *gradient, *hessian]))

        def jet(entries: Sequence[np.ndarray], values: Mapping[str, Any], order: int = 2) -> Any:
            numbers = (all_of_it if order else alone)(*entries, *map(values.get, names))
            shape = np.broadcast_shapes(*(np.shape(x) for x in entries))
            if not order:
                return np.broadcast_to(numbers[0], shape)
            rows = np.array([np.broadcast_to(number, shape) for number in numbers], dtype=float)
            hessian = rows[1 + count :].reshape(count, count, *shape)
            return Jet(rows[0], rows[1 : 1 + count], hessian)

        return jet

    return EntryFunctions(
        compiled(network.stream(entry, parameters)),
        compiled(read),
        tuple(map(compiled, network.signals(read, parameters))),
    )
