"""A figure of narrow networks: both orders of 1/N against simulation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fieldtheory.figures.parts import Numbers, in_turn, integers, picture
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, ORANGE

# ρ of every activation, whose names are here as they are drawn.
_SCALES = {"erf": 1.0, "ReLU": 0.5}
_K0 = 0.5
_NETWORK = ResidualNetwork(depth=5, skip_scale=0.7)


def orders(
    widths: Sequence[int] = (4, 8, 16, 32, 64),
    samples: int = 20_000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Numbers:
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
    Numbers
        ``widths`` (W,). For both activations, N (⟨C⟩/C* − 1) and N Var C/C*² of the output kernel:
        ``coefficients`` of 1 and of 1/N, (2, 2, 2), and ``simulated`` with its standard ``error``,
        (2, 2, W). The curves are over 1/N.

    Notes
    -----
    L = 5, K^(0) = 0.5, γ = 0.7, σ_w² = 1.25, σ_b² = 0.05; erf with ρ = 1 and ReLU with ρ = 0.5.
    Times N, order 1/N is a constant and order 1/N² a line in 1/N. Control variates keep the errors
    of wide networks as small as those of narrow ones. This takes about twenty seconds.
    """
    N = integers("widths", widths, 2)
    networks = [
        _NETWORK.replace(activation=as_activation(name.lower()), branch_scale=scale)
        for name, scale in _SCALES.items()
    ]
    options: Any = {"samples": samples, "seed": seed, "jobs": jobs}
    options["variance_reduction"] = "control_variate"
    parts = [
        partial(simulate, net.replace(width=width), _K0, **options)
        for net in networks
        for width in N.tolist()
    ]
    ensembles = iter(in_turn(parts, "width.orders", progress))
    theory = [_coefficients(net) for net in networks]
    coefficients = np.array([rows for _, rows in theory])
    rows = [[_of_output(next(ensembles), C) for _ in N] for C, _ in theory]
    # Axes: activation, width, (values, errors), (mean, variance).
    simulated, error = np.transpose(rows, (2, 0, 3, 1))
    x, curves = np.array([0.0, 1 / N.min()]), []
    for panel, (i, k) in zip("abcd", np.ndindex(2, 2), strict=True):
        name, (first, second) = networks[i].activation.name, coefficients[i, k]
        points = 1 / N, simulated[i, k], error[i, k]
        curves += [
            Curve(panel, f"{name}, order 1/N", x, np.full(2, first)),
            Curve(panel, f"{name}, order 1/N^2", x, first + second * x),
            Curve(panel, f"{name}, simulation", *points),
        ]
    scales = ", ".join(rf"$\rho = {scale:g}$ for {name}" for name, scale in _SCALES.items())
    chosen = (
        rf"output kernel, $L = {_NETWORK.depth}$, $K^{{(0)}} = {_K0:g}$, $\gamma = 0.7$, {scales}; "
        f"{samples} networks, two standard errors; "
        "of ReLU order $1/N^2$ does not hold at $N = 4$ and 8"
    )
    values = {"widths": N, "coefficients": coefficients, "simulated": simulated, "error": error}
    return Numbers(curves, chosen, values)


@picture((2.3,) * 4, 2.5)
def draw_orders(axes: Any, numbers: Numbers) -> None:
    """Mean and variance over 1/N for each activation, with bars of two standard errors."""
    names = r"$N\,(\langle C\rangle / C_* - 1)$", r"$N\,\mathrm{Var}\,C / C_*^2$"
    content = zip(axes, 2 * names, numbers.panels().items(), np.repeat([*_SCALES], 2), strict=True)
    for ax, quantity, (panel, (first, second, points)), name in content:
        ax.plot(first.x, first.y, "--", color=ORANGE, label="order $1/N$")
        ax.plot(second.x, second.y, color=BLUE, label="order $1/N^2$")
        look: Any = {"fmt": "o", "color": "black", "markersize": 3, "linewidth": 1}
        ax.errorbar(points.x, points.y, 2 * np.asarray(points.error), label="simulation", **look)
        ax.set_title(f"({panel})  {name}", loc="left", fontsize=9.5)
        ax.set(xlabel=r"$1/N$", ylabel=quantity)
    axes[3].legend(loc="upper left")


def _coefficients(network: ResidualNetwork) -> tuple[float, np.ndarray]:
    """C* of the output, and the coefficients of 1 and 1/N of its relative mean and variance."""
    # The coefficients are those of any width.
    s, N = solve(network, _K0, order=2), network.width
    C = float(s.residual_kernels[-1])
    mean = N * s.mean_shift[-1] / C, N**2 * s.mean_shift_2[-1] / C
    variance = N * s.G11[-1, -1] / C**2, N**2 * s.variance_2[-1] / C**2
    return C, np.array([mean, variance])


def _of_output(ensemble: Ensemble, C: float) -> np.ndarray:
    """N (⟨C⟩/C* − 1) and N Var C/C*² of the output, and their standard errors, (2, 2)."""
    N = ensemble.network.width
    values = N * (ensemble.mean[-1] / C - 1), N * ensemble.covariance[-1, -1] / C**2
    errors = N * ensemble.mean_error[-1] / C, N * ensemble.covariance_error[-1, -1] / C**2
    return np.array([values, errors])
