"""The command line, assembled from its commands, each of which has a module of its own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import fieldtheory
from fieldtheory.cli.audit_command import audit
from fieldtheory.cli.critical_command import critical
from fieldtheory.cli.derive_command import derive
from fieldtheory.cli.figures_command import figures
from fieldtheory.cli.measure_command import measure
from fieldtheory.cli.optimum_command import optimum
from fieldtheory.cli.posterior_command import posterior
from fieldtheory.cli.run_command import run
from fieldtheory.cli.simulate_command import simulate
from fieldtheory.cli.solve_command import solve
from fieldtheory.cli.sweep_command import sweep
from fieldtheory.cli.tangent_command import tangent
from fieldtheory.cli.terminal import Commands, echo, write_anywhere
from fieldtheory.cli.verify_command import verify
from fieldtheory.families import named, registered

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

        echo(f"fieldtheory {version('fieldtheory-networks')}")
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

    is a field theory in its kernels, and so are blocks of two matrices with norms and gates,
    ``--family block``. **derive** prints its action, saddle point, Hessian and
    propagator as LaTeX; **solve** gives kernels and responses as numbers, **tangent** the neural
    tangent kernel; **sweep** solves on a grid of parameters; **optimum** finds the scaling ρ of the
    residual branch at which the output responds most to the input; **critical** gives the weights
    and biases that neither amplify nor damp signals; **simulate** draws finite networks and
    compares them with the theory; **posterior** says what a network of width N learns
    from labels, to order 1/N; **measure** finds the scales of skip and branch that
    suit a residual block of your own; **audit** holds a torch model against how it was meant to
    start; **verify** compares the theory with high-precision numbers; **figures** draws the figures
    of the papers; **run** does everything for a set of samples and writes one page to look at.

    Each command explains itself: `fieldtheory solve --help`.
    """


for command in (
    *(derive, solve, tangent),
    *(named(family.command) for family in registered() if family.command),
    *(sweep, optimum, critical),
    *(simulate, posterior, measure, audit, verify, figures, run),
):
    app.command()(command)


def main() -> None:
    """Entry point of the ``fieldtheory`` command."""
    if not hasattr(fieldtheory, "_ROOMS"):
        sys.exit(
            f"{fieldtheory.__file__} is not that of fieldtheory-networks: the distribution "
            "fieldtheory, another package, wrote over it. Uninstall both and install "
            "fieldtheory-networks again."
        )
    write_anywhere()
    app()
