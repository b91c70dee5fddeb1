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

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.inference.linear_posterior import Tilted
from fieldtheory.montecarlo.sampling.forward import psd_root

# Moves of every path, and those before averages are taken.
STEPS, DISCARDED = 400, 150
# Parts of the way that kernels and tilts go after a move.
_KERNELS, _TILTS = 0.05, 0.2
# Sweeps of r, r_b, u and A⁻¹.
_SWEEPS = 8


class Neuron(NamedTuple):
    """A network and labels: φ, φ', a_l, c_l (L+2,), γ_l (L,), K0 (Q, Q), Y (P, d), κ, N."""

    psi: Callable[[Any], tuple[Any, ...]]
    slopes: Callable[[Any], tuple[Any, ...]]
    a: np.ndarray
    c: np.ndarray
    skips: np.ndarray
    Y: np.ndarray
    noise: float
    width: int

    def output(self, C: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, ...]:
        """r and r_b at the kernel C^(L+1), by sweeps from ``rates`` on, A⁻¹ and u."""
        P, d = self.Y.shape
        feature = C[:P, :P] - self.c[-1]
        known = self.noise * np.eye(P) + self.c[-1]
        r, bulk = rates
        for _ in range(_SWEEPS):
            u = np.linalg.solve(known + r * feature, self.Y)
            inverse = np.linalg.inv(known + bulk * feature)
            r = 1 / (1 + np.sum(feature * inverse) / self.width)
            bulk = r * (1 + r * np.sum(u * (feature @ u)) / d / self.width)
        return np.array([r, bulk]), inverse, u

    def predicted(self, C: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the outputs, (Q, d), at the kernel C^(L+1)."""
        P, d = self.Y.shape
        for _ in range(_SWEEPS):
            rates, inverse, u = self.output(C, rates)
        mean_kernel, kernel = (rate * (C - self.c[-1]) + self.c[-1] for rate in rates)
        explained = np.einsum("ai,ij,aj->a", kernel[:, :P], inverse, kernel[:, :P])
        variance = np.maximum(np.diagonal(kernel) - explained, 0.0)
        return mean_kernel[:, :P] @ u, np.repeat(variance[:, None], d, axis=1)

    def paths(self, x: np.ndarray, roots: list[np.ndarray]) -> list[np.ndarray]:
        """h^(l) of all layers, (Q, n) each, from ξ (L+1, Q, n)."""
        h = [roots[0] @ x[0]]
        for gamma, root, step in zip(self.skips, roots[1:], x[1:], strict=True):
            h.append(gamma * h[-1] + root @ step)
        return h

    def exponent(self, h: list[np.ndarray], tilts: np.ndarray) -> np.ndarray:
        """Σ_l a_l φᵀ C̃^(l) φ of every path."""
        total = np.zeros(h[0].shape[1])
        for a, tilt, row in zip(self.a[1:], tilts[1:], h, strict=True):
            for f in self.psi(row[: len(tilt)]):
                total += a * np.einsum("in,in->n", f, tilt @ f)
        return total

    def moved(
        self, x: np.ndarray, roots: list[np.ndarray], tilts: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """One move of every path by elliptical slice sampling."""
        other, found = rng.standard_normal(x.shape), np.empty_like(x)
        left: Any = np.arange(x.shape[-1])
        level = self.exponent(self.paths(x, roots), tilts) + np.log(rng.random(len(left)))
        angle: Any = rng.uniform(0, 2 * np.pi, len(left))
        low, high = angle - 2 * np.pi, angle
        while len(left):
            tried = x[..., left] * np.cos(angle) + other[..., left] * np.sin(angle)
            above = self.exponent(self.paths(tried, roots), tilts) >= level[left]
            found[..., left[above]] = tried[..., above]
            left, angle, low, high = (v[~above] for v in (left, angle, low, high))
            low, high = np.where(angle < 0, angle, low), np.where(angle < 0, high, angle)
            angle = rng.uniform(low, high)
        return found

    def averages(
        self, x: np.ndarray, roots: list[np.ndarray], inverses: list[np.ndarray], tilts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """C^(1..L+1) and C̃^(0..L) of the paths as they are."""
        h, count = self.paths(x, roots), x.shape[-1]
        P, last = tilts.shape[-1], len(h) - 1
        kernels = np.empty((len(h), len(h[0]), len(h[0])))
        answers = np.empty((len(h), P, P))
        force = np.zeros((P, count))
        for l in range(last, -1, -1):
            features, slopes = self.psi(h[l]), self.slopes(h[l][:P])
            kernels[l] = self.c[l + 1]
            force = self.skips[l] * force if l < last else force
            for f, slope in zip(features, slopes, strict=True):
                kernels[l] += self.a[l + 1] / count * (f @ f.T)
                force = force + 2 * self.a[l + 1] * (tilts[l + 1] @ f[:P]) * slope
            answer = inverses[l] @ (x[l, :P] @ force.T) / count
            answers[l] = (answer + answer.T) / 4
        return kernels, answers


def sampled(
    neuron: Neuron, start: np.ndarray, chains: int, seed: np.random.SeedSequence
) -> tuple[Tilted, np.ndarray]:
    """The saddle point from so many chains, and u ᵀC^(L+1)u in both halves of what is averaged.

    ``start`` are the kernels of infinite width, (L+2, Q, Q).
    """
    rng = np.random.default_rng(seed)
    P, last = len(neuron.Y), len(start) - 1
    C, tilts = start.copy(), np.zeros((len(start), P, P))
    x = rng.standard_normal((last, len(C[0]), chains))
    rates = np.ones(2)
    sums, halves = [np.zeros_like(C), np.zeros_like(tilts)], np.zeros(2)
    kept = STEPS - DISCARDED
    for step in range(STEPS):
        rates, inverse, u = neuron.output(C[-1], rates)
        tilts[-1] += _TILTS * ((u @ u.T - u.shape[1] * inverse) / (2 * neuron.width) - tilts[-1])
        used = np.concatenate([tilts[:-1], rates[0] * tilts[-1:]])
        roots, inverses = zip(*(_roots(kernel, P) for kernel in C[:-1]), strict=True)
        x = neuron.moved(x, roots, used, rng)
        kernels, answers = neuron.averages(x, roots, inverses, used)
        C[1:] += _KERNELS * (kernels - C[1:])
        tilts[:-1] += _TILTS * (answers - tilts[:-1])
        if not np.isfinite(C).all():
            raise ArithmeticError("the kernels of the tilted measure exceed float64")
        if step >= DISCARDED:
            sums[0] += C / kept
            sums[1] += tilts / kept
            halves[2 * (step - DISCARDED) // kept] += 2 / kept * np.sum(u * (C[-1, :P, :P] @ u))
    mean, variance = neuron.predicted(sums[0][-1], rates)
    return Tilted(sums[0], sums[1], mean, variance), halves


def _roots(C: np.ndarray, P: int) -> tuple[np.ndarray, np.ndarray]:
    """R with R Rᵀ = C (Q, Q), block triangular, and the transposed inverse of its first block.

    Of the first P inputs; directions without variance have the inverse zero.
    """
    root = psd_root(C[:P, :P])
    inverse = np.linalg.pinv(root).T
    found = np.zeros_like(C)
    found[:P, :P] = root
    found[P:, :P] = C[P:, :P] @ inverse
    if len(C) > P:
        found[P:, P:] = psd_root(C[P:, P:] - found[P:, :P] @ found[P:, :P].T)
    return found, inverse
