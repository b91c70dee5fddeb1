"""The main job: what the theory says of some samples and a network, in one folder and on one page.

`run` writes one folder. It is built under another name and renamed at the end, so that a folder of
the name asked for is always whole.

Contents of the folder
----------------------
``report.html``
    All of it on one page.
``action.tex``, ``saddle_point.tex``, ``hessian.tex``
    Equations for any number of layers, and layer by layer for two.
``solution.npz``
    Kernels and responses of every layer and pair of samples, for `fieldtheory.load`.
``comparison.npz``
    Theory and simulated networks for a typical sample, for `fieldtheory.load`.
``optimal_scaling.csv``
    ρ* by class of pair: count, mean, median, min, max, spread (standard deviation), of the pairs
    that have one; empty where the response has no maximum.
``kernels``, ``correlations``, ``eigenvalues``, ``responses``, ``optimum``, ``fluctuations``,
``simulation``
    Figures, each as ``.png`` and ``.pdf``, with its numbers as ``.csv``.
"""

from __future__ import annotations

import csv
import importlib.util
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.data import Dataset
from fieldtheory.data.dataset import pair_classes
from fieldtheory.inference.spectra import spectrum
from fieldtheory.montecarlo.comparison.extrapolation import compare
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting import style
from fieldtheory.report import pictures, results_folder, results_page
from fieldtheory.report.findings import Findings
from fieldtheory.scaling import optimal_scaling
from fieldtheory.theory.derivation import derive

FILES = (
    *("report.html", "action.tex", "saddle_point.tex", "hessian.tex"),
    *("solution.npz", "comparison.npz", "optimal_scaling.csv"),
    *(f"{name}.{kind}" for name in pictures.FIGURES for kind in ("png", "pdf", "csv")),
)
SCALING_COLUMNS = ("pair_class", "count", "mean", "median", "min", "max", "spread")
STEPS = 6
# Formulas on the page, and those next to numbers of pairs of samples.
FORMULAS = ("action", "saddle_point", "hessian", "propagator", "response", "output_response")
OF_PAIRS = ("saddle_point", "response", "output_response")
# Scalings over which the response is drawn, relative to the optimum.
_SCALINGS = np.geomspace(0.1, 5.0, 40)

Progress = Callable[[int, str], None]


def run(
    network: ResidualNetwork,
    K0: np.ndarray,
    data: Dataset,
    words: str,
    typed: str = "--data digits",
    output: str | Path = "results",
    samples: int = 200,
    progress: Progress | None = None,
) -> Findings:
    """The main job: from samples and a network to numbers, figures, formulas and one page."""
    step = progress or (lambda number, text: None)
    folder = results_folder.replaceable(output, FILES)
    # Before the work, not after it.
    needed = ("matplotlib", "jinja2", "latex2mathml")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"a run needs {', '.join(missing)}: pip install fieldtheory-networks[figures]"
        )
    with results_folder.built_aside(folder, FILES) as partial_folder:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            numbers = _numbers(network, K0, data, samples, step)
        findings = Findings(
            network=network,
            data=data,
            words=words,
            folder=folder,
            warnings=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
            **numbers,
        )
        findings.solution.save(partial_folder / "solution.npz")
        if not isinstance(findings.comparison, str):
            findings.comparison.save(partial_folder / "comparison.npz")
        rows = scaling_rows(findings)
        write_csv(partial_folder / "optimal_scaling.csv", SCALING_COLUMNS, rows)
        step(5, "figures")
        drawn = {
            name: style.save(draw(findings), curves(findings), partial_folder, name)
            for name, (draw, curves) in pictures.FIGURES.items()
        }
        step(6, "formulas and page")
        formulas = write_formulas(partial_folder)
        results_page.write(partial_folder / "report.html", findings, formulas, rows, drawn, typed)
    return findings


