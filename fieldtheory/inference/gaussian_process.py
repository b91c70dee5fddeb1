"""Inference with infinitely wide networks: posteriors of Gaussian processes, and of training.

The outputs of infinitely wide networks are a Gaussian process over the inputs, whose kernel is the
output kernel. Conditioned on noisy values it is the Bayesian network (`condition`); moved by
gradient descent with the tangent kernel it is the ensemble of trained networks (`train`).

The kernel of the outputs of finite networks fluctuates, which counts to second order. With
A = C + κ of the P training inputs, α = A⁻¹ Y and w = e_q − A⁻¹ C_q, a change δC of the kernel
changes means f and variances v of predictions, with r = δC w and s = δC α of training inputs, by

    δf = wᵀ δC α − rᵀ A⁻¹ s,   δv = wᵀ δC w − rᵀ A⁻¹ r,
    δ ln p(Y|C) = tr U δC + (d/4) tr (A⁻¹ δC)² − ½ tr sᵀ A⁻¹ s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import linalg

from fieldtheory import validation
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import input_rows


class Kernel(Protocol):
    """A covariance function, such as `fieldtheory.kernel` returns."""

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """The kernel of the rows of X and those of Z, or of X with itself, (P, Q)."""

    def diagonal(self, X: Any) -> np.ndarray:
        """The kernel of every row with itself, (P,)."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian process conditioned on noisy values, as `condition` returns it.

    With Q the kernel of the P training inputs, α = (Q + σ²)⁻¹ y and Q(x) the kernel of an input
    with them, the posterior is Gaussian with

        mean Q(x) α,   covariance Q(x, x') − Q(x)(Q + σ²)⁻¹ Q(x')ᵀ                    (SR eq. (10))

    Several outputs, the columns of y, are independent given the kernel.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray, shape (P, d)
    y : ndarray, shape (P,) or (P, n)
    noise_variance : float
        σ².
    jitter : float
        What was added to the diagonal of Q besides σ².

    Examples
    --------
    >>> import fieldtheory as ft
    >>> k = ft.kernel(ft.ResidualNetwork(depth=5, activation="relu", branch_scale=0.4))
    >>> posterior = condition(k, [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], noise_variance=1e-4)
    >>> posterior.mean([[1.0, 0.0], [1.0, 1.0]]).round(3) + 0.0
    array([1., 0.])
    """

    kernel: Kernel
    X: np.ndarray
    y: np.ndarray
    noise_variance: float
    jitter: float
    _matrix: np.ndarray
    _factor: np.ndarray

    @cached_property
    def weights(self) -> np.ndarray:
        """α = (Q + σ²)⁻¹ y, shape (P,) or (P, n)."""
        return linalg.cho_solve((self._factor, True), self.y)

    def mean(self, Z: Any) -> np.ndarray:
        """The mean at the rows of Z (R, d), shape (R,) or (R, n)."""
        return self.kernel(Z, self.X) @ self.weights

    def variance(self, Z: Any) -> np.ndarray:
        """The variance of the process without noise at the rows of Z, shape (R,)."""
        return self.mean_and_variance(Z)[1]

    def covariance(self, Z: Any) -> np.ndarray:
        """The covariance of the process without noise at the rows of Z, shape (R, R)."""
        return self.mean_and_covariance(Z)[1]

    def mean_and_variance(self, Z: Any) -> tuple[np.ndarray, np.ndarray]:
        """`mean` and `variance`, the kernel of Z and the training inputs computed once."""
        block = self.kernel(Z, self.X)
        explained = self._whitened(block.T)
        # Rounding may leave -1e-16 where a training input is met without noise.
        left = np.maximum(self.kernel.diagonal(Z) - (explained**2).sum(axis=0), 0.0)
        return block @ self.weights, left

    def mean_and_covariance(self, Z: Any) -> tuple[np.ndarray, np.ndarray]:
        """`mean` and `covariance`, the kernel of Z and the training inputs computed once."""
        block = self.kernel(Z, self.X)
        explained = self._whitened(block.T)
        return block @ self.weights, self.kernel(Z) - explained.T @ explained

    @cached_property
    def training_mean(self) -> np.ndarray:
        """The mean at the training inputs, Q α = y − (σ² + jitter) α, shape (P,) or (P, n)."""
        return self._matrix @ self.weights

    @cached_property
    def training_variance(self) -> np.ndarray:
        """The variance at the training inputs, the diagonal of Q − Q (Q + σ²)⁻¹ Q, shape (P,)."""
        explained = self._whitened(self._matrix)
        return np.maximum(np.diagonal(self._matrix) - (explained**2).sum(axis=0), 0.0)

    @property
    def log_evidence(self) -> float:
        """ln p(y) = −½ yᵀα − ½ ln det(Q + σ²) − (P/2) ln 2π, summed over the outputs."""
        return log_density(self.y, self.weights, self._factor)

    @property
    def divergence(self) -> float:
        """KL(posterior ‖ prior), the divergence of SR Proposition 10, summed over the outputs.

            KL = ½ [ln det(1 + Q/σ²) − tr Q (Q + σ²)⁻¹ + αᵀ Q α]

        That of the processes is that of their values at the training inputs, by which alone they
        differ. Infinite without noise, where the posterior is certain of these values.
        """
        noise = self.noise_variance + self.jitter
        if noise == 0:
            return np.inf
        trace = noise * (self._whitened(np.eye(len(self.y))) ** 2).sum()
        size, determinant = len(self.y), _log_determinant(self._factor)
        spread = determinant - size * np.log(noise) - size + trace
        outputs = self.y.size / len(self.y)
        return float(0.5 * (outputs * spread + (self.weights * self.training_mean).sum()))

    def __repr__(self) -> str:
        return f"Posterior(inputs={len(self.y)}, noise_variance={self.noise_variance:g})"

    def _whitened(self, columns: np.ndarray) -> np.ndarray:
        return linalg.solve_triangular(self._factor, columns, lower=True)


@named_arguments
def condition(
    kernel: Kernel, X: Any, y: Any, noise_variance: float, jitter: float = 0.0
) -> Posterior:
    """Condition a Gaussian process of mean zero on noisy values at training inputs (SR eq. (10)).

    Parameters
    ----------
    kernel : Kernel
        Such as ``ft.kernel(network)``, the prior of an infinitely wide network, or that of the
        tangent kernel, for kernel regression with it.
    X : array_like, shape (P, d)
    y : array_like, shape (P,) or (P, n)
        Values, or n outputs in columns.
    noise_variance : float
        σ² >= 0 of independent Gaussian noise in y.
    jitter : float
        Added to the diagonal of the kernel; nothing is added that is not asked for.

    Returns
    -------
    Posterior

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit, a value is not finite, or the matrix is singular to rounding.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> k = ft.kernel(ft.ResidualNetwork(depth=5, branch_scale=0.4))
    >>> found = condition(k, [[1.0], [2.0]], [0.1, 0.2], noise_variance=0.01)
    >>> found.mean([[1.5]]).shape, found.variance([[1.5]]).shape
    ((1,), (1,))
    """
    X, y = training_data(X, y)
    noise = validation.nonnegative("noise_variance", noise_variance)
    extra = validation.nonnegative("jitter", jitter)
    Q = kernel(X)
    return Posterior(kernel, X, y, noise, extra, Q, cholesky(Q, noise, extra))


def training_data(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """X (P, d) and y (P,) or (P, n) as arrays, or raise naming what does not fit."""
    X, y = input_rows("X", X), validation.finite_array("y", y)
    if y.ndim not in (1, 2) or len(y) != len(X):
        raise ValueError(
            f"y must have shape ({len(X)},) or ({len(X)}, n), one row for each input in X, "
            f"got shape {y.shape}"
        )
    return X, y


def log_density(y: np.ndarray, weights: np.ndarray, factor: np.ndarray) -> float:
    """ln p(y) of values (P,) or (P, n), α and the lower factor of their covariance."""
    size = len(y) * np.log(2 * np.pi) + _log_determinant(factor)
    return float(-0.5 * ((y * weights).sum() + y.size / len(y) * size))


def _log_determinant(factor: np.ndarray) -> float:
    return float(2 * np.log(np.diagonal(factor)).sum())


def cholesky(Q: np.ndarray, noise: float, jitter: float) -> np.ndarray:
    """The lower factor of Q + noise + jitter; ValueError if it is singular to rounding."""
    shifted = Q.copy()
    shifted.flat[:: len(Q) + 1] += noise + jitter
    try:
        factor = linalg.cholesky(shifted, lower=True)
    except linalg.LinAlgError:
        raise ValueError(_singular(Q, noise, jitter)) from None
    # A pivot lost in the rounding of its row leaves no digit of what is divided by it.
    lost = np.diagonal(factor) ** 2 <= len(Q) * np.finfo(float).eps * np.diagonal(shifted)
    if lost.any():
        raise ValueError(_singular(Q, noise, jitter))
    return factor


def _singular(Q: np.ndarray, noise: float, jitter: float) -> str:
    need = 2 * len(Q) * np.finfo(float).eps * float(np.diagonal(Q).max())
    return (
        f"the kernel of the {len(Q)} inputs is singular to rounding with noise_variance={noise:g} "
        f"and jitter={jitter:g}: inputs coincide, or the network does not tell them apart; "
        f"use a noise_variance or jitter above {need:.1g}"
    )


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
