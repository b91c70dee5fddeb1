"""The fields of a solution that simulations measure, with the size of what theory neglects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.montecarlo.comparison.measured import Measured, kernel_sizes
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.perturbation import SimulatedResponse
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.numerics.fields import Field
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.result import Computed
from fieldtheory.numerics.symmetric_matrices import unpacked

# Most averages of four signals that are computed unasked.
_MOST_AVERAGES = 20_000


class _Simulated(NamedTuple):
    """A field, the simulations that have it, its name there, and whether it is of two pairs."""

    field: Field
    simulations: list[Any]
    name: str
    across: bool


def computes_fluctuations(network: DeepNetwork, inputs: int) -> bool:
    """Whether `compare` computes the fluctuations of several inputs if the solution has not.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=20)
    >>> computes_fluctuations(net, inputs=3), computes_fluctuations(net, inputs=4)
    (True, False)
    """
    return _averages(network, inputs) <= _MOST_AVERAGES


def _averages(network: DeepNetwork, inputs: int) -> int:
    averages = (network.depth + 1) * (inputs * (inputs + 1) // 2) ** 2
    # Gram chains have those of every layer with itself alone.
    return averages * (1 if isinstance(network, GramNetwork) else network.depth + 1)


def measured_fields(
    solution: Computed, ensembles: list[Ensemble], responses: list[SimulatedResponse]
) -> tuple[list[Measured], tuple[str, ...]]:
    """The fields that are compared, and those that are not, each with the reason."""
    reasons = _reasons_against(solution, bool(responses))
    variances = _relative_variances(ensembles[0]) * ensembles[0].network.width
    selected = list(_simulated_fields(solution, ensembles, responses, reasons))
    measured = [_measured(solution, each, reasons, variances) for each in selected]
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    omitted = [f"{', '.join(of_one)} ({reason})" for reason, of_one in names.items()]
    own = [s.field.name for s in selected if s.field.simulated_across and not s.across]
    if own and solution.input_kernel.ndim:
        omitted.append(
            f"{' and '.join(own)} of different pairs of inputs (simulate with cross_inputs=True)"
        )
    return measured, tuple(omitted)


def _is_of_pairs(field: Field) -> bool:
    return field.of_inputs == ("pair", "pair_")


def _simulated_fields(
    solution: Computed,
    ensembles: list[Ensemble],
    responses: list[SimulatedResponse],
    reasons: dict[str, str],
) -> Iterator[_Simulated]:
    kinds: dict[str, list[Any]] = {"Ensemble": ensembles, "SimulatedResponse": responses}
    matrix = solution.input_kernel.ndim > 0
    for kind, simulations in kinds.items():
        for field in solution.table.values():
            by, _, name = field.simulated.partition(".")
            if by != kind or not simulations or not field.defined(matrix) or field.name in reasons:
                continue
            across = field.simulated_across.partition(".")[2] if matrix else ""
            if across and all(getattr(s, across) is not None for s in simulations):
                yield _Simulated(field, simulations, across, True)
            elif _axes(type(simulations[0]).table[name]) == _axes(field) and all(
                getattr(s, name) is not None for s in simulations
            ):
                yield _Simulated(field, simulations, name, False)


def _axes(field: Field) -> list[str]:
    """Dimensions of a field of all layers or of the hidden ones, which come first."""
    return [dim.removeprefix("hidden_") for dim in field.dims]


def _reasons_against(solution: Computed, responses: bool) -> dict[str, str]:
    """Why fluctuations that simulations show are not there; those that can be are computed.

    What corrects responses is computed if these are simulated.
    """
    matrix = solution.input_kernel.ndim > 0
    kinds = ("Ensemble", "SimulatedResponse") if responses else ("Ensemble",)
    reasons: dict[str, str] = {}
    count = _averages(solution.network, solution.inputs)
    for field in solution.table.values():
        fluctuates = field.order > 0 or "pair" in field.of_inputs
        measured = solution.table[field.corrects or field.name].simulated.startswith(kinds)
        defined = field.defined(matrix) and solution.has_order(field)
        source = field.sum_of or field.name
        if not (fluctuates and measured and defined) or source in vars(solution):
            continue
        if source in reasons:
            reasons[field.name] = reasons[source]
            continue
        if matrix and count > _MOST_AVERAGES:
            reasons[field.name] = (
                f"{count} averages of four signals, more than {_MOST_AVERAGES}; to include them, "
                "ask the solution for them before"
            )
            continue
        try:
            getattr(solution, field.name)
        except (ArithmeticError, ValueError) as error:
            reasons[field.name] = str(error)
    return reasons


def _measured(
    solution: Computed, simulated: _Simulated, reasons: dict[str, str], variances: np.ndarray
) -> Measured:
    """``variances`` are N times the relative variances of the kernels, (L+2,)."""
    field, width = simulated.field, float(solution.network.width)
    theory = _values(solution, field, simulated.across)
    size = _size(solution, field, simulated.across, theory)
    widths = np.array([s.network.width for s in simulated.simulations], dtype=float)
    of_chain = isinstance(solution.network, GramNetwork)
    if field.of_kernels or not of_chain:
        # Means depend on the layers before.
        variances = np.concatenate([[0.0], variances[:-1]])
    if of_chain:
        # Units of the stream add 2/N in every layer, which a norm hides from the kernels.
        variances = np.maximum(variances, 2.0)
    spreads = [variances / N for N in widths]
    layers = tuple(slice(size) for size in theory.shape[: len(field.dims)])
    values, errors = (
        [
            _diagonal_of_pairs(getattr(s, key)[layers], simulated.across)
            for s in simulated.simulations
        ]
        for key in (simulated.name, f"{simulated.name}_error")
    )
    index, distinct = _places(solution, field, simulated.across, theory)
    orders = {
        row.order: (row.name, _values(solution, row, simulated.across))
        for row in _next_orders(solution, field, reasons)
    }
    remainder = partial(_remainder, solution, field, size, spreads, variances / width)
    return Measured(
        field, theory, values, errors, widths, width, size, remainder, index, distinct, orders
    )


def _values(solution: Computed, field: Field, across: bool) -> np.ndarray:
    """The field as simulations have it: if not ``across``, of every pair of inputs with itself."""
    values = np.asarray(getattr(solution, field.name))
    if solution.input_kernel.ndim and not across and _is_of_pairs(field):
        return unpacked(np.diagonal(values, axis1=-2, axis2=-1), True)
    return values


def _diagonal_of_pairs(values: np.ndarray, across: bool) -> np.ndarray:
    """Matrices of four inputs as those of two pairs α <= β."""
    if not across:
        return np.asarray(values)
    first, second = np.triu_indices(values.shape[-1])
    return values[..., first, second, :, :][..., first, second]


def _places(
    solution: Computed, field: Field, across: bool, theory: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The layers and inputs of all entries, and which entries differ by more than symmetry."""
    axes: Any = np.indices(theory.shape)
    names = _axes(field)
    index = dict(zip(names, axes, strict=False))
    distinct = np.ones(theory.shape, dtype=bool)
    if len(names) > 1:
        distinct &= axes[0] <= axes[1]
    if solution.input_kernel.ndim == 0:
        return index, distinct
    ordered = axes[-2] <= axes[-1]
    if across and len(names) > 1:
        # Of two layers, each pair of inputs in one may come with each in the other.
        ordered |= axes[0] != axes[1]
    places = axes[-2:]
    if across:
        pairs = np.stack(np.triu_indices(solution.inputs))
        places = np.concatenate([pairs[:, axes[-2]], pairs[:, axes[-1]]])
    index |= dict(zip(("alpha", "beta", "gamma", "delta"), places, strict=False))
    return index, distinct & ordered


