"""The page of the main job: what a run found, put into words, formulas and tables."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.networks.schedules import scale_text
from fieldtheory.report.document import Code, Figure, Formula, Section, Table, Text, write_report
from fieldtheory.report.findings import Findings
from fieldtheory.report.pictures import correlation
from fieldtheory.theory.typesetting.latex import latex

TITLES = {
    "action": "Action",
    "saddle_point": "Saddle point: the kernels of infinite width",
    "hessian": "Hessian",
    "propagator": "Propagators: fluctuations and responses at order $1/N$",
    "response": "Response function",
    "output_response": "Response of the output",
}
_NETWORK = (
    r"\begin{aligned} h^{(0)} &= W_{\mathrm{in}} x + b_{\mathrm{in}} \\ "
    r"h^{(l)} &= \gamma_{l} h^{(l-1)} + \rho_{l} \left[ W^{(l)} \phi(h^{(l-1)}) + b^{(l)} "
    r"\right] \\ y &= W_{\mathrm{out}} \phi(h^{(L)}) + b_{\mathrm{out}} \end{aligned}"
)
# Most layers in a table.
_ROWS = 9
# A deviation of the kernel at this width that the leading order no longer describes.
_LARGE = 0.05


def write(
    path: Path,
    findings: Findings,
    formulas: dict[str, str],
    scaling: Sequence[dict[str, Any]],
    pictures: dict[str, Path],
    typed: str,
) -> Path:
    """Write the page of a run.

    Parameters
    ----------
    path : Path
    findings : Findings
    formulas : dict of str to str
        LaTeX for any layer by name.
    scaling : sequence of dict
        The rows of optimal_scaling.csv.
    pictures : dict of str to Path
        Figures by name.
    typed : str
        Options that name the samples.

    Returns
    -------
    Path
        Where it is.
    """
    sections = [
        Section("Network and samples", _network(findings)),
        Section("Kernels", _kernels(findings, formulas, pictures)),
        Section("Spectrum", _spectrum(findings, pictures)),
        Section("Responses", _responses(findings, formulas, pictures)),
        Section("Optimal scale of the residual branch", _scaling(findings, scaling, pictures)),
        Section("Finite width", _fluctuations(findings, formulas, pictures)),
        Section("Simulated networks", _simulation(findings, pictures)),
        Section("What to do next", _next(findings, typed)),
        Section("The theory in full", [_formula(formulas, n) for n in ("action", "hessian")]),
    ]
    net, last = findings.network, findings.single
    spread = float(np.sqrt(last.G11[-1, -1]) / last.kernels[-1])
    highlights: list[tuple[str, Any]] = [
        (r"kernel of the output $K^{(L+1)}$, typical sample", float(last.kernels[-1])),
        (r"its relative standard deviation at this width", f"{100 * spread:.2g} %"),
    ]
    if scaling:
        name = r"optimal scale $\rho^*$, mean over pairs of different samples"
        few = f"; {findings.few_pairs}" if findings.few_pairs else ""
        highlights.append((name + few.replace("ρ*", r"$\rho^*$"), findings.best_scale))
    return write_report(
        path,
        "Field theory of a residual network on these data",
        sections,
        subtitle=rf"{findings.words}; $\phi = \mathrm{{{_plain(net.activation.name)}}}$, "
        f"$L = {net.depth}$, $N = {net.width}$",
        highlights=highlights,
        footer=f"Written by fieldtheory {version('fieldtheory-networks')}.",
    )


def _plain(name: str) -> str:
    """A name as it may stand in \\mathrm."""
    return name.replace("_", r"\_") if name.isidentifier() else r"\phi"


def _formula(formulas: dict[str, str], name: str, note: str = "") -> Formula:
    return Formula(TITLES[name], formulas[name], note)


def _picture(pictures: dict[str, Path], name: str, title: str, caption: str = "") -> Figure:
    return Figure(title, pictures[name], caption)


def _network(findings: Findings) -> list[Any]:
    net, data = findings.network, findings.data
    overlap = correlation(findings.solution.kernels[0])
    rows = [
        [name, *row]
        for name, row in zip(
            (r"weight variance $\sigma_w^2$", r"bias variance $\sigma_b^2$"),
            zip(
                net.readin_variances,
                (net.weight_variance, net.bias_variance),
                net.readout_variances,
                strict=True,
            ),
            strict=True,
        )
    ]
    pairs = [
        [name, int(mask.sum()), *(f(overlap[mask]) for f in (np.mean, np.min, np.max))]
        for name, mask in findings.groups.items()
        if name != "same sample"
    ]
    items: list[Any] = [
        Text(
            "A fully connected network with Gaussian weights, averaged over them, is a field "
            "theory in its kernels. At infinite width the kernels are sharp; they and their "
            "responses are exact here. At finite width they fluctuate, to order $1/N$."
        ),
        Formula(
            "Network",
            _NETWORK,
            rf"$\rho_l$ = {_scale(net.branch_scale)}, $\gamma_l$ = {_scale(net.skip_scale)}, "
            rf"$L = {net.depth}$ residual layers of width $N = {net.width}$, samples of "
            rf"$d_{{\mathrm{{in}}}} = {net.input_dim}$ numbers.",
        ),
        Formula("Activation", rf"\phi(h) = {latex(net.activation.expression)}"),
        Table("Variances", ["", "read-in", "residual layers", "readout"], rows),
        Table(
            f"Correlations of the inputs, {data.size}",
            ["pairs", "number", "mean", "min", "max"],
            pairs,
        ),
    ]
    if findings.warnings:
        items.insert(1, Text([f"Warning: {words}." for words in findings.warnings]))
    if data.note:
        items.insert(1, Text(data.note))
    return items


def _scale(scale: Any) -> str:
    if isinstance(scale, str) or callable(scale):
        return str(scale_text(scale))
    return f"{scale:g}" if np.ndim(scale) == 0 else f"{min(scale):g} to {max(scale):g}"


def _kernels(findings: Findings, formulas: dict[str, str], pictures: dict[str, Path]) -> list[Any]:
    groups = findings.groups
    columns = ["layer", *(rf"$K^{{(l)}}$, {name}" for name in groups)]
    return [
        _formula(formulas, "saddle_point", "For a sample, α = β, and for a pair of samples."),
        _picture(pictures, "kernels", "Kernels over the layers"),
        _layers("Mean kernels", columns, findings.solution.kernels, groups),
        _picture(
            pictures,
            "correlations",
            "Correlations of the outputs for every pair of samples",
            "What a wide network, before training, tells apart: 1 on the diagonal. Samples are "
            "sorted by class, with lines between classes and the number of samples of each.",
        ),
    ]


def _layers(
    title: str, columns: list[str], values: np.ndarray, groups: dict[str, np.ndarray]
) -> Table:
    """Means over the classes of pairs, for some layers; the last row is the output."""
    last = len(values) - 1
    layers = np.unique(np.round(np.linspace(0, last - 1, min(_ROWS, last))).astype(int))
    rows = [[str(l), *(values[l][mask].mean() for mask in groups.values())] for l in layers]
    rows.append(["output", *(values[-1][mask].mean() for mask in groups.values())])
    return Table(title, columns, rows)


def _spectrum(findings: Findings, pictures: dict[str, Path]) -> list[Any]:
    kernels = findings.solution.kernels
    shares = [np.linalg.eigvalsh(K)[::-1] / np.trace(K) for K in (kernels[0], kernels[-1])]
    effective = [1 / (share**2).sum() for share in shares]
    items: list[Any] = [
        Text(
            "Eigenvalues of the kernel matrix of these samples: the directions of function space "
            "that a Gaussian process of this kernel prefers. The participation ratio "
            r"$(\sum_i \lambda_i)^2 / \sum_i \lambda_i^2$ is "
            f"{effective[0]:.3g} for the inputs and {effective[1]:.3g} for the outputs."
        ),
        _picture(pictures, "eigenvalues", "Eigenvalues of the kernels of these samples"),
    ]
    if isinstance(findings.harmonics, str):
        return [*items, Text(f"On the sphere of the samples: {findings.harmonics}.")]
    rows = [[row["degree"], row["eigenvalue"], row["share"]] for row in findings.harmonics.rows]
    return [
        *items,
        Table(
            "Eigenvalues of the output's kernel on the sphere of the samples",
            ["degree $k$", r"$\mu_k$", "part of the variance"],
            rows,
            r"Spherical harmonics are the eigenfunctions for inputs that are uniform on a sphere "
            rf"in $d = {findings.harmonics.dimension}$ dimensions, "
            rf"$|x| = {findings.harmonics.norm:.4g}$: "
            r"constants for $k = 0$, linear functions for $k = 1$.",
        ),
    ]


def _responses(
    findings: Findings, formulas: dict[str, str], pictures: dict[str, Path]
) -> list[Any]:
    groups, solution = findings.groups, findings.solution
    values = np.concatenate([solution.response, solution.output_response[None]])
    columns = ["layer", *(rf"$\chi^{{(l)}}$, {name}" for name in groups)]
    return [
        Text(
            r"$\chi^{(l)}$ is the derivative of a kernel of layer $l$ by the same entry of the "
            "kernel of the input. Where that of pairs is small, the output does not tell samples "
            "apart; where it grows over the layers, small differences are amplified."
        ),
        _formula(
            formulas,
            "response",
            r"$\chi$ and $M'$ are matrices over pairs of samples. Table and picture have the "
            r"entries $\chi_{\alpha\beta,\alpha\beta}$; $\alpha = \beta$ is one sample.",
        ),
        _formula(formulas, "output_response"),
        _picture(pictures, "responses", "Responses over the layers"),
        _layers("Mean responses", columns, values, groups),
    ]


def _scaling(
    findings: Findings, scaling: Sequence[dict[str, Any]], pictures: dict[str, Path]
) -> list[Any]:
    picture = _picture(
        pictures,
        "optimum",
        "Response of the output against the scale of the branch",
        "Of two samples whose correlation is the median; one scale for all layers. The dotted line "
        "is the scale of this network.",
    )
    if isinstance(findings.scaling, str):
        why = findings.scaling.removeprefix("network must have a response with a maximum in ρ; ")
        return [Text(rf"There is no $\rho^*$, no largest response: {why}."), picture]
    columns = ["pairs", "number", r"mean $\rho^*$", "median", "min", "max", "spread"]
    rows = [list(row.values()) for row in scaling]
    return [
        Text(
            r"$\rho^*$ is the scale of the branch, the same in all layers, at which an entry of "
            "the output's kernel responds most to that of the input. The mean over pairs of "
            "different samples is the one to use: they are what the network has to tell apart."
        ),
        *([Text(f"Note: {findings.few_pairs}.")] if findings.few_pairs else []),
        Table("Optimal scale", columns, rows, "The spread is the standard deviation."),
        picture,
    ]


def _fluctuations(
    findings: Findings, formulas: dict[str, str], pictures: dict[str, Path]
) -> list[Any]:
    single, net = findings.single, findings.network
    K, spread = single.kernels, np.sqrt(np.diagonal(single.G11))
    hidden = np.sqrt(single.kernel_variance)
    layers = np.unique(np.round(np.linspace(0, net.depth, min(_ROWS, net.depth + 1))).astype(int))
    rows = [
        [str(l), K[l], hidden[l], f"{100 * hidden[l] / K[l]:.3g} %", single.kernel_shift[l]]
        for l in layers
    ]
    ratio = spread[-1] / K[-1]
    rows.append(["output", K[-1], spread[-1], f"{100 * ratio:.3g} %", single.mean_shift[-1]])
    columns = ["layer", "$K^{(l)}$", r"$\sqrt{\mathrm{Var}\,K^{(l)}}$", "relative"]
    shift = abs(single.mean_shift[-1] / K[-1])
    words = (
        "That is more than a correction: a single network is far from the mean, and terms of "
        "higher order matter. Widen it, or choose a smaller scale of the branch."
        if max(ratio, shift) > 0.3
        else "The expansion in $1/N$ is safe here."
        if ratio < _LARGE
        else "The expansion in $1/N$ is a sizeable correction here."
    )
    return [
        Text(
            f"For a typical sample, number {findings.typical + 1}, whose variance is the median. "
            rf"At width $N = {net.width}$ the kernel of the output fluctuates from network to "
            f"network by {100 * ratio:.2g} %, and its mean is shifted by {100 * shift:.2g} % "
            f"against infinite width. {words}"
        ),
        *(Text(f"Warning: {words}.") for words in findings.warnings),
        _formula(formulas, "propagator"),
        Table(
            rf"Fluctuations and shift of the mean at $N = {net.width}$",
            [*columns, "shift of the mean"],
            rows,
        ),
        _picture(pictures, "fluctuations", "Fluctuations of the kernel over networks"),
    ]


def _simulation(findings: Findings, pictures: dict[str, Path]) -> list[Any]:
    comparison = findings.comparison
    if isinstance(comparison, str):
        return [Text(f"Networks of this kind are not compared with the theory: {comparison}.")]
    rows = [
        [row["quantity"], row["verdict"], row["largest deviation at"], row["deviation"], row["z"]]
        for row in comparison.summary_at_width
    ]
    return [
        Text(
            [
                f"{findings.ensemble.samples} networks of width {comparison.widths[0]} and as many "
                f"of width {comparison.widths[-1]}, drawn at random, for the same typical sample. "
                "Extrapolated over both widths they test the theory; those of the first show how "
                "far it describes this width.",
                *comparison.sentences,
            ]
        ),
        _picture(
            pictures,
            "simulation",
            "Mean kernels of the networks against infinite width",
            "Points are simulated networks with standard errors, the line is the theory.",
        ),
        Table(
            rf"Largest deviations from the leading order at $N = {comparison.width}$",
            ["quantity", "verdict", "where", "deviation", "z"],
            rows,
        ),
    ]


def _next(findings: Findings, typed: str) -> list[Any]:
    net = findings.network
    options = network_options(net)
    K0 = f"{float(findings.solution.kernels[0][findings.typical, findings.typical]):.6g}"
    shell = [
        f"fieldtheory solve {options} {typed} --save solution.npz",
        f"fieldtheory tangent {options} {typed}",
        f"fieldtheory simulate {options} --K0 {K0} --samples 10000 --compare",
        f"fieldtheory run {options.replace(f'--width {net.width}', f'--width {4 * net.width}')}"
        f" {typed} --output wider",
        "fieldtheory verify --format html > verify.html",
    ]
    if not isinstance(findings.scaling, str):
        plain = network_options(net.replace(branch_scale=float(findings.best_scale)))
        shell.insert(0, f"fieldtheory run {plain} {typed} --output optimal")
    notebook = (
        "import fieldtheory as ft\n\n"
        'solution = ft.load("solution.npz")      # kernels and responses of every layer\n'
        "solution.plot()\n"
        'comparison = ft.load("comparison.npz")  # theory and simulated networks\n'
        "comparison.plot()"
    )
    return [
        Text(
            "The first lines repeat the page at the optimal scale, if there is one, and give "
            "numbers, the neural tangent kernel, a longer simulation and a wider network. The last "
            "holds the equations of the papers against the derivation, with a page of its own."
        ),
        Code("In a shell", "\n".join(shell)),
        Code("In Python, in the folder of this page", notebook),
    ]


def network_options(network: ResidualNetwork) -> str:
    """A network as options of the shell: those that differ from the defaults.

    Examples
    --------
    >>> network_options(ResidualNetwork(depth=50, activation="gelu", branch_scale=0.3, width=100))
    '--depth 50 --activation gelu --branch-scale 0.3 --width 100'
    """
    default = ResidualNetwork(depth=network.depth)
    words = ["--depth", str(network.depth)]
    if network.activation != default.activation:
        words += ["--activation", network.activation.name]
    names = ("branch_scale", "skip_scale", "weight_variance", "bias_variance")
    for name in (*names, "readout_weight_variance", "readout_bias_variance", "width"):
        value = getattr(network, name)
        if value is not None and (value != getattr(default, name) or name == "width"):
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [f"--{name.replace('_', '-')}", text]
    return shlex.join(words)