def _numbers(
    network: ResidualNetwork, K0: np.ndarray, data: Dataset, samples: int, step: Progress
) -> dict[str, Any]:
    step(1, "kernels and responses")
    solution = solve(network, K0)
    _ = solution.output_response
    variances = np.diagonal(K0)
    typical = int(np.argsort(variances)[len(variances) // 2])
    norm = float(np.sqrt((data.samples[typical] ** 2).sum()))
    weight, bias = network.readin_variances
    # The norm at which the kernel of the input has this variance.
    norm = float(np.sqrt(max(variances[typical] - bias, 0) * network.input_dim / weight)) or norm
    degrees = partial(spectrum, network, max(network.input_dim, 2), norm, count=6)
    harmonics = _or_reason(degrees)

    step(2, "optimal scaling of every pair of samples")
    # Of one variance it is known at once whether there is a maximum.
    one = _or_reason(lambda: optimal_scaling(network, float(variances[typical])))
    scaling = one
    if not isinstance(one, str):
        scaling = _or_reason(lambda: _optima(network, K0))
    response = _responses(network, K0, scaling)

    step(3, "fluctuations at order 1/N")
    single = solve(network, float(variances[typical]))
    _ = single.G11, single.mean_shift

    step(4, f"{samples} networks of width {network.width}, and of twice that")
    nets = network, network.replace(width=2 * network.width)
    several = [
        simulate(
            each,
            float(variances[typical]),
            samples=samples,
            seed=seed,
            variance_reduction="control_variate",
        )
        for seed, each in enumerate(nets)
    ]
    return {
        "solution": solution,
        "typical": typical,
        "single": single,
        "scaling": scaling,
        "response": response,
        "harmonics": harmonics,
        "ensemble": several[0],
        "comparison": _or_reason(lambda: compare(single, several)),
    }


def _or_reason(compute: Callable[[], Any]) -> Any:
    """Result of a computation, or the reason in words why there is none."""
    try:
        return compute()
    except (ValueError, ArithmeticError) as error:
        return " ".join(str(error).split())


def _optima(network: ResidualNetwork, K0: np.ndarray) -> np.ndarray:
    optima = np.asarray(optimal_scaling(network, K0))
    if np.isnan(optima[np.triu_indices(len(optima), 1)]).all():
        raise ValueError("no pair of these samples has one")
    return optima


def _responses(
    network: ResidualNetwork, K0: np.ndarray, scaling: np.ndarray | str
) -> tuple[np.ndarray, np.ndarray]:
    """Responses of the output over ρ, of a variance and of a covariance of two typical samples."""
    size = np.sqrt(np.diagonal(K0))
    has_optimum = np.ones(K0.shape) if isinstance(scaling, str) else ~np.isnan(scaling)
    upper = np.nonzero(np.triu(has_optimum, 1))
    order = np.argsort((K0 / np.outer(size, size))[upper])
    pair = [int(index[order[len(order) // 2]]) for index in upper]
    if isinstance(scaling, str):
        # Up to the scale of this network: beyond it responses may exceed float64.
        own = network.branch_scale
        rho = np.geomspace(0.1, 1.0, 40) * (
            own if isinstance(own, float) and own > 0 else network.depth**-0.5
        )
    else:
        rho = (float(scaling[pair[0], pair[1]]) or 1.0) * _SCALINGS
    solution = solve(network.replace(branch_scale=rho[:, None]), K0[np.ix_(pair, pair)])
    return rho, solution.output_response[:, 0, :]


def write_formulas(folder: Path) -> dict[str, str]:
    """Write the .tex files; returns the LaTeX of every formula on the page by its name."""
    theory, pairs = derive(2), derive(1, inputs=2)
    generic = {name: (pairs if name in OF_PAIRS else theory).latex(name) for name in FORMULAS}
    for name in ("action", "saddle_point", "hessian"):
        title = name.replace("_", " ")
        equations = [
            (f"The {title} for any number of layers", theory.latex(name)),
            ("The same for two residual layers", theory.latex(name, layers="explicit")),
        ]
        lines = ["% For a document with \\usepackage{amsmath}."]
        for words, latex in equations:
            lines += [f"% {words}.", r"\begin{equation}", latex, r"\end{equation}"]
        (folder / f"{name}.tex").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return generic


def scaling_rows(findings: Findings) -> list[dict[str, Any]]:
    """The rows of optimal_scaling.csv from ρ* of every pair; none where there is no maximum."""
    rows: list[dict[str, Any]] = []
    if isinstance(findings.scaling, str):
        return rows
    groups = findings.groups | pair_classes(None, len(findings.scaling))
    for name, mask in groups.items():
        chosen = findings.scaling[mask & ~np.isnan(findings.scaling)]
        if not len(chosen):
            continue
        # Equal samples differ by the rounding of the root finder, which is no spread.
        spread = round(float(chosen.std()), 12)
        numbers = [float(f(chosen)) for f in (np.mean, np.median, np.min, np.max)] + [spread]
        rows.append(dict(zip(SCALING_COLUMNS, [name, len(chosen), *numbers], strict=True)))
    return rows


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as a table, their keys as its head."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
