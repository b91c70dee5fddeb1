"""What posteriors given labels share: their arguments, and the axes of their fields."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork, single_network
from fieldtheory.numerics.fields import Field
from fieldtheory.numerics.result import Computed
from fieldtheory.plotting.curves import Curve, over_layers

# Inputs whose kernels are drawn.
_DRAWN = 3


@dataclass(frozen=True, eq=False)
class LabelledResult(Computed):
    """A result for Q inputs, of which the first have ``labels`` (P,) or (P, d)."""

    network: LayeredNetwork
    input_kernel: np.ndarray
    labels: np.ndarray
    noise_variance: float
    residual_kernels: np.ndarray
    residual_kernels_error: np.ndarray
    kernels: np.ndarray
    kernels_error: np.ndarray
    mean: np.ndarray
    mean_error: np.ndarray
    variance: np.ndarray
    variance_error: np.ndarray

    def plot(self) -> Any:
        """Kernels over the layers of the first three inputs, and the predictions of all."""
        from fieldtheory.plotting.layers import draw_fit, draw_layers, draw_predictions

        drawn = f"{min(self.inputs, _DRAWN)} of {self.inputs} inputs"
        panels = {f"{panel}, {drawn}": groups for panel, groups in self._curves().items()}
        count, deviation = len(self.labels), np.sqrt(np.maximum(self.variance, 0.0))
        more = [partial(draw_fit, self.labels, self.mean[:count], deviation[:count])]
        if count < self.inputs:
            test = np.arange(count, self.inputs), self.mean[count:], deviation[count:]
            more.append(partial(draw_predictions, *test))
        return draw_layers(panels, self.network.depth + 1, more)

    def _lines(self, field: Field) -> list[Curve]:
        values, errors = getattr(self, field.name), getattr(self, f"{field.name}_error")
        pairs = zip(*np.triu_indices(min(self.inputs, _DRAWN)), strict=True)
        return [
            over_layers(
                field.panel, f"${field.symbol}$, ({i},{j})", values[:, i, j], errors[:, i, j]
            )
            for i, j in pairs
        ]

    def _coordinates(self) -> dict[str, Any]:
        own = {"training": np.arange(len(self.labels))}
        if self.labels.ndim > 1:
            own["output"] = np.arange(self.labels.shape[1])
        return super()._coordinates() | own

    def _dims(self, field: Field) -> tuple[str, ...]:
        dims = super()._dims(field)
        return dims if self.labels.ndim > 1 else tuple(dim for dim in dims if dim != "output")


def labelled_inputs(network: Any, K0: Any, Y: Any, function: str) -> tuple[np.ndarray, np.ndarray]:
    """K0 (Q, Q) and labels (P,) or (P, d) with P <= Q, of one network; ValueError otherwise."""
    single_network(network, DeepNetwork, function=function)
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
