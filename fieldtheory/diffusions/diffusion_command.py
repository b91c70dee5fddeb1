"""The command `diffusion`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fieldtheory.cli.options import (
    ACTIVATION,
    NETWORK,
    Classes,
    Count,
    Data,
    Drop,
    Label,
    OutputFormat,
    Standardise,
)
from fieldtheory.cli.resuming import parts_of, require_place
from fieldtheory.cli.terminal import Format, echo, print_rows

if TYPE_CHECKING:
    import numpy as np

_network = partial(typer.Option, rich_help_panel=NETWORK)
_simulation = partial(typer.Option, rich_help_panel="Simulation")

_Inputs = Annotated[
    str,
    typer.Option(
        "--inputs",
        "-z",
        help="Numbers z separated by commas, all neurons of x_0 are z; or the layers x_0 "
        'themselves, "0.5,1;-1,2".',
    ),
]
_Scale = Annotated[
    str | None,
    typer.Option(
        help="With --data: the mean square over neurons to which every x_0 is scaled, or none.",
        show_default="1",
    ),
]
_Width = Annotated[
    int | None,
    _network(
        help="Number D of neurons in a layer.",
        show_default="500, or that of the layers x_0 or of the law",
    ),
]
_Law = Annotated[
    Path | None,
    _network(
        help="Another Gaussian law of the parameters, of the arguments of ft.ParameterLaw: an "
        ".npz file with arrays row_covariance and column_covariance, or weight_covariance, "
        "and if wanted bias_covariance, weight_mean, bias_mean.",
        show_default=False,
    ),
]
_Times = Annotated[
    int,
    typer.Option(min=2, help="Times in the table, evenly spaced from 0 to T; at most all."),
]
_Conditions = Annotated[
    bool,
    typer.Option(
        "--conditions",
        help="What φ and ψ must fulfil for a limit of infinite depth, and what of it holds.",
    ),
]
_Latex = Annotated[
    str | None,
    typer.Option(
        help="Print LaTeX: network, instantaneous_mean, instantaneous_covariance, diffusion "
        "(the stochastic differential equation), quadratic_covariation, next_order (the error "
        "of finite depth), wide_limit, closed_form or exact_moments.",
        show_default=False,
    ),
]
_Samples = Annotated[
    int | None,
    _simulation(
        "--simulate",
        "-n",
        help="Draw so many networks, and show what they have with standard errors.",
        show_default=False,
    ),
]
_Method = Annotated[
    Literal["kernel", "weights", "sde", "gram"] | None,
    _simulation(
        "--method",
        "-m",
        help="kernel: networks, without weight matrices. weights: with them, the definition. "
        "sde: the diffusion in steps of Euler and Maruyama. gram: the same for ψ(x) = x and "
        "φ''(0) = 0 at a cost that does not grow with the width.",
        show_default="kernel; weights with --law",
    ),
]
_Steps = Annotated[
    int | None,
    _simulation(
        help="With infinite depth: layers of the networks, or steps, that are drawn.",
        show_default="500",
    ),
]
_Jobs = Annotated[
    int | None,
    _simulation("--jobs", "-j", help="Processes that work at once.", show_default="one"),
]
_Compare = Annotated[
    bool,
    _simulation(
        "--compare",
        help="Compare with the theory: z-scores, and for every input the test of Kolmogorov "
        "and Smirnov of the outputs against the Gaussian of infinite width. The exit code is 1 "
        "unless the theory describes the networks to 5 % and, where it is exact, agrees.",
    ),
]
_Save = Annotated[
    Path | None,
    typer.Option(
        help="A file, .npz or .nc, for the solution; with --simulate .npz for the estimates, "
        "and the same command goes on from where Ctrl-C stopped it."
    ),
]


def diffusion(
    inputs: _Inputs = "0,1",
    data: Data = None,
    classes: Classes = None,
    count: Count = None,
    label: Label = None,
    drop: Drop = None,
    standardise: Standardise = False,
    scale: _Scale = None,
    depth: Annotated[
        str, _network("--depth", "-L", help="Number of layers L, or infinite for the diffusion.")
    ] = "infinite",
    width: _Width = None,
    horizon: Annotated[float, _network("--horizon", "-T", help="T; Δt = T/L.")] = 1.0,
    activation: Annotated[str, _network("--activation", "-a", help=ACTIVATION)] = "tanh",
    input_activation: Annotated[str, _network(help="ψ, given as φ is.")] = "linear",
    weight_variance: Annotated[float, _network(help="σ_w²: weights are N(0, σ_w² Δt/D).")] = 1.0,
    bias_variance: Annotated[float, _network(help="σ_b²: biases are N(0, σ_b² Δt).")] = 1.0,
    law: _Law = None,
    times: _Times = 6,
    conditions: _Conditions = False,
    latex: _Latex = None,
    samples: _Samples = None,
    method: _Method = None,
    steps: _Steps = None,
    seed: Annotated[
        int | None, _simulation(help="Seed of the random numbers.", show_default="0")
    ] = None,
    jobs: _Jobs = None,
    compare: _Compare = False,
    save: _Save = None,
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
    from fieldtheory.cli import values
    from fieldtheory.diffusions import diffusion_inputs
    from fieldtheory.diffusions.diffusion_inputs import SIMULATED, compared_rows, rows_of

    phi = values.activation(activation)
    psi = values.activation(input_activation, "input_activation")
    asked = {"conditions": conditions, "latex": latex is not None, "simulate": samples is not None}
    names = [name for name, wanted in asked.items() if wanted]
    if len(names) > 1:
        raise ValueError(f"{names[0]} and {names[1]} must not both be given")
    drawing = {"compare": compare or None, "method": method, "seed": seed, "jobs": jobs}
    for name, value in (drawing | {"steps": steps}).items():
        if samples is None and value is not None:
            raise ValueError(f"{name} is for simulations: say --simulate SAMPLES as well")
    if conditions:
        _print_conditions(phi, psi, format)
        return
    import fieldtheory as ft

    parameters = None if law is None else diffusion_inputs.law(law)
    of_data = {"classes": classes, "count": count, "scale": scale}
    of_data |= {"label": label, "drop": drop, "standardise": standardise}
    words, Z = _layers(inputs, data, of_data)
    if width is None:
        width = parameters.width if parameters else Z.shape[1] if Z.ndim > 1 else 500
    net = ft.DiffusionNetwork(
        depth=_depth(depth),
        width=width,
        horizon=horizon,
        activation=phi,
        input_activation=psi,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        parameter_law=parameters,
    )
    if latex is not None:
        echo(ft.derive(net).latex(latex))
        return
    if samples is None:
        _print_solution(net, Z, words, times, save, format)
        return
    if net.depth is not None and steps is not None:
        raise ValueError(f"steps is for infinite depth, got depth={net.depth}")
    # Many layers stand for infinitely many, as many as in PF section 4.
    finite = net if net.depth else net.replace(depth=500 if steps is None else steps)
    way = method or ("weights" if law else "kernel")
    with parts_of(save, ".npz") as parts:
        ensemble = ft.simulate(
            finite,
            Z,
            samples=samples,
            seed=0 if seed is None else seed,
            method=way,
            jobs=jobs,
            directory=parts,
            progress=True,
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


def _layers(inputs: str, data: str | None, of_data: dict[str, Any]) -> tuple[str, np.ndarray]:
    """Words on the inputs, if they are samples, and the inputs."""
    from fieldtheory.cli import samples
    from fieldtheory.diffusions import diffusion_inputs

    if data is None:
        samples.require_none(of_data)
        return "", diffusion_inputs.layers(inputs)
    words, Z = diffusion_inputs.sampled_layers(data, **of_data)
    return f"; {words}", Z


def _depth(text: str) -> int | None:
    """L, or None for infinite depth."""
    word = text.strip()
    if word == "infinite":
        return None
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"depth must be an integer >= 1 or infinite, got {text!r}") from None


def _words(network: Any) -> str:
    law = ", another law of the parameters" if network.parameter_law else ""
    return (
        f"depth {network.depth or 'infinite'}, width {network.width}, T = {network.horizon:g}, "
        f"φ = {network.activation.name}, ψ = {network.input_activation.name}{law}"
    )


def _print_conditions(phi: Any, psi: Any, format: Format) -> None:
    from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import diffusion_conditions

    conditions = diffusion_conditions(phi, psi)
    if format == "table":
        echo(str(conditions))
    else:
        rows = [asdict(c) | ({"consequence": None} if c.holds else {}) for c in conditions]
        print_rows(rows, format, "")


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