def _next_orders(solution: Computed, field: Field, reasons: dict[str, str]) -> list[Field]:
    """The rows that are the next orders of a field, by their power of 1/N."""
    matrix = solution.input_kernel.ndim > 0
    shapes = [field.dims_for(matrix)]
    if not matrix:
        shapes.append(field.dims[:1])
    rows = [
        row
        for row in solution.table.values()
        if row.corrects == field.name and row.dims_for(matrix) in shapes
        if solution.has_order(row) and row.defined(matrix) and row.name not in reasons
    ]
    return sorted(rows, key=lambda row: row.order)


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


def _size(solution: Computed, field: Field, across: bool, values: np.ndarray) -> np.ndarray:
    """`ComparedField.size`, √(V_pp V_qq) for the vertex of two pairs of inputs."""
    if across:
        own = np.diagonal(values, axis1=-2, axis2=-1)
        if len(field.dims) > 1:
            spread = np.sqrt(np.maximum(np.diagonal(own).T, 0.0))
            return spread[:, None, :, None] * spread[:, None, :]
        spread = np.sqrt(np.abs(own))
        return spread[..., :, None] * spread[..., None, :]
    if len(field.dims) > 1:
        spread = np.sqrt(np.maximum(np.moveaxis(np.diagonal(values), -1, 0), 0.0))
        return spread[:, None] * spread
    if field.of_kernels:
        return kernel_sizes(values, solution.input_kernel.ndim > 0)
    return np.abs(values)


def _remainder(
    solution: Computed,
    field: Field,
    size: np.ndarray,
    spreads: list[np.ndarray],
    own: np.ndarray,
    order: int,
) -> np.ndarray:
    """The size of what the coefficient of N^-order of an extrapolation over k widths leaves out.

    With q = q_0 + q_1/N + ..., the polynomial through the values at k widths has the coefficients
    q_j up to q_k e_{k-j}(1/N_1, ..., 1/N_k), the elementary symmetric polynomial; for j = 0 that is
    the product of all 1/N_i. q_k/N^k is taken as (n ε)^k times the size of the field, where n is
    the number of gains a_l M' that are multiplied in a response, and 1 otherwise. ``spreads`` are
    the ε_l of every width, ``own`` those of the width of the solution.
    """
    k, epsilon = len(spreads), np.zeros_like(own)
    for chosen in combinations(spreads, k - order):
        epsilon = epsilon + own**order * np.prod(chosen, axis=0)
    if len(field.dims) > 1:
        epsilon = epsilon[: len(size)]
        return _broadcast(np.maximum(epsilon[:, None], epsilon), size) * size
    epsilon = _broadcast(epsilon[: len(size)], size) if field.dims else epsilon[-1]
    if field.simulated.startswith("SimulatedResponse"):
        epsilon = epsilon * _gains(solution).get(field.name, 1.0) ** k
    return epsilon * size


def _gains(solution: Any) -> dict[str, np.ndarray]:
    """The number of gains in every response, each by its share η^(k)/χ^(k) of γ_k² + gain_k."""
    eta, chi = solution.residual_response, solution.response
    share = np.divide(np.abs(eta), np.abs(chi), out=np.ones_like(eta), where=chi != 0)
    share[0] = 0.0
    total = np.cumsum(share, axis=0)
    before = np.concatenate([np.zeros_like(total[:1]), total[:-1]])
    return {"residual_response": 1 + before, "response": total, "output_response": 1 + total[-1]}


def _broadcast(layers: np.ndarray, field: np.ndarray) -> np.ndarray:
    return layers.reshape(*layers.shape, *[1] * (field.ndim - layers.ndim))
