"""The page of the main job: numbers, formulas and pictures that its template puts into words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.networks.schedules import scale_text
from fieldtheory.report import document
from fieldtheory.report.findings import Findings
from fieldtheory.report.pictures import correlation
from fieldtheory.theory.typesetting.latex import latex

# Most layers in a table.
_ROWS = 9
_SECTIONS = (
    *("Network and samples", "Kernels", "Spectrum", "Responses"),
    *("Optimal scale of the residual branch", "Finite width", "Simulated networks"),
    *("What to do next", "The theory in full"),
)


def write(
    path: Path,
    findings: Findings,
    formulas: dict[str, str],
    scaling: Sequence[dict[str, Any]],
    pictures: dict[str, Path],
    typed: str,
) -> None:
    """Write the page of a run, whose words are those of its template."""
    net, single = findings.network, findings.single
    kernels = findings.solution.kernels
    shares = [np.linalg.eigvalsh(K)[::-1] / np.trace(K) for K in (kernels[0], kernels[-1])]
    ratio = float(np.sqrt(single.G11[-1, -1]) / single.kernels[-1])
    highlights: list[tuple[str, Any]] = [
        (r"kernel of the output $K^{(L+1)}$, typical sample", float(single.kernels[-1])),
        (r"its relative standard deviation at this width", f"{100 * ratio:.2g} %"),
    ]
    if scaling:
        name = r"optimal scale $\rho^*$, mean over pairs of different samples"
        few = f"; {findings.few_pairs}" if findings.few_pairs else ""
        highlights.append((name + few.replace("ρ*", r"$\rho^*$"), findings.best_scale))
    # Error of the mean of K^(L) over the networks, and what plain means have.
    ensemble, depth = findings.ensemble, net.depth
    own_error = float(ensemble.kernel_mean_error[depth])
    plain = (max(float(ensemble.kernel_variance[depth]), 0.0) / ensemble.samples) ** 0.5
    # A name as it may stand in \mathrm.
    name = net.activation.name
    phi = name.replace("_", r"\_") if name.isidentifier() else r"\phi"
    document.page(
        "results.html.j2",
        path,
        title="Field theory of a residual network on these data",
        titles=_SECTIONS,
        subtitle=rf"{findings.words}; $\phi = \mathrm{{{phi}}}$, "
        f"$L = {net.depth}$, $N = {net.width}$",
        highlights=highlights,
        footer=f"Written by fieldtheory {version('fieldtheory-networks')}.",
        findings=findings,
        net=net,
        formulas=formulas,
        pictures={name: picture.read_bytes() for name, picture in pictures.items()},
        scales=[_scale(net.branch_scale), _scale(net.skip_scale)],
        activation=latex(net.activation.expression),
        effective=[1 / (share**2).sum() for share in shares],
        ratio=ratio,
        known=[100 * error / float(single.kernels[depth]) for error in (own_error, plain)],
        shift=abs(float(single.mean_shift[-1] / single.kernels[-1])),
        over_layers=lambda symbol: [
            "layer",
            *(rf"${symbol}^{{(l)}}$, {name}" for name in findings.groups),
        ],
        rows=_rows(findings) | {"scaling": [list(row.values()) for row in scaling]},
        shell=_commands(findings, typed),
    )


def _scale(scale: Any) -> str:
    if isinstance(scale, str) or callable(scale):
        return str(scale_text(scale))
    return f"{scale:g}" if np.ndim(scale) == 0 else f"{min(scale):g} to {max(scale):g}"


def _rows(findings: Findings) -> dict[str, list[list[Any]]]:
    """The rows of the tables, by name."""
    net, solution = findings.network, findings.solution
    overlap = correlation(solution.kernels[0])
    variances = (
        net.readin_variances,
        (net.weight_variance, net.bias_variance),
        net.readout_variances,
    )
    names = r"weight variance $\sigma_w^2$", r"bias variance $\sigma_b^2$"
    responses = np.concatenate([solution.response, solution.output_response[None]])
    tables: dict[str, list[list[Any]]] = {
        "variances": [
            [name, *of] for name, of in zip(names, zip(*variances, strict=True), strict=True)
        ],
        "overlaps": [
            [name, int(mask.sum()), *(f(overlap[mask]) for f in (np.mean, np.min, np.max))]
            for name, mask in findings.groups.items()
            if name != "same sample"
        ],
        "kernels": _means(solution.kernels, findings),
        "responses": _means(responses, findings),
        "fluctuations": _fluctuations(findings),
    }
    if not isinstance(findings.harmonics, str):
        columns: tuple[str, ...] = ("degree", "eigenvalue", "share")
        rows = findings.harmonics.rows
        tables["harmonics"] = [[row[column] for column in columns] for row in rows]
    if not isinstance(findings.comparison, str):
        columns = ("quantity", "verdict", "largest deviation at", "deviation", "z")
        summary = findings.comparison.summary_at_width
        tables["simulation"] = [[row[column] for column in columns] for row in summary]
        for row in tables["simulation"]:
            row[3] = row[3].replace("-", "−")
    return tables


def _means(values: np.ndarray, findings: Findings) -> list[list[Any]]:
    """Means over the classes of pairs, for some layers; the last row is the output."""
    rows = [(str(l), values[l]) for l in _layers(len(values) - 1)] + [("output", values[-1])]
    return [[name, *(of[mask].mean() for mask in findings.groups.values())] for name, of in rows]


def _layers(count: int) -> np.ndarray:
    return np.unique(np.round(np.linspace(0, count - 1, min(_ROWS, count))).astype(int))


def _fluctuations(findings: Findings) -> list[list[Any]]:
    single = findings.single
    K, hidden = single.kernels, np.sqrt(single.kernel_variance)
    last = np.sqrt(np.diagonal(single.G11))[-1]
    rows = [
        (str(l), K[l], hidden[l], single.kernel_shift[l])
        for l in _layers(findings.network.depth + 1)
    ]
    rows.append(("output", K[-1], last, single.mean_shift[-1]))
    return [[name, k, s, f"{100 * s / k:.3g} %", shift] for name, k, s, shift in rows]


def _commands(findings: Findings, typed: str) -> list[str]:
    """Lines for a shell, to go on with."""
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
    return shell


def network_options(network: ResidualNetwork) -> str:
    """A network as options of the shell: those that differ from the defaults.

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
