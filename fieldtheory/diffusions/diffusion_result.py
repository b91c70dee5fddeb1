"""What results of diffusion networks share: arrays over time, in files, labelled and in tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.numerics.fields import DIMENSIONS, Field, fields_of, notes
from fieldtheory.numerics.storage import Variables
from fieldtheory.numerics.stored import Stored

# The fields that theory and simulation have.
DIFFUSION_FIELDS: Mapping[str, Field] = fields_of(
    r"""
    mean | time input | \langle x_i \rangle | means of the signals over the neurons
        | always of_kernels
    covariance | time input input_ | \mathrm{Cov}(x_i, x_j)
        | covariances of the signals of a neuron about their means | always of_kernels
    gram | time input input_ | \langle q_{ij} \rangle
        | Gram matrix of the features, its mean over networks | always of_kernels
    gram_variance | time input input_ | \mathrm{Var}\,q_{ij}
        | variances of the Gram matrix over networks | order_1 labelled
    kurtosis | time input | \kappa_i | excess kurtoses of the signals of a neuron | order_1 labelled
    """
)
GRAM_ERROR = fields_of(
    r"gram_error | time input input_ | \sigma[q_{ij}] | estimated errors of that matrix | always"
)
KEPT = fields_of(
    r"""
    outputs | sample input | x_{T,1} | first neuron of the last layer of every network | always
    grams | sample time input input_ | q_{ij} | Gram matrices of every network | always
    """
)


class DiffusionResult(Stored):
    """A result of one `DiffusionNetwork` and its inputs, whose fields stand in a table."""

    network: DiffusionNetwork
    inputs: np.ndarray
    times: np.ndarray

    def _coordinates(self) -> dict[str, Any]:
        inputs, samples = np.arange(len(self.inputs)), np.arange(getattr(self, "samples", 0))
        return {"time": self.times, "input": inputs, "input_": inputs, "sample": samples}

    def _arguments(self, stored: bool) -> Variables:
        words = notes("inputs" if self.inputs.ndim == 1 else "layers x_0", "z")
        own: Variables = {"inputs": (("input", "neuron")[: self.inputs.ndim], self.inputs, words)}
        times: Variables = {"times": (("time",), self.times, notes(*DIMENSIONS["time"]))}
        return own | times if stored else own

    @classmethod
    def _read_arguments(cls, content: dict[str, Any]) -> dict[str, Any]:
        inputs = validation.finite_array("inputs", content["inputs"])
        return {"inputs": inputs, "times": np.asarray(content["times"], float)}

    def plot(self) -> Any:
        """Means, covariances, Gram matrices and kurtosis over t, with bands of one standard error.

        Inputs and their pairs are lines from dark to light.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fieldtheory.plotting.depth_profiles import draw_profiles

        profiles, errors = {}, {}
        for name in ("mean", "covariance", "gram", "kurtosis"):
            if (values := getattr(self, name)) is None:
                continue
            label = f"{name} ${DIFFUSION_FIELDS[name].symbol}$"
            profiles[label] = _lines(values)
            if (error := getattr(self, f"{name}_error", None)) is not None:
                errors[label] = _lines(error)
        return draw_profiles(profiles, self.times, self.times, errors, "time $t$")

    def _shown(self) -> dict[str, Any]:
        return {
            "depth": self.network.depth or "infinite",
            "inputs": self.inputs,
            "parameter_law": None,
        }


def _lines(values: np.ndarray) -> np.ndarray:
    """The lines of a plot over time, (lines, n), of pairs those with i <= j."""
    if values.ndim == 3:
        values = values[(slice(None), *np.triu_indices(values.shape[-1]))]
    return values.T
