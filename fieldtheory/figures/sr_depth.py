"""SR Figs. 1 and 2, wide networks against depth; reached as `sr.fig1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.inference import spectrum
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GREEN, ORANGE, panels, styled

# The schedules in the words of SR, and by the names of the package.
SCHEDULES: Mapping[str, str] = {
    "unscaled": "none",
    "decreasing": "decreasing",
    "uniform": "uniform",
}
COLOURS = (ORANGE, BLUE, GREEN)
CHOSEN = r"ReLU, $\gamma = 1$, $\sigma_w^2 = 2$, $\sigma_b = 0$"


def stable_networks(depth: int) -> list[ResidualNetwork]:
    """Networks of a depth with the three schedules, σ_w² = 2 and σ_b = 0.

    Examples
    --------
    >>> [net.branch_scale for net in stable_networks(5)]
    ['none', 'decreasing', 'uniform']
    """
    return [
        ResidualNetwork(
            depth=depth,
            activation=as_activation("relu"),
            branch_scale=schedule,
            weight_variance=2.0,
            bias_variance=0.0,
        )
        for schedule in SCHEDULES.values()
    ]


def of_constant_variance(network: ResidualNetwork) -> ResidualNetwork:
    """A ReLU network without biases with the same correlations in all layers, of one variance.

    Both scales of a layer are divided by √(K^(l)/K^(l-1)), by which its signals grow: kernels and
    tangent kernels of all pairs are divided by the product of their squares (SR Appendix A6), and
    do not overflow.

    Examples
    --------
    >>> net = of_constant_variance(stable_networks(2000)[0])
    >>> bool(np.allclose(solve(net, 2.0).kernels[:-1], 2.0))
    True
    """
    growth = np.exp(np.diff(solve(network, 2.0).log_kernels[:-1]) / 2)
    return network.replace(skip_scale=1 / growth, branch_scale=network.branch_scales / growth)


@dataclass(frozen=True, eq=False)
class Fig1:
    """Numbers of SR Fig. 1; the first axis is that of the schedules.

    Attributes
    ----------
    depths : ndarray, shape (D,)
    kernels, tangent_kernels : ndarray, shape (3, D)
        K^(L) and Θ^(L) of networks of these depths.
    """

    depths: np.ndarray
    kernels: np.ndarray
    tangent_kernels: np.ndarray

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        values = ("NNGP", self.kernels), ("NTK", self.tangent_kernels)
        return [
            Curve("a", f"{schedule}, {kind}", self.depths, row)
            for kind, rows in values
            for schedule, row in zip(SCHEDULES, rows, strict=True)
        ]


def fig1(depths: Sequence[int] = tuple(range(1, 51)), progress: bool = False) -> Fig1:
    """Kernels of the last hidden layer against depth: SR Fig. 1.

    Parameters
    ----------
    depths : sequence of int
        L.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Fig1
        For an input with |x|² = d, as SR leaves the point open: K^(0) = σ_w² = 2.

    Examples
    --------
    >>> found = fig1(depths=(1, 2, 3))
    >>> found.kernels[0].round(12).tolist()
    [4.0, 8.0, 16.0]
    """
    L = np.array([validation.integer("depths", depth, 1) for depth in depths])
    parts = [partial(_last_layer, depth) for depth in L.tolist()]
    found = np.moveaxis(np.array(in_turn(parts, "sr.fig1", progress)), 0, -1)
    return Fig1(L, found[:, 0], found[:, 1])


def _last_layer(depth: int) -> np.ndarray:
    solutions = [solve(net, 2.0) for net in stable_networks(depth)]
    return np.array([(s.kernels[-2], s.tangent_kernels[-2]) for s in solutions])


@styled
def draw_fig1(numbers: Fig1) -> Any:
    """K^(L) and, dashed, Θ^(L) against depth."""
    figure, (ax,) = panels((4.6,), 2.7)
    for rows, line in ((numbers.kernels, "-"), (numbers.tangent_kernels, "--")):
        for schedule, row, colour in zip(SCHEDULES, rows, COLOURS, strict=True):
            ax.semilogy(
                numbers.depths, row, line, color=colour, label=schedule if line == "-" else None
            )
    ax.plot([], [], "k-", label="NNGP $K^{(L)}$")
    ax.plot([], [], "k--", label=r"NTK $\Theta^{(L)}$")
    ax.set(xlabel="depth $L$", ylabel="kernel of one input")
    ax.legend()
    note(figure, rf"chosen here: {CHOSEN}, $|x|^2 = d$")
    return figure


@dataclass(frozen=True, eq=False)
class Fig2:
    """Numbers of SR Fig. 2; axes are (output or tangent kernel, schedule, depth, degree).

    Attributes
    ----------
    depths : ndarray, shape (D,)
    eigenvalues : ndarray, shape (2, 3, D, n)
        μ_k relative to the largest, of degree k = 0, ..., n − 1.
    """

    depths: np.ndarray
    eigenvalues: np.ndarray

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        degrees = np.arange(self.eigenvalues.shape[-1])
        return [
            Curve("ab"[kind], f"{schedule}, L = {depth}", degrees, self.eigenvalues[kind, i, j])
            for kind in range(2)
            for i, schedule in enumerate(SCHEDULES)
            for j, depth in enumerate(self.depths)
        ]


def fig2(depths: Sequence[int] = (10, 100, 1000), count: int = 25, progress: bool = False) -> Fig2:
    """Eigenvalues of the kernels on the circle: SR Fig. 2.

    Parameters
    ----------
    depths : sequence of int
        L.
    count : int
        Degrees.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Fig2
        For inputs (cos θ, sin θ) spread evenly, of which SR draws a thousand at random: the
        eigenvalues of an integral operator instead of those of a matrix.

    Examples
    --------
    >>> found = fig2(depths=(10, 100), count=3)
    >>> bool((found.eigenvalues[:, 0, 1, 1] < found.eigenvalues[:, 0, 0, 1]).all())
    True
    """
    L = np.array([validation.integer("depths", depth, 1) for depth in depths])
    parts = [
        partial(_normalised, network, quantity, count)
        for quantity in ("output_kernel", "tangent_kernel")
        for network in zip(*map(stable_networks, L.tolist()), strict=True)
    ]
    found = in_turn(parts, "sr.fig2", progress)
    return Fig2(L, np.reshape(found, (2, len(SCHEDULES), len(L), count)))


def _normalised(networks: Sequence[ResidualNetwork], quantity: str, count: int) -> list[np.ndarray]:
    return [
        spectrum(of_constant_variance(net), quantity=quantity, count=count).normalised
        for net in networks
    ]


@styled
def draw_fig2(numbers: Fig2) -> Any:
    """Eigenvalues of (a) the output kernel, (b) the tangent kernel; deeper networks darker."""
    figure, axes = panels((3.1, 3.1), 2.7)
    degrees = np.arange(numbers.eigenvalues.shape[-1])
    for ax, kind in zip(axes, numbers.eigenvalues, strict=True):
        for schedule, rows, colour in zip(SCHEDULES, kind, COLOURS, strict=True):
            for row, alpha in zip(rows, np.linspace(1, 0.35, len(rows))[::-1], strict=True):
                ax.semilogy(degrees, row, color=colour, alpha=alpha)
            ax.lines[-1].set_label(schedule)
        ax.set_xlabel("degree $k$")
        ax.set_ylim(1e-7, 2)
    axes[0].set_ylabel(r"NNGP, $\mu_k / \max_k \mu_k$")
    axes[1].set_ylabel(r"NTK, $\mu_k / \max_k \mu_k$")
    axes[1].legend(loc="lower left")
    depths = ", ".join(map(str, numbers.depths))
    note(figure, rf"chosen here: {CHOSEN}, $L = {depths}$ (darker), the circle itself")
    return figure
