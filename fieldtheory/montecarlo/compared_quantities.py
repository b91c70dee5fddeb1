"""Which fields of a solution are compared with simulations, and why others are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.simulated_response import SimulatedResponse
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.fields import FIELDS, Field
from fieldtheory.numerics.solution import Solution

# Most averages of four signals that are computed unasked.
_MOST_AVERAGES = 20_000


class Measured(NamedTuple):
    """A field of the solution and the simulations of it.

    ``name`` is what the simulations call it, ``across`` whether they have it for two different
    pairs of inputs, ``orders`` the names of it and of its next orders by their power of 1/N.
    """

    solution: Solution
    field: Field
    simulations: list[Any]
    name: str
    across: bool
    orders: dict[int, str]


def finds_fluctuations(network: LayeredNetwork, inputs: int) -> bool:
    """Whether `compare` computes the fluctuations of several inputs if the solution has not.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=20)
    >>> finds_fluctuations(net, inputs=3), finds_fluctuations(net, inputs=4)
    (True, False)
    """
    return _averages(network, inputs) <= _MOST_AVERAGES


def _averages(network: LayeredNetwork, inputs: int) -> int:
    return ((network.depth + 1) * inputs * (inputs + 1) // 2) ** 2


def measured_fields(
    solution: Solution,
    ensembles: list[Ensemble],
    answers: list[SimulatedResponse],
    reasons: dict[str, str],
) -> Iterator[Measured]:
    """The fields of the solution that are simulated, with the simulations that have them."""
    kinds: dict[str, list[Any]] = {"Ensemble": ensembles, "SimulatedResponse": answers}
    matrix = solution.input_kernel.ndim > 0
    for kind, simulations in kinds.items():
        for field in FIELDS.values():
            by, _, simulated = field.simulated.partition(".")
            if by != kind or not simulations or not field.defined(matrix) or field.name in reasons:
                continue
            across = field.simulated_across.partition(".")[2] if matrix else ""
            everywhere = across and all(getattr(s, across) is not None for s in simulations)
            known = type(simulations[0]).table[simulated].dims == field.dims
            if everywhere or (
                known and all(getattr(s, simulated) is not None for s in simulations)
            ):
                name = across if everywhere else simulated
                orders = _orders(solution, field, reasons)
                yield Measured(solution, field, simulations, name, bool(everywhere), orders)


def reasons_against(solution: Solution) -> dict[str, str]:
    """Why fluctuations that simulations show are not there; those that can be are computed."""
    matrix = solution.input_kernel.ndim > 0
    found: dict[str, str] = {}
    count = _averages(solution.network, solution.inputs)
    for field in FIELDS.values():
        fluctuates = field.order > 0 or "pair" in field.of_inputs
        measured = field.simulated.startswith("Ensemble") or field.corrects
        defined = field.defined(matrix) and field.loops <= solution.order
        source = field.sum_of or field.name
        if not (fluctuates and measured and defined) or source in vars(solution):
            continue
        if source in found:
            found[field.name] = found[source]
            continue
        if matrix and count > _MOST_AVERAGES:
            found[field.name] = (
                f"{count} averages of four signals, more than {_MOST_AVERAGES}; to include them, "
                "ask the solution for them before"
            )
            continue
        try:
            getattr(solution, field.name)
        except (ArithmeticError, ValueError) as error:
            found[field.name] = str(error)
    return found


def left_out(
    measured: list[Measured], reasons: dict[str, str], zeros: list[str]
) -> tuple[str, ...]:
    """What is left out, for each reason; ``zeros`` are 0 in theory and simulation."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    found = [f"{', '.join(of_one)} ({reason})" for reason, of_one in names.items()]
    own = [q.field.name for q in measured if "pair" in q.field.of_inputs and not q.across]
    if own and measured[0].simulations[0].input_kernel.ndim:
        found.append(
            f"{' and '.join(own)} of different pairs of inputs (simulate with cross_inputs=True)"
        )
    if zeros:
        found.append(f"{', '.join(zeros)} (zero in theory and simulation)")
    return tuple(found)


def _orders(solution: Solution, field: Field, reasons: dict[str, str]) -> dict[int, str]:
    """The names of a field and of its next orders by their power of 1/N."""
    matrix = solution.input_kernel.ndim > 0
    shapes = [field.dims_for(matrix)]
    if not matrix:
        shapes.append(field.dims[:1])
    found = [
        row
        for row in FIELDS.values()
        if row.corrects == field.name and row.dims_for(matrix) in shapes
        if row.loops <= solution.order and row.defined(matrix) and row.name not in reasons
    ]
    ordered = sorted(found, key=lambda row: row.order)
    return {field.order: field.name} | {row.order: row.name for row in ordered}
