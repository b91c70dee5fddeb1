"""F25 Fig. 1: the signal in the dynamic range of the activation; reached as `f25.fig1`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.figures.sketch import draw_network
from fieldtheory.montecarlo.forward import feature_functions
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve, over_layers
from fieldtheory.plotting.style import BLUE, ORANGE, styled, tints
from fieldtheory.scaling import optimal_scaling

_DYNAMIC_RANGE = 1.0
# In inches, as the sketch needs it.
_WIDTH = 7.8


@dataclass(frozen=True, eq=False)
class Fig1:
    """Numbers of F25 Fig. 1(b)-(d), for three scalings from small to large; ρ* is the second.

    Attributes
    ----------
    network : ResidualNetwork
        Everything but ρ.
    K0 : float
        Variance of the input.
    branch_scales : ndarray, shape (3,)
    signal : ndarray, shape (H,)
        Values of h^(L).
    density : ndarray, shape (3, H)
        Of h^(L) ~ N(0, K^(L)).
    activation : ndarray, shape (H,)
        φ(h).
    response : ndarray, shape (3, L+1)
        χ^(l).
    curve_scales, curve_response : ndarray, shape (R,)
        χ^out over ρ.
    output_response : ndarray, shape (3,)
        χ^out at the three scalings.
    """

    network: ResidualNetwork
    K0: float
    branch_scales: np.ndarray
    signal: np.ndarray
    density: np.ndarray
    activation: np.ndarray
    response: np.ndarray
    curve_scales: np.ndarray
    curve_response: np.ndarray
    output_response: np.ndarray

    def chosen(self) -> str:
        """What the caption leaves open."""
        low, _, high = self.branch_scales / self.branch_scales[1]
        net = self.network
        return (
            rf"chosen here: $L = {net.depth}$, $\sigma_w^2 = {net.weight_variance:g}$, "
            rf"$\sigma_b^2 = {net.bias_variance:g}$, $K^{{(0)}} = {self.K0:g}$; "
            f"{low:g}, 1 and {high:g} times the optimal scaling"
        )

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        labels = [f"rho = {rho:.6g}" for rho in self.branch_scales]
        named = list(zip(labels, self.density, self.response, strict=True))
        return [
            *(Curve("b", label, self.signal, density) for label, density, _ in named),
            Curve("b", "phi", self.signal, self.activation),
            *(over_layers("c", label, response) for label, _, response in named),
            Curve("d", "response", self.curve_scales, self.curve_response),
            Curve("d", "marked", self.branch_scales, self.output_response),
        ]


def fig1(
    depth: int = 20,
    K0: float = 0.05,
    factors: Sequence[float] = (0.25, 4.0),
    points: int = 301,
    progress: bool = False,
) -> Fig1:
    """Signal, response over the layers and output response of three scalings (F25 Fig. 1).

    Parameters
    ----------
    depth : int
        Number of layers L.
    K0 : float
        Variance of the input.
    factors : pair of float
        The scalings below and above the optimal one, as multiples of ρ*.
    points : int
        Number of residual scalings in (d), and of values of the signal in (b).
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Fig1

    Notes
    -----
    Panel (a) is a sketch of the network and has no numbers. The caption states no parameters. Here
    L = 20 and otherwise the parameters of F25 Fig. 4, σ_w² = 1.25, σ_b² = 0.05, K^(0) = 0.05,
    φ = erf; the signal is that of the last layer. χ^(0) = 1 here, N/d_in in F25.
    """
    low, high = validation.finite_array("factors", factors)
    if not 0 < low < 1 < high:
        raise ValueError(f"factors must hold one below and one above 1, got {factors}")
    points = validation.integer("points", points, 2)
    net = ResidualNetwork(depth=depth)
    (best,) = in_turn([partial(optimal_scaling, net, K0)], "f25.fig1, optimum", progress)
    scales = float(best) * np.array([low, 1.0, high])
    curve = np.linspace(0, 1.25 * scales[-1], points)
    networks = [net.replace(branch_scale=rho[:, None]) for rho in (scales, curve)]
    three, along = in_turn([partial(solve, each, K0) for each in networks], "f25.fig1", progress)
    variances = three.kernels[:, depth]
    signal = np.linspace(-1, 1, points) * 3 * np.sqrt(variances[1])
    exponents = -(signal**2) / (2 * variances[:, None])
    return Fig1(
        network=net,
        K0=K0,
        branch_scales=scales,
        signal=signal,
        density=np.exp(exponents) / np.sqrt(2 * np.pi * variances[:, None]),
        activation=feature_functions(net)(signal)[0],
        response=three.response,
        curve_scales=curve,
        curve_response=along.output_response,
        output_response=three.output_response,
    )


@styled
def draw_fig1(numbers: Fig1) -> Any:
    """F25 Fig. 1: (a) sketch of the network, (b) the signal, (c) χ^(l), (d) χ^out over ρ."""
    figure, axes = below_sketch("bcd", r"\rho")
    labels = draw_signal(axes["b"], numbers, r"\rho")
    draw_response(axes["c"], numbers, labels)
    output = axes["d"]
    for rho, chi, shade in zip(
        numbers.branch_scales, numbers.output_response, _shades(), strict=True
    ):
        output.plot(rho, chi, "o", color=shade, zorder=3)
    output.plot(numbers.curve_scales, numbers.curve_response, color="black", linewidth=1)
    output.set(xlabel=r"residual scaling $\rho$", ylabel=r"output response $\chi^{\mathrm{out}}$")
    output.set(xlim=(0, None), ylim=(0, None))
    output.legend(*axes["c"].get_legend_handles_labels(), loc="upper right")
    note(figure, numbers.chosen())
    return figure


def below_sketch(letters: str, scale: str) -> tuple[Any, dict[str, Any]]:
    """A figure with the sketch (a) of the network, and the axes of the panels below it."""
    from fieldtheory.plotting.figure import Figure

    figure = Figure(figsize=(_WIDTH, 4.1), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.0, 1.8))
    above, below = halves
    sketch = above.add_axes((0, 0, 1, 1))
    draw_network(sketch, scale)
    sketch.text(0.01, 0.97, "(a)", fontsize=9.5, va="top", transform=sketch.transAxes)
    axes = below.subplots(1, len(letters))
    for letter, ax in zip(letters, axes, strict=True):
        ax.set_title(f"({letter})", loc="left", fontsize=9.5, pad=7)
    return figure, dict(zip(letters, axes, strict=True))


def draw_signal(ax: Any, numbers: Fig1, scale: str) -> list[str]:
    """Panel (b), density of the signal over the activation; returns the labels of its curves."""
    labels = [rf"${scale} {sign} {scale}^*$" for sign in "<=>"]
    half = _DYNAMIC_RANGE / 2
    ax.axvspan(-half, half, color=ORANGE, alpha=0.15, lw=0)
    other = ax.twinx()
    other.plot(numbers.signal, numbers.activation, "--", color=ORANGE, linewidth=1)
    other.set(ylabel=r"activation $\phi(h)$", ylim=(-1.05, 1.05))
    other.spines["right"].set_visible(True)
    for density, shade, label in zip(numbers.density, _shades(), labels, strict=True):
        ax.plot(numbers.signal, density, color=shade, label=label)
    ax.set(xlabel=r"signal $h^{(L)}$", ylabel="density", ylim=(0, None))
    ax.set_yticks([])
    return labels


def draw_response(ax: Any, numbers: Fig1, labels: Sequence[str]) -> None:
    """Panel (c), χ^(l) over the layers."""
    for response, shade, label in zip(numbers.response, _shades(), labels, strict=True):
        ax.plot(response, color=shade, label=label)
    ax.set(xlabel="layer $l$", ylabel=r"response $\chi^{(l)}$", yscale="log")
    ax.xaxis.get_major_locator().set_params(integer=True)


def _shades() -> list[Any]:
    """Light to dark for scalings from small to large."""
    return tints(BLUE, 3)[::-1]
