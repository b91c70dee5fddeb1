"""The command line: derive, solve, optimum, simulate, verify, figures, run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fieldtheory.cli.figures_command import figures
from fieldtheory.cli.optimum_command import optimum
from fieldtheory.cli.options import (
    ACTIVATION,
    ActivationText,
    BiasVariance,
    BranchScale,
    Classes,
    Count,
    Depth,
    Digits,
    InputKernel,
    OutputFormat,
    Quantity,
    ReadoutBias,
    ReadoutWeight,
    SkipScale,
    WeightVariance,
    Width,
    classes_of,
    integers,
    network,
)
from fieldtheory.cli.simulate_command import simulate
from fieldtheory.cli.terminal import Commands, Format, display, print_rows

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"fieldtheory {version('fieldtheory-networks')}")
        raise typer.Exit


@app.callback()
def _fieldtheory(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Field theory of wide residual networks, in symbols and in numbers.

    A network averaged over its random weights

        h⁽⁰⁾ = W_in x + b_in
        h⁽ˡ⁾ = γ h⁽ˡ⁻¹⁾ + ρ [W⁽ˡ⁾ φ(h⁽ˡ⁻¹⁾) + b⁽ˡ⁾],   l = 1, ..., L
        y = W_out φ(h⁽ᴸ⁾) + b_out

    is a field theory in its kernels. **derive** prints its action, saddle point, Hessian and
    propagator as LaTeX; **solve** gives kernels and responses as numbers; **optimum** finds the
    scaling ρ of the residual branch at which the output responds most to the input; **simulate**
    draws finite networks and compares them with the theory; **verify** compares it with
    high-precision numbers; **figures** draws the figures of the papers; **run** does everything for
    a set of images and writes one page to look at.

    Each command explains itself: `fieldtheory solve --help`.
    """


@app.command()
def derive(
    depth: Depth = 2,
    inputs: Annotated[int, typer.Option(help="Number of inputs P.")] = 1,
    what: Annotated[
        Quantity, typer.Option("--what", "-w", help="What to print; S.. and G.. are single blocks.")
    ] = Quantity.hessian,
    activation: Annotated[
        str | None,
        typer.Option("--activation", "-a", help=ACTIVATION + " Left undetermined if not given."),
    ] = None,
) -> None:
    """Print the theory of a network as LaTeX.

    The LaTeX goes to standard output without delimiters, ready for an equation environment.

    Examples:

        fieldtheory derive --depth 2 --what hessian

        fieldtheory derive --depth 1 --inputs 2 --what saddle_point

        fieldtheory derive --activation erf --what G12 > G12.tex
    """
    from fieldtheory import derive as derivation
    from fieldtheory.networks import parsing

    phi = None if activation is None else parsing.activation(activation)
    typer.echo(derivation(depth, inputs, phi).latex(what.value))


@app.command()
def solve(
    K0: InputKernel = "0.05",
    depth: Depth = 50,
    activation: ActivationText = "erf",
    branch_scale: BranchScale = "1.0",
    skip_scale: SkipScale = "1.0",
    weight_variance: WeightVariance = 1.25,
    bias_variance: BiasVariance = 0.05,
    readout_weight_variance: ReadoutWeight = None,
    readout_bias_variance: ReadoutBias = None,
    width: Width = 500,
    fluctuations: Annotated[
        bool,
        typer.Option(
            "--fluctuations",
            help="Also Var C and Var K over networks of finite width, for one input.",
        ),
    ] = False,
    format: OutputFormat = Format.table,
) -> None:
    """Kernels and response functions of every layer.

    Columns: the residual kernel C, the kernel K, and their responses eta = ∂C/∂K0 and
    chi = ∂K/∂K0. Row L + 1 is the output, its chi the response of the output. For several inputs
    there is a row for each pair alpha, beta, and responses are those to the same pair's entry.

    Examples:

        fieldtheory solve --depth 50 --branch-scale 0.14

        fieldtheory solve -L 20 -a "tanh(2*h)" --K0 "0.05,0.03;0.03,0.05" --format csv

        fieldtheory solve -L 3 --branch-scale 0.5,0.3,0.1 --fluctuations --format json
    """
    import fieldtheory as ft
    from fieldtheory.networks import parsing

    net = network(
        depth=depth,
        activation=activation,
        branch_scale=branch_scale,
        skip_scale=skip_scale,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        readout_weight_variance=readout_weight_variance,
        readout_bias_variance=readout_bias_variance,
        width=width,
    )
    solution = ft.solve(net, parsing.kernel(K0))
    rows = _solution_rows(solution)
    if fluctuations:
        variances = solution.G11.diagonal().tolist()
        of_kernels = [*solution.kernel_variance.tolist(), variances[-1]]
        for row, residual, kernel in zip(rows, variances, of_kernels, strict=True):
            row |= {"var_C": residual, "var_K": kernel}
    title = f"depth {depth}, φ = {net.activation.name}; layer {depth + 1} is the output"
    print_rows(rows, format, title)


