"""The command `diffusion`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fieldtheory.cli import values
from fieldtheory.cli.options import ACTIVATION, OutputFormat
from fieldtheory.cli.resuming import parts_of
from fieldtheory.cli.terminal import Format, print_rows

_NETWORK, _SIMULATION = "The network", "Simulation"
# Layers of the networks that stand for infinite depth, as many as in PF section 4.
_STEPS = 500
_SOLVED = {
    "mean": "mean",
    "covariance": "covariance",
    "gram": "gram",
    "var_gram": "gram_variance",
    "kurtosis": "kurtosis",
}
_SIMULATED = {
    column: field
    for name, estimate in _SOLVED.items()
    for column, field in ((name, estimate), (f"{name}_error", f"{estimate}_error"))
}


class Method(StrEnum):
    """Methods of `simulate` for diffusion networks."""

    kernel = "kernel"
    weights = "weights"
    sde = "sde"
    gram = "gram"


def diffusion(
    inputs: Annotated[
        str,
        typer.Option(
            "--inputs", "-z", help="Numbers z separated by commas; all neurons of x_0 are z."
        ),
    ] = "0,1",
    depth: Annotated[
        str,
        typer.Option(
            "--depth",
            "-L",
            help="Number of layers L, or infinite for the diffusion.",
            rich_help_panel=_NETWORK,
        ),
    ] = "infinite",
    width: Annotated[
        int, typer.Option(help="Number D of neurons in a layer.", rich_help_panel=_NETWORK)
    ] = 500,
    horizon: Annotated[
        float,
        typer.Option("--horizon", "-T", help="T; Δt = T/L.", rich_help_panel=_NETWORK),
    ] = 1.0,
    activation: Annotated[
        str, typer.Option("--activation", "-a", help=ACTIVATION, rich_help_panel=_NETWORK)
    ] = "tanh",
    input_activation: Annotated[
        str, typer.Option(help="ψ, given as φ is.", rich_help_panel=_NETWORK)
    ] = "linear",
    weight_variance: Annotated[
        float, typer.Option(help="σ_w²: weights are N(0, σ_w² Δt/D).", rich_help_panel=_NETWORK)
    ] = 1.0,
    bias_variance: Annotated[
        float, typer.Option(help="σ_b²: biases are N(0, σ_b² Δt).", rich_help_panel=_NETWORK)
    ] = 1.0,
    times: Annotated[
        int,
        typer.Option(min=2, help="Times in the table, evenly spaced from 0 to T; at most all."),
    ] = 6,
    correction: Annotated[
        bool,
        typer.Option("--correction", help="Also the coefficients of 1/L, for infinite depth."),
    ] = False,
    conditions: Annotated[
        bool,
        typer.Option(
            "--conditions",
            help="What φ and ψ must fulfil for a limit of infinite depth, and what of it holds.",
        ),
    ] = False,
    latex: Annotated[
        str | None,
        typer.Option(
            help="Print LaTeX: network, instantaneous_mean, instantaneous_covariance, diffusion "
            "(the stochastic differential equation), quadratic_covariation, next_order (the error "
            "of finite depth), wide_limit, closed_form or exact_moments.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--simulate",
            "-n",
            help="Draw so many networks, and show what they have with standard errors.",
            show_default=False,
            rich_help_panel=_SIMULATION,
        ),
    ] = None,
    method: Annotated[
        Method | None,
        typer.Option(
            "--method",
            "-m",
            help="kernel: networks, without weight matrices. weights: with them, the definition. "
            "sde: the diffusion in steps of Euler and Maruyama. gram: the same for ψ(x) = x and "
            "φ''(0) = 0 at a cost that does not grow with the width.",
            show_default="kernel",
            rich_help_panel=_SIMULATION,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="With infinite depth: layers of the networks, or steps, that are drawn.",
            show_default="500",
            rich_help_panel=_SIMULATION,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the random numbers.", show_default="0", rich_help_panel=_SIMULATION
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            help="Processes that work at once.",
            show_default="one",
            rich_help_panel=_SIMULATION,
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Compare with the theory: z-scores, and for every input the test of Kolmogorov "
            "and Smirnov of the outputs against the Gaussian of infinite width. The exit code is 1 "
            "unless the theory describes the networks to 5 % and, where it is exact, agrees.",
            rich_help_panel=_SIMULATION,
        ),
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            help="A file, .npz or .nc, for the solution; with --simulate .npz for the estimates, "
            "and the same command goes on from where Ctrl-C stopped it."
        ),
    ] = None,
    format: OutputFormat = Format.table,
) -> None:
    """Networks of small parameters, and the diffusion they become at infinite depth.

    The network is x_{l+1} = x_l + φ(W ψ(x_l) + b) with weights and biases of order √Δt. Columns:
    the time t = l Δt; the mean of a signal and the covariance and correlation of those of two
    inputs, about their means, for infinite width; gram, the mean product of ψ over neurons. Where
    they are known at every width: var_gram, its variance over networks, and the excess kurtosis of
    a signal. explosion_time is when the mean becomes infinite. For several inputs there is a row
    for each pair alpha, beta.

    Examples:

        fieldtheory diffusion -z 0,1,-1.5

        fieldtheory diffusion -a swish -z 0,2 --correction

        fieldtheory diffusion -L 100 -a swish --input-activation tanh -f csv --times 101

        fieldtheory diffusion -a softplus --conditions

        fieldtheory diffusion -a swish --latex closed_form

        fieldtheory diffusion -L 100 --width 100 --simulate 1000 --compare

        fieldtheory diffusion --simulate 10000 --method gram --steps 100 --compare
    """
    phi, psi = values.activation(activation), _input_activation(input_activation)
    if correction and samples is not None:
        raise ValueError("correction is not for simulations: leave --simulate or --correction out")
    _check_purpose(conditions=conditions, latex=latex is not None, simulate=samples is not None)
    drawing = {"compare": compare or None, "method": method, "seed": seed, "jobs": jobs}
    for name, value in (drawing | {"steps": steps}).items():
        if samples is None and value is not None:
            raise ValueError(f"{name} is for simulations: say --simulate SAMPLES as well")
    if conditions:
        _print_conditions(phi, psi, format)
        return
    import fieldtheory as ft

    net = ft.DiffusionNetwork(
        depth=_depth(depth),
        width=width,
        horizon=horizon,
        activation=phi,
        input_activation=psi,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
    )
    if latex is not None:
        typer.echo(ft.derive(net).latex(latex))
        return
    Z = np.atleast_1d(values.numbers("inputs", inputs))
    if samples is None:
        _print_solution(net, Z, times, correction, save, format)
        return
    finite = _finite(net, steps)
    way = (method or Method.kernel).value
    with parts_of(save, ".npz") as parts:
        ensemble = ft.simulate(
            finite,
            Z,
            samples=samples,
            seed=0 if seed is None else seed,
            method=way,
            jobs=jobs,
            directory=parts,
            progress=sys.stderr.isatty(),
        )
        if save is not None:
            ensemble.save(save)
    title = f"{samples} {_drawn(way)} of {_words(finite)}"
    if not compare:
        print_rows(_rows(ensemble, times, _SIMULATED), format, title)
        return
    solution = ft.solve(net, Z)
    comparison = ft.compare(solution, ensemble)
    print_rows(_compared_rows(comparison, ensemble.distances(solution)), format, title)
    if format is Format.table:
        typer.echo(comparison.statement)
    exact = comparison.left_out == "nothing"
    if comparison.description != "describes" or (exact and comparison.verdict != "agrees"):
        raise typer.Exit(1)


def _depth(text: str) -> int | None:
    """L, or None for infinite depth."""
    word = text.strip()
    if word == "infinite":
        return None
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"depth must be an integer >= 1 or infinite, got {text!r}") from None


def _input_activation(text: str) -> Any:
    try:
        return values.activation(text)
    except ValueError as error:
        words = str(error).replace("activation", "input_activation", 1)
        raise ValueError(words) from None


def _check_purpose(**asked: bool) -> None:
    """One thing at a time."""
    names = [name for name, wanted in asked.items() if wanted]
    if len(names) > 1:
        raise ValueError(f"{names[0]} and {names[1]} must not both be given")


def _finite(network: Any, steps: int | None) -> Any:
    """What is drawn: the network, or one of many layers in place of infinitely many."""
    if network.depth is None:
        return network.replace(depth=_STEPS if steps is None else steps)
    if steps is not None:
        raise ValueError(f"steps is for infinite depth, got depth={network.depth}")
    return network


def _words(network: Any) -> str:
    return (
        f"depth {network.depth or 'infinite'}, width {network.width}, T = {network.horizon:g}, "
        f"φ = {network.activation.name}, ψ = {network.input_activation.name}"
    )


def _drawn(method: str) -> str:
    return "networks" if method in ("kernel", "weights") else "diffusions"


def _print_conditions(phi: Any, psi: Any, format: Format) -> None:
    from fieldtheory.theory.diffusion_conditions import diffusion_conditions

    found = diffusion_conditions(phi, psi)
    if format is Format.table:
        typer.echo(str(found))
    else:
        print_rows([_of_condition(condition) for condition in found], format, "")


def _of_condition(condition: Any) -> dict[str, Any]:
    row = asdict(condition)
    return row | {"consequence": None if condition.holds else row["consequence"]}


def _print_solution(
    network: Any, Z: np.ndarray, times: int, correction: bool, save: Path | None, format: Format
) -> None:
    import fieldtheory as ft

    solution = ft.solve(network, Z)
    also: dict[str, Any] = {}
    if correction:
        first = solution.first_correction
        also = {"mean_1/L": first.mean, "covariance_1/L": first.covariance}
    # Means of finitely many layers stay finite.
    explosion = solution.explosion_time if network.depth is None else None
    if explosion is not None and np.isfinite(explosion).any():
        ends = np.where(np.isfinite(explosion), explosion, np.nan)
        also["explosion_time"] = np.broadcast_to(ends, solution.mean.shape)
    if save is not None:
        solution.save(save)
    holds = "exact at every width" if solution.is_exact else "in the limit of infinite width"
    rows = _rows(solution, times, _SOLVED, also)
    print_rows(rows, format, f"{_words(network)}; {holds}")


def _rows(
    found: Any, times: int, fields: dict[str, str], also: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """A row for every time and pair of inputs, of the fields that are known."""
    known = {name: getattr(found, field) for name, field in fields.items()} | (also or {})
    columns = {name: value for name, value in known.items() if value is not None}
    if len(found.inputs) > 1:
        variance = np.diagonal(found.covariance, axis1=1, axis2=2)
        scale = np.sqrt(variance[:, :, None] * variance[:, None, :])
        empty = np.full_like(scale, np.nan)
        columns["correlation"] = np.divide(found.covariance, scale, out=empty, where=scale > 0)
    last = len(found.times) - 1
    shown = np.unique(np.round(np.linspace(0, last, min(times, last + 1))).astype(int))
    return [
        {"t": found.times[n]} | _of_pair(columns, n, i, j, len(found.inputs))
        for n in shown
        for i, j in zip(*np.triu_indices(len(found.inputs)), strict=True)
    ]


def _of_pair(columns: dict[str, Any], n: int, i: Any, j: Any, inputs: int) -> dict[str, Any]:
    """The entries of a pair of inputs; those of one input where both are the same."""
    row: dict[str, Any] = {"alpha": int(i) + 1, "beta": int(j) + 1} if inputs > 1 else {}
    for name, value in columns.items():
        of_pair = value.ndim == 3
        entry = value[n, i, j] if of_pair else value[n, i]
        row[name] = entry if (of_pair or i == j) and np.isfinite(entry) else None
    return row


def _compared_rows(comparison: Any, distances: Any) -> list[dict[str, Any]]:
    """The worst entry of every quantity, and below them the laws of the outputs."""
    rows = [row | {"p-value": None} for row in comparison.summary]
    laws = zip(distances.statistic, distances.p_value, strict=True)
    blank = dict.fromkeys(rows[0])
    for number, (statistic, p_value) in enumerate(laws, 1):
        rows.append(
            blank
            | {
                "quantity": "law of x_T (KS)",
                "t": float(comparison.times[-1]),
                "inputs": str(number),
                "simulation": statistic,
                "p-value": p_value,
            }
        )
    return rows
