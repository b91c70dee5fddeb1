"""What posteriors given labels share: their arguments, and the axes of their fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import LayeredNetwork, checked_network
from fieldtheory.numerics.fields import Field
from fieldtheory.numerics.result import Result


class LabelledResult(Result):
    """A result for Q inputs, of which the first have ``labels`` (P,) or (P, d)."""

    labels: np.ndarray

    def _coordinates(self) -> dict[str, Any]:
        own = {"training": np.arange(len(self.labels))}
        if self.labels.ndim > 1:
            own["output"] = np.arange(self.labels.shape[1])
        return super()._coordinates() | own

    def _dims(self, field: Field) -> tuple[str, ...]:
        dims = super()._dims(field)
        return dims if self.labels.ndim > 1 else tuple(dim for dim in dims if dim != "output")

    def _shape(self, field: Field) -> tuple[int, ...]:
        coords = self._coordinates()
        return tuple(len(coords[dim]) for dim in self._dims(field))


def labelled_inputs(network: LayeredNetwork, K0: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """K0 (Q, Q) and labels (P,) or (P, d) with P <= Q, of one network; ValueError otherwise."""
    checked_network(network)
    if network.batch_shape:
        raise ValueError(f"network must have no batch axes, got {network.batch_shape}")
    kernel = validation.input_kernel_array("K0", K0)
    if kernel.ndim != 2:
        raise ValueError(f"K0 must be a matrix (Q, Q), got shape {kernel.shape}")
    labels = validation.finite_array("Y", Y)
    if labels.ndim not in (1, 2) or not 1 <= len(labels) <= len(kernel):
        raise ValueError(
            f"Y must have shape (P,) or (P, d) with 1 <= P <= {len(kernel)}, the number of inputs, "
            f"got {labels.shape}"
        )
    return kernel, labels
