"""Layout of the distinct entries of kernel matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.limits.kernel_flow import Flow
from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.layer_functions import network_functions


@dataclass(frozen=True, eq=False)
class PairLayout:
    """The variances of a kernel and the covariances of different inputs, one after the other.

    Covariances of identical inputs are variances, to the last bit.

    Parameters
    ----------
    kernel : ndarray, shape (...) or (P, P)
        Variances or a matrix.

    Examples
    --------
    >>> layout = PairLayout(np.array([[1.0, 0.2, 1.0], [0.2, 2.0, 0.2], [1.0, 0.2, 1.0]]))
    >>> layout.packed(layout.kernel)
    array([1. , 2. , 1. , 0.2, 0.2])
    """

    kernel: np.ndarray

    @property
    def inputs(self) -> int:
        """P."""
        return len(self.kernel) if self.kernel.ndim == 2 else self.kernel.size

    @cached_property
    def _different(self) -> tuple[np.ndarray, np.ndarray]:
        if self.kernel.ndim < 2:
            return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        first, second = np.triu_indices(self.inputs, 1)
        own = np.diagonal(self.kernel)
        covariance = self.kernel[first, second]
        parted = (own[first] != covariance) | (own[second] != covariance)
        return first[parted], second[parted]

    @property
    def size(self) -> int:
        """Number of variances and covariances."""
        return self.inputs + len(self._different[0])

    def packed(self, kernel: np.ndarray) -> np.ndarray:
        """The entries of a kernel of the same inputs, (size,)."""
        if kernel.ndim < 2:
            return kernel.ravel()
        return np.concatenate([np.diagonal(kernel), kernel[self._different]])

    def unpacked(self, entries: np.ndarray) -> np.ndarray:
        """The kernels of entries (..., size)."""
        if self.kernel.ndim < 2:
            return entries.reshape((*entries.shape[:-1], *self.kernel.shape))[()]
        own, pairs = entries[..., : self.inputs], entries[..., self.inputs :]
        # Rows of identical inputs.
        identical = self.kernel == np.diagonal(self.kernel)[:, None]
        kernels = np.where(identical & identical.T, own[..., None, :], 0.0)
        first, second = self._different
        kernels[..., first, second] = kernels[..., second, first] = pairs
        return kernels

    def flow(self, network: LayeredNetwork) -> Flow:
        """The flow of all entries."""
        return Flow(network_functions(network), unit_branch(network), self._different)
