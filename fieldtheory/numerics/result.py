"""Results over the layers of one network and one kernel of the input: tables of layers, plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.averages import routes
from fieldtheory.averages.routes import relative_tolerance
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.numerics.fields import Field, coordinates
from fieldtheory.numerics.stored import Stored
from fieldtheory.numerics.symmetric_matrices import own_pairs
from fieldtheory.plotting.curves import Curve, over_layers


def field(compute: Callable[[Any], np.ndarray]) -> cached_property[np.ndarray]:
    """A field that is kept once computed, to ``rtol``, and refused where the table has none."""

    @wraps(compute)
    def checked(result: Any) -> np.ndarray:
        result.require(name := compute.__name__)
        with relative_tolerance(result.rtol), routes.recorded(result.averages):
            # Kept before it is doubted, which may ask for it.
            vars(result)[name] = values = compute(result)
            if doubt := result.table[name].doubted_by:
                getattr(result, f"_{doubt}")
        return values

    return cached_property(checked)


class Computed(Stored):
    """A result with fields over the layers, of one network (or a batch) and one K0.

    A class derived from it is a frozen dataclass that begins with ``network``, ``input_kernel``.
    Fields of a theory are computed when first asked for, to the tolerance ``rtol``.
    """

    network: DeepNetwork
    input_kernel: np.ndarray

    @property
    def inputs(self) -> int:
        """P; 1 where K0 was given as variances."""
        return self.input_kernel.shape[-1] if self._has_matrix else 1

    @cached_property
    def averages(self) -> Counter[str]:
        """How many averages each route has computed for the fields so far, see `explain`."""
        return Counter()

    def missing(self, name: str) -> str:
        """Why the family of the network has no such field; empty if it has one."""
        return self.network.without.get(name, "")

    def require(self, name: str) -> None:
        """Raise ValueError unless a field is defined for this network and K0."""
        if name in self.network.without:
            why = self.network.without[name]
            raise AttributeError(f"{type(self.network).__name__} has no {name}: {why}", name=name)
        row, shape = self.table[name], np.shape(self.input_kernel)
        if not self.has_order(row):
            raise ValueError(f"{name} needs solve(..., order={row.loops}), got order=1")
        if not row.batches and self.network.batch_shape:
            raise ValueError(f"{name} needs one network, got scales with batch axes")
        if not row.batches and len(shape) not in (0, 2):
            raise ValueError(f"{name} needs one kernel, got shape {shape}")
        if row.inputs not in ("any", "several" if len(shape) > 1 else "one"):
            number = {"one": "one input", "several": "several inputs"}[row.inputs]
            raise ValueError(f"{name} is for {number}, got K0 of shape {shape}")

    def plot(self) -> Any:
        """The main fields over the layers, with bars of one standard error; needs matplotlib.

        Fields over two layers are drawn for each layer with itself, the output apart. Pairs of
        inputs and members of a batch are lines from dark to light, those of two inputs dashed.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fieldtheory.plotting.layers import draw_layers

        return draw_layers(self._curves(), self.network.steps + 1)

    def rows(
        self, fluctuations: bool = True, of: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """A dict for every layer, the output last, and for every pair of several inputs.

        Parameters
        ----------
        fluctuations : bool
            Also those fields of a `Solution` that are costly.
        of : sequence of str, optional
            Names of fields to give instead, such as "log_kernels" or "chi_out", under these names.
            Those of the output alone are None in the hidden layers.

        Returns
        -------
        list of dict
            ``layer``, for several inputs ``alpha`` and ``beta`` from 0 on, and the fields that the
            table gives a column, with standard errors as ``<column>_error``. A field that the
            output does not have is None there.

        Raises
        ------
        ValueError
            If the result has batch axes, or fluctuations are asked for that it does not have.
        OverflowError
            If a kernel exceeds float64; "log_kernels" and "log_response" do not.

        Examples
        --------
        >>> import fieldtheory as ft
        >>> s = ft.solve(ft.ResidualNetwork(depth=1, branch_scale=0.3), 0.05)
        >>> [row["K"] for row in s.rows()] == s.kernels.tolist(), list(s.rows()[0])
        (True, ['layer', 'C', 'K', 'eta', 'chi', 'var_C', 'var_K', 'mean_shift', 'V'])
        """
        if self._batch:
            raise ValueError(f"rows are of one network and one K0, got a batch {self._batch}")
        columns: dict[str, list[Any]] = {}
        if of is not None:
            names = [
                name
                for name, field in self.table.items()
                if self._is_defined(field)
                and field.dims in ((), ("layer",), ("hidden_layer",), ("layer", "layer_"))
                and "source" not in field.of_inputs
            ]
            for name in of:
                columns[name] = self._column(self.table[validation.quantity("of", name, names)])
        for field in self.table.values() if of is None else ():
            wanted = fluctuations or field.written == "always"
            if not (field.column and wanted and self.has_order(field)):
                continue
            if getattr(self, field.name) is not None:
                columns[field.column] = self._column(field)
                if field.error:
                    columns[f"{field.column}_error"] = self._column(field, "_error")
        pairs = list(zip(*np.triu_indices(self.inputs), strict=True)) if self._has_matrix else [()]
        return [
            {"layer": layer}
            | {key: int(i) for key, i in zip(("alpha", "beta"), pair, strict=False)}
            | {
                key: None if v[layer] is None else self._entry(v[layer][pair] if pair else v[layer])
                for key, v in columns.items()
            }
            for layer in range(self.network.steps + 2)
            for pair in pairs
        ]

    def _entry(self, value: Any) -> Any:
        return float(value)

    def _column(self, field: Field, suffix: str = "") -> list[Any]:
        """The values of a field at every layer, None where it has none."""
        values = self._over_layers(field, suffix)
        if self._has_matrix and field.of_inputs == ("input",):
            values = np.where(np.eye(self.inputs, dtype=bool), values[..., None], np.nan)
        missing = [None] * (self.network.steps + 2 - len(values))
        return [*values, *missing] if field.dims else [*missing, *values]

    def _over_layers(self, field: Field, suffix: str = "") -> np.ndarray:
        """The values with the layers first, then a batch and two inputs, of each pair with itself.

        They go on to the output where the table says so; of the output alone there is one layer.
        """
        values = getattr(self, f"{field.name}{suffix}")
        start = len(self._batch) if field.batches else 0
        values = np.moveaxis(values, start, 0) if field.dims else np.expand_dims(values, 0)
        if len(field.dims) > 1:
            values = np.moveaxis(np.diagonal(values, axis1=0, axis2=start + 1), -1, 0)
        if self._has_matrix and "pair" in field.of_inputs:
            values = own_pairs(values)
        if field.at_output:
            output = self._over_layers(self.table[field.at_output], suffix)
            values = np.concatenate([values, output[-1:]])
        return values

    def _curves(self) -> dict[str, list[list[Curve]]]:
        """For every panel the lines of its fields: pairs of inputs or members of a batch."""
        panels: dict[str, list[list[Curve]]] = {}
        for field in self._available(stored=False):
            if field.panel:
                panels.setdefault(field.panel, []).append(self._lines(field))
        return panels

    def _lines(self, field: Field) -> list[Curve]:
        """One line for every pair of inputs or member of a batch, up to the output."""
        of_pairs = self._has_matrix and len(field.of_inputs) == 2
        first, second = np.triu_indices(self.inputs)

        def lines(suffix: str) -> np.ndarray:
            values = self._over_layers(field, suffix)
            values = values[..., first, second] if of_pairs else values
            return values.reshape(len(values), -1).T.astype(float)

        values = lines("")
        errors = lines("_error") if field.error else [None] * len(values)
        labels = [f"${field.diagonal or field.symbol}$"] * len(values)
        if of_pairs:
            kinds = np.where(first == second, ", one input", ", two inputs")
            labels = [labels[0] + kind for kind in np.resize(kinds, len(values))]
        return [over_layers(field.panel, *of) for of in zip(labels, values, errors, strict=True)]

    def _coordinates(self) -> dict[str, Any]:
        return coordinates(self.network.steps, self.inputs, getattr(self, "samples", 0) or 0)

    def _shown(self) -> dict[str, Any]:
        return {"inputs": self.inputs, "K0": self.input_kernel}
