"""The pictures of the main job: one panel each, so that they are readable on a narrow screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fieldtheory.plotting.curves import Curve, matrix_rows, over_layers
from fieldtheory.plotting.style import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    draw_matrix,
    panels,
    scale_values,
    styled,
)
from fieldtheory.report.findings import Findings

_SIZE = (4.2,), 3.0
# Of more classes names overlap.
_MOST_CLASSES = 12


def kernels(findings: Findings) -> list[Curve]:
    """Means of K^(l) of the hidden layers over the classes of pairs of samples."""
    return _means(findings, findings.solution.kernels[:-1])


def responses(findings: Findings) -> list[Curve]:
    """Means of χ^(l) over the classes of pairs of samples."""
    return _means(findings, findings.solution.response)


def correlations(findings: Findings) -> list[Curve]:
    """Correlations of the outputs for the samples."""
    return matrix_rows("", correlation(findings.solution.kernels[-1]))


def eigenvalues(findings: Findings) -> list[Curve]:
    """Eigenvalues of the kernels of input and output for the samples, relative to their sums."""
    curves = []
    for name, kernel in (("input", 0), ("output", -1)):
        values = np.linalg.eigvalsh(findings.solution.kernels[kernel])[::-1]
        shares = values / values.sum()
        shares = shares[shares > 1e-14]
        curves.append(Curve("", name, np.arange(1, len(shares) + 1), shares))
    return curves


def optimum(findings: Findings) -> list[Curve]:
    """Responses of a variance and of a covariance of the output over ρ."""
    rho, values = findings.response
    names = "variance", "covariance of two samples"
    return [Curve("", name, rho, values[:, i]) for i, name in enumerate(names)]


def fluctuations(findings: Findings) -> list[Curve]:
    """Standard deviations of K^(l) over networks, relative to K^(l), with simulated ones."""
    K = findings.single.kernels[:-1]
    theory = np.sqrt(findings.single.kernel_variance) / K
    variance, error = findings.ensemble.kernel_variance, findings.ensemble.kernel_variance_error
    simulated = np.sqrt(np.maximum(variance, 0.0))
    spread = np.divide(error, 2 * simulated, out=np.zeros_like(error), where=simulated > 0)
    return [
        over_layers("", "theory, order $1/N$", theory),
        over_layers("", "simulated networks", simulated / K, spread / K),
    ]


def simulation(findings: Findings) -> list[Curve]:
    """Deviations of mean kernels from those of infinite width in per cent."""
    K, ensemble = findings.single.kernels[:-1], findings.ensemble
    mean, error = ensemble.kernel_mean[: len(K)], ensemble.kernel_mean_error[: len(K)]
    points = over_layers("", "simulated networks", 100 * (mean / K - 1), 100 * error / K)
    shift = 100 * findings.single.kernel_shift[: len(K)] / K
    return [over_layers("", "theory, order $1/N$", shift), points]


def correlation(kernel: np.ndarray) -> np.ndarray:
    """K_αβ / √(K_αα K_ββ)."""
    size = np.sqrt(np.diagonal(kernel))
    return np.asarray(kernel / np.outer(size, size))


def _means(findings: Findings, values: np.ndarray) -> list[Curve]:
    return [
        over_layers("", f"mean, {name}", values[:, mask].mean(axis=1))
        for name, mask in findings.groups.items()
    ]


def _lines(
    curves: Callable[[Findings], Sequence[Curve]], x: str, y: str, marked: bool = False
) -> Callable[[Findings], Any]:
    """A function that draws the curves: simulated ones as points, ``marked`` for few numbers."""

    @styled
    def draw(findings: Findings) -> Any:
        figure, (ax,) = panels(*_SIZE)
        drawn = curves(findings)
        # Lines that coincide are all seen.
        for curve, colour, dashes in zip(
            drawn, (BLUE, ORANGE, GREEN, GRAY), ("-", "--", ":", "-."), strict=False
        ):
            style: Any = {"color": colour, "label": curve.label}
            if curve.error is not None:
                ax.errorbar(curve.x, curve.y, curve.error, fmt="o", markersize=2.5, **style)
            else:
                style |= {"linestyle": dashes, "marker": "o" if marked else ""}
                ax.plot(curve.x, curve.y, markersize=2.5, **style)
        ax.set(xlabel=x, ylabel=y)
        lines = [curve.y for curve in drawn if curve.error is None]
        if len(lines) == len(drawn):
            scale_values(ax, np.concatenate(lines))
        ax.legend()
        return figure

    return draw


@styled
def _optimum(findings: Findings) -> Any:
    figure = _lines(optimum, r"scale $\rho$ of the branch", r"response $\chi^{\mathrm{out}}$")(
        findings
    )
    ax = figure.axes[0]
    ax.set_xscale("log")
    scale = findings.network.branch_scale
    if isinstance(scale, float) and scale > 0:
        ax.axvline(scale, color=GRAY, linestyle=":", label="this network")
        ax.legend()
    return figure


@styled
def _correlations(findings: Findings) -> Any:
    figure, (ax,) = panels(*_SIZE)
    values, labels = correlation(findings.solution.kernels[-1]), findings.data.labels
    if labels is not None:
        order = np.argsort(labels, kind="stable")
        values, labels = values[np.ix_(order, order)], labels[order]
    draw_matrix(figure, ax, values, labels, "correlation of the outputs")
    names, counts = np.unique([] if labels is None else labels, return_counts=True)
    if 0 < len(names) <= _MOST_CLASSES:
        middles = np.cumsum(counts) - (counts + 1) / 2
        ax.set_xticks(middles, names, rotation=90)
        ax.set_yticks(middles, [f"{n} ({c})" for n, c in zip(names, counts, strict=True)])
        ax.set(xlabel="class", ylabel="class (samples)")
    return figure


_LAYER = "layer $l$"
# How each is drawn, and its numbers.
FIGURES: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], list[Curve]]]] = {
    "kernels": (_lines(kernels, _LAYER, "kernel $K^{(l)}$"), kernels),
    "correlations": (_correlations, correlations),
    "eigenvalues": (_lines(eigenvalues, "number", "share of the trace", marked=True), eigenvalues),
    "responses": (_lines(responses, _LAYER, r"response $\chi^{(l)}$"), responses),
    "optimum": (_optimum, optimum),
    "fluctuations": (
        _lines(fluctuations, _LAYER, r"$\sqrt{\mathrm{Var}\,K^{(l)}} \,/\, K^{(l)}$"),
        fluctuations,
    ),
    "simulation": (_lines(simulation, _LAYER, "deviation of the mean kernel, %"), simulation),
}
