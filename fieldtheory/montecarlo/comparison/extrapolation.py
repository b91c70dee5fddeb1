"""`compare`: a solution against finite networks, extrapolated over their widths and at one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.montecarlo.comparison.compared import HEADS, NUMBERS, PLACES
from fieldtheory.montecarlo.comparison.comparison_result import Comparison
from fieldtheory.montecarlo.comparison.layer_fields import measured_fields
from fieldtheory.montecarlo.comparison.measured import Measured, at_width, coefficients
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.perturbation import SimulatedResponse
from fieldtheory.networks.dispatch import of_families
from fieldtheory.networks.family import differences
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.solution import Solution

# What networks with the same K0 may differ in.
_OF_INPUTS = "readin_weight_variance", "readin_bias_variance", "input_dim"


@of_families
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

    Whether the theory is right is asked of the limit of wide networks: the simulated values are
    extrapolated over several widths, coefficient by coefficient in 1/N. Whether it describes a
    width is asked of the values at that width as they are: how far off the leading order is. A
    right theory does not describe every width.

    Compared are C*, K, the shift of the means, G11, Var K and the four-point vertex, with the means
    and covariances of the networks; η, χ and χ^out, as derivatives, where ``responses`` are given.

    Of P inputs, with p = P(P+1)/2 pairs, G11 has ((L + 1) p)² entries that are averages of four
    signals. Up to 20 000 (L = 20 for P = 3) are computed, in seconds to a minute, and 1500 (L = 11
    for P = 2, L = 5 for P = 3) if φ has kinks and no closed form. Of more, fluctuations are
    compared if the solution has them: ask for ``solution.G11``, ``kernel_variance``, ``four_point``
    and ``mean_shift`` before. Pairs of inputs are compared with themselves, and with others where
    simulations have these: ``simulate(..., cross_inputs=True)``.

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
    From k widths N_i the coefficients of N^0, ..., N^-(k-1) are those of Lagrange's polynomial: for
    N and 2N the limit is 2 m(2N) − m(N) (Richardson). What is left out of the limit is taken as
    the product over the widths of n ε_i |q|, where q is the quantity, ε the largest relative
    variance of the kernels of earlier layers as simulated, n = 1 for kernels, covariances and
    vertices, and for responses the number of gains that are multiplied. A deviation beyond the
    statistical error but not beyond this size is "not resolved", one beyond both "disagrees".

    Statistical errors decide by |z|, with a threshold from Student's distribution and Bonferroni's
    correction for the number of comparisons. Correlations between them make false alarms rarer. For
    covariances z follows this distribution from about 1000 samples on. Values for which chance
    would hide even an error of 100 % are "too noisy" and do not count, nor do quantities that are
    "zero in both". The answer names them, and how many times as many networks the first ones need.

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
    # Theory has a tolerance.
    if "rtol" not in getattr(solution, "settings", ()):
        raise TypeError(f"solution must be a Solution, got {solution!r}")
    if isinstance(solution, Solution) and solution.convention != "derivative":
        solution = replace(solution, convention="derivative")
    different = partial(_different, solution)
    ensembles = checked_simulations(ensemble, "ensemble", Ensemble, different)
    if not ensembles:
        raise ValueError("ensemble must be an Ensemble or a sequence of them, got none")
    measured_responses = checked_simulations(responses, "responses", SimulatedResponse, different)
    for response in measured_responses:
        if response.layer:
            raise ValueError(f"responses must be those to layer 0, got layer {response.layer}")
    widths = tuple(e.network.width for e in ensembles)
    measured, not_compared = measured_fields(solution, ensembles, measured_responses)
    return comparison_of(
        measured,
        widths=widths,
        width=solution.network.width if solution.network.width in widths else widths[0],
        batches=min(e.batches for e in (*ensembles, *measured_responses)),
        false_alarm=validation.fraction("false_alarm", false_alarm),
        tolerance=validation.fraction("tolerance", tolerance),
        not_compared=not_compared,
        neglected=f"terms of order 1/N{'' if len(widths) == 1 else f'^{len(widths)}'}",
    )


def comparison_of(
    measured: Sequence[Measured],
    *,
    widths: tuple[int, ...],
    width: int,
    batches: int,
    false_alarm: float,
    tolerance: float,
    not_compared: tuple[str, ...],
    neglected: str,
) -> Comparison:
    """The comparison of any family, from its measured fields."""
    from scipy import stats

    right = [block for each in measured for block in coefficients(each)]
    raw = [
        at_width(each, which)
        for each in measured
        for which in np.flatnonzero(each.widths == width).tolist()
    ]
    right, raw = ([block for block in of if block["theory"].size] for of in (right, raw))
    if not right or not raw:
        raise ValueError("ensemble must have kernels that fluctuate, got none")
    names = {block["quantity"] for block in right}
    terms = [term for each in measured for term in each.coefficients.values()]
    zeros = [name for name, term in terms if name not in names and not np.nan_to_num(term).any()]
    if zeros:
        not_compared = (*not_compared, f"{', '.join(zeros)} (zero in theory and simulation)")
    columns = {}
    for name in dict.fromkeys((*HEADS, *PLACES, *NUMBERS, *(n for block in raw for n in block))):
        parts = [(of.get(name, PLACES.get(name, np.nan)), len(of["theory"])) for of in right + raw]
        columns[name] = np.concatenate([np.broadcast_to(*part) for part in parts])
    if np.isnan(columns["time"]).all():
        del columns["time"]
    # |z| that chance exceeds in any of the entries with the probability ``false_alarm``.
    counts = [sum(len(block["theory"]) for block in of) for of in (right, raw)]
    thresholds = [float(stats.t.isf(false_alarm / (2 * n), batches - 1)) for n in counts]
    return Comparison(
        columns, widths, width, false_alarm, tolerance, not_compared, neglected, *thresholds
    )


def checked_simulations(
    simulated: Any, name: str, kind: type, different: Callable[[Any], list[str]]
) -> list[Any]:
    """The simulations as a list, narrow ones first."""
    simulations = list(simulated) if isinstance(simulated, list | tuple) else [simulated]
    for other in simulations:
        if not isinstance(other, kind):
            raise TypeError(
                f"{name} must be of {kind.__name__} or a sequence, got {validation.excerpt(other)}"
            )
        if texts := different(other):
            raise ValueError(
                f"{name} must be of the network and inputs of the solution: {'; '.join(texts)}"
            )
    widths = [e.network.width for e in simulations]
    if len(set(widths)) < len(widths):
        raise ValueError(f"{name} must have different widths, got {widths}")
    seeds = [(e.seed, getattr(e, "method", "")) for e in simulations]
    if len(set(seeds)) < len(seeds):
        raise ValueError(
            f"{name} must have different seeds, to be independent, got {[s for s, _ in seeds]}"
        )
    return sorted(simulations, key=lambda e: e.network.width)


def _different(solution: Solution, other: Ensemble | SimulatedResponse) -> list[str]:
    texts = differences(solution.network, other.network, *_OF_INPUTS)
    K0, other_K0 = solution.input_kernel, other.input_kernel
    rounding = 1e-12 * np.abs(K0).max()
    if K0.shape != other_K0.shape or (np.abs(K0 - other_K0) > rounding).any():
        kernels = [validation.excerpt(K) for K in (K0, other_K0)]
        texts.append("K0 {} in the theory, {} in the simulation".format(*kernels))
    return texts
