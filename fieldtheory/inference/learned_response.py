"""Responses of kernels after labels: how the networks that learned them pass on other inputs.

Labels Y add Cov(K^(l), tr U C^(L+1)) to the kernels, see `fieldtheory.inference.network_posterior`.
Inputs that are moved after training leave U as it is, and

    χ_αβ^(l) = ∂(K* + m)_αβ^(l)/∂K_αβ^(0) + ∂Cov(K_αβ^(l), tr U C^(L+1))/∂K_αβ^(0),

with the shift m of the means of the prior, whose derivative is `Solution.response_shift`; for the
last term see `fieldtheory.montecarlo.sampling.gain_covariances`, and
`fieldtheory.numerics.markov.moved_entries` for blocks. Labelled inputs stay where they are: their
entries are those of two further inputs at their places. Linear networks respond as before to this
order, and not beyond it. F25 section III.4 leaves this open.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldtheory.inference.fluctuating_kernel import Regression
from fieldtheory.inference.labelled import LabelledResult
from fieldtheory.montecarlo.sampling.gain_covariances import response_batches
from fieldtheory.montecarlo.sampling.many_inputs import mean_and_error
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.symmetric_matrices import unpacked

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


class RespondingResult(LabelledResult):
    """A posterior, to order 1/N, and the responses after labels, found when first asked for."""

    # Whether its kernels hold the order 1/N of the prior, too.
    corrected: ClassVar[bool] = False

    order: int
    samples: int | None
    seed: int

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
        if self.corrected and self.order:
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
        if not self.order:
            none = np.zeros((2, self.network.depth + 2, self.inputs, self.inputs))
            return none, none
        C = self._prior.residual_kernels[-1]
        law = Regression.from_labels(C, self.labels, self.noise_variance)
        if self.network.markov:
            of_chain = self._prior.chain.responses_with_output(law.weights)
            residual, kernels = (np.stack([each, np.zeros_like(each)]) for each in of_chain)
            return residual, kernels
        *both, shares = response_batches(self._prior, law.weights, self.samples, self.seed)
        residual, kernels = (
            np.array([unpacked(each, True) for each in mean_and_error(batches, shares)])
            / self.network.width
            for batches in both
        )
        return residual, kernels


def _by_name(residual: np.ndarray, kernels: np.ndarray) -> dict[str, np.ndarray]:
    """Responses and errors of C^(l) and K^(l), both (2, L + 2, Q, Q)."""
    parts = residual[:, :-1], kernels[:, :-1], kernels[:, -1]
    return {
        name + end: values
        for name, part in zip(NAMES, parts, strict=True)
        for end, values in zip(("", "_error"), part, strict=True)
    }
