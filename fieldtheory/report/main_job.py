"""The main job: from samples to formulas, propagators, scalings, figures, checks and a page.

`run` writes one folder. It is built under another name and renamed at the end, so that a folder of
the name asked for is always whole.

Contents of the folder
----------------------
``action.tex``, ``saddle_point.tex``, ``hessian.tex``
    Equations for two residual layers; the last two for symbolic layers as well.
``propagators.npz``
    For every depth L, at the optimal scaling of a single input: ``C_L{L}`` and ``K_L{L}``, residual
    kernels and kernels, (L+2, P, P); ``eta_L{L}`` and ``chi_L{L}``, responses, (L+1, P, P);
    ``chi_out_L{L}``, (P, P); and of one input of variance 0.05 ``G12_L{L}`` and ``G11_L{L}``,
    (L+2, L+2). Besides ``depths`` and ``rho``, (D,), ``K0``, (P, P), and ``labels``, (P,), if the
    samples have them.
``optimal_scaling.csv``
    ρ* by depth and class of pair: count, mean, min, max, spread (standard deviation), and for
    single inputs the approximation F25 eq. (67) and the deep limit with its next order.
``fig2``, ``fig3``, ``fig4``, ``pairs``
    Figures of F25, ``fig2`` with simulated networks, and the optimal scaling of the pairs of
    samples; each as ``.png`` and ``.pdf``, with its numbers as ``.csv``.
``checks.csv``
    Every check: float64, mpmath, difference, tolerance, verdict.
``claims.csv``
    Every claim of the papers: what is printed and derived, the verdict and the evidence.
``report.html``
    All of this on one page.
"""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.data.dataset import pair_classes
from fieldtheory.literature import checks, verdicts
from fieldtheory.literature.claim import COLUMNS
from fieldtheory.numerics import chunks
from fieldtheory.numerics.solution import solve
from fieldtheory.report import results_folder, results_page
from fieldtheory.report.inputs import INPUT_SCALE, Inputs, load
from fieldtheory.report.results_page import Numbers
from fieldtheory.scaling import optimal_scaling

DEPTHS = (10, 50, 100, 200)
FIGURES = ("fig2", "fig3", "fig4", "pairs")
FILES = (
    "action.tex",
    "saddle_point.tex",
    "hessian.tex",
    "propagators.npz",
    "optimal_scaling.csv",
    *(f"{name}.{kind}" for name in FIGURES for kind in ("png", "pdf", "csv")),
    "checks.csv",
    "claims.csv",
    "report.html",
)
SCALING_COLUMNS = (
    *("depth", "pair_class", "count", "mean", "min", "max", "spread"),
    *("saturation", "deep_limit"),
)
STEPS = 6
SIMULATED = (100, 10)

Progress = Callable[[int, str], None]


@dataclass(frozen=True, kw_only=True)
class Summary(Numbers):
    """What a run found.

    Attributes
    ----------
    folder, report : Path
        The results and the page in them.
    depth : int
        The largest depth.
    variance_scaling : float
        ρ* of a single input at this depth.
    covariance_scaling : float
        Mean ρ* at this depth over the pairs of ``pair_class``.
    pair_class : str
        "different classes", or "different samples" without labels or with one class.
    largest_difference : float
        Largest relative difference of a float64 number from mpmath.
    failed_checks : int
        Number of checks that do not pass.
    """

    folder: Path
    report: Path


