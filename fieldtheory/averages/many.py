"""Averages of several variables, and cumulants of joint functions of them, as NumPy functions.

In this order: products of error functions by closed forms of a tilted Gaussian, or by Price's
theorem where its inner averages are such; polynomials on either side of zero (ReLU) by moments of
orthants; other smooth functions by the trapezoidal rule along the principal axes of the
covariance; other kinks by nested panels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy as sp

from fieldtheory.averages.integrals import tensor, tilting
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.narrow import cuts_of
from fieldtheory.averages.integrands.partitions import partitions
from fieldtheory.averages.integrands.steps import has_steps
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.polynomial_pieces import orthants, signed_products
from fieldtheory.averages.rules import CLOSED_FORM, PRICE, Rule, entry_indices

# Degree of the moments that are taken orthant by orthant.
_HIGHEST_DEGREE = 24

# A function of covariances (m, d, d) with values (m,).
OfMatrices = Callable[[np.ndarray], np.ndarray]


def rule(node: AverageNode) -> Rule:
    """The first rule that holds for an average or cumulant, of numbers beside its variables.

    Raises
    ------
    ValueError
        If an integrand has kinks that do not lie at values of one variable.

    Examples
    --------
    >>> from fieldtheory.averages import ConnectedCorrelator
    >>> x, y = sp.symbols("x y", real=True)
    >>> node = ConnectedCorrelator(sp.erf(x) * sp.erf(y), sp.erf(x) * sp.erf(y), (x, y), sp.eye(2))
    >>> chosen = rule(node)
    >>> chosen.name, chosen.function(np.array([1.0, 2.0]), 1.0, 0.5).round(10)
    ("Price's theorem", array([0.18893366, 0.25513397]))
    """
    size = len(node.variables)
    for decide in (_tilted, _signs, _price, _orthants):
        found = decide(node)
        if found is not None:
            name, reason, of_matrices = found
            return Rule(name, reason, _of_entries(of_matrices, size))
    functions = [vectorised(node.variables, F) for F in node.functions]
    kinks = [sorted({k for F in node.functions for k in cuts_of(F, v)}) for v in node.variables]
    what = str(node)

    def compute(K: np.ndarray) -> np.ndarray:
        return np.array([tensor.cumulant(functions, kinks, one, what) for one in K])

    if any(kinks):
        name, reason = "panels", "kinks: nested integrals over whitened variables that end there"
    else:
        name = "trapezoidal rule"
        reason = "smooth in every variable: converges exponentially along the principal axes"
    return Rule(name, reason, _of_entries(compute, size))


def signed(node: AverageNode) -> Rule | None:
    """The rule for products of polynomials between kinks and of error functions, None for others.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> from fieldtheory.averages import GaussianAverage
    >>> K = sp.Matrix([[2, 1], [1, 2]])
    >>> signed(GaussianAverage(sp.Max(0, x - 1) * sp.erf(y), (x, y), K)).name
    'orthants'
    """
    found = _signs(node)
    return None if found is None else Rule(*found[:2], _of_entries(found[2], len(node.variables)))


def _of_entries(compute: OfMatrices, size: int) -> Callable:
    """A function of matrices as one of their entries, arrays that broadcast."""
    indices = entry_indices(size)

    def function(*entries: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in entries))
        K = np.empty((arrays[0].size, size, size))
        for (i, j), values in zip(indices, arrays, strict=True):
            K[:, i, j] = K[:, j, i] = values.ravel()
        return compute(K).reshape(arrays[0].shape)

    return function


def _tilted(node: AverageNode) -> tuple[str, str, OfMatrices] | None:
    if len(node.functions) > 1:
        return None
    terms = tilting.terms_of(node.functions[0], tuple(node.variables))
    if terms is None:
        return None
    reason = "at most two error functions and Gaussian factors: one angle of a tilted covariance"
    return CLOSED_FORM, reason, tilting.averaged(terms)


def _price(node: AverageNode) -> tuple[str, str, OfMatrices] | None:
    variables = tuple(node.variables)
    if len(node.functions) > 2 or not node.has(sp.erf):
        return None
    reason = "⟨∂_iF ∂_jG⟩ has a closed form: one integral over the coupling of F and G"
    if len(node.functions) == 2:
        path = tilting.path_of(*node.functions, variables)
        if path is None:
            return None
        one = tilting.connected(path)
        return PRICE, reason, lambda K: np.array([one(k) for k in K])
    halves = tilting.halves_of(node.functions[0], variables)
    if halves is None:
        return None
    path = tilting.path_of(*halves, variables)
    parts = [tilting.terms_of(half, variables) for half in halves]
    if path is None or None in parts:
        return None
    joint = tilting.connected(path)
    first, second = (tilting.averaged(terms) for terms in parts if terms is not None)
    reason = f"⟨FG⟩ = ⟨F⟩⟨G⟩ + ⟨F;G⟩ with F = {halves[0]}, and {reason}"
    return PRICE, reason, lambda K: np.array([joint(k) for k in K]) + first(K) * second(K)


def _signs(node: AverageNode) -> tuple[str, str, OfMatrices] | None:
    if not isinstance(node, AverageNode):
        return None
    kinks = any(has_steps(F) for F in node.functions)
    if not kinks and not node.has(sp.erf):
        return None
    if kinks:
        name, reason = "orthants", "polynomials between kinks: moments with signs"
    else:
        name, reason = PRICE, "error functions are signs of variables with noise"
    if len(node.variables) > 2:
        reason += ", those of more than two by one integral"
    slots: dict[sp.Expr, signed_products.Slots] = {}
    terms: list[tuple[int, list[sp.Expr]]] = []
    for weight, blocks in partitions(node.functions):
        products = [sp.Mul(*block) for block in blocks]
        terms.append((int(weight), products))
        for F in products:
            found = signed_products.slots_of(F, tuple(node.variables))
            if found is None:
                return None
            slots[F] = found
    if len(node.functions) == 2:
        joint = signed_products.connected(*(slots[F] for F in node.functions))
        if joint is not None:
            return name, reason, joint
    averages = {F: signed_products.averaged(found) for F, found in slots.items()}

    def compute(K: np.ndarray) -> np.ndarray:
        values = {F: average(K) for F, average in averages.items()}
        return np.sum([w * np.prod([values[F] for F in Fs], axis=0) for w, Fs in terms], axis=0)

    return name, reason, compute


def _orthants(node: AverageNode) -> tuple[str, str, OfMatrices] | None:
    if not any(has_steps(F) for F in node.functions):
        return None
    moments: dict[sp.Expr, tuple[list[int], OfMatrices]] = {}
    terms: list[tuple[int, list[sp.Expr]]] = []
    for weight, blocks in partitions(node.functions):
        products = [sp.Mul(*block) for block in blocks]
        terms.append((int(weight), products))
        for F in products:
            if F in moments:
                continue
            used = [i for i, v in enumerate(node.variables) if F.has(v)]
            pieces = orthants.pieces_of(F, [node.variables[i] for i in used])
            if pieces is None or _degree(pieces) > _HIGHEST_DEGREE:
                return None
            moments[F] = used, orthants.averaged(pieces)

    def compute(K: np.ndarray) -> np.ndarray:
        values = {F: f(K[:, used][:, :, used]) for F, (used, f) in moments.items()}
        return np.sum([w * np.prod([values[F] for F in Fs], axis=0) for w, Fs in terms], axis=0)

    reason = "a polynomial on either side of zero: moments of orthants"
    if len(node.variables) > 3:
        reason += ", the probability of four signs by one integral"
    return "orthants", reason, compute


def _degree(pieces: orthants.Pieces) -> int:
    return max((sum(powers) for _, terms in pieces for powers, _ in terms), default=0)
