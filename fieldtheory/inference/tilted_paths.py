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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.inference.linear_posterior import Tilted
from fieldtheory.numerics.covariance_roots import modes


class Pace(NamedTuple):
    """Moves of every path, those before averages are taken, and those in which labels grow to Y.

    ``of_kernels`` and ``of_tilts`` are the parts of the way that they go after a move. ``newton``:
    u follows the paths, not the mean kernel.
    """

    moves: int
    left_out: int
    growing: int
    of_kernels: float
    of_tilts: float
    newton: bool


# Labels are of the size of outputs: the mean kernel says what u is while paths of φ that grows as h
# have tails that no slope describes.
STANDARD = Pace(400, 150, 1, of_kernels=0.05, of_tilts=0.2, newton=False)
# Kernels move by their own size: slowly, and from the lazy limit on, they stay on its branch.
MEAN_FIELD = Pace(1000, 500, 300, of_kernels=0.01, of_tilts=0.5, newton=True)


# Of r and r_b, of which a move makes one.
SWEEPS = 64
# Parts of the way to a slope of paths and u of them that a move goes, and while averages are taken.
_LEARNED, _KEPT = 0.05, 0.02
# Largest standard deviation over paths of what u changes in W, in a move.
_CHANGE = 0.5
# Fresh paths: most steps in which the tilt grows, the share of paths that keep a weight in one,
# what is tried after a step that is too long; a part of all moves settles them, as many are used.
_STEPS, _EFFECTIVE, _SHORTER, FRESH = 400, 0.5, 0.8, 10


