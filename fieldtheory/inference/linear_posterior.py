"""The posterior of deep linear networks for P ~ N → ∞: effective scales of the input kernel.

For φ(h) = h the outputs are f = V^(0)ᵀ h^(0) + Σ_l ρ_l V^(l)ᵀ b^(l) + b_out with N × d matrices
V^(L) = W_outᵀ and V^(l-1) = γ_l V^(l) + ρ_l W^(l)ᵀ V^(l). Given G^(l) = V^(l)ᵀ V^(l), and
G^(L+1) = 1, they are a Gaussian process with the kernel

    S = s_0 ⊗ K0 + s_1 ⊗ 11ᵀ,   s_0 = G^(0),   s_1 = Σ_l c_l G^(l)  (1 <= l <= L + 1).

G is a Markov chain of d × d matrices. With G^(l) = R Rᵀ and G^(l-1) = R (γ_l² T² + a_l T) Rᵀ,

    −(1/N) ln p(G^(l-1)|G^(l)) → ½ tr [γ_l² (1 − T)²/a_l + T − 1 − ln T]   for N → ∞.

N times the sum of these less ln p(Y|S) has a minimum for all labels; T = 1 is infinite width. It is
sought in ln T, so that all covariances stay positive definite. Mean kernels follow from conjugates
τ (P, d) of the labels, with the precision A = κ + S and the mean i A⁻¹Y, and the projections
z = τᵀh/√N. Paths of z have the tilts −½ G^(l), and d × d kernels that do not fluctuate,

    Γ^(0) = τᵀ K0 τ/N,   Γ^(l) = a_l ⟨z^(l-1) z^(l-1)ᵀ⟩ + c_l τᵀ 11ᵀ τ/N.

For γ = 0, c = 0 this is the kernel renormalisation of Q. Li and H. Sompolinsky, Phys. Rev. X 11,
031059 (2021); skips and biases are new.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import optimize

from fieldtheory.numerics.recursion import ratio

# Of the descent to it; x is about N^(-1/2) a priori, so that no step leaves the range of exp.
_DESCENT = {"gtol": 1e-6, "max_trust_radius": 3.0}
# The descent starts on the line from T = 1 to where the prior alone explains the labels.
_STARTS = np.linspace(0.0, 1.0, 21)


class Tilted(NamedTuple):
    """C^(l) (L+2, Q, Q), C̃^(l) (L+2, P, P), means and variances of predictions (Q, d).

    And R^(l) (L+2, Q, Q) of blocks.
    """

    residual_kernels: np.ndarray
    conjugate_kernels: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    kernels: np.ndarray | None = None


class _Likelihood(NamedTuple):
    """−ln p(Y|S), twice its derivatives by s_0 and s_1; u = A⁻¹Y (d, P), A⁻¹ in modes of K0."""

    value: float
    start: np.ndarray
    ones: np.ndarray
    u: np.ndarray
    inverse: Callable[[], np.ndarray]


class Linear(NamedTuple):
    """A linear network and labels: a_l, c_l (L+2,), γ_l (L,), K0 (Q, Q), Y (P, d), κ, N."""

    a: np.ndarray
    c: np.ndarray
    gammas: np.ndarray
    K0: np.ndarray
    Y: np.ndarray
    noise: float
    width: float

    def solve(self, case: str) -> Tilted:
        """The posterior at the lowest minimum; ArithmeticError, of ``case``, if it is lost."""
        # The largest gradient over N at the minimum, and its rounding relative to the value.
        tolerance, rounding = 1e-9, 1e-13
        # Step of differences of gradients.
        size = 1e-5

        def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
            return self._cost(x, modes)

        def curvature(x: np.ndarray, p: np.ndarray) -> np.ndarray:
            step = size / np.linalg.norm(p) * p if p.any() else p
            return np.linalg.norm(p) / (2 * size) * (cost(x + step)[1] - cost(x - step)[1])

        with np.errstate(all="ignore"):
            try:
                values, vectors = np.linalg.eigh(self.K0[: len(self.Y), : len(self.Y)])
                modes = np.maximum(values, 0.0), vectors.sum(axis=0), vectors.T @ self.Y, vectors
                starts = [*self._starts()]
                heights = np.pad([cost(x)[0] for x in starts], 1, constant_values=np.inf)
                low = (heights[1:-1] <= heights[:-2]) & (heights[1:-1] < heights[2:])
                minima = [
                    optimize.minimize(
                        cost, x, jac=True, hessp=curvature, method="trust-ncg", options=_DESCENT
                    )
                    for x in itertools.compress(starts, low)
                ]
                x = min(minima, key=lambda each: each.fun).x
                x = optimize.root(lambda x: cost(x)[1], x, tol=tolerance**2).x
                value, gradient = cost(x)
            except (np.linalg.LinAlgError, ValueError):
                value, gradient = np.inf, np.array(np.nan)
        if not np.abs(gradient).max() <= tolerance + rounding * abs(value):
            raise ArithmeticError(
                f"no saddle point was found {case}: it is lost in rounding; scale the labels or "
                "use more noise"
            )
        return self._result(x, modes)

    @property
    def _layers(self) -> tuple[np.ndarray, ...]:
        """γ_l², a_l, c_l, γ_l²/a_l, and the scale of ln T_l, of l = L + 1, ..., 1."""
        skips, a, c = np.append(self.gammas**2, 0.0)[::-1], self.a[:0:-1], self.c[:0:-1]
        stiffness = ratio(skips, a)
        return skips, a, c, stiffness, (stiffness + 0.5) ** -0.5

    def _starts(self) -> Iterator[np.ndarray]:
        """x of ln T_l that are multiples of one matrix, first of T = 1."""
        P, d = self.Y.shape
        scales, pairs = self._layers[-1], np.triu_indices(d)
        prior = np.trace(self.K0[:P, :P]) + P * self.noise
        sizes, turn = np.linalg.eigh(self.Y.T @ self.Y / prior)
        whole = (turn * np.log1p(np.maximum(sizes, 0.0)) @ turn.T * (2 - np.eye(d)))[pairs]
        x = np.outer(scales / np.sum(scales**2), whole).ravel()
        return (part * x for part in _STARTS)

    def _chain(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """Of l = L + 1, ..., 1: ln T_l as eigenvalues and vectors, r, and the root R of G^(l)."""
        # r² are the eigenvalues of γ_l² T² + a_l T; the last root is that of G^(0).
        d, (skips, a, _, _, scales) = self.Y.shape[1], self._layers
        H = np.zeros((len(a), d, d))
        H[:, *np.triu_indices(d)] = x.reshape(len(a), -1)
        logarithms, turns = np.linalg.eigh(scales[:, None, None] * (H + H.swapaxes(1, 2)) / 2)
        t, skips, a = np.exp(logarithms), skips[:, None], a[:, None]
        r = np.sqrt(np.where(a > 0, skips * t**2 + a * t, skips))
        roots = [np.eye(d)]
        for turn, factors in zip(turns, r, strict=True):
            roots.append(roots[-1] @ (turn * factors) @ turn.T)
        return logarithms, turns, r, np.array(roots)

    def _cost(self, x: np.ndarray, modes: tuple[np.ndarray, ...]) -> tuple[float, np.ndarray]:
        """−ln of the posterior of T over N, and its gradient, by x = the triangles of ln T."""
        skips, a, c, stiffness, scales = (v[:, None] for v in self._layers)
        logarithms, turns, r, roots = self._chain(x)
        t, likelihood = np.exp(logarithms), self._likelihood(roots, modes)
        prior = np.sum(stiffness * (1 - t) ** 2 + t - 1 - logarithms) / 2
        own = (t - 1 - 2 * stiffness * t * (1 - t)) / 2
        slopes = np.divide(skips * t**2 + a * t / 2, r, out=np.zeros_like(r), where=a > 0)
        differences = logarithms[:, :, None] - logarithms[:, None]
        # Difference quotients of nearly equal ln T are derivatives.
        equal = np.abs(differences) < 1e-7
        quotients = (r[:, :, None] - r[:, None]) / np.where(equal, 1.0, differences)
        quotients = np.where(equal, (slopes[:, :, None] + slopes[:, None]) / 2, quotients)
        gradient, back = np.empty_like(turns), likelihood.start @ roots[-1] / self.width
        for l in range(len(t) - 1, -1, -1):
            by_root = turns[l].T @ roots[l].T @ back @ turns[l]
            inner = (by_root + by_root.T) / 2 * quotients[l] + np.diag(own[l])
            gradient[l] = scales[l] * turns[l] @ inner @ turns[l].T
            back = (
                c[l] / self.width * likelihood.ones @ roots[l]
                + back @ (turns[l] * r[l]) @ turns[l].T
            )
        triangles = gradient[:, *np.triu_indices(len(back))]
        return prior + likelihood.value / self.width, triangles.ravel()

    def _scales(self, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s_0 and s_1."""
        G = roots @ roots.swapaxes(1, 2)
        return G[-1], np.einsum("l,lab->ab", self._layers[2], G[:-1])

    def _likelihood(self, roots: np.ndarray, modes: tuple[np.ndarray, ...]) -> _Likelihood:
        """In the eigenvectors of K0 and of s_0, where 11ᵀ is of rank one."""
        values, ones, labels, _ = modes
        s0, s1 = self._scales(roots)
        rates, turn = np.linalg.eigh(s0)
        s1, y = turn.T @ s1 @ turn, (labels @ turn).T
        D = 1 / (self.noise + np.maximum(rates, 0.0)[:, None] * values)
        own, De = D @ ones**2, D * ones
        inner = np.eye(len(s1)) + s1 * own
        W = np.linalg.solve(inner, s1)
        u = D * y - De * (W @ (De * y).sum(axis=1))[:, None]
        value = (np.linalg.slogdet(inner)[1] - np.log(D).sum() + np.sum(u * y)) / 2
        start = np.diag(D @ values) - W * ((De * values) @ De.T) - (u * values) @ u.T
        beta = np.diag(own) - W * np.outer(own, own) - np.outer(u @ ones, u @ ones)

        def inverse() -> np.ndarray:
            parts = -np.einsum("ai,ab,bj->aibj", De, W, De)
            np.einsum("aiai->ai", parts)[:] += D
            return np.einsum("ca,aibj,db->cidj", turn, parts, turn, optimize=True)

        start, beta = (turn @ each @ turn.T for each in (start, beta))
        return _Likelihood(value, start, beta, turn @ u, inverse)

    def _result(self, x: np.ndarray, modes: tuple[np.ndarray, ...]) -> Tilted:
        """Kernels and predictions: C̃^(l) = −½ ⟨τ G^(l) τᵀ⟩/N."""
        logarithms, turns, _, roots = self._chain(x)
        (s0, s1), likelihood = self._scales(roots), self._likelihood(roots, modes)
        P, vectors = len(self.Y), modes[-1]
        sides = np.stack([self.K0[:, :P] @ vectors, np.ones((len(self.K0), 1)) * modes[1]])
        columns = np.einsum("fab,fqi->aqbi", np.stack([s0, s1]), sides)
        inverse, u = likelihood.inverse(), likelihood.u
        TT = inverse - np.einsum("ai,bj->aibj", u, u)
        mean = np.einsum("aqbi,bi->qa", columns, u)
        prior = np.outer(np.diagonal(self.K0), np.diagonal(s0)) + np.diagonal(s1)
        explained = np.einsum("aqci,cidj,aqdj->qa", columns, inverse, columns, optimize=True)
        variance = np.maximum(prior - explained, 0.0)
        G = (roots @ roots.swapaxes(1, 2))[::-1]
        conjugates = np.einsum("lab,aibj->lij", -0.5 * G, TT) / self.width
        conjugates = vectors @ conjugates @ vectors.T
        # From T: where G^(l-1) differs from its mean, z^(l-1) has another variance.
        _, _, c, stiffness, _ = (v[1:, None] for v in self._layers)
        t, inverses = np.exp(logarithms[1:]), np.linalg.pinv(roots[1:-1])
        inner = np.einsum("lai,li,lbi->lab", turns[1:], 1 - t - stiffness * (1 - t) ** 2, turns[1:])
        kernels = inverses.swapaxes(1, 2) @ inner @ inverses
        kernels += c[:, :, None] * likelihood.ones / self.width
        V, B = self._paths(np.stack([likelihood.start / self.width, *kernels[::-1]]), G[1:])
        C = self._without_labels(B) + self._learned(sides, TT, V, B)
        return Tilted(C, conjugates, mean, variance)

    def _paths(self, kernels: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """V = ⟨z zᵀ⟩ without tilt and B = D(1 − 2VD)⁻¹, D_k = −½ a_{k+1} G^(k+1), (n, d, n, d)."""
        levels, A = np.arange(len(kernels)), self._skips
        V = np.einsum("km,lm,mab->kalb", A, A, kernels)
        D = np.zeros_like(V)
        D[levels, :, levels] = -0.5 * self.a[1:, None, None] * G
        flat = D.reshape(V.shape[0] * V.shape[1], -1)
        B = np.linalg.solve(np.eye(len(flat)) - 2 * flat @ V.reshape(flat.shape), flat)
        return V, B.reshape(V.shape)

    @property
    def _skips(self) -> np.ndarray:
        """A_lm, (L+1, L+1)."""
        levels = range(len(self.gammas) + 1)
        return np.array([[np.prod(self.gammas[m:l]) * (m <= l) for m in levels] for l in levels])

    def _without_labels(self, B: np.ndarray) -> np.ndarray:
        """⟨C^(l)⟩ given V^(0), ..., V^(L), which is infinite width up to (T − 1)/N."""
        (n, d), A = B.shape[:2], self._skips
        paths = -2 * np.einsum("kl,kamb,mn->lanb", A, B, A).reshape(n * d, -1)
        h, projected = np.array([1.0, 0.0]), np.stack([paths, 0 * paths])
        C = [h, self.a[1] * h + self.c[1] * np.array([0.0, 1.0])]
        for l, gamma in enumerate(self.gammas, 1):
            own, before = (slice(m * d, m * d + d) for m in (l, l - 1))
            inverse, bias = np.linalg.pinv(paths[own, own]), np.array([0.0, self.c[l]])
            along = paths[:, own] @ inverse
            step = gamma * np.eye(n * d)
            step[:, own] -= gamma * along
            step[:, before] += along
            shared = along @ paths[own]
            later = step @ projected @ step.T
            later += np.multiply.outer(C[l], paths - shared) + np.multiply.outer(bias, shared)
            change = (later - gamma**2 * projected)[:, own, own]
            h = (
                gamma**2 * h
                + (1 - d / self.width) * C[l]
                + np.trace(inverse @ change, axis1=1, axis2=2) / self.width
            )
            projected = later
            C.append(self.a[l + 1] * h + self.c[l + 1] * np.array([0.0, 1.0]))
        return np.array([x * self.K0 + y for x, y in C])

    def _learned(
        self, sides: np.ndarray, TT: np.ndarray, V: np.ndarray, B: np.ndarray
    ) -> np.ndarray:
        """The part of ⟨C^(l)⟩ linear in TT = ⟨τ τᵀ⟩, from C^(l) τ = K0 τ x_l + 11ᵀ τ y_l."""
        d, skips = self.Y.shape[1], self._skips
        C = np.zeros((len(self.a), *self.K0.shape))
        x = np.zeros((len(self.a), 2, d, d))
        x[0, 0] = np.eye(d)
        for l in range(1, len(self.a)):
            row = skips[l - 1, :l]
            H = np.einsum("m,m,mij->ij", row, row, C[:l])
            X = np.einsum("m,km,mfab->kfab", row, skips[:, :l], x[:l])
            x[l] = X[l - 1] + 2 * np.einsum("kfab,kbmc,mcd->fad", X, B, V[:, :, l - 1])
            x[l] = self.a[l] * x[l] + self.c[l] * np.eye(d) * np.array([0.0, 1.0])[:, None, None]
            inner = np.einsum("kfab,kbmc,mgdc->fgad", X, B, X, optimize=True)
            inner = np.einsum("fgad,aidj->fgij", inner, TT, optimize=True)
            tilt = np.einsum("fpi,fgij,gqj->pq", sides, inner, sides, optimize=True)
            C[l] = self.a[l] * (H + 2 * tilt / self.width)
        return C
