"""`compare`: a solution against finite networks, extrapolated over their widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from numbers import Real
from typing import Any

import numpy as np

from fieldtheory.montecarlo import remainders
from fieldtheory.montecarlo.comparison import ComparedField, Comparison
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.simulated_response import SimulatedResponse
from fieldtheory.numerics.fields import FIELDS, Field
from fieldtheory.numerics.solution import Solution


def compare(
    solution: Solution,
    ensemble: Ensemble | Sequence[Ensemble],
    *,
    responses: SimulatedResponse | Sequence[SimulatedResponse] = (),
    false_alarm: float = 1e-3,
) -> Comparison:
    """The theory against simulated networks of finite width: a table and one verdict.

    Compared are C*, K, and for one input N G11 and N Var K, with the means and covariances of the
    networks; η, χ and χ^out, as derivatives, where ``responses`` are given.

    Parameters
    ----------
    solution : Solution
        Of one network and one K0, without batch axes.
    ensemble : Ensemble or sequence of Ensemble
        Of one network and K0 at one or several different widths, with different seeds.
    responses : SimulatedResponse or sequence of SimulatedResponse, optional
        Of `simulate_response` for the input layer, at one or several different widths.
    false_alarm : float
        Probability that a correct theory is found to disagree, for the table as a whole.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or shapes do not fit.

    Warns
    -----
    ValidityWarning
        If 1/N is not small for this depth and width.

    Notes
    -----
    The theory is the leading order in 1/N. From k widths N_i the simulated values are extrapolated
    to 1/N → 0 by Lagrange's polynomial: for N and 2N by 2 m(2N) − m(N) (Richardson). What is left
    out is of order N^-k. Its size is taken as the product over the widths of n ε_i |q|, where q is
    the quantity, ε the largest relative variance of the kernels of earlier layers as simulated,
    n = 1 for kernels and covariances, and for responses the number of gains that are multiplied. A
    deviation beyond the statistical error but not beyond this size is "not resolved", one beyond
    both "disagrees". For one width the size is often larger than the statistical error; two widths
    reveal more.

    Statistical errors decide by |z|, with a threshold from Student's distribution and Bonferroni's
    correction for the number of comparisons. Correlations between them make false alarms rarer. For
    covariances z follows this distribution from about 1000 samples on.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from fieldtheory.montecarlo.simulation import simulate
    >>> net = ft.ResidualNetwork(depth=3, branch_scale=0.5, width=100)
    >>> narrow = simulate(net, 0.3, samples=2000, seed=1)
    >>> wide = simulate(net.replace(width=200), 0.3, samples=2000, seed=2)
    >>> compare(ft.solve(net, 0.3), [narrow, wide])
    Comparison(agrees, comparisons=21, widths=(100, 200))
    >>> wrong = ft.solve(net.replace(weight_variance=1.4), 0.3)
    >>> compare(wrong, [narrow, wide]).verdict
    'disagrees'
    """
    if not isinstance(solution, Solution):
        raise TypeError(f"solution must be a Solution, got {solution!r}")
    if solution.convention != "derivative":
        solution = replace(solution, convention="derivative")
    from scipy import stats

    ensembles = _checked(solution, ensemble, "ensemble", Ensemble)
    if not ensembles:
        raise ValueError("ensemble must be an Ensemble or a sequence of them, got none")
    answers = _checked(solution, responses, "responses", SimulatedResponse)
    for answer in answers:
        if answer.layer:
            raise ValueError(f"responses must be those to layer 0, got layer {answer.layer}")
    if not isinstance(false_alarm, Real) or not 0 < false_alarm < 1:
        raise ValueError(f"false_alarm must be a number between 0 and 1, got {false_alarm!r}")
    widths = tuple(e.network.width for e in ensembles)
    spreads = [remainders.relative_variances(e) for e in ensembles]
    found = _measured(solution, "Ensemble", ensembles, spreads)
    if answers:
        # Relative variances scale as 1/N.
        spreads = [spreads[0] * (widths[0] / a.network.width) for a in answers]
        found += _measured(solution, "SimulatedResponse", answers, spreads)
    found = [entries for entries in found if entries["theory"].size]
    if not found:
        raise ValueError("ensemble must have kernels that fluctuate, got none")
    count = sum(entries["theory"].size for entries in found)
    freedom = min(e.batches for e in (*ensembles, *answers)) - 1
    threshold = float(stats.t.isf(false_alarm / (2 * count), freedom))
    compared = tuple(ComparedField(**entries, threshold=threshold) for entries in found)
    differences = _differences(solution, ensembles[0])
    return Comparison(compared, widths, float(false_alarm), threshold, differences)


def _checked(solution: Solution, given: Any, name: str, kind: Any) -> list[Any]:
    """The simulations as a list, narrow ones first."""
    found = list(given) if isinstance(given, list | tuple) else [given]
    for other in found:
        if not isinstance(other, kind):
            raise TypeError(f"{name} must be of {kind.__name__} or a sequence, got {other!r}")
        if other.network.depth != solution.network.depth:
            raise ValueError(
                f"{name} must have the depth {solution.network.depth} of the solution, "
                f"got {other.network.depth}"
            )
    widths = [e.network.width for e in found]
    if len(set(widths)) < len(widths):
        raise ValueError(f"{name} must have different widths, got {widths}")
    seeds = [(e.seed, getattr(e, "method", "")) for e in found]
    if len(set(seeds)) < len(seeds):
        raise ValueError(
            f"{name} must have different seeds, to be independent, got {[s for s, _ in seeds]}"
        )
    for other in found[1:]:
        same = other.network.replace(width=widths[0]) == found[0].network
        if not (same and np.array_equal(other.input_kernel, found[0].input_kernel)):
            raise ValueError(f"{name} must be of one network and K0, got {other!r} of others")
    return sorted(found, key=lambda e: e.network.width)


def _measured(
    solution: Solution, kind: str, simulations: list[Any], spreads: list[np.ndarray]
) -> list[dict[str, Any]]:
    """The fields of the solution that simulations of one kind measure."""
    matrix, found = solution.input_kernel.ndim > 0, []
    for field in FIELDS.values():
        by, _, simulated = field.simulated.partition(".")
        if by != kind or not field.defined(matrix):
            continue
        if all(getattr(s, simulated) is not None for s in simulations):
            found.append(_extrapolated(solution, field, simulations, simulated, spreads))
    return found


def _extrapolated(
    solution: Solution,
    field: Field,
    simulations: list[Any],
    simulated: str,
    spreads: list[np.ndarray],
) -> dict[str, Any]:
    """What a `ComparedField` consists of, without the threshold."""
    name = field.name
    theory = np.asarray(getattr(solution, name))
    widths = np.array([s.network.width for s in simulations], dtype=float)
    factors = extrapolation_weights(widths) * (widths / solution.network.width) ** field.order
    values = variances = np.zeros(theory.shape)
    for factor, simulation in zip(factors, simulations, strict=True):
        value = np.asarray(getattr(simulation, simulated))
        if value.shape != theory.shape:
            raise ValueError(
                f"{simulated} must have the shape {theory.shape} of {name}, got {value.shape}"
            )
        values = values + factor * value
        variances = variances + (factor * getattr(simulation, f"{simulated}_error")) ** 2
    error = np.sqrt(variances)
    # What does not fluctuate is exact up to rounding, and needs no test unless it differs.
    scale = np.maximum(np.abs(theory), np.abs(values))
    error = np.where(error > 1e-14 * scale, error, 0.0)
    kept = (error > 0) | (np.abs(values - theory) > 1e-9 * scale)
    dims = tuple(dim.removeprefix("hidden_") for dim in field.dims)
    pairs = solution.input_kernel.ndim > 0
    names = (*dims, "alpha", "beta") if pairs else dims
    for first, second in ((0, 1),) * (len(dims) > 1) + ((-2, -1),) * pairs:
        indices = np.indices(theory.shape)
        kept &= indices[first] <= indices[second]
    places = np.argwhere(kept).T
    index = {key: at + (key in ("alpha", "beta")) for key, at in zip(names, places, strict=True)}
    remainder = remainders.sizes(solution, field, spreads)
    parts = {"theory": theory, "simulation": values, "error": error, "remainder": remainder}
    chosen = {key: np.asarray(part)[kept] for key, part in parts.items()}
    return {"name": name, "index": index, **chosen}


def extrapolation_weights(widths: np.ndarray) -> np.ndarray:
    """Weights of values at the widths N_i that eliminate the orders N^-1, ..., N^-(k-1).

    Examples
    --------
    >>> extrapolation_weights(np.array([100.0, 200.0]))
    array([-1.,  2.])
    """
    others = [np.delete(widths, i) for i in range(len(widths))]
    return np.array([np.prod(N / (N - rest)) for N, rest in zip(widths, others, strict=True)])


def _differences(solution: Solution, ensemble: Ensemble) -> tuple[str, ...]:
    """Parameters, other than the width, in which the simulated network is not the solved one."""
    solved, drawn = solution.network, ensemble.network
    found = []
    for field in fields(solved):
        a, b = getattr(solved, field.name), getattr(drawn, field.name)
        if a != b and field.name not in ("width", "input_dim"):
            a, b = getattr(a, "name", a), getattr(b, "name", b)
            found.append(f"{field.name} {a} in the theory, {b} in the simulation")
    if not np.array_equal(solution.input_kernel, ensemble.input_kernel):
        found.append("K0")
    return tuple(found)
