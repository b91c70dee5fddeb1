"""What results of diffusion networks share: arrays over time, in files, labelled and in tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.diffusion import DiffusionNetwork
from fieldtheory.numerics import storage
from fieldtheory.numerics.fields import Field, fields_of, notes
from fieldtheory.numerics.result import Stored, parameters_html, summary
from fieldtheory.numerics.storage import Labelled
from fieldtheory.plotting.tables import table_html

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
    """A result of one `DiffusionNetwork` and its inputs, whose fields stand in a table.

    A class derived from it is a frozen dataclass that begins with ``network`` and ``inputs``.
    Fields that are not always shown are left out of files.
    """

    table: ClassVar[Mapping[str, Field]]
    # Numbers and names, with their types.
    settings: ClassVar[Mapping[str, type]]

    network: DiffusionNetwork
    inputs: np.ndarray
    times: np.ndarray

    def labelled(self, stored: bool) -> Labelled:
        """The arrays that files hold, or all those of `to_xarray`."""
        own = ("input", "neuron")[: self.inputs.ndim]
        words = notes("inputs" if self.inputs.ndim == 1 else "layers x_0", "z")
        variables: dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]] = {
            "inputs": (own, self.inputs, words)
        }
        for field in self.table.values():
            name, wanted = field.name, not stored or field.written == "always"
            if wanted and getattr(self, name) is not None:
                words = notes(field.long_name, field.symbol)
                variables[name] = field.dims, getattr(self, name), words
                if field.error:
                    words = notes(
                        f"standard error of the {field.long_name}", rf"\sigma[{field.symbol}]"
                    )
                    variables[f"{name}_error"] = field.dims, getattr(self, f"{name}_error"), words
        time = ("time",), self.times, notes("time t = l Δt", "t")
        if stored:
            variables["times"] = time
        chosen = {name: getattr(self, name) for name in self.settings}
        coordinates = {} if stored else {"time": time}
        return Labelled(variables, coordinates, storage.attributes(self.network, chosen, variables))

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The result of the arrays, numbers and text in a file."""
        network = storage.network_from_attributes(content)
        inputs = validation.finite_array("inputs", content["inputs"])
        arguments: dict[str, Any] = {
            name: kind(np.asarray(content[name]).item()) for name, kind in cls.settings.items()
        }
        of_class = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        if "times" in of_class:
            arguments["times"] = np.asarray(content["times"], float)
        arrays = {
            key: (field, np.asarray(content[key], float))
            for field in cls.table.values()
            for key in (field.name, f"{field.name}_error")
            if key in of_class and key in content
        }
        arguments |= {key: array for key, (_, array) in arrays.items()}
        result = cls(network, inputs, **arguments)  # type: ignore[call-arg]
        sizes = {"time": len(result.times), "sample": arguments.get("samples")}
        sizes |= dict.fromkeys(("input", "input_"), len(inputs))
        for key, (field, values) in arrays.items():
            shape = tuple(sizes[dim] for dim in field.dims)
            if values.shape != shape:
                raise ValueError(f"{key} must have shape {shape}, got {values.shape}")
        return result

    def _repr_html_(self) -> str:
        others = {"depth": self.network.depth or "infinite", "inputs": self.inputs}
        others |= {name: getattr(self, name) for name in self.settings} | {"parameter_law": None}
        rows = [
            {
                "field": field.name,
                "symbol": f"${field.symbol}$",
                "meaning": field.long_name,
                "values": summary(values),
            }
            for field in self.table.values()
            if (values := getattr(self, field.name)) is not None
        ]
        own = parameters_html(type(self).__name__, self.network, others)
        return own + table_html(rows, "Fields")


def lines(values: np.ndarray) -> np.ndarray:
    """The lines of a plot over time, (lines, n), of pairs those with i <= j."""
    if values.ndim == 3:
        values = values[(slice(None), *np.triu_indices(values.shape[-1]))]
    return values.T
