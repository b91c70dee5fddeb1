"""The command `diffusion`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fieldtheory.cli.options import (
    ACTIVATION,
    SAMPLES,
    NetworkFile,
    OutputFormat,
    of_network,
    of_samples,
    option,
)
from fieldtheory.cli.problem import with_options
from fieldtheory.cli.resuming import parts_of, require_place
from fieldtheory.cli.terminal import Format, echo, print_rows

if TYPE_CHECKING:
    import numpy as np

_simulation = partial(option, panel="Simulation")
_SCALE = "With --data: the mean square over neurons to which every x_0 is scaled, or none."
_SAMPLES = SAMPLES | {"scale": of_samples(str, _SCALE, "1")}
_NETWORK: dict[str, Any] = {
    "network": (NetworkFile, None),
    "depth": of_network(
        str, "Number of layers L, or infinite for the diffusion.", "infinite", "--depth", "-L"
    ),
    "width": of_network(
        int, "Number D of neurons in a layer.", "500, or that of the layers x_0 or of the law"
    ),
    "horizon": of_network(float, "T; Δt = T/L.", "1", "--horizon", "-T"),
    "activation": of_network(str, ACTIVATION, "tanh", "--activation", "-a"),
    "input_activation": of_network(str, "ψ, given as φ is.", "linear"),
    "weight_variance": of_network(float, "σ_w²: weights are N(0, σ_w² Δt/D).", "1"),
    "bias_variance": of_network(float, "σ_b²: biases are N(0, σ_b² Δt).", "1"),
}
_DRAWING: dict[str, Any] = {
    "method": _simulation(
        Literal["kernel", "weights", "sde", "gram"],
        "kernel: networks, without weight matrices. weights: with them, the definition. sde: the "
        "diffusion in steps of Euler and Maruyama. gram: the same for ψ(x) = x and φ''(0) = 0 at a "
        "cost that does not grow with the width.",
        "kernel; weights with --law",
        *("--method", "-m"),
    ),
    "steps": _simulation(
        int, "With infinite depth: layers of the networks, or steps, that are drawn.", "500"
    ),
    "seed": _simulation(int, "Seed of the random numbers.", "0"),
    "jobs": _simulation(int, "Processes that work at once.", "one", "--jobs", "-j"),
    "compare": _simulation(
        bool,
        "Compare with the theory: z-scores, and for every input the test of Kolmogorov and Smirnov "
        "of the outputs against the Gaussian of infinite width. The exit code is 1 unless the "
        "theory describes the networks to 5 % and, where it is exact, agrees.",
        False,
        "--compare",
    ),
}


@with_options(_SAMPLES, _NETWORK, _DRAWING)
def diffusion(
    of_data: dict[str, Any],
    of_network: dict[str, Any],
    drawing: dict[str, Any],
    *,
    inputs: Annotated[
        str,
        typer.Option(
            "--inputs",
            "-z",
            help="Numbers z separated by commas, all neurons of x_0 are z; or the layers x_0 "
            'themselves, "0.5,1;-1,2".',
        ),
    ] = "0,1",
    law: Annotated[
        Path | None,
        typer.Option(
            help="Another Gaussian law of the parameters, of the arguments of ft.ParameterLaw: an "
            ".npz file with arrays row_covariance and column_covariance, or weight_covariance, "
            "and if wanted bias_covariance, weight_mean, bias_mean.",
            show_default=False,
        ),
    ] = None,
    times: Annotated[
        int,
        typer.Option(min=2, help="Times in the table, evenly spaced from 0 to T; at most all."),
    ] = 6,
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
            rich_help_panel="Simulation",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="A file, .npz or .nc, for the solution; with --simulate .npz for the estimates, "
            "and the same command goes on from where Ctrl-C stopped it."
        ),
    ] = None,
    format: OutputFormat = "table",
) -> None:
    """Networks of small parameters, and the diffusion they become at infinite depth.

    The network is x_{l+1} = x_l + φ(W ψ(x_l) + b) with weights and biases of order √Δt. Columns:
    the time t = l Δt; the mean of a signal and the covariance and correlation of those of two
    inputs, about their means, for infinite width; gram, the mean product of ψ over neurons. Where
    they are known at every width: var_gram, its variance over networks, and the excess kurtosis of
    a signal. explosion_time is when the mean becomes infinite. For several inputs there is a row
    for each pair alpha, beta.

    Examples
    --------
        fieldtheory diffusion -z 0,1,-1.5

        fieldtheory diffusion -L 100 -a swish --input-activation tanh -f csv --times 101

        fieldtheory diffusion -a softplus --conditions

        fieldtheory diffusion -a swish --latex closed_form

        fieldtheory diffusion -L 100 --width 100 --simulate 1000 --compare

        fieldtheory diffusion --simulate 100000 --method gram --steps 50 --compare

        fieldtheory diffusion --data digits --count 4 --input-activation tanh

        fieldtheory diffusion --law law.npz --simulate 1000 --method sde --steps 100 --compare
    """
    import fieldtheory as ft
    from fieldtheory.cli import values
    from fieldtheory.diffusions import diffusion_inputs
    from fieldtheory.diffusions.diffusion_inputs import SIMULATED, compared_rows, rows_of
    from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import diffusion_conditions
    from fieldtheory.networks.activations import as_activation

    file = of_network.pop("network")
    kind, given = values.parameters(file=file, families=(ft.DiffusionNetwork,), **of_network)
    asked = {"conditions": conditions, "latex": latex is not None, "simulate": samples is not None}
    names = [name for name, wanted in asked.items() if wanted]
    if len(names) > 1:
        raise ValueError(f"{names[0]} and {names[1]} must not both be given")
    for name, value in drawing.items():
        if samples is None and value is not None:
            raise ValueError(f"{name} is for simulations: say --simulate SAMPLES as well")
    if conditions:
        found = diffusion_conditions(
            given.get("activation", as_activation("tanh")),
            given.get("input_activation", as_activation("linear")),
        )
        rows = [asdict(c) | ({"consequence": None} if c.holds else {}) for c in found]
        echo(str(found)) if format == "table" else print_rows(rows, format, "")
        return
    words, Z = diffusion_inputs.layers(inputs, of_data)
    if law is not None:
        given["parameter_law"] = diffusion_inputs.law(law)
        given.setdefault("width", given["parameter_law"].width)
    net = kind(**{"depth": None, "width": Z.shape[1] if Z.ndim > 1 else 500} | given)
    if latex is not None:
        echo(ft.derive(net).latex(latex))
        return
    if samples is None:
        _print_solution(net, Z, words, times, save, format)
        return
    compare, method, steps = (drawing.pop(name) for name in ("compare", "method", "steps"))
    if net.depth is not None and steps is not None:
        raise ValueError(f"steps is for infinite depth, got depth={net.depth}")
    # Many layers stand for infinitely many, as many as in PF section 4.
    finite = net if net.depth else net.replace(depth=500 if steps is None else steps)
    way = method or ("weights" if law else "kernel")
    drawing["seed"] = drawing["seed"] or 0
    with parts_of(save, ".npz") as parts:
        ensemble = ft.simulate(
            finite,
            Z,
            samples=samples,
            method=way,
            directory=parts,
            progress=True,
            **drawing,
        )
        if save is not None:
            ensemble.save(save)
    drawn = "networks" if way in ("kernel", "weights") else "diffusions"
    title = f"{samples} {drawn} of {_words(finite)}{words}"
    if not compare:
        print_rows(rows_of(ensemble, times, SIMULATED), format, title)
        return
    solution = ft.solve(net, Z, progress=True)
    comparison = ft.compare(solution, ensemble)
    # With another law outputs are no Gaussians.
    distances = None if law else ensemble.distances(solution)
    print_rows(compared_rows(comparison, distances), format, title)
    if format == "table":
        echo(comparison.statement)
    exact = not comparison.neglected
    if comparison.description != "describes" or (exact and comparison.verdict != "agrees"):
        raise typer.Exit(1)


def _words(network: Any) -> str:
    law = ", another law of the parameters" if network.parameter_law else ""
    return (
        f"depth {network.depth or 'infinite'}, width {network.width}, T = {network.horizon:g}, "
        f"φ = {network.activation.name}, ψ = {network.input_activation.name}{law}"
    )


def _print_solution(
    network: Any,
    Z: np.ndarray,
    words: str,
    times: int,
    save: Path | None,
    format: Format,
) -> None:
    import numpy as np

    import fieldtheory as ft
    from fieldtheory.diffusions.diffusion_inputs import SOLVED, rows_of

    require_place(save, ".npz", ".nc")
    solution = ft.solve(network, Z, progress=True)
    also: dict[str, Any] = {}
    # Means of finitely many layers stay finite.
    explosion = solution.explosion_time if network.depth is None else None
    if explosion is not None and np.isfinite(explosion).any():
        ends = np.where(np.isfinite(explosion), explosion, np.nan)
        also["explosion_time"] = np.broadcast_to(ends, solution.mean.shape)
    if save is not None:
        solution.save(save)
    holds = "exact at every width" if solution.is_exact else "in the limit of infinite width"
    rows = rows_of(solution, times, SOLVED, also)
    print_rows(rows, format, f"{_words(network)}; {holds}{words}")
