"""The result of `simulate_response`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.result import Result

FIELDS = fields_of(
    r"""
    residual_response | hidden_layer | \partial \langle C^{(l)} \rangle / \partial C^{(m)}
        | responses of the residual kernels to that of the perturbed layer
        | with_error panel=responses
    response | hidden_layer | \partial \langle K^{(l)} \rangle / \partial C^{(m)}
        | responses of the kernels to the residual kernel of the perturbed layer
        | with_error panel=responses
    output_response | - | \partial \langle C^{(L+1)} \rangle / \partial C^{(m)}
        | response of the output kernel to the residual kernel of the perturbed layer | with_error
    step | - | \varepsilon | steps of the differences
    """
)


@dataclass(frozen=True, eq=False)
class SimulatedResponse(Result):
    """Responses of random finite networks, each with its standard error in ``<name>_error``.

    With L the depth, and the axes of K0 in front or behind as in `Solution`:

    =================  =============================================  ============================
    field              shape for K0 of shape (), (P,) and (P, P)      meaning
    =================  =============================================  ============================
    residual_response  (L+1,), (P, L+1), (L+1, P, P)                  ∂⟨C^(l)⟩/∂C^(m), l = 0, ..., L
    response           the same                                       ∂⟨K^(l)⟩/∂C^(m)
    output_response    (), (P,), (P, P)                               ∂⟨C^(L+1)⟩/∂C^(m)
    step               (), (P,), (P, P)                               ε of the differences
    =================  =============================================  ============================

    where m is the perturbed ``layer``; for m = 0 they are η^(l), χ^(l) and χ^out. For P inputs
    they are the (αβ) <- (αβ) entries. Standard errors come from the jackknife over ``batches``
    independent batches (see `Ensemble`), and are 0 where the response is a constant, as at l = m.
    Different inputs, and different pairs of them, have independent networks.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, width=100)
    >>> r = ft.simulate_response(net, 0.3, samples=200, seed=1)
    >>> r.response.shape, float(r.response[0]), float(r.response_error[0])
    ((3,), 1.0, 0.0)
    """

    table = FIELDS
    settings = {"samples": int, "seed": int, "layer": int, "batches": int}  # noqa: RUF012

    network: LayeredNetwork
    input_kernel: np.ndarray
    samples: int
    seed: int
    layer: int
    step: np.ndarray
    batches: int
    residual_response: np.ndarray
    residual_response_error: np.ndarray
    response: np.ndarray
    response_error: np.ndarray
    output_response: np.ndarray
    output_response_error: np.ndarray

    def input_average(self, inputs: str = "random") -> dict[str, np.ndarray]:
        """Averages over the P inputs of a K0 of shape (P,), as in F25 Fig. 2 (b).

        Parameters
        ----------
        inputs : {"random", "fixed"}
            "random": the inputs were drawn from a distribution, and the average over it is
            estimated; the standard error holds the scatter of the inputs. "fixed": the average
            over these very inputs; the standard error is that of the networks alone.

        Returns
        -------
        dict of str to ndarray
            The fields and their errors, ``residual_response`` (L+1,) and so on.

        Raises
        ------
        ValueError
            If K0 is not of shape (P,) with P >= 2, or ``inputs`` is another word.

        Examples
        --------
        >>> from fieldtheory.montecarlo.perturbation import simulate_response
        >>> from fieldtheory.networks.residual import ResidualNetwork
        >>> net = ResidualNetwork(depth=3, width=100)
        >>> found = simulate_response(net, [0.2, 0.3, 0.4], samples=20).input_average()
        >>> found["residual_response"].shape, found["residual_response_error"].shape
        ((4,), (4,))
        """
        inputs = validation.choice("inputs", inputs, ("random", "fixed"))
        if self.input_kernel.ndim != 1 or len(self.input_kernel) < 2:
            raise ValueError(
                f"input_average needs K0 of shape (P,) with P >= 2, got {self.input_kernel.shape}"
            )
        count, averages = len(self.input_kernel), {}
        for name in (field.name for field in self.table.values() if field.error):
            values, errors = getattr(self, name), getattr(self, f"{name}_error")
            averages[name] = values.mean(axis=0)
            if inputs == "fixed":
                averages[f"{name}_error"] = np.sqrt((errors**2).sum(axis=0)) / count
            else:
                averages[f"{name}_error"] = values.std(axis=0, ddof=1) / np.sqrt(count)
        return averages

    def __repr__(self) -> str:
        net = self.network
        return (
            f"SimulatedResponse(depth={net.depth}, activation={net.activation.name}, "
            f"width={net.width}, samples={self.samples}, layer={self.layer}, seed={self.seed})"
        )
