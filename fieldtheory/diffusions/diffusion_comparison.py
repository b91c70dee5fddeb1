"""`compare` for diffusion networks: the limit of wide networks against simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_ensemble import ESTIMATED, DiffusionEnsemble
from fieldtheory.diffusions.diffusion_solution import DiffusionSolution
from fieldtheory.montecarlo.comparison.comparison_result import Comparison
from fieldtheory.montecarlo.comparison.extrapolation import (
    checked_simulations,
    comparison_of,
)
from fieldtheory.montecarlo.comparison.measured import Measured, kernel_sizes
from fieldtheory.networks.activations import h
from fieldtheory.networks.family import differences
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.recursion import ratio


@named_arguments
def compare_diffusion(
    solution: DiffusionSolution,
    ensemble: DiffusionEnsemble | Sequence[DiffusionEnsemble],
    *,
    false_alarm: float = 1e-3,
    tolerance: float = 0.05,
) -> Comparison:
    """Theory of wide diffusion networks held against simulated ones, with the two verdicts.

    >>> import fieldtheory as ft
    >>> net = ft.DiffusionNetwork(depth=20, width=200, activation="linear")
    >>> e = ft.simulate(net, [0.5, 1.0], samples=1000)
    >>> compare_diffusion(ft.solve(net, [0.5, 1.0]), e)
    Comparison(agrees, describes width 200, widths=(200,))
    """
    different = partial(_different, solution)
    ensembles = checked_simulations(ensemble, "ensemble", DiffusionEnsemble, different)
    if not ensembles:
        raise ValueError("ensemble must be a DiffusionEnsemble or a sequence of them, got none")
    depths = {e.network.depth for e in ensembles}
    if len(depths) > 1:
        raise ValueError(f"ensemble must have one depth, got {sorted(depths)}")
    widths = tuple(e.network.width for e in ensembles)
    width = solution.network.width if solution.network.width in widths else widths[0]
    solution = replace(solution, network=solution.network.replace(width=width))
    nonlinear = solution.network.activation.expression.diff(h).has(h)
    depth = ""
    if solution.network.depth is None:
        depth = "finite depth"
    elif ensembles[0].method in ("sde", "gram") and nonlinear:
        depth = "the steps of Euler in place of φ"
    of_width = "" if solution.is_exact else "finite width"
    return comparison_of(
        list(_measured(solution, ensembles, bool(depth))),
        widths=widths,
        width=width,
        batches=min(e.batches for e in ensembles),
        false_alarm=validation.fraction("false_alarm", false_alarm),
        tolerance=validation.fraction("tolerance", tolerance),
        not_compared=(),
        neglected=" and ".join(filter(None, (of_width, depth))),
    )


def _different(solution: DiffusionSolution, ensemble: DiffusionEnsemble) -> list[str]:
    depth = ("depth",) if solution.network.depth is None else ()
    texts = differences(solution.network, ensemble.network, *depth)
    if not np.array_equal(solution.inputs, ensemble.inputs):
        inputs = [validation.excerpt(of.inputs) for of in (solution, ensemble)]
        texts.append("inputs {} in the theory, {} in the simulation".format(*inputs))
    return texts


def _measured(
    solution: DiffusionSolution, ensembles: list[DiffusionEnsemble], depth_neglected: bool
) -> Iterator[Measured]:
    same = np.isclose(solution.times[:, None], ensembles[0].times, rtol=1e-9, atol=0)
    same[0] = False
    ours, theirs = np.nonzero(same)
    own = solution.network.width
    for name, field in ESTIMATED.items():
        if (values := getattr(solution, name)) is None:
            continue
        theory = values[ours]
        # Fields of higher order are those of the width of the solution.
        of_field = [e for e in ensembles if not field.order or e.network.width == own]
        # Standard deviations for means, √(V_ii V_jj) for matrices, 1 for the excess kurtosis.
        size = np.ones_like(theory)
        if name == "mean":
            size = np.sqrt(np.diagonal(solution.covariance[ours], axis1=1, axis2=2))
        elif name != "kurtosis":
            size = kernel_sizes(theory, matrix=True)
        remainder = np.zeros_like(size)
        if depth_neglected:
            remainder[:] = np.inf
        elif not solution.is_exact:
            # The largest Var q_ij / (q_ii q_jj) up to every time.
            relative = [
                ratio(e.gram_variance, kernel_sizes(e.gram, matrix=True) ** 2).max(axis=(1, 2))
                for e in of_field
            ]
            epsilon = np.prod([np.maximum.accumulate(r)[theirs] for r in relative], axis=0)
            remainder = (epsilon * size.T).T
        axes = np.indices(theory.shape)
        yield Measured(
            field=field,
            theory=theory,
            values=[getattr(e, name)[theirs] for e in of_field],
            errors=[getattr(e, f"{name}_error")[theirs] for e in of_field],
            widths=np.array([e.network.width for e in of_field], dtype=float),
            width=float(own),
            size=size,
            # Of the leading order, which is all that a solution has.
            remainders=[remainder],
            index={
                "time": ensembles[0].times[theirs][axes[0]],
                "alpha": axes[1],
                "beta": axes[-1],
            },
            distinct=axes[1] <= axes[-1],
            next_orders={},
        )