def run(
    data: str | Path | None = None,
    output: str | Path = "results",
    depths: Sequence[int] = DEPTHS,
    digits: int = 50,
    classes: Sequence[Any] | None = None,
    count: int | None = None,
    progress: Progress | None = None,
    *,
    activations: Sequence[str] | None = None,
    papers: Sequence[str] | None = None,
    simulated: tuple[int, int] = SIMULATED,
) -> Summary:
    """The main job: from samples to formulas, numbers, figures, checks and one page.

    The network is that of F25 Fig. 6: σ_w² = 1.25, σ_b² = 0.05, N = 500, φ = erf, γ = 1. Its
    read-in has no bias, so that samples of equal length have exactly the input kernel 0.05.

    Parameters
    ----------
    data : str or Path, optional
        An .npz or .csv file of samples, see `fieldtheory.data.load_file`; digits 0 and 3 of
        scikit-learn's set if left out.
    output : str or Path
        Folder for the results. It must not exist yet, be empty, or be the result of another run.
    depths : sequence of int
        Depths L of the network, at least two.
    digits : int
        Digits of the checks, at least 20.
    classes : sequence, optional
        Classes of samples to keep.
    count : int, optional
        Number of samples; all up to 20 if left out.
    progress : callable, optional
        Called with the number of the step, 1 to ``STEPS``, and its description.
    activations : sequence of str, optional
        Activations that are checked, all registered ones if left out; see `checks.run_checks`.
    papers : sequence of str, optional
        Papers whose claims are checked, all if left out; see `verdicts.verdicts`.
    simulated : pair of int
        Numbers of networks and inputs that are simulated for ``fig2``; F25 has 1000 and 100.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError, TypeError
        If an argument is not allowed; nothing has been written then.
    ImportError
        If a package of the extras ``figures``, ``parallel`` or ``data`` is missing.
    """
    depths = sorted({validation.integer("depths", depth, 1) for depth in depths})
    if len(depths) < 2:
        raise ValueError(f"depths must hold at least two different depths, got {depths}")
    digits = validation.integer("digits", digits, 20)
    checks.chosen_activations(activations)
    verdicts.claims(papers)
    networks, count_simulated = (validation.integer("simulated", n, 2) for n in simulated)
    folder = results_folder.replaceable(output, FILES)
    inputs = load(data, classes, count)
    _require_extras()
    with results_folder.built_aside(folder, FILES) as partial:
        found = _write(
            partial,
            inputs,
            depths,
            digits,
            progress or (lambda step, text: None),
            activations,
            papers,
            (networks, count_simulated),
        )
    shared = {field.name: getattr(found, field.name) for field in fields(Numbers)}
    return Summary(folder=folder, report=folder / "report.html", **shared)


def _write(
    folder: Path,
    inputs: Inputs,
    depths: list[int],
    digits: int,
    progress: Progress,
    activations: Sequence[str] | None,
    papers: Sequence[str] | None,
    simulated: tuple[int, int],
) -> Numbers:
    """Write all files."""
    progress(1, "deriving the formulas")
    formulas = write_formulas(folder)

    progress(2, "optimal scaling of every pair of samples")
    net = inputs.network
    scaling = {L: np.asarray(optimal_scaling(net.replace(depth=L), inputs.K0)) for L in depths}
    rows = scaling_rows(inputs, scaling)
    write_csv(folder / "optimal_scaling.csv", SCALING_COLUMNS, rows)

    progress(3, "propagators")
    propagators = propagator_arrays(inputs, depths)
    with (folder / "propagators.npz").open("wb") as file:
        np.savez_compressed(file, **propagators)  # type: ignore[arg-type]

    progress(4, "figures")
    pictures = _write_figures(folder, inputs, depths, scaling[depths[-1]], simulated)

    progress(5, f"checks with {digits} digits")
    jobs = chunks.usable_processes()

    def checked(text: str) -> None:
        progress(5, f"checked: {text}")

    numbers = checks.run_checks(digits, checked, jobs, activations)
    write_csv(folder / "checks.csv", list(numbers[0].row), [check.row for check in numbers])
    judged = verdicts.verdicts(digits, papers, checked, jobs)
    write_csv(folder / "claims.csv", COLUMNS, [verdict.row for verdict in judged])

    progress(6, "report")
    pair_class, mask = list(pair_classes(inputs.labels, len(inputs.K0)).items())[-1]
    first = Numbers(
        depth=depths[-1],
        variance_scaling=float(propagators["rho"][-1]),
        covariance_scaling=float(scaling[depths[-1]][mask].mean()),
        pair_class=pair_class,
        largest_difference=max(check.difference for check in numbers if check.float64),
        failed_checks=sum(not check.passed for check in numbers),
    )
    path, made = folder / "report.html", (formulas, rows, propagators, pictures)
    results_page.write(path, first, inputs, *made, simulated, numbers, judged)
    return first


