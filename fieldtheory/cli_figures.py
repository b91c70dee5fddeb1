"""The command `figures`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fieldtheory.cli_options import Jobs, Seed

FIGURES = ("f25.fig2", "f25.fig3", "f25.fig4", "f25.fig6", "f25.fig8")
_SIMULATED = ("f25.fig2", "f25.fig8")


def figures(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help=f"{', '.join(FIGURES)}.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures.")] = Path(
        "."
    ),
    samples: Annotated[
        int, typer.Option("--samples", "-n", help="Number of networks, where some are simulated.")
    ] = 1000,
    inputs: Annotated[
        int, typer.Option(help="Number of inputs, where the response is simulated.")
    ] = 100,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Draw figures of the papers, as NAME.png and NAME.pdf.

    f25 is Fischer, Dahmen, Helias (2025). Its Figs. 2 and 8 show simulated networks beside the
    theory, by default as many as in the paper, which takes some minutes. Fig. 6 is drawn for digits
    of scikit-learn's set.

    Examples:

        fieldtheory figures f25.fig2 --jobs 2

        fieldtheory figures f25.fig3 f25.fig4 --output pictures

        fieldtheory figures f25.fig8 --samples 100 --inputs 20
    """
    for name in names:
        if name not in FIGURES:
            raise ValueError(f"NAME must be one of {', '.join(FIGURES)}, got {name!r}")
    if not output.is_dir():
        raise ValueError(f"output must be a folder that exists, got {str(output)!r}")
    simulation = {
        "samples": samples,
        "inputs": inputs,
        "seed": seed,
        "jobs": jobs,
        "progress": sys.stderr.isatty(),
    }
    for name in dict.fromkeys(names):
        typer.echo(_draw(name, output, simulation))


def _draw(name: str, folder: Path, simulation: dict[str, Any]) -> Path:
    """Draw one figure; returns the path of the picture."""
    from importlib import import_module

    from fieldtheory.figures import style

    paper, figure = name.split(".")
    module = import_module(f"fieldtheory.figures.{paper}")
    arguments: dict[str, Any] = simulation if name in _SIMULATED else {}
    if name == "f25.fig6":
        from fieldtheory import workflow

        images = workflow.load()
        arguments = {
            "K0": images.K0,
            "labels": images.labels,
            "network": images.network.replace(depth=workflow.DEPTHS[-1]),
        }
    numbers = getattr(module, figure)(**arguments)
    return style.save(getattr(module, f"draw_{figure}")(numbers), folder, name)
