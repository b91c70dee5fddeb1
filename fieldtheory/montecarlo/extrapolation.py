"""`compare`: a solution against finite networks, extrapolated over their widths and at one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from fieldtheory.montecarlo import remainders
from fieldtheory.montecarlo.compared_field import AtWidth, Coefficient
from fieldtheory.montecarlo.compared_quantities import (
    Measured,
    left_out,
    measured_fields,
    reasons_against,
)
from fieldtheory.montecarlo.comparison import Comparison
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.simulated_response import SimulatedResponse
from fieldtheory.networks.dispatch import by_network_type
from fieldtheory.networks.family import differences
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import FIELDS, Field
from fieldtheory.numerics.solution import Solution
from fieldtheory.validation import shown

# What networks with the same K0 may differ in, and by how much it may differ.
_OF_INPUTS = "readin_weight_variance", "readin_bias_variance", "input_dim"
_ROUNDING = 1e-12


@by_network_type
@named_arguments
def compare(
    solution: Solution,
    ensemble: Ensemble | Sequence[Ensemble],
    *,
    responses: SimulatedResponse | Sequence[SimulatedResponse] = (),
    false_alarm: float = 1e-3,
    tolerance: float = 0.05,
) -> Comparison:
    """Is the theory right, and does it describe this width? Held against simulated networks.

    Two questions with two answers. Whether the theory is right is asked of the limit of wide
    networks: the simulated values are extrapolated over several widths, coefficient by coefficient
    in 1/N, and only deviations beyond chance count. Whether it describes a width is asked of the
    values at that width as they are: how far off the leading order is, in per cent and in standard
    errors. A right theory does not describe every width.

    Compared are C*, K, the shift of the means, G11, Var K and the four-point vertex, with the means
    and covariances of the networks; η, χ and χ^out, as derivatives, where ``responses`` are given.

    Of P inputs, with p = P(P+1)/2 pairs, G11 has ((L + 1) p)² entries that are averages of four
    signals. Up to 20 000 (L = 20 for P = 3) are computed, in seconds to a minute, and 1500 (L = 11
    for P = 2, L = 5 for P = 3) if φ has kinks and no closed form. Of more, fluctuations are
    compared if the solution has them by then: ask for ``solution.G11``, ``kernel_variance``,
    ``four_point`` and ``mean_shift`` before. Of G11 and the vertex every simulation has the entries
    of each pair of inputs with itself, and ``simulate(..., cross_inputs=True)`` those of all pairs
    of pairs. The answer names what is not compared.

    Parameters
    ----------
    solution : Solution
        Of one network and one K0, without batch axes.
    ensemble : Ensemble or sequence of Ensemble
        Of the network and the K0 of the solution at one or several different widths, with different
        seeds. One width does not tell a wrong theory from terms in 1/N, and leaves the first
        question open.
    responses : SimulatedResponse or sequence of SimulatedResponse, optional
        Of `simulate_response` for the input layer, at one or several different widths.
    false_alarm : float
        Probability of a wrong "disagrees", and of a wrong answer to the second question, each for
        its table as a whole.
    tolerance : float
        Largest relative deviation of kernels and responses with which the theory still describes a
        width.

    Returns
    -------
    Comparison
        The width in question is that of the network of the solution if it was simulated, else the
        narrowest.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or networks or inputs differ in more than the width; the
        message names what differs, with both values.

    Warns
    -----
    ValidityWarning
        If 1/N is not small for this depth and width.

    Notes
    -----
    The theory is the leading order in 1/N of each quantity and the next ones that the solution has.
    From k widths N_i the coefficients of N^0, ..., N^-(k-1) are
    those of Lagrange's polynomial: for N and 2N the limit is 2 m(2N) − m(N) (Richardson). What is
    left out of the limit is of order N^-k. Its size is taken as the product over the widths of
    n ε_i |q|, where q is the quantity, ε the largest relative variance of the kernels of earlier
    layers as simulated, n = 1 for kernels, covariances and vertices, and for responses the number
    of gains that are multiplied. A deviation beyond the statistical error but not beyond this size
    is "not resolved", one beyond both "disagrees".

    Statistical errors decide by |z|, with a threshold from Student's distribution and Bonferroni's
    correction for the number of comparisons. Correlations between them make false alarms rarer. For
    covariances z follows this distribution from about 1000 samples on.
    Values for which chance would hide even an error of 100 % are "too noisy" and do not count; the
    answer names their quantities and how many times as many networks they need, as errors fall as
    1/√samples. Nor do quantities that are "zero in both", theory and simulation; the answer names
    them too.

    A width is described if all deviations of kernels stay within ``tolerance`` even with the
    error that chance allows, and not described if one of a kernel or a response is beyond it even
    without. Fluctuations are shown too and do not decide.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from fieldtheory.montecarlo.simulation import simulate
    >>> net = ft.ResidualNetwork(depth=3, branch_scale=0.5, width=100)
    >>> narrow = simulate(net, 0.3, samples=2000, seed=1)
    >>> wide = simulate(net.replace(width=200), 0.3, samples=2000, seed=2)
    >>> compare(ft.solve(net, 0.3), [narrow, wide])
    Comparison(agrees, describes width 100, widths=(100, 200))
    >>> compare(ft.solve(net.replace(weight_variance=1.4), 0.3), narrow)
    Traceback (most recent call last):
        ...
    ValueError: ensemble must be of the network and inputs of the solution: weight_variance 1.4 ...
    >>> net = ft.ResidualNetwork(depth=3, width=3)
    >>> tiny = [simulate(net.replace(width=N), 0.3, samples=4000, seed=N) for N in (3, 6)]
    >>> compare(ft.solve(net, 0.3), tiny)
    Comparison(agrees, does not describe width 3, widths=(3, 6))
    """
    if not isinstance(solution, Solution):
        raise TypeError(f"solution must be a Solution, got {solution!r}")
    if solution.convention != "derivative":
        solution = replace(solution, convention="derivative")
    ensembles = _checked(solution, ensemble, "ensemble", Ensemble)
    if not ensembles:
        raise ValueError("ensemble must be an Ensemble or a sequence of them, got none")
    answers = _checked(solution, responses, "responses", SimulatedResponse)
    for answer in answers:
        if answer.layer:
            raise ValueError(f"responses must be those to layer 0, got layer {answer.layer}")
    for name, value in (("false_alarm", false_alarm), ("tolerance", tolerance)):
        if not isinstance(value, Real) or not 0 < value < 1:
            raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")
    reasons = reasons_against(solution)
    measured = list(measured_fields(solution, ensembles, answers, reasons))
    spreads = remainders.relative_variances(ensembles[0]) * ensembles[0].network.width
    extrapolated = [
        entries for quantity in measured for entries in _coefficients(quantity, spreads)
    ]
    if not extrapolated:
        raise ValueError("ensemble must have kernels that fluctuate, got none")
    widths = [e.network.width for e in ensembles]
    width = solution.network.width if solution.network.width in widths else widths[0]
    raw = [
        _at_width(quantity, simulation)
        for quantity in measured
        for simulation in quantity.simulations
        if simulation.network.width == width
    ]
    raw = [entries for entries in raw if entries["theory"].size]
    if not raw:
        raise ValueError("ensemble must have kernels that fluctuate, got none")
    freedom = min(e.batches for e in (*ensembles, *answers)) - 1
    thresholds = [_threshold(found, false_alarm, freedom) for found in (extrapolated, raw)]
    return Comparison(
        tuple(Coefficient(**entries, threshold=thresholds[0]) for entries in extrapolated),
        tuple(AtWidth(**entries, threshold=thresholds[1], tolerance=tolerance) for entries in raw),
        tuple(widths),
        width,
        float(false_alarm),
        float(tolerance),
        left_out(measured, reasons, _without_values(measured, extrapolated)),
    )


def _without_values(measured: list[Measured], compared: Sequence[dict[str, Any]]) -> list[str]:
    """Quantities that are 0 in the theory and in every network, so that nothing is compared."""
    shown = {entries["name"] for entries in compared}
    return [
        name
        for quantity in measured
        for order, name in quantity.orders.items()
        if name not in shown and order - quantity.field.order < len(quantity.simulations)
        if not remainders.theory(quantity, name).any()
    ]


def _checked(solution: Solution, given: Any, name: str, kind: Any) -> list[Any]:
    """The simulations as a list, narrow ones first."""
    found = list(given) if isinstance(given, list | tuple) else [given]
    for other in found:
        if not isinstance(other, kind):
            raise TypeError(f"{name} must be of {kind.__name__} or a sequence, got {other!r}")
        apart = differences(solution.network, other.network, *_OF_INPUTS)
        K0, simulated = solution.input_kernel, other.input_kernel
        rounding = _ROUNDING * np.abs(K0).max()
        if K0.shape != simulated.shape or (np.abs(K0 - simulated) > rounding).any():
            apart.append(f"K0 {shown(K0)} in the theory, {shown(simulated)} in the simulation")
        if apart:
            raise ValueError(
                f"{name} must be of the network and inputs of the solution: {'; '.join(apart)}"
            )
    widths = [e.network.width for e in found]
    if len(set(widths)) < len(widths):
        raise ValueError(f"{name} must have different widths, got {widths}")
    seeds = [(e.seed, getattr(e, "method", "")) for e in found]
    if len(set(seeds)) < len(seeds):
        raise ValueError(
            f"{name} must have different seeds, to be independent, got {[s for s, _ in seeds]}"
        )
    return sorted(found, key=lambda e: e.network.width)


def _coefficients(quantity: Measured, variances: np.ndarray) -> Iterator[dict[str, Any]]:
    """What the coefficients of a field consist of, without the threshold.

    ``variances`` are N times the relative variances of the kernels, (L+2,).
    """
    field, own = quantity.field, float(quantity.solution.network.width)
    widths = np.array([s.network.width for s in quantity.simulations], dtype=float)
    spreads = [variances / N for N in widths]
    found = [_simulated(quantity, simulation) for simulation in quantity.simulations]
    for order, name in quantity.orders.items():
        relative, row = order - field.order, FIELDS[name]
        if relative >= len(widths):
            continue
        # The power of 1/N is that of the network of the solution.
        scales = (widths / own) ** field.order
        factors = extrapolation_weights(widths, relative) * scales / own**relative
        parts = [[_corrected(row, field, values) for values in pair] for pair in found]
        summands = [factor * value for factor, (value, _) in zip(factors, parts, strict=True)]
        squares = sum((f * error) ** 2 for f, (_, error) in zip(factors, parts, strict=True))
        theory = remainders.theory(quantity, name)
        beyond = remainders.sizes(quantity, spreads, variances / own, relative)
        size = np.abs(theory) if relative else remainders.reference(quantity)
        others = {"remainder": _corrected(row, field, beyond), "size": size}
        entries = _entries(quantity, row, theory, summands, np.sqrt(squares), others)
        if entries["theory"].size:
            yield entries | {"name": name, "order": order}


def _corrected(row: Field, field: Field, values: np.ndarray) -> np.ndarray:
    """Those entries of a field that a row corrects: of two layers, of a layer with itself."""
    return np.diagonal(values) if len(row.dims) < len(field.dims) else values


def _at_width(quantity: Measured, simulation: Any) -> dict[str, Any]:
    """What a field at a width consists of, without threshold and tolerance."""
    field, solution = quantity.field, quantity.solution
    ratio = solution.network.width / simulation.network.width
    theory = remainders.theory(quantity) * ratio**field.order
    sums: dict[Any, np.ndarray] = {}
    total = theory
    for order, name in quantity.orders.items():
        if order == field.order:
            continue
        term = np.asarray(getattr(solution, name)) * ratio**order
        if term.ndim < theory.ndim:
            term = np.where(np.eye(len(term), dtype=bool), np.diag(term), np.nan)
        total = total + term
        sums[order] = total
    values, error = _simulated(quantity, simulation)
    size: dict[Any, np.ndarray] = {"size": remainders.reference(quantity) * ratio**field.order}
    found = _entries(quantity, field, theory, [values], error, size | sums)
    if not field.decides:
        # What is 0, such as the vertex of the inputs, has no relative deviation.
        found = _chosen(found, found["size"] > 0)
    with_next = {order: found.pop(order) for order in sums}
    return found | {"name": field.name, "order": field.order, "with_next": with_next}


def _simulated(quantity: Measured, simulation: Any) -> tuple[np.ndarray, np.ndarray]:
    """The simulated values of a field and their standard errors."""
    name = quantity.name
    found = [np.asarray(getattr(simulation, key)) for key in (name, f"{name}_error")]
    if quantity.across:
        first, second = np.triu_indices(found[0].shape[-1])
        found = [values[..., first, second, :, :][..., first, second] for values in found]
    return found[0], found[1]


def _entries(
    quantity: Measured,
    field: Field,
    theory: np.ndarray,
    summands: list[np.ndarray],
    error: np.ndarray,
    others: dict[Any, np.ndarray],
) -> dict[Any, Any]:
    """The entries that are worth a comparison, each once, with their indices.

    The simulated values are the sums of ``summands``.
    """
    # What does not fluctuate is exact up to rounding, and needs no test unless it differs.
    values = np.sum(summands, axis=0)
    scale = np.maximum(np.abs(theory), np.max(np.abs(summands), axis=0))
    error = np.where(error > 1e-14 * scale, error, 0.0)
    kept = (error > 0) | (np.abs(values - theory) > 1e-9 * scale)
    dims = tuple(dim.removeprefix("hidden_") for dim in field.dims)
    indices: tuple[Any, ...] = np.indices(theory.shape, sparse=True)
    if len(dims) > 1:
        kept &= indices[0] <= indices[1]
    if quantity.solution.input_kernel.ndim:
        # Of two layers, each pair of inputs in one may come with each in the other.
        apart = quantity.across and len(dims) > 1
        kept &= (indices[-2] <= indices[-1]) | (apart & (indices[0] != indices[1]))
    places = np.argwhere(kept).T
    index = dict(zip(dims, places, strict=False)) | _inputs(quantity, places)
    parts = {"theory": theory, "simulation": values, "error": error} | others
    chosen = {key: np.asarray(part)[kept] for key, part in parts.items()}
    return {"index": index, **chosen}


def _inputs(quantity: Measured, places: np.ndarray) -> dict[str, np.ndarray]:
    """The inputs of entries, counted from 0, none if there is one input."""
    if quantity.solution.input_kernel.ndim == 0:
        return {}
    if not quantity.across:
        return {"alpha": places[-2], "beta": places[-1]}
    pairs = np.stack(np.triu_indices(quantity.solution.inputs))
    parts = (*pairs[:, places[-2]], *pairs[:, places[-1]])
    return dict(zip(("alpha", "beta", "gamma", "delta"), parts, strict=True))


def _chosen(entries: dict[Any, Any], kept: np.ndarray) -> dict[Any, Any]:
    """Some of the entries."""
    index = {key: at[kept] for key, at in entries["index"].items()}
    return {key: part[kept] for key, part in entries.items() if key != "index"} | {"index": index}


def extrapolation_weights(widths: np.ndarray, order: int = 0) -> np.ndarray:
    """Weights of values at the widths N_i that give the coefficient of N^-order.

    Examples
    --------
    >>> extrapolation_weights(np.array([100.0, 200.0]))
    array([-1.,  2.])
    >>> extrapolation_weights(np.array([100.0, 200.0]), order=1)
    array([ 200., -200.])
    """
    # In units of the smallest width, so that the powers are of one size.
    powers = np.vander(widths[0] / widths, increasing=True)
    return np.linalg.inv(powers)[order] * widths[0] ** order


def _threshold(found: list[dict[str, Any]], false_alarm: float, freedom: int) -> float:
    from scipy import stats

    count = sum(entries["theory"].size for entries in found)
    return float(stats.t.isf(false_alarm / (2 * count), freedom))
