"""Figures of F25 with simulated networks, Figs. 2 and 8; reached as `f25.fig2` and `f25.fig8`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import Numbers, count_layers, picture
from fieldtheory.networks.residual import FeedForwardNetwork, ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve, over_layers
from fieldtheory.plotting.style import BLUE, GRAY, GREEN

_PARAMETERS: Any = {"weight_variance": 1.2, "bias_variance": 0.2, "width": 500, "input_dim": 100}
_FAMILIES = {"ResNet": ResidualNetwork, "FFNet": FeedForwardNetwork}
_INPUTS = r"inputs with components $\sim \mathcal{N}(0, 1/d_{\mathrm{in}})$"


def fig2(
    depth: int = 20,
    samples: int = 1000,
    inputs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Numbers:
    """Residual kernels and response function, theory and simulation (F25 Fig. 2).

    Parameters
    ----------
    depth : int
        Number of layers L.
    samples : int
        Number of networks, for the response as many for every input; at least 20.
    inputs : int
        Number of inputs over which the response is averaged, at least 2.
    seed : int
    jobs, progress
        As for `simulate`.

    Returns
    -------
    Numbers
        With a row for the residual and one for the feed-forward network, (2, L+1): ``kernels``
        C*^(l) and ``response`` η^(l) = ∂C^(l)/∂K^(0); ``simulated_kernels`` and
        ``simulated_response``, the latter averaged over the inputs too, with standard errors
        ``simulated_kernels_error`` and ``simulated_response_error``. C*^(l) of the feed-forward
        network ends at ``fixed_point``.

    Notes
    -----
    As in the caption all weight variances are 1.2, all bias variances 0.2, N = 500, d_in = 100,
    ρ = 1, φ = erf, with 10³ networks and 10² inputs. It states neither depth nor inputs: here
    L = 20, as in Fig. 8, and inputs with independent components of variance 1/d_in, so of unit
    length on average. Panel (a) has one input of unit length, K^(0) = 1.2/100 + 0.2; the curve of
    panel (b) is the theory for it. η^(0) = 1 here, N/d_in = 5 in F25. The networks are drawn by the
    method "kernel" of `simulate`, and every input has its own; the response is measured by
    `simulate_response`. This takes a few minutes.

    The text says that C^(l) of feed-forward networks decays to zero. At σ_b² = 0.2 it cannot, since
    C^(l) >= σ_b²: it approaches the fixed point K = σ_w² M(K) + σ_b², K ≈ 0.66, a dashed line in
    panel (a). What decays to zero is the response, by the factor σ_w² M'(K) ≈ 0.34 a layer.
    """
    # Layers after which the contraction by 0.34 a layer has left nothing of the input.
    many = 100
    from fieldtheory.montecarlo.simulation import simulate

    options = {"samples": samples, "seed": seed, "jobs": jobs, "progress": progress}
    nets, values = _responses(list(_FAMILIES.values()), depth, inputs, options)
    K0 = _unit_kernel(nets[0])
    ensembles = [simulate(net, K0, **options) for net in nets]
    values["kernels"] = np.stack([solve(net, K0).residual_kernels[:-1] for net in nets])
    values["simulated_kernels"] = np.stack([e.mean[:-1] for e in ensembles])
    values["simulated_kernels_error"] = np.stack([e.mean_error[:-1] for e in ensembles])
    # K = σ_w² M(K) + σ_b².
    point = float(solve(nets[1].replace(depth=many), K0).residual_kernels[-2])
    curves = [over_layers("a", "FFNet, fixed point", np.full(depth + 1, point))]
    for panel, kind in (("a", "kernels"), ("b", "response")):
        names = kind, f"simulated_{kind}", f"simulated_{kind}_error"
        for label, *rows in zip(_FAMILIES, *(values[name] for name in names), strict=True):
            curves.append(over_layers(panel, f"{label}, theory", rows[0]))
            curves.append(over_layers(panel, f"{label}, simulation", *rows[1:]))
    return Numbers(curves, f"$L = {depth}$, {_INPUTS}", {"fixed_point": point} | values)


@picture((3.1, 3.1), 2.6)
def draw_fig2(axes: Any, numbers: Numbers) -> None:
    """F25 Fig. 2 as a matplotlib Figure: (a) C^(l) with error bars, (b) η^(l)."""
    point, layers = numbers.fixed_point, numbers.listed[0].x
    axes[0].axhline(point, color=GRAY, linestyle="--", linewidth=0.8, zorder=0)
    text = f"fixed point of the FFNet, {point:.3f}"
    axes[0].text(layers[-1], 0.93 * point, text, ha="right", va="top", fontsize=7, color=GRAY)
    points: Any = {"fmt": "o", "markersize": 2.5, "elinewidth": 0.8}
    for ax, kind in zip(axes, ("kernels", "response"), strict=True):
        for i, (label, colour) in enumerate(zip(_FAMILIES, (BLUE, GREEN), strict=True)):
            ax.plot(layers, numbers.values[kind][i], color=colour, label=label)
            bars = numbers.simulated_kernels_error[i] if kind == "kernels" else None
            simulated = numbers.values[f"simulated_{kind}"][i]
            ax.errorbar(layers, simulated, bars, color=colour, **points)
    count_layers(axes[0], ylabel="residual kernel $C^{(l)}$", ylim=(0, None))
    count_layers(axes[1], ylabel=r"response $\eta^{(l)}$", ylim=(0, None))
    axes[1].legend(loc="upper right")


def fig8(
    depth: int = 20,
    samples: int = 1000,
    inputs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Numbers:
    """Decay of the response function of a residual network, theory and simulation (F25 Fig. 8).

    Parameters, inputs and networks are those of `fig2`; the caption states L = 20.

    Returns
    -------
    Numbers
        ``response`` η^(l), ``simulated_response``, averaged over the inputs, and its standard error
        ``simulated_response_error``, each (L+1,).
    """
    options = {"samples": samples, "seed": seed, "jobs": jobs, "progress": progress}
    _, rows = _responses([ResidualNetwork], depth, inputs, options)
    values = {name: row[0] for name, row in rows.items()}
    theory, *simulated = values.values()
    layers, curves = np.arange(depth + 1), []
    # The logarithmic axis of (b) begins at layer 1.
    for panel, first in (("a", 0), ("b", 1)):
        curves.append(Curve(panel, "theory", layers[first:], theory[first:]))
        curves.append(
            Curve(panel, "simulation", layers[first:], *(row[first:] for row in simulated))
        )
    return Numbers(curves, _INPUTS, values)


@picture((3.1, 3.1), 2.5)
def draw_fig8(axes: Any, numbers: Numbers) -> None:
    """F25 Fig. 8 as a matplotlib Figure: η^(l) with (a) one and (b) two logarithmic axes."""
    for ax, curves in zip(axes, numbers.panels().values(), strict=True):
        for curve, form in zip(curves, "-o", strict=True):
            ax.plot(curve.x, curve.y, form, color=BLUE, markersize=2.5, label=curve.label)
        ax.set(xlabel="layer $l$", yscale="log")
    count_layers(axes[0], ylabel=r"response $\eta^{(l)}$")
    axes[1].set(xscale="log", ylim=axes[0].get_ylim())
    axes[0].legend(loc="upper right")


def _unit_kernel(network: ResidualNetwork) -> float:
    """K^(0) of an input of unit length."""
    weight, bias = network.readin_variances
    return weight / network.input_dim + bias


def _responses(
    families: Sequence[Any], depth: int, inputs: int, options: dict[str, Any]
) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Networks, η^(l) in theory, and its averages over networks and inputs with their error."""
    from fieldtheory.montecarlo.perturbation import simulate_response

    nets = [family(depth=depth, **_PARAMETERS) for family in families]
    inputs = validation.integer("inputs", inputs, 2)
    generator = np.random.default_rng(validation.integer("seed", options["seed"], 0))
    X = generator.standard_normal((inputs, nets[0].input_dim)) / np.sqrt(nets[0].input_dim)
    weight, bias = nets[0].readin_variances
    K0 = weight * (X**2).mean(axis=1) + bias
    simulated = [simulate_response(net, K0, **options).input_average() for net in nets]
    rows = {
        "response": [solve(net, _unit_kernel(net)).residual_response for net in nets],
        "simulated_response": [each["residual_response"] for each in simulated],
        "simulated_response_error": [each["residual_response_error"] for each in simulated],
    }
    return nets, {name: np.stack(each) for name, each in rows.items()}
