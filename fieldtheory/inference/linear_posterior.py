"""The posterior of deep linear networks for P ~ N → ∞: effective scales of the input kernel.

With a conjugate T (P, d) of the labels, p(Y) = ∫ dT exp(i tr TᵀY − κ tr TᵀT/2) ⟨exp(−½ tr TᵀC T)⟩
for C = C^(L+1). For φ(h) = h that average is one of the projected signals z = Tᵀh/√N alone. Their
kernels Γ^(l) = TᵀC^(l)T/N, d × d matrices, do not fluctuate, at any P/N. Their saddle point is

    Γ^(0) = TᵀK0T/N,   Γ^(l) = a_l ⟨z^(l-1) z^(l-1)ᵀ⟩ + c_l β,   β = Tᵀ11ᵀT/N,
    Γ̃^(L+1) = −½,      Γ̃^(l) = ∂ ln ⟨exp Σ_m a_m zᵀ^(m-1) Γ̃^(m) z^(m-1)⟩ / ∂Γ^(l),

so that T is a complex Gaussian with the precision A = κ + S and the mean i A⁻¹Y,

    S = s_0 ⊗ K0 + s_1 ⊗ 11ᵀ,   s_0 = −2 Γ̃^(0),   s_1 = −2 Σ_l c_l Γ̃^(l),

and TᵀK0T, Tᵀ11ᵀT are their means. Predictions are those of a Gaussian process with the kernel S.
For γ = 0, c = 0 this is the kernel renormalisation of Q. Li and H. Sompolinsky, Phys. Rev. X 11,
031059 (2021); skips and biases are new.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize

# Of the saddle point, and of the steps that lead to it.
_TOLERANCE, _SMALLEST_STEP = 1e-10, 1e-6


class Tilted(NamedTuple):
    """C^(l) (L+2, Q, Q), C̃^(l) (L+2, P, P), means and variances of predictions (Q, d)."""

    residual_kernels: np.ndarray
    conjugate_kernels: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


class Linear(NamedTuple):
    """A linear network and labels: a_l, c_l (L+2,), A_lm (L+1, L+1), K0 (Q, Q), Y (P, d), κ, N."""

    a: np.ndarray
    c: np.ndarray
    skips: np.ndarray
    K0: np.ndarray
    Y: np.ndarray
    noise: float
    width: int

    def solve(self) -> Tilted:
        """The saddle point, by Newton steps from infinite width on; ArithmeticError if none."""
        values, vectors = np.linalg.eigh(self.K0[: len(self.Y), : len(self.Y)])
        modes = values, vectors.sum(axis=0), vectors.T @ self.Y
        state = np.zeros((2 * len(self.a) - 3) * self.Y.shape[1] ** 2)
        for _ in self.a:
            # Without Γ, the Γ̃ follow one after the other.
            state = self._moved(state, 0.0, modes)
        # From infinite width on, by steps of the rate 1/N that are halved where they fail.
        reached, step = 0.0, 1.0
        while reached < 1:
            rate = min(reached + step, 1.0) / self.width
            found = optimize.root(
                lambda x, rate=rate: self._moved(x, rate, modes) - x, state, tol=_TOLERANCE
            )
            if found.success:
                state, reached, step = found.x, reached + step, 2 * step
            elif (step := step / 4) < _SMALLEST_STEP:
                raise ArithmeticError(
                    f"no saddle point was found for {len(self.Y)} labels at width {self.width}, "
                    f"only to width {self.width / max(reached, _SMALLEST_STEP):.3g}"
                )
        return self._result(state)

    def _parts(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Γ^(1..L) and Γ̃^(0..L) of a state."""
        parts = state.reshape(-1, *[self.Y.shape[1]] * 2)
        return parts[: len(self.a) - 2], parts[len(self.a) - 2 :]

    def _scales(self, conjugates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s_0 and s_1."""
        own = self.c[-1] * np.eye(conjugates.shape[-1])
        return -2 * conjugates[0], own - 2 * np.einsum("l,lab->ab", self.c[:-1], conjugates)

    def _projections(
        self, conjugates: np.ndarray, modes: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """⟨TᵀK0T⟩ and ⟨Tᵀ11ᵀT⟩, in the eigenvectors of K0, where 11ᵀ is of rank one."""
        values, ones, labels = modes
        s0, s1 = self._scales(conjugates)
        rates, turn = np.linalg.eigh(s0)
        s1, y = turn.T @ s1 @ turn, (labels @ turn).T
        D = 1 / (self.noise + rates[:, None] * values)
        own = D @ ones**2
        W = np.linalg.solve(np.eye(len(s1)) + s1 * own, s1)
        De = D * ones
        u = D * y - De * (W @ (De * y).sum(axis=1))[:, None]
        start = np.diag(D @ values) - W * ((De * values) @ De.T) - (u * values) @ u.T
        beta = np.diag(own) - W * np.outer(own, own) - np.outer(u @ ones, u @ ones)
        return turn @ start @ turn.T, turn @ beta @ turn.T

    def _paths(
        self, start: np.ndarray, kernels: np.ndarray, conjugates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """V = ⟨z zᵀ⟩ without tilt and B = D(1 − 2VD)⁻¹, D_k = a_{k+1} Γ̃^(k+1), (n, d, n, d)."""
        levels, d = np.arange(len(self.skips)), len(start)
        G = np.concatenate([start[None], kernels])
        V = np.einsum("km,lm,mab->kalb", self.skips, self.skips, G)
        D = np.zeros_like(V)
        ends = np.concatenate([conjugates[1:], -0.5 * np.eye(d)[None]])
        D[levels, :, levels] = self.a[1:, None, None] * ends
        flat = D.reshape(len(levels) * d, -1)
        B = np.linalg.solve(np.eye(len(flat)) - 2 * flat @ V.reshape(flat.shape), flat)
        return V, B.reshape(V.shape)

    def _moved(self, state: np.ndarray, rate: float, modes: tuple[np.ndarray, ...]) -> np.ndarray:
        """The saddle-point equations once, for 1/N = rate."""
        kernels, conjugates = self._parts(state)
        start, beta = self._projections(conjugates, modes)
        V, B = self._paths(rate * start, kernels, conjugates)
        tilted = V + 2 * np.einsum("kalb,lbmc,mcnd->kand", V, B, V, optimize=True)
        levels = np.arange(len(kernels))
        moved = self.a[1:-1, None, None] * tilted[levels, :, levels]
        moved = moved + self.c[1:-1, None, None] * rate * beta
        back = np.einsum("kl,ml,kamb->lab", self.skips, self.skips, B)
        found = np.concatenate([moved, back])
        return ((found + found.swapaxes(1, 2)) / 2).ravel()

    def _result(self, state: np.ndarray) -> Tilted:
        """Kernels and predictions: C̃^(l) = ⟨T Γ̃^(l) Tᵀ⟩/N."""
        kernels, conjugates = self._parts(state)
        P, d = self.Y.shape
        s0, s1 = self._scales(conjugates)
        S = np.einsum("ab,ij->aibj", s0, self.K0) + s1[:, None, :, None]
        known = S[:, :, :, :P]
        A = known[:, :P].reshape(d * P, -1) + self.noise * np.eye(d * P)
        inverse = np.linalg.inv(A).reshape(d, P, d, P)
        u = np.einsum("aibj,jb->ai", inverse, self.Y)
        TT = inverse - np.einsum("ai,bj->aibj", u, u)
        mean = np.einsum("aibj,bj->ia", known, u)
        explained = np.einsum("aick,ckdl,aidl->ia", known, inverse, known, optimize=True)
        variance = np.maximum(np.einsum("aiai->ia", S) - explained, 0.0)
        ends = np.concatenate([conjugates, -0.5 * np.eye(d)[None]])
        tilts = np.einsum("lab,aibj->lij", ends, TT) / self.width
        start = np.einsum("aibj,ij->ab", TT, self.K0[:P, :P]) / self.width
        V, B = self._paths(start, kernels, conjugates)
        return Tilted(self._mean_kernels(TT, V, B), tilts, mean, variance)

    def _mean_kernels(self, TT: np.ndarray, V: np.ndarray, B: np.ndarray) -> np.ndarray:
        """⟨C^(l)⟩: given T, C^(l) T = K0 T x_l + 11ᵀ T y_l, and so on by the tilt of rank d."""
        P, d = self.Y.shape
        sides = np.stack([self.K0[:, :P], np.ones((len(self.K0), P))])
        C = np.zeros((len(self.a), *self.K0.shape))
        C[0] = self.K0
        x = np.zeros((len(self.a), 2, d, d))
        x[0, 0] = np.eye(d)
        for l in range(1, len(self.a)):
            row = self.skips[l - 1, :l]
            H = np.einsum("m,m,mij->ij", row, row, C[:l])
            X = np.einsum("m,km,mfab->kfab", row, self.skips[:, :l], x[:l])
            x[l] = X[l - 1] + 2 * np.einsum("kfab,kbmc,mcd->fad", X, B, V[:, :, l - 1])
            x[l] = self.a[l] * x[l] + self.c[l] * np.eye(d) * np.array([0.0, 1.0])[:, None, None]
            inner = np.einsum("kfab,kbmc,mgdc->fgad", X, B, X, optimize=True)
            inner = np.einsum("fgad,aidj->fgij", inner, TT, optimize=True)
            tilt = np.einsum("fpi,fgij,gqj->pq", sides, inner, sides, optimize=True)
            C[l] = self.a[l] * (H + 2 * tilt / self.width) + self.c[l]
        return C
