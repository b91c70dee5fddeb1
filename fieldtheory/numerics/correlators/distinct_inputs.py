"""Correlators of pairs that have an input in common, if no two inputs are nearly parallel.

A signal of a later layer is nearly that of an earlier one, so that Hermite series of pairs with an
input α in common converge slowly. Given this input, h_α = x and later y, they are series in
correlations of different inputs alone: h_δ of the later layer, beside x, has the correlation κ with
what layers add to y, and ρ with h_β of the earlier layer beside x, so that

    ⟨ψ(x) ψ(h_β) ψ(y) ψ(h_δ)⟩ = ⟨ψ(x) Σ_ij √((i+j)!/(i! j!)) κ^i ρ^j ψ_i(x) b_j^β(x) b_{i+j}^δ(x)⟩

with the coefficients b_j of ψ(h) by what h has beside x, and ψ_i of ψ(y) by what layers add to y.
This holds for any ψ, with kinks and of any width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.numerics.correlators.later_signals import REACH, LaterSignal, later_signal
from fieldtheory.numerics.hermite_coefficients import HermiteCoefficients
from fieldtheory.numerics.kinks.kinked_features import centres
from fieldtheory.numerics.observables.pair_observables import (
    PairObservables,
    features,
    kinked_features,
    places_of_jumps,
)
from fieldtheory.numerics.observables.product_rules import Function, factors
from fieldtheory.numerics.observables.two_layers import TwoLayers

# Orders of one variable at most, and what they leave out relative to what is allowed.
_MOST, _LEFT_OUT = 384, 0.1
# Derivatives of functions of the later layer that are asked for.
DERIVATIVES = 2
# What layers add to a variance at least, if they add anything: derivatives lose digits as its
# inverse.
_ADDED = 1e-4
# Seconds of the functions of one signal, per order of them, and per node and product of orders of
# one more.
_ALONE, _PER_ONE, _PER_ORDER, _NODES = 2e-3, 2e-4, 4e-10, 500


@dataclass(frozen=True, eq=False)
class DistinctInputs:
    """The signals of several inputs by series in correlations of different ones.

    Parameters
    ----------
    signals : PairObservables
    """

    signals: PairObservables

    @cached_property
    def error(self) -> float:
        """What a series leaves out, relative to deviations."""
        return _LEFT_OUT * self.signals.allowed

    @cached_property
    def layers(self) -> list[TwoLayers]:
        """All layers k <= l."""
        size = len(self.signals.K)
        return [TwoLayers(self.signals, k, l) for k in range(size) for l in range(k, size)]

    @cached_property
    def resolved(self) -> bool:
        """Whether as many orders as there are suffice."""
        own = np.diagonal(self.signals.K, axis1=1, axis2=2)
        added = np.diagonal(self.signals.C, axis1=1, axis2=2)[1:]
        little = (added > 0) & (added < _ADDED * own[1:])
        # Between layers that hardly differ jumps are kinks of correlations.
        if not own.all() or little.any() or places_of_jumps(self.signals.network):
            return False
        if max(two.largest for two in self.layers) >= self.error ** (1 / (_MOST - 2)):
            return False
        return bool(np.isfinite(self._coefficients).all()) and self._fades

    @cached_property
    def seconds(self) -> float:
        """About how many seconds `sharing` of all layers and inputs takes."""
        inputs, total = self.signals.K.shape[-1], 0.0
        for two in self.layers:
            I, J, M = (self.count(rates).mean() for rates in two.rates)
            products = I * J + M * (I + 2 * J)
            alone = _ALONE + _PER_ONE * I
            total += inputs * (alone + _PER_ORDER * _NODES * inputs * products)
        return float(total)

    def count(self, rates: np.ndarray) -> np.ndarray:
        """Orders that suffice for series that fall off at these rates."""
        with np.errstate(divide="ignore"):
            return np.ceil(2 + np.log(self.error) / np.log(np.abs(rates))).astype(int)

    def later(self, two: TwoLayers) -> list[LaterSignal]:
        """Functions of every input in the two layers, of orders for all that is asked of them."""
        of_noise, _, given = (float(rates.max()) for rates in two.rates)
        rates = np.array([max(of_noise, float(np.abs(two.added).max())), given])
        I, M = self.count(rates).tolist()
        orders = I + DERIVATIVES, M
        deviations = zip(two.early, two.carried * two.early, two.noise, strict=True)
        return [
            later_signal(self._psi, self._kinks, (float(s), float(a), float(n)), orders)
            for s, a, n in deviations
        ]

    def sharing(self, two: TwoLayers, alpha: int, y: LaterSignal) -> np.ndarray:
        """⟨g(h_α, h_β) ; g(h_α, h_δ)⟩ of layers k and l, shape (P, P), from `later` of α.

        That of β = δ ≠ α, whose ρ is near one, is zero.
        """
        rho, kappa = two.beside(alpha), two.to_noise[alpha]
        I, J, _ = (self.count(rates[alpha]) for rates in two.rates)
        F, H = np.zeros((2, int(J.max()), len(two.early), len(y.z)))
        F[0, alpha] = (y.early**2).sum(axis=0) * y.roots
        H[0, alpha] = y.square * y.roots
        for beta in np.flatnonzero(np.arange(len(two.early)) != alpha).tolist():
            i, j = int(I[beta]), int(J[beta])
            c, d = float(two.within[alpha, beta]), float(two.across[alpha, beta])
            b = self._beside(two.k, beta, c, len(F), y.basis)
            F[:, beta] = np.einsum("fn,fjn->jn", y.early, b)
            b = self._beside(two.l, beta, d, i + j - 1, y.basis)
            H[:j, beta] = self._of_noise(y, kappa[beta], b, i, j)
        F[0] -= (F[0] @ y.roots)[:, None] * y.roots
        powers = rho ** np.arange(len(F))[:, None, None]
        return np.einsum("jbd,jbd->bd", F @ np.swapaxes(H, 1, 2), powers)

    def _of_noise(self, y: LaterSignal, kappa: float, b: np.ndarray, i: int, j: int) -> np.ndarray:
        """Σ_i √((i+j)!/(i! j!)) κ^i ψ_i b_(i+j) for every j, shape (j, nodes)."""
        found = np.zeros((j, len(y.z)))
        weighted = (kappa ** np.arange(i) * y.later[..., :i]).transpose(0, 2, 1)
        factors = self._factors[:i, :j, None]
        # The longer of the two sums at once.
        if i <= j:
            for n in range(i):
                seen = np.einsum("fn,fjn->jn", weighted[:, n], b[:, n : n + j])
                found += factors[n] * seen
            return found
        for n in range(j):
            found[n] = np.einsum("fin,fin->n", weighted, factors[:, n] * b[:, n : n + i])
        return found

    def _beside(self, l: int, delta: int, c: float, orders: int, basis: np.ndarray) -> np.ndarray:
        """b_j of ψ(h_δ^(l)), shape (functions, orders, nodes), c its correlation with z.

        With s² = 1 − c² it is Σ_m √((m+j)!/(m! j!)) c^m s^j f_{m+j} h_m(z), times the square roots
        that the basis of h_m has.
        """
        most = int(self.count(np.array(c)))
        m, j = np.arange(most), np.arange(orders)[:, None]
        orders_of_both = self._factors[:most, :orders].T * c**m * (1 - c * c) ** (j / 2)
        return (self._coefficients[:, l, delta][:, m + j] * orders_of_both) @ basis[:most]

    @property
    def _psi(self) -> list[Function]:
        return [each[0] for each in features(self.signals.network)]

    @cached_property
    def _kinks(self) -> tuple[float, ...]:
        """Where the ψ are not smooth, or change fastest."""
        return centres(kinked_features(self.signals.network))

    @cached_property
    def _coefficients(self) -> np.ndarray:
        """⟨ψ(σ z) h_n(z)⟩, shape (functions, L + 1, P, orders)."""
        own = np.diagonal(self.signals.K, axis1=1, axis2=2)
        found = [
            HermiteCoefficients(each, self._kinks).integrated(own.ravel(), 3 * _MOST)[0]
            for each in self._psi
        ]
        return np.stack(found).reshape(len(found), *own.shape, -1)

    @property
    def _fades(self) -> bool:
        """Whether four functions of one signal are nothing beyond the nodes."""
        deviations = np.sqrt(np.diagonal(self.signals.K, axis1=1, axis2=2))
        ends = REACH * np.stack([deviations, -deviations])
        squares = (self._coefficients**2).sum(axis=-1)
        far = np.stack([np.abs(each(ends)).max(axis=0) for each in self._psi])
        return bool((far**4 * np.exp(-(REACH**2) / 2) <= self.error * squares**2).all())

    @property
    def _factors(self) -> np.ndarray:
        return factors(2 * _MOST, _MOST)
