"""Laws of outputs, Figs. 2 and 4 of PF; reached as `pf.fig2` and `pf.fig4`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_ensemble import GaussianOutputs, distances
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_simulation import function_samples
from fieldtheory.diffusions.pf_figures.pf_edge import edge_covariance, edge_functions, edge_networks
from fieldtheory.diffusions.pf_figures.pf_functions import neurons_drawn
from fieldtheory.figures.parts import Numbers, note, picture
from fieldtheory.literature.sr_kernels import correlated
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, ORANGE, styled

# Inputs of Fig. 2.
_Z = 0.0, 1.0
# Parts of all draws within the lines of equal density.
_WITHIN = np.array([0.25, 0.5, 0.75, 0.95])
# Where densities are computed, in standard deviations.
_REACH = np.linspace(-4.0, 4.0, 121)


def fig2(
    depth: int = 500,
    width: int = 500,
    samples: int = 10_000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> Numbers:
    """The law of the output of tanh networks and of the diffusion that is their limit: PF Fig. 2.

    Parameters
    ----------
    depth, width : int
        L, also the steps of the diffusion, and D.
    samples : int
        Number of networks and of diffusions, at least 20.
    seed, jobs, progress, directory
        As for `fieldtheory.figures.pf.fig1`.

    Returns
    -------
    Numbers
        x_T,1 for z = 0, 1 (samples, 2): ``outputs`` of networks and ``diffusion``; their ``limit``,
        the Gaussian law for D → ∞ with the mean and covariance of the diffusion at every D;
        distances of the networks from the diffusion, ``beside``, and from the limit,
        ``beside_limit``; ``at`` (2, m), where the densities are, and the ``density`` of the limit.

    Examples
    --------
    >>> numbers = fig2(depth=50, width=20, samples=200)
    >>> numbers.outputs.shape, numbers.limit.covariance.round(3)
    ((200, 2), array([[1.718, 1.718],
           [1.718, 3.437]]))
    >>> bool(numbers.beside.p_value.min() > 0.01)
    True
    """
    network = DiffusionNetwork(depth=depth, width=width)
    options: Any = {"samples": samples, "seed": seed, "jobs": jobs}
    options |= {"progress": progress, "directory": directory}
    # "gram" draws the law of "sde" without its width.
    draws = {
        kind: function_samples(network, _Z, method=method, **options).values
        for kind, method in (("network", "kernel"), ("SDE", "gram"))
    }
    solution = solve(network.replace(depth=None), _Z)
    limit = GaussianOutputs(solution.mean[-1], solution.covariance[-1])
    deviations = np.sqrt(np.diag(limit.covariance))[:, None]
    at = limit.mean[:, None] + deviations * _REACH
    density = stats.norm(limit.mean[:, None], deviations).pdf(at)
    curves = [Curve("a", f"{kind}, draws", *rows.T) for kind, rows in draws.items()]
    for i, panel in enumerate("bc"):
        for kind, rows in draws.items():
            curves.append(Curve(panel, kind, at[i], stats.gaussian_kde(rows[:, i])(at[i])))
        curves.append(Curve(panel, "limit", at[i], density[i]))
    outputs, diffusion = draws.values()
    values = {"outputs": outputs, "diffusion": diffusion, "limit": limit}
    values["beside"] = distances(outputs, diffusion)
    values["beside_limit"] = distances(outputs, limit)
    chosen = (
        r"limit $D \to \infty$, Gaussian, with the mean and variance of the SDE at every $D$; "
        "KS: Kolmogorov-Smirnov distance\n"
        rf"$L = {depth}$, $D = {width}$, {len(outputs)} draws of each"
    )
    return Numbers(curves, chosen, values | {"at": at, "density": density})


@picture((2.7, 2.4, 2.4), 2.9)
def draw_fig2(axes: Any, numbers: Numbers) -> None:
    """PF Fig. 2: densities of both outputs together and of each of them."""
    _draw_together(axes[0], numbers)
    for index, (ax, z) in enumerate(zip(axes[1:], _Z, strict=True)):
        _draw_one(ax, numbers, index)
        ax.set(xlabel=f"$x_{{T,1}}$ for $z = {z:g}$", yticks=[])
    axes[1].set_ylabel("density")
    axes[0].figure.legend(*axes[1].get_legend_handles_labels(), loc="outside upper center", ncols=3)


def _draw_together(ax: Any, numbers: Numbers) -> None:
    """Lines of equal density, the same ones for all three laws."""
    x, y = numbers.at[:, ::2]
    points = np.stack(np.meshgrid(x, y))
    law = stats.multivariate_normal(*numbers.limit)
    levels = sorted(law.pdf(numbers.limit.mean) * (1 - _WITHIN))
    for draws, colour in ((numbers.outputs, BLUE), (numbers.diffusion, ORANGE)):
        density = stats.gaussian_kde(draws.T)(points.reshape(2, -1)).reshape(points.shape[1:])
        ax.contour(x, y, density, levels, colors=[colour], linewidths=1.1)
    exact = law.pdf(np.moveaxis(points, 0, -1))
    ax.contour(x, y, exact, levels, colors=["black"], linewidths=0.8, linestyles="dashed")
    ax.set(xlabel=f"$x_{{T,1}}$ for $z = {_Z[0]:g}$", ylabel=f"$x_{{T,1}}$ for $z = {_Z[1]:g}$")


def _draw_one(ax: Any, numbers: Numbers, index: int) -> None:
    *simulated, limit = numbers.panels()["bc"[index]]
    x = limit.x
    kinds = (numbers.outputs, BLUE, "stepfilled"), (numbers.diffusion, ORANGE, "step")
    for curve, (draws, colour, form) in zip(simulated, kinds, strict=True):
        look: Any = {"range": (x[0], x[-1]), "density": True, "color": colour}
        ax.hist(draws[:, index], 60, histtype=form, alpha=0.3, **look)
        ax.plot(x, curve.y, color=colour, label=curve.label)
    ax.plot(x, limit.y, "--", color="black", linewidth=1.0, label="limit")
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1.3 * ax.get_ylim()[1]))
    lines = [
        f"KS to {other}: {tests.statistic[index]:.4f} (p = {tests.p_value[index]:.2g})"
        for other, tests in (("SDE", numbers.beside), ("limit", numbers.beside_limit))
    ]
    ax.text(0.03, 0.98, "\n".join(lines), transform=ax.transAxes, va="top", fontsize=6.5)


def fig4(
    depth: int = 500,
    width: int = 500,
    samples: int = 10_000,
    points: int = 40,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> Numbers:
    """Correlations of the outputs of two inputs, diffusions and edge of chaos: PF Fig. 4.

    Parameters
    ----------
    depth, width : int
        L and D; in the theory D → ∞, and for diffusions L → ∞ too.
    samples : int
        Number of functions drawn of each model, at least 20, of a network up to a tenth of its
        neurons, see `fieldtheory.diffusions.pf_figures.pf_functions.neurons_drawn`.
    points : int
        Of the axes; even, since the output of ReLU networks is 0 for z = 0.
    seed, jobs, progress, directory
        As for `fieldtheory.figures.pf.fig1`.

    Returns
    -------
    Numbers
        Names of the four ``models``, and for each the correlations ``theory`` (4, m, m) of
        infinitely wide networks at inputs ``z`` (m,), and ``simulated`` (4, k, k) at ``at`` (k,).

    Examples
    --------
    >>> numbers = fig4(depth=20, width=20, samples=100, points=4)
    >>> numbers.models
    ['diffusion, tanh', 'diffusion, swish', 'edge of chaos, tanh', 'edge of chaos, ReLU']
    >>> numbers.theory[:, 0, 3].round(2)             # z = -2, 2
    array([-0.6 , -0.56,  0.58,  0.94])
    """
    samples = validation.integer("samples", samples, 20)
    if validation.integer("points", points, 2) % 2:
        raise ValueError(f"points must be even, got {points}")
    z, at = np.linspace(-2.0, 2.0, points), np.linspace(-2.0, 2.0, 8)
    options: Any = {"samples": samples, "neurons": neurons_drawn(width, samples)}
    options |= {"seed": seed, "jobs": jobs, "progress": progress, "directory": directory}
    theory, simulated = {}, {}
    for name in ("tanh", "swish"):
        network = DiffusionNetwork(depth=depth, width=width, activation=as_activation(name))
        theory[f"diffusion, {name}"] = solve(network.replace(depth=None), z).covariance[-1]
        simulated[f"diffusion, {name}"] = function_samples(network, at, **options).values
    edge = edge_networks(depth, width)
    for name, net in zip(("tanh", "ReLU"), edge, strict=True):
        theory[f"edge of chaos, {name}"] = edge_covariance(net, z)
        simulated[f"edge of chaos, {name}"] = edge_functions(net, at, **options)
    values: dict[str, Any] = {"models": [*theory], "z": z, "at": at}
    values["theory"] = np.stack([*map(correlated, theory.values())])
    values["simulated"] = np.stack([correlated(np.cov(draws.T)) for draws in simulated.values()])
    curves = [
        Curve(f"{model}, {kind}", f"z = {value:g}", axis, row)
        for kind, axis, matrices in (
            ("theory", z, values["theory"]),
            ("simulation", at, values["simulated"]),
        )
        for model, matrix in zip(theory, matrices, strict=True)
        for value, row in zip(axis, matrix, strict=True)
    ]
    chosen = (
        rf"on the edge of chaos tanh with $\sigma_b^2 = {edge[0].bias_variance:g}$, "
        rf"$\sigma_w^2 = {edge[0].weight_variance:.4f}$; simulations with $L = {depth}$, "
        rf"$D = {width}$, {samples} functions, 8 inputs"
    )
    return Numbers(curves, chosen, values)


@styled
def draw_fig4(numbers: Numbers) -> Any:
    """PF Fig. 4 with theory above simulations, all with one scale of colours."""
    from fieldtheory.plotting.figure import Figure

    figure = Figure(figsize=(7.4, 3.7), layout="constrained")
    axes = figure.subplots(2, len(numbers.models), sharex=True, sharey=True)
    least = min(numbers.theory.min(), numbers.simulated.min())
    look: Any = {"cmap": "cividis", "vmin": least, "vmax": 1.0, "rasterized": True}
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
    note(figure, numbers.chosen)
    return figure
