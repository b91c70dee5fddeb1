"""A figure of narrow networks: both orders of 1/N against simulation.

`orders` computes what is plotted; `draw_orders` draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, ORANGE, panels, styled

_K0, _DEPTH, _SKIP = 0.5, 5, 0.7
# ρ of every activation.
_SCALES = {"erf": 1.0, "relu": 0.5}
_WIDTHS = (4, 8, 16, 32, 64)
_FIRST, _SECOND, _SIMULATED = "order 1/N", "order 1/N^2", "simulation"


@dataclass(frozen=True, eq=False)
class Orders:
    """Numbers of `orders`: N (⟨C⟩/C* − 1) and N Var C/C*² of the output kernel.

    Attributes
    ----------
    activations : tuple of str, length A
    widths : ndarray, shape (W,)
        N of the simulated networks.
    coefficients : ndarray, shape (A, 2, 2)
        Of 1 and of 1/N, for the mean and for the variance.
    simulated, error : ndarray, shape (A, 2, W)
        The same of finite networks, with its standard error.
    samples : int
        Networks of every width.
    """

    activations: tuple[str, ...]
    widths: np.ndarray
    coefficients: np.ndarray
    simulated: np.ndarray
    error: np.ndarray
    samples: int

    def curves(self) -> list[Curve]:
        """The plotted curves; x is 1/N."""
        x = np.array([0.0, 1 / self.widths.min()])
        found = []
        for i, name in enumerate(self.activations):
            for k in range(2):
                panel, (first, second) = "abcd"[2 * i + k], self.coefficients[i, k]
                points = 1 / self.widths, self.simulated[i, k], self.error[i, k]
                found += [
                    Curve(panel, f"{name}, {_FIRST}", x, np.full(2, first)),
                    Curve(panel, f"{name}, {_SECOND}", x, first + second * x),
                    Curve(panel, f"{name}, {_SIMULATED}", *points),
                ]
        return found


def orders(
    widths: Sequence[int] = _WIDTHS,
    samples: int = 20_000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Orders:
    """Mean and variance of the output kernel of narrow networks, with both orders of 1/N.

    Parameters
    ----------
    widths : sequence of int
        N of the simulated networks.
    samples : int
        Networks of every width, at least 20.
    seed : int
    jobs
        As for `simulate`.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Orders

    Notes
    -----
    L = 5, K^(0) = 0.5, γ = 0.7, σ_w² = 1.25, σ_b² = 0.05; erf with ρ = 1 and ReLU with ρ = 0.5.
    Times N, order 1/N is a constant and order 1/N² a line in 1/N. Control variates keep the errors
    of wide networks as small as those of narrow ones. This takes about twenty seconds.
    """
    chosen = np.array([validation.integer("widths", N, 2) for N in widths])
    networks = [
        ResidualNetwork(
            depth=_DEPTH,
            activation=as_activation(name),
            skip_scale=_SKIP,
            branch_scale=scale,
        )
        for name, scale in _SCALES.items()
    ]
    parts = [
        partial(
            simulate,
            net.replace(width=int(N)),
            _K0,
            samples=samples,
            seed=seed,
            variance_reduction="control_variate",
            jobs=jobs,
        )
        for net in networks
        for N in chosen
    ]
    drawn = iter(in_turn(parts, "width.orders", progress))
    coefficients, simulated, errors = [], [], []
    for net in networks:
        C, found = _coefficients(net)
        values = [_of_output(next(drawn), C) for _ in chosen]
        coefficients.append(found)
        simulated.append(np.transpose([value for value, _ in values]))
        errors.append(np.transpose([error for _, error in values]))
    return Orders(
        tuple(_SCALES),
        chosen,
        np.array(coefficients),
        np.array(simulated),
        np.array(errors),
        samples,
    )


@styled
def draw_orders(numbers: Orders) -> Any:
    """Mean and variance over 1/N for each activation, with bars of two standard errors."""
    figure, axes = panels((2.3,) * 4, 2.5)
    names = r"$N\,(\langle C\rangle / C_* - 1)$", r"$N\,\mathrm{Var}\,C / C_*^2$"
    titles = {"erf": "erf", "relu": "ReLU"}
    for curve in numbers.curves():
        i = "abcd".index(curve.panel)
        ax, (name, kind) = axes[i], curve.label.split(", ")
        if curve.error is not None:
            points = {"fmt": "o", "color": "black", "markersize": 3, "linewidth": 1}
            ax.errorbar(curve.x, curve.y, 2 * curve.error, label=kind, **points)
            ax.set_title(f"({curve.panel})  {titles[name]}", loc="left", fontsize=9.5)
            ax.set(xlabel=r"$1/N$", ylabel=names[i % 2])
        elif kind == _FIRST:
            ax.plot(curve.x, curve.y, "--", color=ORANGE, label="order $1/N$")
        else:
            ax.plot(curve.x, curve.y, color=BLUE, label="order $1/N^2$")
    axes[3].legend(loc="upper left")
    scales = ", ".join(rf"$\rho = {scale:g}$ for {titles[n]}" for n, scale in _SCALES.items())
    note(
        figure,
        rf"chosen here: output kernel, $L = {_DEPTH}$, $K^{{(0)}} = {_K0:g}$, "
        rf"$\gamma = {_SKIP:g}$, {scales}; {numbers.samples} networks, two standard errors; "
        "of ReLU order $1/N^2$ does not hold at $N = 4$ and 8",
    )
    return figure


def _coefficients(network: ResidualNetwork) -> tuple[float, np.ndarray]:
    """C* of the output, and the coefficients of 1 and 1/N of its relative mean and variance."""
    # The coefficients are those of any width.
    s, N = solve(network, _K0, order=2), network.width
    C = float(s.residual_kernels[-1])
    mean = N * s.mean_shift[-1] / C, N**2 * s.mean_shift_2[-1] / C
    variance = N * s.G11[-1, -1] / C**2, N**2 * s.variance_2[-1] / C**2
    return C, np.array([mean, variance])


def _of_output(ensemble: Ensemble, C: float) -> tuple[list[float], list[float]]:
    """N (⟨C⟩/C* − 1) and N Var C/C*² of the output, and their standard errors."""
    N = ensemble.network.width
    values = N * (ensemble.mean[-1] / C - 1), N * ensemble.covariance[-1, -1] / C**2
    errors = N * ensemble.mean_error[-1] / C, N * ensemble.covariance_error[-1, -1] / C**2
    return [float(v) for v in values], [float(e) for e in errors]
