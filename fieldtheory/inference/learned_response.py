"""Responses of kernels after labels: how the networks that learned them pass on other inputs.

Labels Y add Cov(K^(l), tr U C^(L+1)) to the kernels, see `fieldtheory.inference.network_posterior`.
Inputs that are moved after training leave U as it is, and

    χ_αβ^(l) = χ*_αβ^(l) + ∂Cov(K_αβ^(l), tr U C^(L+1))/∂K_αβ^(0),

see `fieldtheory.montecarlo.sampling.gain_covariances`. Labelled inputs stay where they are: their
entries are those of two further inputs at their places. The shift of the prior by 1/N moves χ with
labels or without; it is left out, as in `Solution.response`. F25 section III.4 leaves this open.
Linear networks respond as before to this order, and not beyond it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.inference.fluctuating_kernel import Regression
from fieldtheory.inference.labelled import LabelledResult
from fieldtheory.montecarlo.sampling.gain_covariances import response_batches
from fieldtheory.montecarlo.sampling.many_inputs import mean_and_error
from fieldtheory.networks.dispatch import residual_only
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.symmetric_matrices import unpacked

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


def _kept(name: str) -> Any:
    return cached_property(lambda result: result._responses[name])


class RespondingResult(LabelledResult):
    """A posterior, to order 1/N, and the responses after labels, found when first asked for."""

    order: int
    samples: int | None
    seed: int

    residual_response = _kept("residual_response")
    residual_response_error = _kept("residual_response_error")
    response = _kept("response")
    response_error = _kept("response_error")
    output_response = _kept("output_response")
    output_response_error = _kept("output_response_error")
    response_shift = _kept("response_shift")
    response_shift_error = _kept("response_shift_error")
    output_response_shift = _kept("output_response_shift")
    output_response_shift_error = _kept("output_response_shift_error")

    @cached_property
    def _prior(self) -> Any:
        """The prior."""
        return solve(self.network, self.input_kernel)

    @cached_property
    def _responses(self) -> dict[str, np.ndarray]:
        """The fields of responses and their errors, by name."""
        residual, kernels = self._response_shifts()
        prior, fields = self._prior, dict[str, np.ndarray]()
        for name, (shift, error) in (
            ("residual_response", residual[:, :-1]),
            ("response", kernels[:, :-1]),
            ("output_response", kernels[:, -1]),
        ):
            fields |= {name: getattr(prior, name) + shift, f"{name}_error": error}
            fields |= {f"{name}_shift": shift, f"{name}_shift_error": error}
        return fields

    def _response_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """What labels add to the responses of C^(l) and K^(l), with errors, (2, L+2, Q, Q)."""
        if not isinstance(self.network, LayeredNetwork):
            raise residual_only("a response after labels", self.network)
        if not self.order:
            none = np.zeros((2, self.network.depth + 2, self.inputs, self.inputs))
            return none, none
        C = self._prior.residual_kernels[-1]
        law = Regression.from_labels(C, self.labels, self.noise_variance)
        *both, shares = response_batches(self._prior, law.weights, self.samples, self.seed)
        residual, kernels = (
            np.array([unpacked(each, True) for each in mean_and_error(batches, shares)])
            / self.network.width
            for batches in both
        )
        return residual, kernels