app.command()(optimum)
app.command()(simulate)


@app.command()
def verify(digits: Digits = 50, format: OutputFormat = Format.table) -> None:
    """Check identities and float64 numbers against high-precision numbers.

    Price's theorem for every activation, averages, connected correlators, a whole network, and the
    maximum-entropy condition of Fischer, Dahmen, Helias (2025), each computed in two ways. The exit
    code is 1 if a check fails. It takes about a minute or two at 50 digits.

    Examples:

        fieldtheory verify

        fieldtheory verify --digits 100 --format csv > checks.csv
    """
    import os

    from fieldtheory.literature import checks

    with display(None) as progress:
        found = checks.run_checks(
            digits, lambda text: progress(0, f"checked: {text}"), min(os.cpu_count() or 1, 8)
        )
    rows: list[dict[str, Any]]
    if format is Format.table:
        rows = [
            {
                "group": c.group,
                "quantity": c.quantity,
                "float64": c.float64,
                f"mpmath, first of {digits} digits": c.mpmath[:22],
                "difference": f"{c.difference:.1e}",
                "verdict": "passes" if c.passed else "FAILS",
            }
            for c in found
        ]
    else:
        rows = [{**vars(c), "passed": c.passed} for c in found]
    print_rows(rows, format, f"{len(found)} checks")
    failed = sum(not c.passed for c in found)
    if format is Format.table:
        for c in found:
            if c.note:
                typer.echo(f"{c.quantity} = {c.mpmath[:22]}: {c.note}")
        typer.echo(f"{len(found) - failed} of {len(found)} checks pass.")
    if failed:
        raise typer.Exit(1)


app.command()(figures)


@app.command()
def run(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Images: .npz (array X, labels y) or .csv (rows are samples; a column named label "
            "may hold classes). Default: digits of scikit-learn's set.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the results; one of an earlier run is replaced."
        ),
    ] = Path("results"),
    depths: Annotated[str, typer.Option(help="Depths of the network.")] = "10,50,100,200",
    digits: Digits = 50,
    classes: Classes = None,
    count: Count = None,
) -> None:
    """The main job: formulas, numbers, figures, checks and one page, for real images.

    It writes the action, saddle point and Hessian as LaTeX, the propagators, the optimal scaling of
    every pair of images, four figures, the high-precision checks, and report.html, a page that
    holds all of it. The folder appears when everything in it is done; this takes about two minutes.

    Examples:

        fieldtheory run

        fieldtheory run --classes 1,7 --count 10 --output ones_and_sevens

        fieldtheory run --data images.npz --depths 20,40,80
    """
    from fieldtheory.report import main_job

    chosen = classes_of(classes, data is None)
    layers = integers("depths", depths)
    with display(main_job.STEPS) as progress:
        found = main_job.run(data, output, layers, digits, chosen, count, progress)
    typer.echo(f"Results in {found.folder}")
    typer.echo(f"Page to look at: {found.report}")
    L = found.depth
    lines = [
        (f"optimal scaling of a single image, L = {L}", f"{found.variance_scaling:.6g}"),
        (f"mean over pairs, {found.pair_class}, L = {L}", f"{found.covariance_scaling:.6g}"),
        ("largest relative difference float64 - mpmath", f"{found.largest_difference:.1e}"),
    ]
    for name, value in lines:
        typer.echo(f"  {name:<48} {value}")
    if found.failed_checks:
        typer.echo(f"{found.failed_checks} checks fail, see checks.csv.", err=True)
        raise typer.Exit(1)


def _solution_rows(solution: Any) -> list[dict[str, Any]]:
    """A row for every layer, the output last, and for every pair of several inputs."""
    import numpy as np

    last = solution.output_response[None]
    columns = {
        "C": solution.residual_kernels,
        "K": solution.kernels,
        "eta": np.concatenate([solution.residual_response, last]),
        "chi": np.concatenate([solution.response, last]),
    }
    layers = range(len(columns["C"]))
    if columns["C"].ndim == 1:
        return [{"layer": l, **{name: float(v[l]) for name, v in columns.items()}} for l in layers]
    pairs = list(zip(*np.triu_indices(solution.inputs), strict=True))
    return [
        {"layer": l, "alpha": int(a) + 1, "beta": int(b) + 1}
        | {name: float(v[l, a, b]) for name, v in columns.items()}
        for l in layers
        for a, b in pairs
    ]


def main() -> None:
    """Entry point of the ``fieldtheory`` command."""
    app()
