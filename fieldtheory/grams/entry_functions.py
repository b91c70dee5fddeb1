"""Functions of the entries of a Gram matrix with their derivatives, derived and compiled once.

An entry F_αβ of the next layer depends on X_αα, X_ββ and X_αβ alone, a variance F_αα on X_αα. All
entries α <= β stand on one axis; of a variance what stands for X_αβ is X_αα itself, and X_αα and
X_ββ move nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from scipy.sparse import csr_array

from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.gram import GramEntry, GramNetwork

_XX, _YY = sp.symbols("X_xx X_yy", positive=True)
_XY = sp.Symbol("X_xy", real=True)


class Pairs(NamedTuple):
    """The entries α <= β of matrices (P, P), in the order of `np.triu_indices`.

    Parameters
    ----------
    alpha, beta : ndarray of int, shape (p,)
        The inputs of each pair.
    first, second : ndarray of int, shape (p,)
        Places of the variances of α and of β among the pairs.
    own, others : ndarray of int
        Places of the variances, and of the covariances.
    """

    alpha: np.ndarray
    beta: np.ndarray
    first: np.ndarray
    second: np.ndarray
    own: np.ndarray
    others: np.ndarray

    @classmethod
    def of(cls, inputs: int) -> Pairs:
        """Those of so many inputs."""
        alpha, beta = np.triu_indices(inputs)
        own, others = np.flatnonzero(alpha == beta), np.flatnonzero(alpha != beta)
        return cls(alpha, beta, own[alpha], own[beta], own, others)


class Jet(NamedTuple):
    """Entries of a matrix as functions of the entries (αα), (ββ), (αβ) of another.

    Parameters
    ----------
    value : ndarray, shape (..., p)
    gradient : ndarray, shape (3, ..., p)
    hessian : ndarray, shape (3, 3, ..., p)
    """

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray

    def of(self, inner: Jet, pairs: Pairs) -> Jet:
        """The function of the entries of a function."""
        slopes, curvatures = (np.zeros((3, *each.shape)) for each in inner[1:])
        # The variances of a pair move with its first and second entries, a variance with its own.
        for e, places in enumerate((pairs.first, pairs.second)):
            slopes[e, e] = inner.gradient[2][..., places]
            curvatures[e, e, e] = inner.hessian[2, 2][..., places]
        slopes[2], curvatures[2] = inner.gradient, inner.hessian
        hessian = np.einsum("fg...,fd...,ge...->de...", self.hessian, slopes, slopes)
        return Jet(
            self.value,
            np.einsum("f...,fe...->e...", self.gradient, slopes),
            hessian + np.einsum("f...,fde...->de...", self.gradient, curvatures),
        )

    def times(self, other: Jet) -> Jet:
        """The product of two functions."""
        mixed = self.gradient[:, None] * other.gradient
        mixed = mixed + np.swapaxes(mixed, 0, 1)
        return Jet(
            self.value * other.value,
            self.gradient * other.value + self.value * other.gradient,
            self.hessian * other.value + mixed + self.value * other.hessian,
        )

    def scaled(self, weight: Any, bias: Any) -> Jet:
        """weight · F + bias."""
        return Jet(self.value * weight + bias, self.gradient * weight, self.hessian * weight)

    def followed_by(self, last: Jet) -> Jet:
        """The same with the last layer of another behind it; layers are the first axis."""
        both = zip(self, last, strict=True)
        each = (np.concatenate([a, b.take([-1], k)], k) for k, (a, b) in enumerate(both))
        return Jet(*each)

    def moved(self, l: int, change: np.ndarray, pairs: Pairs) -> np.ndarray:
        """The change of layer l with that of the entries of the other matrix, (p, ...)."""
        if not len(pairs.others):
            return self.gradient[2, l].reshape(-1, *(1,) * (change.ndim - 1)) * change
        # Three entries a row.
        size = len(change)
        columns = np.column_stack([pairs.first, pairs.second, np.arange(size)])
        starts = np.arange(0, columns.size + 1, 3)
        J = csr_array((self.gradient[:, l].T.ravel(), columns.ravel(), starts), (size, size))
        return (J @ change.reshape(size, -1)).reshape(change.shape)

    def shifted(self, l: int, m: np.ndarray, V: np.ndarray, pairs: Pairs) -> np.ndarray:
        """F' m + F'':V/2 of layer l, with the covariances V (p, p)."""
        entries = np.array([pairs.first, pairs.second, np.arange(len(m))])
        covariances = V[entries[:, None], entries]
        return self.moved(l, m, pairs) + (self.hessian[:, :, l] * covariances).sum((0, 1)) / 2


