"""The fields of a solution that simulations measure, with the size of what theory neglects."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from fieldtheory.montecarlo.comparison.measured import Measured, kernel_sizes
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.perturbation import SimulatedResponse
from fieldtheory.numerics.fields import Field
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.result import Computed
from fieldtheory.numerics.symmetric_matrices import own_pairs

# Most averages of four signals that are computed unasked.
_MOST_AVERAGES = 20_000
# N times the relative variance that units of a stream add in every layer.
_OF_UNITS = 2.0


def computes_fluctuations(solution: Computed) -> bool:
    """Whether `compare` computes the fluctuations of several inputs if the solution has not.

    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=20)
    >>> [computes_fluctuations(ft.solve(net, np.eye(P))) for P in (3, 4)]
    [True, False]
    """
    return _averages(solution) <= _MOST_AVERAGES


def _averages(solution: Computed) -> int:
    """Averages of four signals: of every layer with every other, in a chain with itself."""
    layers = solution.network.depth + 1
    averages = layers * (solution.inputs * (solution.inputs + 1) // 2) ** 2
    return averages if solution.network.markov else averages * layers


def measured_fields(
    solution: Computed, ensembles: list[Ensemble], responses: list[SimulatedResponse]
) -> tuple[list[Measured], tuple[str, ...]]:
    """The fields that are compared, and those that are not, each with the reason."""
    reasons = _reasons_against(solution, bool(responses))
    variances = _relative_variances(ensembles[0]) * ensembles[0].network.width
    matrix, measured, own = solution.input_kernel.ndim > 0, [], []
    for kind, simulations in (("Ensemble", ensembles), ("SimulatedResponse", responses)):
        for field in solution.table.values():
            if solution.missing(field.name):
                continue
            by, _, name = field.simulated.partition(".")
            if by != kind or not simulations or not field.defined(matrix) or field.name in reasons:
                continue
            across = field.simulated_across.partition(".")[2] if matrix else ""
            if across and all(getattr(s, across) is not None for s in simulations):
                name = across
            elif _axes(simulations[0].table[name]) != _axes(field) or any(
                getattr(s, name) is None for s in simulations
            ):
                continue
            elif across:
                own.append(field.name)
            measured.append(_measured(solution, field, simulations, name, reasons, variances))
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    omitted = [f"{', '.join(of_one)} ({reason})" for reason, of_one in names.items()]
    if own:
        omitted.append(
            f"{' and '.join(own)} of different pairs of inputs (simulate with cross_inputs=True)"
        )
    return measured, tuple(omitted)


def _axes(field: Field) -> list[str]:
    """Dimensions of a field of all layers or of the hidden ones, which come first."""
    return [dim.removeprefix("hidden_") for dim in field.dims]


def _reasons_against(solution: Computed, responses: bool) -> dict[str, str]:
    """Why fluctuations that simulations show are not there; those that can be are computed."""
    matrix = solution.input_kernel.ndim > 0
    kinds = ("Ensemble", "SimulatedResponse") if responses else ("Ensemble",)
    reasons: dict[str, str] = {}
    count = _averages(solution)
    for field in solution.table.values():
        fluctuates = field.order > 0 or "pair" in field.of_inputs
        measured = solution.table[field.corrects or field.name].simulated.startswith(kinds)
        defined = field.defined(matrix) and solution.has_order(field)
        source = field.sum_of or field.name
        if not (fluctuates and measured and defined) or source in vars(solution):
            continue
        if source in reasons:
            reasons[field.name] = reasons[source]
        elif matrix and count > _MOST_AVERAGES:
            reasons[field.name] = (
                f"{count} averages of four signals, more than {_MOST_AVERAGES}; to include them, "
                "ask the solution for them before"
            )
        else:
            try:
                getattr(solution, field.name)
            except (ArithmeticError, ValueError) as error:
                reasons[field.name] = str(error)
    return reasons


def _measured(
    solution: Computed,
    field: Field,
    simulations: list[Any],
    name: str,
    reasons: dict[str, str],
    variances: np.ndarray,
) -> Measured:
    """A field, ``name`` in simulations; ``variances`` are N ε_l of `_remainders`, (L+2,)."""
    matrix = solution.input_kernel.ndim > 0
    across = field.simulated_across == f"Ensemble.{name}"
    theory = _values(solution, field, across)
    size = _size(field, theory, matrix, across)
    widths = np.array([s.network.width for s in simulations], dtype=float)
    layers = tuple(slice(size) for size in theory.shape[: len(field.dims)])
    values, errors = (
        [np.asarray(getattr(s, key)[layers]) for s in simulations]
        for key in (name, f"{name}_error")
    )
    if across:
        # Matrices of four inputs as those of two pairs α <= β.
        i, j = np.triu_indices(values[0].shape[-1])
        values, errors = ([x[..., i, j, :, :][..., i, j] for x in xs] for xs in (values, errors))
    index, distinct = _places(field, theory, matrix, across)
    return Measured(
        field=field,
        theory=theory,
        values=values,
        errors=errors,
        widths=widths,
        width=float(solution.network.width),
        size=size,
        remainders=_remainders(solution, field, size, variances, widths),
        index=index,
        distinct=distinct,
        next_orders=_next_orders(solution, field, across, reasons),
    )


def _values(solution: Computed, field: Field, across: bool) -> np.ndarray:
    """The field as simulations have it: if not ``across``, of every pair of inputs with itself."""
    values = np.asarray(getattr(solution, field.name))
    own = solution.input_kernel.ndim > 0 and not across and "pair" in field.of_inputs
    return own_pairs(values) if own else values


def _places(
    field: Field, theory: np.ndarray, matrix: bool, across: bool
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The layers and inputs of all entries, and which entries differ by more than symmetry."""
    axes: Any = np.indices(theory.shape)
    names = _axes(field)
    index = dict(zip(names, axes, strict=False))
    distinct = np.ones(theory.shape, dtype=bool)
    if len(names) > 1:
        distinct &= axes[0] <= axes[1]
    if not matrix:
        return index, distinct
    ordered, places = axes[-2] <= axes[-1], axes[-2:]
    if across:
        if len(names) > 1:
            # Of two layers, each pair of inputs in one may come with each in the other.
            ordered |= axes[0] != axes[1]
        count = theory.shape[-1]
        pairs = np.stack(np.triu_indices(round((2 * count) ** 0.5 - 0.5)))
        places = np.concatenate([pairs[:, axes[-2]], pairs[:, axes[-1]]])
    index |= dict(zip(("alpha", "beta", "gamma", "delta"), places, strict=False))
    return index, distinct & ordered


