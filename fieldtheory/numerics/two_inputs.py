"""Correlators of two inputs in two layers by Hermite series in the correlation of the inputs.

The signal of a later layer is h^(l) = A h^(k) + √q n, with noise n that the layers between add.
With z = h^(k)/√K of one input and the noise of the same, functions F of the signals of the first
input and G of those of the second have the coefficients F_ij = ⟨F h_i(z) h_j(n)⟩, and

    ⟨F G⟩ = Σ_ij c^i d^j F_ij G_ij

with the correlations c of z and d of n between the inputs. The series converges as these do, not as
φ is smooth on the scale of its signals: wide signals and kinks take no more orders than others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.hermite import weighted_hermite
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.numerics.hermite_modes import modes_on
from fieldtheory.numerics.kinked_features import REACH, Feature, nodes_between, smoothed

# Powers of correlations left out, and most and least orders.
_NEGLIGIBLE, _MOST, _LEAST = 1e-14, 360, 12
# Frequencies in h that φ has, tried one after the other; what half of them may change.
_BANDS, _HALVED = (24.0, 48.0, 96.0), 1e-6
# Nodes in both directions that are held at once, and the relative error asked for.
_NODES, _TOLERANCE = 1 << 23, 1e-9


class _Rows(NamedTuple):
    """Functions r(h) = 1, ψ_a, g of one input in a layer, times h_i(z), with their weights.

    Parameters
    ----------
    nodes : ndarray, shape (m,)
        h.
    weighted : ndarray, shape (r, i, m)
    band : float
        Frequencies in h that the functions have.
    """

    nodes: np.ndarray
    weighted: np.ndarray
    band: float

    @property
    def alone(self) -> np.ndarray:
        """⟨r h_i⟩, shape (r, i)."""
        return self.weighted.sum(axis=-1)


class _Joint(NamedTuple):
    """What two inputs share in a pair of layers k <= l.

    Parameters
    ----------
    powers : ndarray, shape (i, j)
        c^i d^j.
    alone : ndarray, shape (2, r, i)
        ⟨r(h^(k)) h_i⟩ of either input.
    of_features : ndarray, shape (2, r, b, i, j)
        ⟨r(h^(k)) ψ_b(h^(l)) h_i h_j⟩ of either input.
    of_squares : ndarray, shape (2, r, i)
        ⟨r(h^(k)) g(h^(l), h^(l)) h_i⟩.
    noise : ndarray, shape (2,)
        q.
    """

    powers: np.ndarray
    alone: np.ndarray
    of_features: np.ndarray
    of_squares: np.ndarray
    noise: np.ndarray

    @property
    def early(self) -> float:
        """⟨g(h_α, h_β)⟩ of the earlier layer."""
        return self.total(self.alone[0, 1:-1, :, None], self.alone[1, 1:-1, :, None])

    @property
    def late(self) -> float:
        """⟨g(h_α, h_β)⟩ of the later layer."""
        return self.total(self.of_features[0, 0], self.of_features[1, 0])

    def total(self, F: np.ndarray, G: np.ndarray) -> float:
        """Σ c^i d^j F G of arrays (..., i, j); QuadratureError if the last orders count."""
        i, j = F.shape[-2:]
        terms = F * G * self.powers[:i, :j]
        of_orders = np.abs(terms).reshape(-1, i, j).sum(axis=0)
        late = of_orders[3 * i // 4 :].sum() + (of_orders[:, 3 * j // 4 :].sum() if j > 1 else 0)
        scale = np.sqrt(np.sum(F**2) * np.sum(G**2))
        if late > max(tolerance(), _TOLERANCE) * scale:
            raise QuadratureError(
                f"{i} orders in the correlation of two inputs leave a relative error of "
                f"{late / scale:.1g} in their fluctuations"
            )
        return float(terms.sum())


@dataclass(frozen=True, eq=False)
class TwoInputs:
    """Two inputs α and β of a network.

    Parameters
    ----------
    psi : sequence of Feature
        ψ_a; g(x, y) = Σ_a ψ_a(x) ψ_a(y).
    K : ndarray, shape (L + 1, 2, 2)
        Kernels of the hidden layers, of positive variances.
    carried : ndarray, shape (L + 1, L + 1)
        A_lk.
    """

    psi: Sequence[Feature]
    K: np.ndarray
    carried: np.ndarray

    def correlators(self) -> Iterator[np.ndarray]:
        """⟨g_e^(k) ; g_e'^(l)⟩ for k = 0, ..., L, each (3, 3, L + 1 − k), with l >= k.

        The entries e, e' are αα, ββ, αβ. Those of one input, αα αα and ββ ββ, are left out, as 0.
        """
        for k in range(len(self.K)):
            joints = self._joints(k, range(k, len(self.K)), 0)
            yield np.stack([self._correlator(joint) for joint in joints], axis=-1)

    def slopes(self) -> Iterator[np.ndarray]:
        """∂_e ⟨g^(l) ; g_e'^(k)⟩ for k = 0, ..., L, each (3, 3, L − k), with l > k.

        By the entries e = αα, ββ, αβ of the kernel of the later layer, of which g = g(h_α, h_β).
        """
        for k in range(len(self.K)):
            joints = self._joints(k, range(k + 1, len(self.K)), 2)
            found = [self._slope(joint) for joint in joints]
            yield np.stack(found, axis=-1) if found else np.zeros((3, 3, 0))

    def _correlator(self, joint: _Joint) -> np.ndarray:
        features, squares = joint.of_features, joint.of_squares
        alone, early, late = joint.alone, joint.early, joint.late
        found = np.zeros((3, 3))
        for own, other in ((0, 1), (1, 0)):
            mean = alone[own, -1, 0], squares[own, 0, 0]
            found[own, 2] = joint.total(features[own, -1], features[other, 0]) - mean[0] * late
            joined = joint.total(squares[own, 1:-1, :, None], alone[other, 1:-1, :, None])
            found[2, own] = joined - early * mean[1]
            joined = joint.total(alone[own, -1, :, None], squares[other, 0, :, None])
            found[own, other] = joined - mean[0] * squares[other, 0, 0]
        found[2, 2] = joint.total(features[0, 1:-1], features[1, 1:-1]) - early * late
        return found

    def _slope(self, joint: _Joint) -> np.ndarray:
        j = np.arange(joint.powers.shape[1] - 2)
        q = joint.noise[:, None, None, None, None]
        if not q.all():
            raise QuadratureError("layers add nothing to the signals of an earlier one")
        F = joint.of_features
        # Derivatives of ψ by parts, so that none are taken.
        first = np.sqrt(j + 1) * F[..., 1:-1] / np.sqrt(q)
        second = np.sqrt((j + 1) * (j + 2)) * F[..., 2:] / q
        F, alone, early = F[..., :-2], joint.alone, joint.early
        found = np.zeros((3, 3))
        moved = joint.total(first[0, 0], first[1, 0])
        for own, other in ((0, 1), (1, 0)):
            bent = joint.total(second[own, 0], F[other, 0])
            mean = alone[own, -1, 0], alone[other, -1, 0]
            found[2, own] = joint.total(first[own, -1], first[other, 0]) - mean[0] * moved
            of_own = joint.total(second[own, -1], F[other, 0]) - mean[0] * bent
            of_other = joint.total(second[own, 0], F[other, -1]) - mean[1] * bent
            crossed = joint.total(second[own, 1:-1], F[other, 1:-1]) - early * bent
            found[own, own], found[own, other] = of_own / 2, of_other / 2
            found[own, 2] = crossed / 2
        found[2, 2] = joint.total(first[0, 1:-1], first[1, 1:-1]) - early * moved
        return found

    def _joints(self, k: int, later: Sequence[int], more: int) -> Iterator[_Joint]:
        """Of layer k with later ones, with ``more`` orders of the noise than powers count."""
        own = self.K[k, [0, 1], [0, 1]]
        powers = _powers(float(self.K[k, 0, 1] / np.sqrt(own.prod())))
        kinks = any(f.jumps for f in self.psi)
        rows = [] if kinks else [_rows(self.psi, float(K), len(powers)) for K in own]
        for l in later:
            A = float(self.carried[l, k])
            noise = self.K[l] - A * A * self.K[k] if l > k else np.zeros((2, 2))
            q = np.maximum(noise[[0, 1], [0, 1]], 0.0)
            shared = np.sqrt(q.prod())
            of_noise = _powers(float(noise[0, 1] / shared)) if shared else np.ones(1)
            of_noise = np.concatenate([of_noise, np.zeros(more)])
            if kinks:
                rows = [
                    _kinked_rows(self.psi, float(K), len(powers), A, float(one), len(of_noise))
                    for K, one in zip(own, q, strict=True)
                ]
            parts = [
                _projected(self.psi, each, A, float(one), len(of_noise))
                for each, one in zip(rows, q, strict=True)
            ]
            alone = np.stack([each.alone for each in rows])
            features, squares = (np.stack(part) for part in zip(*parts, strict=True))
            yield _Joint(np.outer(powers, of_noise), alone, features, squares, q)


def _powers(correlation: float) -> np.ndarray:
    """c^n for as many n as count, or the most that are found."""
    size = abs(correlation)
    enough = _MOST if size >= 1 else np.log(_NEGLIGIBLE) / np.log(size) if size else 0
    return correlation ** np.arange(int(np.clip(enough, _LEAST, _MOST)))


def _rows(psi: Sequence[Feature], K: float, count: int) -> _Rows:
    """The functions of one input, on nodes that resolve them."""
    dev = np.sqrt(K)
    for band in _BANDS:
        z, step = _nodes(count, band * dev)
        rows = _functions(psi, dev * z)
        g = rows[-1]
        weights = step * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        fine, coarse = weights @ g**2, 2 * weights[::2] @ g[::2] ** 2
        if abs(fine - coarse) <= _HALVED * fine:
            modes = modes_on(count, False, z, np.full_like(z, step))
            return _Rows(dev * z, rows[:, None] * (modes.basis * modes.roots), band)
    raise QuadratureError("the activation is too steep for its signals")


def _kinked_rows(
    psi: Sequence[Feature], K: float, count: int, A: float, q: float, noise_count: int
) -> _Rows:
    """The functions of one input, and nodes that end at their kinks."""
    z, weights = nodes_between(psi, K, count, A, q, noise_count)
    hermite = np.stack(list(weighted_hermite(count, z, weights)))
    h = np.sqrt(K) * z
    return _Rows(h, _functions(psi, h)[:, None] * hermite, 0.0)


def _functions(psi: Sequence[Feature], h: np.ndarray) -> np.ndarray:
    """1, ψ_a and g."""
    features = [f.function(h) for f in psi]
    return np.stack([np.ones_like(h), *features, np.sum(np.square(features), axis=0)])


def _projected(
    psi: Sequence[Feature], rows: _Rows, A: float, q: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """`_Joint.of_features` and `_Joint.of_squares` of one input."""
    means = A * rows.nodes
    if q and any(f.jumps for f in psi):
        parts, g = smoothed(psi, means, q, count)
        return np.stack([rows.weighted @ part for part in parts], axis=1), rows.weighted @ g
    if q == 0:
        values = [f.function(means)[:, None] for f in psi]
        basis = np.ones((1, count)) * (np.arange(count) == 0)
    else:
        n, step = _nodes(count, rows.band * np.sqrt(q))
        if len(n) * len(means) > _NODES:
            raise QuadratureError("signals are too wide for their nodes")
        modes = modes_on(count, False, n, np.full_like(n, step))
        basis = (modes.basis * modes.roots).T
        values = [f.function(means[:, None] + np.sqrt(q) * n) for f in psi]
    projected = np.stack([rows.weighted @ (each @ basis) for each in values], axis=1)
    g = np.sum(np.square(values), axis=0) @ basis[:, 0]
    return projected, rows.weighted @ g


def _nodes(count: int, band: float) -> tuple[np.ndarray, float]:
    """Those of the trapezoidal rule for functions of so many frequencies, and their distance."""
    step = 2 * np.pi / (np.sqrt(count) + 8.0 + band)
    number = int(REACH / step) + 1
    return step * (np.arange(-number, number) + 0.25), step
