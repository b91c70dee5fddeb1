"""Ensembles of infinitely wide networks trained by gradient descent, by the tangent kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from fieldtheory import validation
from fieldtheory.inference.gaussian_process import Kernel, training_data
from fieldtheory.networks.parameters import named_arguments


@dataclass(frozen=True, eq=False)
class TrainedEnsemble:
    """The law of the outputs of infinitely wide networks after training, as `train` returns it.

    With Θ and Q the tangent and output kernels of the training inputs, the outputs F_τ at time τ
    of gradient descent on ½ Σ (F − y)² + ½ λ |θ − θ_0|² are Gaussian,

        F_τ(x) = F_0(x) + A(x) (y − F_0(X)),   A(x) = Θ(x) (Θ + λ)⁻¹ (1 − e^(−(Θ + λ) τ))

    (SR section 5, its learning rate η = 1), so that the mean is A(x) y and the covariance
    Q(x, x') − A(x) Q(X, x') − Q(x, X) A(x')ᵀ + A(x) Q A(x')ᵀ.

    Parameters
    ----------
    output_kernel, tangent_kernel : Kernel
    X : ndarray, shape (P, d)
    y : ndarray, shape (P,) or (P, n)
    time : float
        τ, ``inf`` for training to the end.
    ridge : float
        λ.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=5, activation="relu", branch_scale=0.4)
    >>> kernels = ft.kernel(net), ft.kernel(net, "tangent_kernel")
    >>> found = train(*kernels, [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], time=3.0)
    >>> found.mean([[1.0, 1.0]]).shape, found.variance([[1.0, 1.0]]).shape
    ((1,), (1,))
    """

    output_kernel: Kernel
    tangent_kernel: Kernel
    X: np.ndarray
    y: np.ndarray
    time: float
    ridge: float
    _modes: tuple[np.ndarray, np.ndarray]

    def mean(self, Z: Any) -> np.ndarray:
        """The mean over networks at the rows of Z (R, d), shape (R,) or (R, n)."""
        return self._gain(Z) @ self.y

    def covariance(self, Z: Any) -> np.ndarray:
        """The covariance over networks at the rows of Z, shape (R, R)."""
        A, joint = self._gain(Z), self.output_kernel(self.X, Z)
        carried = A @ joint
        return self.output_kernel(Z) - carried - carried.T + A @ self._prior @ A.T

    def variance(self, Z: Any) -> np.ndarray:
        """The variance over networks at the rows of Z, shape (R,)."""
        A, joint = self._gain(Z), self.output_kernel(self.X, Z)
        variance = self.output_kernel.diagonal(Z) - 2 * (A.T * joint).sum(axis=0)
        return np.maximum(variance + ((A @ self._prior) * A).sum(axis=1), 0.0)

    def __repr__(self) -> str:
        return f"TrainedEnsemble(inputs={len(self.y)}, time={self.time:g}, ridge={self.ridge:g})"

    @cached_property
    def _prior(self) -> np.ndarray:
        return self.output_kernel(self.X)

    def _gain(self, Z: Any) -> np.ndarray:
        rates, modes = self._modes
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(rates > 0, -np.expm1(-rates * self.time) / rates, self.time)
        return ((self.tangent_kernel(Z, self.X) @ modes) * factors) @ modes.T


@named_arguments
def train(
    output_kernel: Kernel,
    tangent_kernel: Kernel,
    X: Any,
    y: Any,
    time: float = np.inf,
    ridge: float = 0.0,
) -> TrainedEnsemble:
    """The law of infinitely wide networks after gradient descent on the squared error.

    Parameters
    ----------
    output_kernel, tangent_kernel : Kernel
        ``ft.kernel(network)`` and ``ft.kernel(network, "tangent_kernel")``.
    X : array_like, shape (P, d)
    y : array_like, shape (P,) or (P, n)
    time : float
        τ >= 0, steps times learning rate; infinite for training to the end.
    ridge : float
        λ >= 0, the penalty of the parameters' distance from where they began.

    Returns
    -------
    TrainedEnsemble

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit, a value is not allowed, or the tangent kernel is singular to rounding
        at infinite time without ridge.

    Notes
    -----
    The average loss (1/P) Σ divides the time by P.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=5, activation="relu", branch_scale=0.4)
    >>> kernels = ft.kernel(net), ft.kernel(net, "tangent_kernel")
    >>> X, y = [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
    >>> train(*kernels, X, y).mean(X).round(12)
    array([ 1., -1.])
    >>> train(*kernels, X, y, time=0.0).mean(X) + 0.0
    array([0., 0.])
    """
    X, y = training_data(X, y)
    if time != np.inf:
        time = validation.nonnegative("time", time)
    ridge = validation.nonnegative("ridge", ridge)
    rates, modes = linalg.eigh(tangent_kernel(X))
    rates = np.maximum(rates, 0.0) + ridge
    if time == np.inf and rates[0] <= len(X) * np.finfo(float).eps * rates[-1]:
        raise ValueError(
            f"the tangent kernel of the {len(X)} inputs is singular to rounding (eigenvalues from "
            f"{rates[0]:.1g} to {rates[-1]:.1g}): use a ridge, or a finite time"
        )
    return TrainedEnsemble(output_kernel, tangent_kernel, X, y, float(time), ridge, (rates, modes))
