"""Correlators within a layer of pairs that have an input in common, as integrals over its signal.

As a function of what h_β has beside h_α, g(h_α, h_β) has coefficients g_j^β(h_α), and with the
partial correlation r of h_β and h_δ

    ⟨g(h_α, h_β) g(h_α, h_δ)⟩ = ⟨Σ_j r^j g_j^β(h_α) g_j^δ(h_α)⟩.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from fieldtheory.numerics.neurons.hermite_modes import grid_modes
from fieldtheory.numerics.observables import wide_observables
from fieldtheory.numerics.observables.pair_modes import triangle
from fieldtheory.numerics.observables.pair_observables import PairObservables, features
from fieldtheory.numerics.observables.product_rules import (
    Function,
    PanelRule,
    on_panels,
    panel_rule,
)
from fieldtheory.numerics.observables.shared_signals import partial_correlations, places

# Orders whose even nodes are taken, and weights of nodes that are nothing.
_FINE, _NEGLIGIBLE = 560, 1e-20
# Where a signal is a multiple of the common one.
_ALONG = 1e-12


def correlators(signals: PairObservables, k: int, count: int) -> np.ndarray:
    """⟨g ; g⟩ in layer k, NaN without a common input, by ``count`` orders j, shape (p, p)."""
    K, place, p = signals.K[k], places(signals), len(signals.pairs[0])
    found = np.full((p, p), np.nan)
    given = _by_orders if wide_observables.panel_ends(signals) else _on_nodes
    for alpha in range(len(K)):
        of_orders, variances = given(signals, K, alpha, count)
        r = partial_correlations(K, alpha)
        met = np.einsum("bnj,dnj->bdj", of_orders, of_orders, optimize=True)
        values = (met * r[..., None] ** np.arange(count)).sum(axis=-1)
        np.fill_diagonal(values, variances)
        found[np.ix_(place[alpha], place[alpha])] = values
    return found


def missed(signals: PairObservables) -> float:
    """By how much even nodes miss ⟨g²⟩ of the widest signal: the square of what every second does.

    Panels miss nothing.
    """
    if wide_observables.panel_ends(signals):
        return 0.0
    z, roots, _ = _even_nodes(1)
    x = np.sqrt(np.diagonal(signals.K, axis1=1, axis2=2).max()) * z
    squares = roots**2 * sum(psi(x) ** 2 for psi in _functions(signals)) ** 2
    total = squares.sum()
    return float((2 * squares[::2].sum() / total - 1) ** 2) if total else 0.0


def _on_nodes(
    signals: PairObservables, K: np.ndarray, alpha: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """g_j^β without ⟨g⟩ of every β, (P, nodes, count), and the variances ⟨g ; g⟩, (P,).

    The former times the square roots of the weights of the nodes of h_α.
    """
    z, roots, basis = _even_nodes(count)
    along, across = _beside(K, alpha)
    x = np.sqrt(K[alpha, alpha]) * z
    y = along[:, None, None] * z[:, None] + across[:, None, None] * z
    g = sum(psi(x)[:, None] * psi(y) for psi in _functions(signals))
    weights = roots**2
    g -= (g @ weights @ weights)[:, None, None]
    return (g * roots) @ basis.T * roots[:, None], g**2 @ weights @ weights


def _by_orders(
    signals: PairObservables, K: np.ndarray, alpha: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same on panels, from the orders of one signal, of which h_α is a part."""
    rule = panel_rule(count, wide_observables.MOST, wide_observables.panel_ends(signals))
    along, across = _beside(K, alpha)
    width = np.sqrt(K[alpha, alpha])
    z, basis = on_panels(tuple(kink / width for kink in rule.kinks), 0, rule.most)
    roots, functions = basis[0], _functions(signals)
    at = [psi(width * z) for psi in functions]
    of_orders = np.zeros((len(K), len(z), count))
    squares = np.zeros((len(K), len(z)))
    for psi, here in zip(functions, at, strict=True):
        of_orders += here[:, None] * _given_first(rule, psi, along, across, basis, count)
    for (psi, here), (other, there) in product(zip(functions, at, strict=True), repeat=2):
        both = _given_first(rule, _times(psi, other), along, across, basis, 1)[..., 0]
        squares += here * there * both
    mean = of_orders[..., 0] @ roots
    of_orders[..., 0] -= mean[:, None] * roots
    return of_orders, squares @ roots - mean**2


def _given_first(
    rule: PanelRule,
    f: Function,
    along: np.ndarray,
    across: np.ndarray,
    basis: np.ndarray,
    count: int,
) -> np.ndarray:
    """⟨f(a z_1 + b z_2) h_j(z_2)⟩ at z_1, times square roots of weights, (P, nodes, count).

    With a = σ c and b = σ s it is Σ_i √((i+j)!/(i! j!)) c^i s^j f_{i+j} h_i(z_1), and where b is
    nothing f itself.
    """
    widths = np.hypot(along, across)
    c, s = along / widths, across / widths
    single = rule.single(f, widths)
    found = np.zeros((len(widths), basis.shape[1], count))
    i, j = np.arange(rule.most), np.arange(count)
    padded = np.concatenate([single, np.zeros((len(single), count))], axis=1)
    z = basis[1] / basis[0]
    for each in range(len(widths)):
        if s[each] <= _ALONG:
            found[each, :, 0] = f(along[each] * z) * basis[0]
            continue
        orders = padded[each][i[:, None] + j] * rule.factors[:, :count]
        orders *= c[each] ** i[:, None] * s[each] ** j
        found[each] = basis.T @ orders
    return found


def _beside(K: np.ndarray, alpha: int) -> tuple[np.ndarray, np.ndarray]:
    """a and b of every h_β = a z_1 + b z_2, with z_1 that of h_α."""
    variances = np.diagonal(K)
    own = np.full_like(variances, variances[alpha])
    _, (along, across) = triangle(np.stack([own, variances]), K[alpha])
    return along, across


def _even_nodes(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of one signal, square roots of their weights, and orders of polynomials there."""
    modes = grid_modes(_FINE, False)
    kept = modes.roots**2 > _NEGLIGIBLE
    return modes.nodes[kept], modes.roots[kept], modes.basis[:count, kept]


def _functions(signals: PairObservables) -> list[Function]:
    return [psi[0] for psi in features(signals.network)]


def _times(f: Function, g: Function) -> Function:
    return lambda h: f(h) * g(h)
