"""Responses of kernels after labels: how the networks that learned them pass on other inputs.

Labels Y add Cov(K^(l), tr U C^(L+1)) to the kernels, see `fieldtheory.inference.network_posterior`.
Inputs that are moved after training leave U as it is, and

    χ_αβ^(l) = ∂(K* + m)_αβ^(l)/∂K_αβ^(0) + ∂Cov(K_αβ^(l), tr U C^(L+1))/∂K_αβ^(0),

with the shift m of the means of the prior, whose derivative is `Solution.response_shift`; for the
last term see `fieldtheory.montecarlo.sampling.gain_covariances`, and
`fieldtheory.numerics.markov.markov_theory` for blocks. Labelled inputs stay where they are: their
entries are those of two further inputs at their places. Linear networks respond as before to this
order, and not beyond it. F25 section III.4 leaves this open.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork, single_network
from fieldtheory.numerics.fields import Field, fields_of
from fieldtheory.numerics.result import Computed
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve, over_layers

# Inputs whose kernels are drawn.
_DRAWN = 3
NAMES = "residual_response", "response", "output_response"
FIELDS = fields_of(
    r"""
    residual_response | hidden_layer
        | \partial \langle C_{\alpha\beta}^{(l)} \rangle_Y / \partial K_{\alpha\beta}^{(0)}
        | responses of the residual kernels after labels | with_error order_1
    response | hidden_layer
        | \partial \langle K_{\alpha\beta}^{(l)} \rangle_Y / \partial K_{\alpha\beta}^{(0)}
        | responses of the kernels after labels | with_error order_1 panel=responses
    output_response | -
        | \partial \langle K_{\alpha\beta}^{(L+1)} \rangle_Y / \partial K_{\alpha\beta}^{(0)}
        | response of the output kernel after labels | with_error order_1
    response_shift | hidden_layer | \chi_Y^{(l)} - \chi^{(l)}
        | responses of the kernels after labels less those before | with_error order_1
    output_response_shift | - | \chi_Y^{\mathrm{out}} - \chi^{\mathrm{out}}
        | response of the output kernel after labels less that before | with_error order_1
    """
)


def _kept(kind: str, name: str) -> Any:
    return cached_property(lambda result: getattr(result, kind)[name])


@dataclass(frozen=True, eq=False)
class RespondingResult(Computed):
    """A posterior of Q inputs, of which the first have ``labels`` (P,) or (P, d).

    Responses after labels are found when first asked for.
    """

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

    residual_response = _kept("_responses", "residual_response")
    residual_response_error = _kept("_responses", "residual_response_error")
    response = _kept("_responses", "response")
    response_error = _kept("_responses", "response_error")
    output_response = _kept("_responses", "output_response")
    output_response_error = _kept("_responses", "output_response_error")
    response_shift = _kept("_learned", "response")
    response_shift_error = _kept("_learned", "response_error")
    output_response_shift = _kept("_learned", "output_response")
    output_response_shift_error = _kept("_learned", "output_response_error")

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

    @property
    def _corrected(self) -> bool:
        """Whether its kernels hold the order 1/N of the prior, too."""
        return False

    @cached_property
    def _prior(self) -> Any:
        """The prior."""
        return solve(self.network, self.input_kernel)

    @cached_property
    def _learned(self) -> dict[str, np.ndarray]:
        """What labels add to the responses, and its errors, by name."""
        return _by_name(*self._response_shifts())

    @cached_property
    def _responses(self) -> dict[str, np.ndarray]:
        """The responses and their errors, by name."""
        prior, learned = self._prior, self._learned
        shifts = dict[str, np.ndarray]()
        if self._corrected:
            residual, stream = prior.response_shifts
            shifts = _by_name(residual, np.concatenate([stream, residual[:, -1:]], axis=1))
        fields = dict[str, np.ndarray]()
        for name in NAMES:
            error, of_prior = learned[f"{name}_error"], shifts.get(f"{name}_error", 0.0)
            fields[name] = getattr(prior, name) + shifts.get(name, 0.0) + learned[name]
            fields[f"{name}_error"] = np.hypot(error, of_prior)
        return fields

    def _response_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """What labels add to the responses of C^(l) and K^(l), with errors, (2, L+2, Q, Q)."""
        raise NotImplementedError


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


def _by_name(residual: np.ndarray, kernels: np.ndarray) -> dict[str, np.ndarray]:
    """Responses and errors of C^(l) and K^(l), both (2, L + 2, Q, Q)."""
    parts = residual[:, :-1], kernels[:, :-1], kernels[:, -1]
    return {
        name + end: values
        for name, part in zip(NAMES, parts, strict=True)
        for end, values in zip(("", "_error"), part, strict=True)
    }
