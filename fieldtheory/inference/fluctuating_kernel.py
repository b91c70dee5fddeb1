"""Gaussian regression with a kernel of the outputs that fluctuates, to second order.

With A = C + κ of the P training inputs, α = A⁻¹ Y and w = e_q − A⁻¹ C_q, a change δC of the kernel
changes means f and variances v of predictions, with r = δC w and s = δC α of training inputs, by

    δf = wᵀ δC α − rᵀ A⁻¹ s,   δv = wᵀ δC w − rᵀ A⁻¹ r,
    δ ln p(Y|C) = tr U δC + (d/4) tr (A⁻¹ δC)² − ½ tr sᵀ A⁻¹ s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from fieldtheory.inference.gaussian_process import cholesky, log_density


class Regression(NamedTuple):
    """Regression at a fixed kernel of the outputs of Q inputs, P of them with labels."""

    # (Q, Q): C.
    kernel: np.ndarray
    # (P, d)
    labels: np.ndarray
    # (P, P): The Cholesky factor of A, and A⁻¹.
    factor: np.ndarray
    inverse: np.ndarray
    # (Q, d): α, zero for inputs without labels.
    alpha: np.ndarray
    # (Q, Q): In columns, one for every input.
    w: np.ndarray

    @classmethod
    def from_labels(cls, C: np.ndarray, labels: np.ndarray, noise: float) -> Regression:
        """That of labels (P,) or (P, d) with noise; ValueError if A is singular to rounding."""
        Y = labels.reshape(len(labels), -1)
        count = len(Y)
        factor = cholesky(C[:count, :count], noise, 0.0)
        inverse = linalg.cho_solve((factor, True), np.eye(count))
        alpha, w = np.zeros((len(C), Y.shape[1])), np.eye(len(C))
        alpha[:count] = inverse @ Y
        w[:count] -= inverse @ C[:count]
        return cls(C, Y, factor, inverse, alpha, w)

    @property
    def weights(self) -> np.ndarray:
        """U = ∂ ln p(Y|C)/∂C, zero for inputs without labels, (Q, Q)."""
        count, outputs = self.labels.shape
        U = self.alpha @ self.alpha.T
        U[:count, :count] -= outputs * self.inverse
        return U / 2

    @property
    def mean(self) -> np.ndarray:
        """Of the outputs of all inputs, (Q, d)."""
        return self.kernel @ self.alpha

    @property
    def variance(self) -> np.ndarray:
        """Of the outputs without noise, (Q,)."""
        count = len(self.labels)
        explained = linalg.solve_triangular(self.factor, self.kernel[:count], lower=True)
        return np.maximum(np.diagonal(self.kernel) - (explained**2).sum(axis=0), 0.0)

    @property
    def log_evidence(self) -> float:
        """ln p(Y|C)."""
        return log_density(self.labels, self.alpha[: len(self.labels)], self.factor)


class Corrections(NamedTuple):
    """N times terms of order 1/N, or their standard errors."""

    # (L + 2, Q, Q): Of the prior means of the kernels, and Cov(C^(l), tr U C).
    shift: np.ndarray
    covariance: np.ndarray
    # (Q, d): Of the predictions.
    mean: np.ndarray
    variance: np.ndarray
    log_evidence: np.ndarray
    # The mean square of the relative changes of the eigenvalues of A.
    fluctuations: np.ndarray


def fluctuating(law: Regression, outputs: np.ndarray, shift: np.ndarray) -> Corrections:
    """Averages over δC of what is of second order in it, and what is linear in the mean shift."""
    count, d = law.labels.shape
    w, alpha, size, m = law.w, law.alpha, len(outputs), shift[-1]
    by_alpha = outputs @ alpha
    r, s = (_whitened(law, rows[:, :count]) for rows in (outputs @ w, by_alpha))
    A = _whitened(law, np.swapaxes(_whitened(law, outputs[:, :count, :count]), 1, 2))
    mean = w.T @ m @ alpha - np.einsum("niq,nid->qd", r, s) / size
    variance = np.einsum("iq,ij,jq->q", w, m, w) - (r**2).sum(axis=(0, 1)) / size
    variance = variance[:, None] + ((w.T @ by_alpha) ** 2).mean(axis=0)
    squares = (A**2).sum() / size
    evidence = (law.weights * m).sum() + d * squares / 4 - (s**2).sum() / size / 2
    fluctuations = np.asarray(squares / count)
    return Corrections(shift, np.zeros(()), mean, variance, np.asarray(evidence), fluctuations)


def linear_response(law: Regression, change: np.ndarray) -> dict[str, np.ndarray]:
    """Parts of `Corrections` from Cov(C, tr U C) of the outputs, (n, Q, Q), to first order in it.

    That of the evidence is ½ Var tr U C.
    """
    return {
        "mean": law.w.T @ change @ law.alpha,
        "variance": np.einsum("iq,nij,jq->nq", law.w, change, law.w, optimize=True)[:, :, None],
        "log_evidence": np.einsum("ij,nij->n", law.weights, change) / 2,
    }


def _whitened(law: Regression, rows: np.ndarray) -> np.ndarray:
    """L⁻¹ x of matrices x (n, P, m), L the factor of A."""
    columns = np.moveaxis(rows, 1, 0)
    flat = linalg.solve_triangular(law.factor, columns.reshape(len(columns), -1), lower=True)
    return np.asarray(np.moveaxis(flat.reshape(columns.shape), 0, 1))
