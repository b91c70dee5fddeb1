"""Kernels and their conjugates for P ~ N by sampled paths of one neuron, for any φ without jumps.

The path h^(0), ..., h^(L) of a neuron has the Gaussian law with the kernels C^(0), ..., C^(L) times
exp Σ_l a_l φᵀ(h^(l-1)) C̃^(l) φ(h^(l-1)). Elliptical slice sampling (I. Murray, R. P. Adams,
D. J. C. MacKay, AISTATS 2010) moves many paths at once, in coordinates ξ with h^(l) = γ_l h^(l-1) +
R^(l) ξ^(l), R Rᵀ = C, where kernels may be singular. Between the moves kernels go a part of the way
to a_l⟨φφᵀ⟩ + c_l, and tilts to

    C̃^(l) = ∂ ln⟨exp ...⟩/∂C^(l) = ½ C⁻¹ ⟨f^(l) (∂/∂f^(l) Σ_m a_m φᵀC̃^(m)φ)ᵀ⟩

(integration by parts, so that φ needs one derivative), and that of the output to its own. Kernels
are slower than tilts: they then descend the action that is left when the tilts are at their saddle
point. The other way round they oscillate, or run away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.inference.linear_posterior import Tilted


class Pace(NamedTuple):
    """Moves of every path, those before averages are taken, and those in which labels grow to Y.

    ``of_kernels`` and ``of_tilts`` are the parts of the way that they go after a move.
    """

    moves: int
    left_out: int
    growing: int
    of_kernels: float
    of_tilts: float


STANDARD = Pace(400, 150, 1, of_kernels=0.05, of_tilts=0.2)
# Kernels move by their own size: slowly, and from the lazy limit on, they stay on its branch.
MEAN_FIELD = Pace(1000, 500, 300, of_kernels=0.01, of_tilts=0.5)


class Neuron(NamedTuple):
    """A network and labels: φ, φ', a_l, c_l (L+2,), γ_l (L,), K0 (Q, Q), Y (P, d), κ, N."""

    psi: Callable[[Any], tuple[Any, ...]]
    slopes: Callable[[Any], tuple[Any, ...]]
    a: np.ndarray
    c: np.ndarray
    skips: np.ndarray
    Y: np.ndarray
    noise: float
    width: float

    def output(self, C: np.ndarray, rates: np.ndarray, sweeps: int = 2) -> tuple[np.ndarray, ...]:
        """r and r_b at the kernel C^(L+1), by sweeps from ``rates`` on, A⁻¹ and u."""
        P, d = self.Y.shape
        feature = C[:P, :P] - self.c[-1]
        constant = self.noise * np.eye(P) + self.c[-1]
        r, bulk = rates
        for _ in range(sweeps):
            u = np.linalg.solve(constant + r * feature, self.Y)
            inverse = np.linalg.inv(constant + bulk * feature)
            r = 1 / (1 + np.sum(feature * inverse) / self.width)
            bulk = r * (1 + r * np.sum(u * (feature @ u)) / d / self.width)
        return np.array([r, bulk]), inverse, u

    def predicted(self, C: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the outputs, (Q, d), at the kernel C^(L+1)."""
        P, d = self.Y.shape
        # Sweeps of a move start from those of the last one, these are the end.
        rates, inverse, u = self.output(C, rates, 64)
        mean_kernel, kernel = (rate * (C - self.c[-1]) + self.c[-1] for rate in rates)
        explained = np.einsum("ai,ij,aj->a", kernel[:, :P], inverse, kernel[:, :P])
        variance = np.maximum(np.diagonal(kernel) - explained, 0.0)
        return mean_kernel[:, :P] @ u, np.repeat(variance[:, None], d, axis=1)

    def paths(self, x: np.ndarray, roots: Sequence[np.ndarray]) -> np.ndarray:
        """h^(l) of all layers (L+1, Q, n) from ξ (L+1, Q, n)."""
        h = np.matmul(np.asarray(roots), x)
        for l, gamma in enumerate(self.skips, 1):
            h[l] += gamma * h[l - 1]
        return h

    def exponent(self, h: np.ndarray, tilts: np.ndarray) -> np.ndarray:
        """Σ_l a_l φᵀ C̃^(l) φ of every path, from h (L+1, P, n)."""
        total = np.zeros(h.shape[-1])
        for a, tilt, row in zip(self.a[1:], tilts[1:], h, strict=True):
            for f in self.psi(row):
                total += a * np.einsum("in,in->n", f, tilt @ f)
        return total

    def next_paths(
        self, x: np.ndarray, roots: Sequence[np.ndarray], tilts: np.ndarray, rng: Any
    ) -> np.ndarray:
        """One move of every path by elliptical slice sampling."""
        other, P = rng.standard_normal(x.shape), tilts.shape[-1]
        # Paths are linear in ξ, and those of the first inputs need their ξ alone.
        own = [root[:P, :P] for root in roots]
        here, there = (self.paths(each[:, :P], own) for each in (x, other))
        left: Any = np.arange(x.shape[-1])
        level = self.exponent(here, tilts) + np.log(rng.random(len(left)))
        angle: Any = rng.uniform(0, 2 * np.pi, len(left))
        low, high, final = angle - 2 * np.pi, angle, np.empty_like(angle)
        while len(left):
            tried = here * np.cos(angle) + there * np.sin(angle)
            above = self.exponent(tried, tilts) >= level
            final[left[above]] = angle[above]
            left, angle, low, high, level = (v[~above] for v in (left, angle, low, high, level))
            here, there = here[..., ~above], there[..., ~above]
            low, high = np.where(angle < 0, angle, low), np.where(angle < 0, high, angle)
            angle = rng.uniform(low, high)
        return np.asarray(x * np.cos(final) + other * np.sin(final))

    def averages(
        self, x: np.ndarray, roots: Sequence[Any], inverses: Sequence[Any], tilts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """C^(1..L+1) and C̃^(0..L) of the paths as they are."""
        h, count = self.paths(x, roots), x.shape[-1]
        P, last = tilts.shape[-1], len(h) - 1
        kernels = np.empty((len(h), len(h[0]), len(h[0])))
        conjugates = np.empty((len(h), P, P))
        force = np.zeros((P, count))
        for l in range(last, -1, -1):
            features, slopes = self.psi(h[l]), self.slopes(h[l][:P])
            kernels[l] = self.c[l + 1]
            force = self.skips[l] * force if l < last else force
            for f, slope in zip(features, slopes, strict=True):
                kernels[l] += self.a[l + 1] / count * (f @ f.T)
                force = force + 2 * self.a[l + 1] * (tilts[l + 1] @ f[:P]) * slope
            conjugate = inverses[l] @ (x[l, :P] @ force.T) / count
            conjugates[l] = (conjugate + conjugate.T) / 4
        return kernels, conjugates


class Balance(NamedTuple):
    """Quantities that say whether paths and kernels of one run have come to rest.

    Parameters
    ----------
    halves : ndarray, shape (2,)
        uᵀC^(L+1)u in both halves of what is averaged.
    spread, force : float
        ⟨ξ·ξ⟩ − dim ξ and ⟨ξ·∂W/∂ξ⟩, W the exponent: equal for paths that have the tilted law, by
        integration by parts. Paths that cannot follow a tilt that grows faster have more force.
    pull : float
        r tr uᵀΣu/N, the mean of the part of W that comes from the labels.
    """

    halves: np.ndarray
    spread: float
    force: float
    pull: float


def sampled(
    neuron: Neuron,
    start: np.ndarray,
    chains: int,
    seed: np.random.SeedSequence,
    moves: Iterable[int],
    pace: Pace = STANDARD,
    watch: Callable[..., None] | None = None,
) -> tuple[Tilted, Balance]:
    """The saddle point from so many chains, which takes ``pace.moves`` of the moves.

    ``start`` are the kernels of infinite width, (L+2, Q, Q). They stay positive semidefinite, as
    means of those of paths. ``watch`` is called with every move, its paths ξ, roots and kernels.
    """
    rng = np.random.default_rng(seed)
    P, last = len(neuron.Y), len(start) - 1
    C, tilts = start.copy(), np.zeros((len(start), P, P))
    x = rng.standard_normal((last, len(C[0]), chains))
    rates = np.ones(2)
    first = _roots(C[0], P)
    sums, halves = [np.zeros_like(C), np.zeros_like(tilts)], np.zeros(2)
    spread = force = pull = 0.0
    kept, width = pace.moves - pace.left_out, neuron.width
    for step, _ in zip(range(pace.moves), moves, strict=False):
        grown = neuron._replace(Y=min(1.0, (step + 1) / pace.growing) * neuron.Y)
        rates, inverse, u = grown.output(C[-1], rates)
        tilts[-1] += pace.of_tilts * ((u @ u.T - u.shape[1] * inverse) / (2 * width) - tilts[-1])
        used = np.concatenate([tilts[:-1], rates[0] * tilts[-1:]])
        roots, inverses = zip(first, *(_roots(kernel, P) for kernel in C[1:-1]), strict=True)
        x = neuron.next_paths(x, roots, used, rng)
        kernels, conjugates = neuron.averages(x, roots, inverses, used)
        if watch:
            watch(step, x, roots, inverses, C)
        if step >= pace.left_out:
            along = np.sum(u * (C[-1, :P, :P] @ u))
            halves[2 * (step - pace.left_out) // kept] += 2 / kept * along
            spread += (np.sum(x**2) / chains - x[..., 0].size) / kept
            force += 2 / kept * np.sum(C[:-1, :P, :P] * conjugates)
            pull += rates[0] * (along - neuron.c[-1] * np.sum(u.sum(axis=0) ** 2)) / width / kept
        C[1:] += pace.of_kernels * (kernels - C[1:])
        tilts[:-1] += pace.of_tilts * (conjugates - tilts[:-1])
        if not np.isfinite(C).all():
            raise ArithmeticError("the kernels of the tilted measure exceed float64")
        if step >= pace.left_out:
            sums[0] += C / kept
            sums[1] += tilts / kept
    mean, variance = neuron.predicted(sums[0][-1], rates)
    return Tilted(sums[0], sums[1], mean, variance), Balance(halves, spread, force, pull)


def _roots(C: np.ndarray, P: int) -> tuple[np.ndarray, np.ndarray]:
    """R with R Rᵀ = C (Q, Q), block triangular, and the transposed inverse of its first block."""
    # Both blocks move smoothly with C, so that paths ξ still have their law when C has moved.
    root = np.zeros_like(C)
    root[:P, :P], inverse = _smooth_root(C[:P, :P])
    root[P:, :P] = C[P:, :P] @ inverse
    if len(C) > P:
        root[P:, P:] = _smooth_root(C[P:, P:] - root[P:, :P] @ root[P:, :P].T)[0]
    return root, inverse


def _smooth_root(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """D S and (D S)⁻ᵀ, S the symmetric root of the correlations, D standard deviations."""
    # Eigenvectors in place of S turn and change sign. Rounding counts as zero, as in `psd_root`.
    deviations = np.sqrt(np.maximum(np.diagonal(C), 0.0))[:, None]
    units = np.where(deviations > 0, deviations, 1.0)
    values, vectors = np.linalg.eigh(C / units / units.T)
    kept = values > len(C) * np.finfo(float).eps * np.abs(values).max()
    roots = np.sqrt(np.where(kept, values, 1.0))
    root, inverse = (vectors * np.where(kept, x, 0.0) @ vectors.T for x in (roots, 1 / roots))
    return deviations * root, np.where(deviations > 0, inverse / units, 0.0)