class Law(NamedTuple):
    """R^(l) with R Rᵀ = C, the transposed inverses of their first blocks, and the tilts."""

    roots: Sequence[np.ndarray]
    inverses: Sequence[np.ndarray]
    tilts: np.ndarray


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

    def output(self, C: np.ndarray, rates: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, ...]:
        """r and r_b at the kernel C^(L+1) and the mean u of A⁻¹Y, by a sweep from ``rates`` on."""
        P, d = self.Y.shape
        feature = C[:P, :P] - self.c[-1]
        inverse = np.linalg.inv(self.noise * np.eye(P) + self.c[-1] + rates[1] * feature)
        r = 1 / (1 + np.sum(feature * inverse) / self.width)
        bulk = r * (1 + r * np.sum(u * (feature @ u)) / d / self.width)
        return np.array([r, bulk]), inverse

    def predicted(
        self, C: np.ndarray, rates: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the outputs, (Q, d), at the kernel C^(L+1)."""
        P, d = self.Y.shape
        for _ in range(SWEEPS):
            rates, inverse = self.output(C, rates, u)
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

    def next_paths(self, x: np.ndarray, law: Law, rng: Any) -> np.ndarray:
        """One move of every path by elliptical slice sampling, every other one of some inputs."""
        roots, inverses, tilts = law
        other, fixed, P = rng.standard_normal(x.shape), np.zeros_like(x), tilts.shape[-1]
        if P > 1 and rng.integers(2):
            some = rng.permutation(P)[: rng.integers(1, P)]
            # Given those that stay: where the tilt holds an input, moves of all are short.
            span = np.linalg.qr(np.swapaxes(inverses, 1, 2)[..., some])[0]
            inner = span @ span.swapaxes(1, 2)
            fixed[:, :P] = x[:, :P] - inner @ x[:, :P]
            other[:, :P] = inner @ other[:, :P]
        moved = x - fixed
        # Paths are linear in ξ, and those of the first inputs need their ξ alone.
        own = [root[:P, :P] for root in roots]
        rest, here, there = (self.paths(each[:, :P], own) for each in (fixed, moved, other))
        left: Any = np.arange(x.shape[-1])
        level = self.exponent(rest + here, tilts) + np.log(rng.random(len(left)))
        angle: Any = rng.uniform(0, 2 * np.pi, len(left))
        low, high, final = angle - 2 * np.pi, angle, np.empty_like(angle)
        while len(left):
            tried = rest + here * np.cos(angle) + there * np.sin(angle)
            above = self.exponent(tried, tilts) >= level
            final[left[above]] = angle[above]
            left, angle, low, high, level = (v[~above] for v in (left, angle, low, high, level))
            rest, here, there = (v[..., ~above] for v in (rest, here, there))
            low, high = np.where(angle < 0, angle, low), np.where(angle < 0, high, angle)
            angle = rng.uniform(low, high)
        return np.asarray(fixed + moved * np.cos(final) + other * np.sin(final))

    def averages(self, x: np.ndarray, law: Law) -> tuple[np.ndarray, np.ndarray]:
        """C^(1..L+1) and C̃^(0..L) of the paths as they are."""
        roots, inverses, tilts = law
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

    def fresh_paths(self, chains: int, law: Law, rng: Any) -> np.ndarray | None:
        """Paths ξ that start at the prior and follow the tilt as it grows; None if they do not."""
        roots, _, tilts = law
        x = rng.standard_normal((len(roots), len(roots[0]), chains))
        grown, P = 0.0, tilts.shape[-1]
        own = [root[:P, :P] for root in roots]
        for _ in range(_STEPS):
            exponent = self.exponent(self.paths(x[:, :P], own), tilts)
            exponent -= exponent.max()
            part = 1.0 - grown
            while part and np.sum(weights := np.exp(part * exponent)) ** 2 < (
                _EFFECTIVE * chains * np.sum(weights**2)
            ):
                part *= _SHORTER
            grown += part
            places = (rng.random() + np.arange(chains)) / chains
            x = x[..., np.searchsorted(np.cumsum(weights) / np.sum(weights), places)]
            x = self.next_paths(x, law._replace(tilts=grown * tilts), rng)
            if grown == 1.0:
                return x
        return None

    def moved_by_fresh_paths(
        self, kernels: np.ndarray, chains: int, law: Law, rng: Any, pace: Pace
    ) -> np.ndarray:
        """The kernels of fresh paths less these, infinite where they do not follow the tilt."""
        x, count = self.fresh_paths(chains, law, rng), pace.moves // FRESH
        if x is None:
            return np.full_like(kernels, np.inf)
        moved = np.zeros_like(kernels)
        for step in range(2 * count):
            x = self.next_paths(x, law, rng)
            if step >= count:
                moved += (self.averages(x, law)[0] - kernels) / count
        return moved


class Balance(NamedTuple):
    """Quantities that say whether paths and kernels of one run have come to rest."""

    # Kernels (L+2, Q, Q) in the second half of what is averaged, less those in the first.
    drift: np.ndarray
    # Kernels a_l⟨φφᵀ⟩ + c_l of fresh paths in the mean tilt, less the mean kernels.
    residual: np.ndarray
    # ⟨ξ·ξ⟩ − dim ξ and ⟨ξ·∂W/∂ξ⟩, W the exponent: equal for paths that have the tilted law, by
    # integration by parts. Paths that cannot follow a tilt that grows faster have more force.
    spread: float
    force: float
    # r tr uᵀΣu/N, the mean of the part of W that comes from the labels.
    pull: float


@dataclass
class Labels:
    """u (P, d), which follows the paths by Newton's method: (κ + c + rΣ)u = Y, Σ of the paths.

    ``slope`` is the derivative of the left side, (Pd, Pd): Σu changes by a covariance of the paths.
    """

    neuron: Neuron
    u: np.ndarray
    slope: np.ndarray

    def follow(self, h: np.ndarray, r: float, Y: np.ndarray, learn: bool) -> None:
        """Move u towards the u of the paths h^(L), (P, n); with a slope that is learned from them.

        What is fixed while averages are taken has no covariance with what is missing.
        """
        neuron, (P, d), count = self.neuron, self.u.shape, h.shape[-1]
        features, scale = neuron.psi(h), r * neuron.a[-1]
        along = sum(f[:, None] * (self.u.T @ f) for f in features).reshape(P * d, count)
        mean = along.mean(axis=1, keepdims=True)
        constant = neuron.noise * np.eye(P) + neuron.c[-1]
        if learn:
            own = constant + scale / count * sum(f @ f.T for f in features)
            covariance = scale**2 / neuron.width / count * (along - mean) @ (along - mean).T
            slope = np.kron(own, np.eye(d)) + covariance
            self.slope += _LEARNED * (slope - self.slope)
        missing = Y - constant @ self.u - scale * mean.reshape(P, d)
        part = _LEARNED if learn else _KEPT
        step = part * np.linalg.solve(self.slope, missing.ravel())
        first = scale / neuron.width * (step @ along)
        step = step.reshape(P, d)
        second = scale / neuron.width / 2 * sum(((step.T @ f) ** 2).sum(axis=0) for f in features)
        size = 1.0
        while np.std(size * first + size**2 * second) > _CHANGE:
            size /= 2
        self.u = self.u + size * step


def sampled(
    neuron: Neuron,
    start: np.ndarray,
    chains: int,
    seed: np.random.SeedSequence,
    moves: Iterable[int],
    pace: Pace = STANDARD,
    watch: Callable[..., None] | None = None,
) -> tuple[Tilted, Balance]:
    """The saddle point from so many chains, which takes ``pace.moves`` of the moves."""
    rng = np.random.default_rng(seed)
    (P, d), last, width = neuron.Y.shape, len(start) - 1, neuron.width
    C, tilts = start.copy(), np.zeros((len(start), P, P))
    x = rng.standard_normal((last, len(C[0]), chains))
    slope = np.kron(neuron.noise * np.eye(P) + C[-1, :P, :P], np.eye(d))
    rates, labels = np.ones(2), Labels(neuron, np.zeros((P, d)), slope)
    first = block_roots(C[0], P)
    halves, mean_tilts, mean_u, mean_r = np.zeros((2, *C.shape)), 0 * tilts, 0 * labels.u, 0.0
    spread = force = pull = 0.0
    kept = pace.moves - pace.left_out
    for step, _ in zip(range(pace.moves), moves, strict=False):
        roots, inverses = zip(first, *(block_roots(kernel, P) for kernel in C[1:-1]), strict=True)
        rates, inverse = neuron.output(C[-1], rates, labels.u)
        grown = min(1.0, (step + 1) / pace.growing) * neuron.Y
        if pace.newton:
            h = neuron.paths(x[:, :P], [root[:P, :P] for root in roots])[-1]
            labels.follow(h, rates[0], grown, step < pace.left_out)
        else:
            mean = rates[0] * (C[-1, :P, :P] - neuron.c[-1]) + neuron.c[-1]
            labels.u = np.linalg.solve(neuron.noise * np.eye(P) + mean, grown)
        u, part = labels.u, 1.0 if pace.newton else pace.of_tilts
        tilts[-1] += part * ((u @ u.T - d * inverse) / (2 * width) - tilts[-1])
        law = Law(roots, inverses, np.concatenate([tilts[:-1], rates[0] * tilts[-1:]]))
        x = neuron.next_paths(x, law, rng)
        kernels, conjugates = neuron.averages(x, law)
        if watch:
            watch(step, x, roots, inverses, C)
        if step >= pace.left_out:
            halves[2 * (step - pace.left_out) // kept, 1:] += 2 / kept * kernels
            mean_tilts += tilts / kept
            mean_u += u / kept
            mean_r += rates[0] / kept
            spread += (np.sum(x**2) / chains - x[..., 0].size) / kept
            force += 2 / kept * np.sum(C[:-1, :P, :P] * conjugates)
            feature = kernels[-1, :P, :P] - neuron.c[-1]
            pull += rates[0] * np.sum(u * (feature @ u)) / width / kept
        C[1:] += pace.of_kernels * (kernels - C[1:])
        tilts[:-1] += pace.of_tilts * (conjugates - tilts[:-1])
        if not np.isfinite(C).all():
            raise ArithmeticError("the kernels of the tilted measure exceed float64")
    halves[:, 0] = C[0]
    C = halves.mean(axis=0)
    if not pace.newton:
        # Of the mean kernel, which has less noise than the mean.
        for _ in range(SWEEPS):
            constant = neuron.noise * np.eye(P) + neuron.c[-1]
            mean_u = np.linalg.solve(constant + rates[0] * (C[-1, :P, :P] - neuron.c[-1]), neuron.Y)
            rates, _ = neuron.output(C[-1], rates, mean_u)
    mean, variance = neuron.predicted(C[-1], rates, mean_u)
    roots, inverses = zip(first, *(block_roots(kernel, P) for kernel in C[1:-1]), strict=True)
    law = Law(roots, inverses, np.concatenate([mean_tilts[:-1], mean_r * mean_tilts[-1:]]))
    residual = np.zeros_like(C)
    residual[1:] = neuron.moved_by_fresh_paths(C[1:], chains, law, rng, pace)
    balance = Balance(halves[1] - halves[0], residual, spread, force, pull)
    return Tilted(C, mean_tilts, mean, variance), balance


def block_roots(C: np.ndarray, P: int) -> tuple[np.ndarray, np.ndarray]:
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
    # Eigenvectors in place of S turn and change sign.
    deviations, values, vectors = modes(C)
    kept = values > 0
    roots = np.sqrt(np.where(kept, values, 1.0))
    root, inverse = (vectors * np.where(kept, x, 0.0) @ vectors.T for x in (roots, 1 / roots))
    units = np.where(deviations > 0, deviations, 1.0)
    return deviations * root, np.where(deviations > 0, inverse / units, 0.0)