def write_formulas(folder: Path) -> dict[str, dict[str, str]]:
    """Write the .tex files; returns LaTeX by name, of two layers ("explicit") and "generic"."""
    from fieldtheory.theory.derivation import derive

    theory = derive(2)
    names = ("action", "saddle_point", "hessian", "propagator", "response", "output_response")
    generic = {name: theory.latex(name) for name in names}
    explicit = {name: theory.latex(name, layers="explicit") for name in names[:4]}
    for name in ("action", "saddle_point", "hessian"):
        title = name.replace("_", " ")
        equations = [
            (f"The {title}, two residual layers, skip_scale = 1", explicit[name]),
            ("The same for any number of layers", generic[name]),
        ]
        _write_tex(folder / f"{name}.tex", equations)
    return {"explicit": explicit, "generic": generic}


def scaling_rows(inputs: Inputs, scaling: dict[int, np.ndarray]) -> list[dict[str, Any]]:
    """The rows of optimal_scaling.csv from ρ* of every pair at every depth."""
    rows = []
    for depth, values in scaling.items():
        for name, mask in pair_classes(inputs.labels, len(inputs.K0)).items():
            chosen = values[mask]
            # Equal samples differ by the rounding of the root finder, which is no spread.
            spread = round(float(chosen.std()), 12)
            numbers = [chosen.mean(), chosen.min(), chosen.max(), spread]
            approximations: list[Any] = ["", ""]
            if name == "same sample":
                net = inputs.network.replace(depth=depth)
                approximations = [
                    optimal_scaling(net, INPUT_SCALE, method="saturation"),
                    optimal_scaling(net, INPUT_SCALE, method="deep_limit", order=2),
                ]
            row = [depth, name, len(chosen), *map(float, numbers), *approximations]
            rows.append(dict(zip(SCALING_COLUMNS, row, strict=True)))
    return rows


def propagator_arrays(inputs: Inputs, depths: Sequence[int]) -> dict[str, np.ndarray]:
    """The arrays of propagators.npz by key."""
    arrays = {"depths": np.array(depths), "K0": inputs.K0, "rho": np.empty(len(depths))}
    if inputs.labels is not None:
        arrays["labels"] = inputs.labels
    for i, L in enumerate(depths):
        net = inputs.network.replace(depth=L)
        arrays["rho"][i] = optimal_scaling(net, INPUT_SCALE)
        net = net.replace(branch_scale=float(arrays["rho"][i]))
        pairs, single = solve(net, inputs.K0), solve(net, INPUT_SCALE)
        arrays |= {
            f"C_L{L}": pairs.residual_kernels,
            f"K_L{L}": pairs.kernels,
            f"eta_L{L}": pairs.residual_response,
            f"chi_L{L}": pairs.response,
            f"chi_out_L{L}": pairs.output_response,
            f"G12_L{L}": single.G12,
            f"G11_L{L}": single.G11,
        }
    return arrays


def _write_figures(
    folder: Path,
    inputs: Inputs,
    depths: list[int],
    scaling: np.ndarray,
    simulated: tuple[int, int],
) -> dict[str, Path]:
    from fieldtheory.figures import f25
    from fieldtheory.figures.pair_optima import draw_pairs, pairs
    from fieldtheory.plotting import style

    deepest = inputs.network.replace(depth=depths[-1])
    samples, count = simulated
    drawn: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "fig2": (f25.draw_fig2, f25.fig2(samples=samples, inputs=count)),
        "fig3": (f25.draw_fig3, f25.fig3()),
        "fig4": (f25.draw_fig4, f25.fig4(depths, inputs.network)),
        "pairs": (draw_pairs, pairs(inputs.K0, inputs.labels, deepest, scaling)),
    }
    return {
        name: style.save(draw(numbers), numbers.curves(), folder, name)
        for name, (draw, numbers) in drawn.items()
    }


def _write_tex(path: Path, equations: Sequence[tuple[str, str]]) -> None:
    lines = ["% For a document with \\usepackage{amsmath}."]
    for title, latex in equations:
        lines += [f"% {title}.", r"\begin{equation}", latex, r"\end{equation}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as a table, their keys as its head."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def _require_extras() -> None:
    """Say before the work, not after it, that a package is missing."""
    needed = {
        "matplotlib": "figures",
        "jinja2": "figures",
        "latex2mathml": "figures",
        "joblib": "parallel",
    }
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        extras = ",".join(sorted({needed[name] for name in missing}))
        raise ImportError(
            f"a run needs {', '.join(missing)}: pip install fieldtheory-networks[{extras}]"
        )
