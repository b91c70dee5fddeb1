"""Laws of outputs, Figs. 2 and 4 of PF; reached as `pf.fig2` and `pf.fig4`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from fieldtheory import validation
from fieldtheory.diffusions.functions_drawn import function_samples
from fieldtheory.diffusions.output_distances import GaussianOutputs, OutputDistances, distances
from fieldtheory.figures.parts import note
from fieldtheory.figures.pf_edge import edge_covariance, edge_functions, edge_networks
from fieldtheory.figures.pf_functions import drawn_apart
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.diffusion import DiffusionNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, ORANGE, panels, styled

_Z = (0.0, 1.0)
# Parts of all draws within the lines of equal density.
_WITHIN = (0.25, 0.5, 0.75, 0.95)
# Reach of the densities, in standard deviations, and their points.
_REACH, _POINTS = 4.0, 121


@dataclass(frozen=True, eq=False)
class Fig2:
    """Numbers of `fig2`.

    Attributes
    ----------
    network : DiffusionNetwork
    outputs, diffusion : ndarray, shape (samples, 2)
        x_T,1 of networks and of their diffusion for z = 0, 1.
    limit : GaussianOutputs
        Mean and covariance, those of the diffusion at every D; the law for D → ∞ is Gaussian.
    beside, beside_limit : OutputDistances
        Of the networks, from the diffusion and from that limit.
    """

    network: DiffusionNetwork
    outputs: np.ndarray
    diffusion: np.ndarray
    limit: GaussianOutputs
    beside: OutputDistances
    beside_limit: OutputDistances

    def axis(self, index: int) -> np.ndarray:
        """Where the density of an output is shown."""
        deviation = np.sqrt(self.limit.covariance[index, index])
        return self.limit.mean[index] + deviation * np.linspace(-_REACH, _REACH, _POINTS)

    def density(self, index: int) -> np.ndarray:
        """Of the Gaussian limit."""
        deviation = np.sqrt(self.limit.covariance[index, index])
        return stats.norm(self.limit.mean[index], deviation).pdf(self.axis(index))

    def curves(self) -> list[Curve]:
        """The draws, and the densities that were estimated from them."""
        kinds = {"network": self.outputs, "SDE": self.diffusion}
        found = [Curve("a", f"{kind}, draws", *draws.T) for kind, draws in kinds.items()]
        for index, panel in enumerate("bc"):
            x = self.axis(index)
            found += [
                Curve(panel, kind, x, stats.gaussian_kde(draws[:, index])(x))
                for kind, draws in kinds.items()
            ]
            found.append(Curve(panel, "limit", x, self.density(index)))
        return found


def fig2(
    depth: int = 500,
    width: int = 500,
    samples: int = 10_000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> Fig2:
    """The law of the output of tanh networks and of the diffusion that is their limit: PF Fig. 2.

    Parameters
    ----------
    depth, width : int
        L, also the steps of the diffusion, and D.
    samples : int
        Number of networks and of diffusions, at least 20.
    seed, jobs, progress
        As for `simulate`.
    directory : Path, optional
        Folder for finished parts, from which the figure goes on where it was interrupted.

    Returns
    -------
    Fig2

    Examples
    --------
    >>> found = fig2(depth=50, width=20, samples=200)
    >>> found.outputs.shape, found.limit.covariance.round(3)
    ((200, 2), array([[1.718, 1.718],
           [1.718, 3.437]]))
    >>> bool(found.beside.p_value.min() > 0.01)
    True
    """
    network = DiffusionNetwork(depth=depth, width=width)
    options: dict[str, Any] = {"jobs": jobs, "progress": progress, "directory": directory}
    # "gram" draws the law of "sde" without its width.
    outputs, diffusion = (
        function_samples(network, _Z, samples=samples, seed=seed, method=method, **options).values
        for method in ("kernel", "gram")
    )
    solution = solve(network.replace(depth=None), _Z)
    limit = GaussianOutputs(solution.mean[-1], solution.covariance[-1])
    return Fig2(
        network,
        outputs,
        diffusion,
        limit,
        distances(outputs, diffusion, "the diffusion"),
        distances(outputs, limit, "the limit"),
    )


@styled
def draw_fig2(numbers: Fig2) -> Any:
    """PF Fig. 2: densities of both outputs together and of each of them."""
    figure, axes = panels((2.7, 2.4, 2.4), 2.9)
    _draw_together(axes[0], numbers)
    for index, (ax, z) in enumerate(zip(axes[1:], _Z, strict=True)):
        _draw_one(ax, numbers, index)
        ax.set(xlabel=f"$x_{{T,1}}$ for $z = {z:g}$", yticks=[])
    axes[1].set_ylabel("density")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    net = numbers.network
    note(
        figure,
        r"chosen here: limit $D \to \infty$, Gaussian, with the mean and variance of the SDE at "
        "every $D$; KS: Kolmogorov-Smirnov distance\n"
        rf"$L = {net.depth}$, $D = {net.width}$, {len(numbers.outputs)} draws of each",
    )
    return figure


def _draw_together(ax: Any, numbers: Fig2) -> None:
    """Lines of equal density, the same ones for all three laws."""
    x, y = numbers.axis(0)[::2], numbers.axis(1)[::2]
    points = np.stack(np.meshgrid(x, y))
    law = stats.multivariate_normal(numbers.limit.mean, numbers.limit.covariance)
    peak = law.pdf(numbers.limit.mean)
    levels = sorted(peak * (1 - np.array(_WITHIN)))
    for draws, colour in ((numbers.outputs, BLUE), (numbers.diffusion, ORANGE)):
        density = stats.gaussian_kde(draws.T)(points.reshape(2, -1)).reshape(points.shape[1:])
        ax.contour(x, y, density, levels, colors=[colour], linewidths=1.1)
    exact = law.pdf(np.moveaxis(points, 0, -1))
    ax.contour(x, y, exact, levels, colors=["black"], linewidths=0.8, linestyles="dashed")
    ax.set(xlabel=f"$x_{{T,1}}$ for $z = {_Z[0]:g}$", ylabel=f"$x_{{T,1}}$ for $z = {_Z[1]:g}$")


def _draw_one(ax: Any, numbers: Fig2, index: int) -> None:
    x = numbers.axis(index)
    for draws, colour, label in (
        (numbers.outputs[:, index], BLUE, "network"),
        (numbers.diffusion[:, index], ORANGE, "SDE"),
    ):
        look = {"histtype": "stepfilled" if colour == BLUE else "step", "alpha": 0.3}
        ax.hist(draws, 60, range=(x[0], x[-1]), density=True, color=colour, **look)
        ax.plot(x, stats.gaussian_kde(draws)(x), color=colour, label=label)
    ax.plot(x, numbers.density(index), "--", color="black", linewidth=1.0, label="limit")
    peak = ax.get_ylim()[1]
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1.3 * peak))
    lines = [
        f"KS to {other}: {found.statistic[index]:.4f} (p = {found.p_value[index]:.2g})"
        for other, found in (("SDE", numbers.beside), ("limit", numbers.beside_limit))
    ]
    ax.text(0.03, 0.98, "\n".join(lines), transform=ax.transAxes, va="top", fontsize=6.5)


@dataclass(frozen=True, eq=False)
class Fig4:
    """Numbers of `fig4`; the first axis is that of the models.

    Attributes
    ----------
    models : tuple of str
    z : ndarray, shape (m,)
        Inputs of both axes.
    theory : ndarray, shape (4, m, m)
        Correlations of the outputs of infinitely wide networks.
    at : ndarray, shape (k,)
        Inputs of the simulation.
    simulated : ndarray, shape (4, k, k)
    depth, width, samples : int
        Of the simulated networks, L and D, and how many functions of each model.
    variances : tuple of float
        σ²_w and σ²_b of tanh on the edge of chaos.
    """

    models: tuple[str, ...]
    z: np.ndarray
    theory: np.ndarray
    at: np.ndarray
    simulated: np.ndarray
    depth: int
    width: int
    samples: int
    variances: tuple[float, float]

    def curves(self) -> list[Curve]:
        """The rows of the matrices."""
        return [
            Curve(f"{model}, {kind}", f"z = {value:g}", axis, row)
            for kind, axis, matrices in (
                ("theory", self.z, self.theory),
                ("simulation", self.at, self.simulated),
            )
            for model, matrix in zip(self.models, matrices, strict=True)
            for value, row in zip(axis, matrix, strict=True)
        ]


def fig4(
    depth: int = 500,
    width: int = 500,
    samples: int = 10_000,
    points: int = 40,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> Fig4:
    """Correlations of the outputs of two inputs, diffusions and edge of chaos: PF Fig. 4.

    Parameters
    ----------
    depth, width : int
        L and D; in the theory D → ∞, and for diffusions L → ∞ too.
    samples : int
        Number of functions drawn of each model, at least 20, of a network up to a tenth of its
        neurons, see `fieldtheory.figures.pf_functions.drawn_apart`.
    points : int
        Of the axes; even, since the output of ReLU networks is 0 for z = 0.
    seed, jobs, progress, directory
        As for `fig2`.

    Returns
    -------
    Fig4

    Examples
    --------
    >>> found = fig4(depth=20, width=20, samples=100, points=4)
    >>> found.models
    ('diffusion, tanh', 'diffusion, swish', 'edge of chaos, tanh', 'edge of chaos, ReLU')
    >>> found.theory[:, 0, 3].round(2)             # z = -2, 2
    array([-0.6 , -0.56,  0.58,  0.94])
    """
    samples = validation.integer("samples", samples, 20)
    if validation.integer("points", points, 2) % 2:
        raise ValueError(f"points must be even, got {points}")
    z = np.linspace(-2.0, 2.0, points)
    at = np.linspace(-2.0, 2.0, 8)
    options: dict[str, Any] = {"samples": samples, "neurons": drawn_apart(width, samples)}
    options |= {"seed": seed, "jobs": jobs, "progress": progress, "directory": directory}
    models, theory, simulated = [], [], []
    for name in ("tanh", "swish"):
        models.append(f"diffusion, {name}")
        network = DiffusionNetwork(depth=depth, width=width, activation=as_activation(name))
        theory.append(solve(network.replace(depth=None), z).covariance[-1])
        drawn = function_samples(network, at, tolerance=3e-3, **options).values
        simulated.append(np.cov(drawn.T))
    networks = edge_networks(depth, width)
    for name, edge in zip(("tanh", "ReLU"), networks, strict=True):
        models.append(f"edge of chaos, {name}")
        theory.append(edge_covariance(edge, z))
        drawn = edge_functions(edge, at, **options)
        simulated.append(np.cov(drawn.T))
    return Fig4(
        tuple(models),
        z,
        np.stack([_correlations(matrix) for matrix in theory]),
        at,
        np.stack([_correlations(matrix) for matrix in simulated]),
        depth,
        width,
        samples,
        (networks[0].weight_variance, networks[0].bias_variance),
    )


def _correlations(covariance: np.ndarray) -> np.ndarray:
    deviations = np.sqrt(np.diag(covariance))
    return covariance / np.multiply.outer(deviations, deviations)


@styled
def draw_fig4(numbers: Fig4) -> Any:
    """PF Fig. 4 with theory above simulations, all with one scale of colours."""
    from fieldtheory.plotting.figure import Figure

    figure = Figure(figsize=(7.4, 3.7), layout="constrained")
    axes = figure.subplots(2, len(numbers.models), sharex=True, sharey=True)
    least = min(numbers.theory.min(), numbers.simulated.min())
    look = {"cmap": "cividis", "vmin": least, "vmax": 1.0, "rasterized": True}
    rows = ((numbers.z, numbers.theory), (numbers.at, numbers.simulated))
    for row, (z, matrices) in zip(axes, rows, strict=True):
        for ax, matrix in zip(row, matrices, strict=True):
            image = ax.pcolormesh(z, z, matrix, **look)
            lowest = f"lowest: {matrix.min():.4g}"
            ax.text(0.05, 0.04, lowest, transform=ax.transAxes, fontsize=6.5)
            ax.set(aspect="equal", xlim=(-2, 2), ylim=(-2, 2), xticks=(-2, 0, 2), yticks=(-2, 0, 2))
    for ax, model in zip(axes[0], numbers.models, strict=True):
        ax.set_title(model, fontsize=8.5)
    for ax, kind in zip(axes[:, 0], ("infinite width", "simulation"), strict=True):
        ax.set_ylabel(f"{kind}\n$z_2$")
    for ax in axes[-1]:
        ax.set_xlabel("$z_1$")
    figure.colorbar(image, ax=axes, label="correlation of the outputs", shrink=0.85)
    weight, bias = numbers.variances
    note(
        figure,
        rf"chosen here: on the edge of chaos tanh with $\sigma_b^2 = {bias:g}$, "
        rf"$\sigma_w^2 = {weight:.4f}$; simulations with $L = {numbers.depth}$, "
        rf"$D = {numbers.width}$, {numbers.samples} functions, 8 inputs",
    )
    return figure