def _next_orders(
    solution: Computed, field: Field, across: bool, reasons: dict[str, str]
) -> dict[int, tuple[str, np.ndarray]]:
    """The names and values of the rows that are the next orders of a field, by power of 1/N."""
    matrix, found = solution.input_kernel.ndim > 0, {}
    for row in sorted(solution.table.values(), key=lambda row: row.order):
        defined = solution.has_order(row) and row.defined(matrix) and row.name not in reasons
        if row.corrects != field.name or not defined:
            continue
        if row.dims_for(matrix) == field.dims_for(matrix):
            found[row.order] = row.name, _values(solution, row, across)
        elif not matrix and row.dims == field.dims[:1]:
            # Of a layer with itself alone.
            own = np.diag(_values(solution, row, across))
            found[row.order] = row.name, np.where(np.eye(len(own), dtype=bool), own, np.nan)
    return found


def _relative_variances(ensemble: Ensemble) -> np.ndarray:
    """The largest Var C_αβ/(C_αα C_ββ), likewise of K, of layers up to l, (L+2,)."""
    layers = np.arange(len(ensemble.mean))
    largest = np.zeros(len(layers))
    for mean, covariance in (
        (ensemble.mean, ensemble.covariance),
        (ensemble.kernel_mean, ensemble.kernel_covariance),
    ):
        variance = covariance[layers, layers]
        size = kernel_sizes(mean, ensemble.input_kernel.ndim > 0) ** 2
        relative = ratio(variance, size)
        largest = np.maximum(largest, relative.reshape(len(layers), -1).max(axis=1))
    return np.maximum.accumulate(largest)


def _size(field: Field, values: np.ndarray, matrix: bool, across: bool) -> np.ndarray:
    """`Compared.size`, √(V_pp V_qq) for the vertex of two pairs of inputs."""
    if len(field.dims) > 1:
        own = np.diagonal(values, axis1=-2, axis2=-1) if across else values
        spread = np.sqrt(np.maximum(np.moveaxis(np.diagonal(own), -1, 0), 0.0))
        if across:
            return spread[:, None, :, None] * spread[:, None, :]
        return spread[:, None] * spread
    if across:
        return kernel_sizes(np.abs(values), matrix)
    return kernel_sizes(values, matrix) if field.of_kernels else np.abs(values)


def _remainders(
    solution: Computed, field: Field, size: np.ndarray, variances: np.ndarray, widths: np.ndarray
) -> list[np.ndarray]:
    """The size of what the coefficients of N^0, N^-1, ... of an extrapolation leave out."""
    markov = solution.network.markov
    if field.of_kernels or not markov:
        # Means depend on the layers before.
        variances = np.concatenate([[0.0], variances[:-1]])
    if markov:
        # A norm hides the fluctuations of the units from the kernels.
        variances = np.maximum(variances, _OF_UNITS)
    spread = variances[: len(size)] if field.dims else variances[-1]
    if len(field.dims) > 1:
        spread = np.maximum(spread[:, None], spread)
    spread = np.reshape(spread, spread.shape + (1,) * (size.ndim - spread.ndim))
    if field.simulated.startswith("SimulatedResponse"):
        spread = spread * _gains(solution)[field.name]
    k, width = len(widths), solution.network.width
    return [
        spread**k * sum(map(np.prod, combinations(1 / widths, k - j))) / width**j * size
        for j in range(k)
    ]


def _gains(solution: Any) -> dict[str, np.ndarray]:
    """The number of gains in every response, each by its share η^(k)/χ^(k) of γ_k² + gain_k."""
    eta, chi = solution.residual_response, solution.response
    share = np.divide(np.abs(eta), np.abs(chi), out=np.ones_like(eta), where=chi != 0)
    share[0] = 0.0
    total = np.cumsum(share, axis=0)
    before = np.concatenate([np.zeros_like(total[:1]), total[:-1]])
    return {"residual_response": 1 + before, "response": total, "output_response": 1 + total[-1]}