def product(jets: Sequence[Jet]) -> Jet:
    """The product of functions of the same entries."""
    return reduce(Jet.times, jets)


@lru_cache(maxsize=64)
def entry_functions(network: GramNetwork) -> dict[str, Callable[..., Any]]:
    """Functions ``f(X, parameters, pairs, order)`` of the entries of a network.

    "stream" and "read" are of what the skip connection carries and of what is read, "signals_0",
    ... the Q_k. Of order 0 they are the values (..., p), of order 2 a `Jet`, of order 1 the slope
    by X_αβ alone, at fixed variances, also of variances.
    """
    parameters = {name: sp.Symbol(name, positive=True) for name in sorted(network.parameters)}

    def function(entry: Callable[[GramEntry], Any]) -> Callable[..., Any]:
        of_pair, of_own = (
            _compiled(sp.sympify(entry(at)), variables)
            for at, variables in (
                (GramEntry(_XY, _XX, _YY), (_XX, _YY, _XY)),
                (GramEntry(_XX, _XX, _XX), (_XX,)),
            )
        )

        def of_entries(X: np.ndarray, values: Mapping[str, Any], pairs: Pairs, order: int) -> Any:
            every = X[..., pairs.first], X[..., pairs.second], X
            if order == 1:
                return of_pair(every, values)[3]
            own = np.array(of_own([X[..., pairs.own]], values))
            if not order:
                rows = own[:1]
            else:
                rows = np.zeros((13, *own.shape[1:]))
                rows[[0, 3, 12]] = own
            whole = np.empty((len(rows), *X.shape))
            whole[..., pairs.own] = rows
            if len(pairs.others):
                at = [each[..., pairs.others] for each in every]
                whole[..., pairs.others] = of_pair(at, values)[: len(rows)]
            if not order:
                return whole[0]
            return Jet(whole[0], whole[1:4], whole[4:].reshape(3, 3, *X.shape))

        return of_entries

    def read(at: GramEntry) -> Any:
        return network.read(at, parameters)

    def signal(k: int) -> Callable[..., Any]:
        return function(lambda at: network.signals(read(at), parameters)[k])

    functions = {f"signals_{k}": signal(k) for k in range(len(network.factors))}
    functions["stream"] = function(lambda at: network.stream(at, parameters))
    functions["read"] = function(read)
    return functions


@lru_cache(maxsize=256)
def _compiled(F: sp.Expr, variables: tuple[sp.Symbol, ...]) -> Callable[..., list[np.ndarray]]:
    """F, its gradient and its Hessian as arrays."""
    parameters = sorted(F.free_symbols.difference(variables), key=str)
    # As one fraction, which is exactly 0 where a norm without ε fixes a variance.
    gradient = [sp.factor(F.diff(x)) for x in variables]
    hessian = [slope.diff(x) for slope in gradient for x in variables]
    arguments = [*variables, *parameters]
    function = lambdify(arguments, [F, *gradient, *hessian])

    def arrays(entries: Sequence[np.ndarray], values: Mapping[str, Any]) -> list[np.ndarray]:
        numbers = function(*entries, *(values[str(each)] for each in parameters))
        shape = np.broadcast_shapes(*map(np.shape, numbers), np.shape(entries[0]))
        return [np.broadcast_to(number, shape) for number in numbers]

    return arrays
