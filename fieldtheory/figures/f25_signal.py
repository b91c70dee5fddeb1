"""F25 Fig. 1: the signal in the dynamic range of the activation; reached as `f25.fig1`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.montecarlo.forward import feature_functions
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve, over_layers
from fieldtheory.plotting.style import BLUE, ORANGE, panels, styled, tints
from fieldtheory.scaling import optimal_scaling

_DYNAMIC_RANGE = 1.0


@dataclass(frozen=True, eq=False)
class Fig1:
    """Numbers of F25 Fig. 1(b)-(d), for three scalings from small to large; ρ* is the second.

    Attributes
    ----------
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

    branch_scales: np.ndarray
    signal: np.ndarray
    density: np.ndarray
    activation: np.ndarray
    response: np.ndarray
    curve_scales: np.ndarray
    curve_response: np.ndarray
    output_response: np.ndarray

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
    depth: int = 20, K0: float = 0.05, factors: Sequence[float] = (0.25, 4.0), points: int = 301
) -> Fig1:
    """Signal, response over the layers and output response of three scalings (F25 Fig. 1(b)-(d)).

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

    Returns
    -------
    Fig1

    Notes
    -----
    The caption states no parameters, and panel (a) is a sketch of a layer. Here L = 20 and
    otherwise the parameters of F25 Fig. 4, σ_w² = 1.25, σ_b² = 0.05, K^(0) = 0.05, φ = erf; the
    signal is that of the last layer. χ^(0) = 1 here, N/d_in in F25.
    """
    low, high = validation.finite_array("factors", factors)
    if not 0 < low < 1 < high:
        raise ValueError(f"factors must hold one below and one above 1, got {factors}")
    net = ResidualNetwork(depth=depth)
    best = float(optimal_scaling(net, K0))
    scales = best * np.array([low, 1.0, high])
    three = solve(net.replace(branch_scale=scales[:, None]), K0)
    curve = np.linspace(0, 1.25 * scales[-1], validation.integer("points", points, 2))
    variances = three.kernels[:, depth]
    signal = np.linspace(-1, 1, points) * 3 * np.sqrt(variances[1])
    exponents = -(signal**2) / (2 * variances[:, None])
    return Fig1(
        branch_scales=scales,
        signal=signal,
        density=np.exp(exponents) / np.sqrt(2 * np.pi * variances[:, None]),
        activation=feature_functions(net)(signal)[0],
        response=three.response,
        curve_scales=curve,
        curve_response=solve(net.replace(branch_scale=curve[:, None]), K0).output_response,
        output_response=three.output_response,
    )


@styled
def draw_fig1(numbers: Fig1) -> Any:
    """F25 Fig. 1 as a matplotlib Figure: (b) the signal, (c) χ^(l), (d) χ^out over ρ."""
    figure, axes = panels((2.6, 2.6, 2.6), 2.4, first="b")
    shades = tints(BLUE, 3)[::-1]
    labels = (r"$\rho < \rho^*$", r"$\rho = \rho^*$", r"$\rho > \rho^*$")
    signal, response, output = axes
    half = _DYNAMIC_RANGE / 2
    signal.axvspan(-half, half, color=ORANGE, alpha=0.15, lw=0)
    other = signal.twinx()
    other.plot(numbers.signal, numbers.activation, "--", color=ORANGE, linewidth=1)
    other.set(ylabel=r"activation $\phi(h)$", ylim=(-1.05, 1.05))
    other.spines["right"].set_visible(True)
    for i, (shade, label) in enumerate(zip(shades, labels, strict=True)):
        signal.plot(numbers.signal, numbers.density[i], color=shade, label=label)
        response.plot(numbers.response[i], color=shade, label=label)
        output.plot(
            numbers.branch_scales[i], numbers.output_response[i], "o", color=shade, zorder=3
        )
    signal.set(xlabel=r"signal $h^{(L)}$", ylabel="density", ylim=(0, None))
    signal.set_yticks([])
    response.set(xlabel="layer $l$", ylabel=r"response $\chi^{(l)}$", yscale="log")
    response.xaxis.get_major_locator().set_params(integer=True)
    output.plot(numbers.curve_scales, numbers.curve_response, color="black", linewidth=1)
    output.set(xlabel=r"residual scaling $\rho$", ylabel=r"output response $\chi^{\mathrm{out}}$")
    output.set(xlim=(0, None), ylim=(0, None))
    output.legend(*response.get_legend_handles_labels(), loc="upper right")
    return figure
