"""Figures of F25 with simulated networks, Figs. 2 and 8; reached as `f25.fig2` and `f25.fig8`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import note
from fieldtheory.networks.residual import FeedForwardNetwork, ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve, over_layers
from fieldtheory.plotting.style import BLUE, GRAY, GREEN, panels, styled

_PARAMETERS: Any = {"weight_variance": 1.2, "bias_variance": 0.2, "width": 500, "input_dim": 100}
_LABELS = ("ResNet", "FFNet")
# What the panels show.
_KINDS = {"a": "kernels", "b": "response"}
_INPUTS = r"inputs with components $\sim \mathcal{N}(0, 1/d_{\mathrm{in}})$"
# Layers after which the contraction by 0.34 a layer has left nothing of the input.
_MANY = 100


@dataclass(frozen=True, eq=False)
class Fig2:
    """Numbers of F25 Fig. 2, of the layers 0, ..., L; the first axis is (residual, feed-forward).

    Attributes
    ----------
    kernels, response : ndarray, shape (2, L+1)
        C*^(l) and η^(l) = ∂C^(l)/∂K^(0) of the theory.
    simulated_kernels, simulated_kernels_error : ndarray, shape (2, L+1)
        ⟨C^(l)⟩ of finite networks, and its standard error.
    simulated_response, simulated_response_error : ndarray, shape (2, L+1)
        The response of finite networks, averaged over the inputs too.
    fixed_point : float
        Where C*^(l) of the feed-forward network ends.
    """

    kernels: np.ndarray
    simulated_kernels: np.ndarray
    simulated_kernels_error: np.ndarray
    response: np.ndarray
    simulated_response: np.ndarray
    simulated_response_error: np.ndarray
    fixed_point: float

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        layers = np.arange(self.kernels.shape[1])
        found = [Curve("a", "FFNet, fixed point", layers, np.full(len(layers), self.fixed_point))]
        for panel, kind in _KINDS.items():
            parts = (getattr(self, f"{name}{kind}") for name in ("", "simulated_"))
            errors = getattr(self, f"simulated_{kind}_error")
            for label, theory, simulation, error in zip(_LABELS, *parts, errors, strict=True):
                found.append(over_layers(panel, f"{label}, theory", theory))
                found.append(over_layers(panel, f"{label}, simulation", simulation, error))
        return found


def fig2(
    depth: int = 20,
    samples: int = 1000,
    inputs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Fig2:
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
    Fig2

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
    from fieldtheory.montecarlo.simulation import simulate

    nets = (
        ResidualNetwork(depth=depth, **_PARAMETERS),
        FeedForwardNetwork(depth=depth, **_PARAMETERS),
    )
    K0 = _random_kernels(nets[0], inputs, seed)
    theory = [solve(net, _unit_kernel(net)) for net in nets]
    drawn = [
        simulate(net, _unit_kernel(net), samples=samples, seed=seed, jobs=jobs, progress=progress)
        for net in nets
    ]
    found = [_simulated_response(net, K0, samples, seed, jobs, progress) for net in nets]
    return Fig2(
        np.stack([s.residual_kernels[:-1] for s in theory]),
        np.stack([e.mean[:-1] for e in drawn]),
        np.stack([e.mean_error[:-1] for e in drawn]),
        np.stack([s.residual_response for s in theory]),
        np.stack([response for response, _ in found]),
        np.stack([error for _, error in found]),
        _fixed_point(nets[1]),
    )


@styled
def draw_fig2(numbers: Fig2) -> Any:
    """F25 Fig. 2 as a matplotlib Figure: (a) C^(l) with error bars, (b) η^(l)."""
    figure, axes = panels((3.1, 3.1), 2.6)
    layers = np.arange(numbers.kernels.shape[1])
    point = numbers.fixed_point
    axes[0].axhline(point, color=GRAY, linestyle="--", linewidth=0.8, zorder=0)
    text = f"fixed point of the FFNet, {point:.3f}"
    axes[0].text(layers[-1], 0.93 * point, text, ha="right", va="top", fontsize=7, color=GRAY)
    points = {"fmt": "o", "markersize": 2.5, "elinewidth": 0.8}
    for ax, (panel, kind) in zip(axes, _KINDS.items(), strict=True):
        for i, (label, colour) in enumerate(zip(_LABELS, (BLUE, GREEN), strict=True)):
            ax.plot(layers, getattr(numbers, kind)[i], color=colour, label=label)
            error = numbers.simulated_kernels_error[i] if panel == "a" else None
            simulated = getattr(numbers, f"simulated_{kind}")[i]
            ax.errorbar(layers, simulated, error, color=colour, **points)
    for ax, name in zip(axes, ("residual kernel $C^{(l)}$", r"response $\eta^{(l)}$"), strict=True):
        ax.set(xlabel="layer $l$", ylabel=name, ylim=(0, None))
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[1].legend(loc="upper right")
    note(figure, f"chosen here: $L = {layers[-1]}$, {_INPUTS}")
    return figure


@dataclass(frozen=True, eq=False)
class Fig8:
    """Numbers of F25 Fig. 8, of the layers 0, ..., L.

    Attributes
    ----------
    response, simulated_response, simulated_response_error : ndarray, shape (L+1,)
        η^(l) of the theory, that of finite networks averaged over the inputs, its standard error.
    """

    response: np.ndarray
    simulated_response: np.ndarray
    simulated_response_error: np.ndarray

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        layers = np.arange(len(self.response))
        found = []
        for panel, first in (("a", 0), ("b", 1)):
            simulated = self.simulated_response[first:], self.simulated_response_error[first:]
            found.append(Curve(panel, "theory", layers[first:], self.response[first:]))
            found.append(Curve(panel, "simulation", layers[first:], *simulated))
        return found


def fig8(
    depth: int = 20,
    samples: int = 1000,
    inputs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Fig8:
    """Decay of the response function of a residual network, theory and simulation (F25 Fig. 8).

    Parameters, inputs and networks are those of `fig2`; the caption states L = 20.

    Returns
    -------
    Fig8
    """
    net = ResidualNetwork(depth=depth, **_PARAMETERS)
    K0 = _random_kernels(net, inputs, seed)
    response = solve(net, _unit_kernel(net)).residual_response
    return Fig8(response, *_simulated_response(net, K0, samples, seed, jobs, progress))


@styled
def draw_fig8(numbers: Fig8) -> Any:
    """F25 Fig. 8 as a matplotlib Figure: η^(l) with (a) one and (b) two logarithmic axes."""
    figure, axes = panels((3.1, 3.1), 2.5)
    layers = np.arange(len(numbers.response))
    for ax, first in zip(axes, (0, 1), strict=True):
        ax.plot(layers[first:], numbers.response[first:], color=BLUE, label="theory")
        ax.plot(
            layers[first:],
            numbers.simulated_response[first:],
            "o",
            color=BLUE,
            markersize=2.5,
            label="simulation",
        )
        ax.set(xlabel="layer $l$", yscale="log")
    axes[0].set_ylabel(r"response $\eta^{(l)}$")
    axes[0].xaxis.get_major_locator().set_params(integer=True)
    axes[1].set(xscale="log", ylim=axes[0].get_ylim())
    axes[0].legend(loc="upper right")
    note(figure, f"chosen here: {_INPUTS}")
    return figure


def _unit_kernel(network: ResidualNetwork) -> float:
    """K^(0) of an input of unit length."""
    weight, bias = network.readin_variances
    return weight / network.input_dim + bias


def _fixed_point(network: FeedForwardNetwork) -> float:
    """K = σ_w² M(K) + σ_b²."""
    deep = solve(network.replace(depth=_MANY), _unit_kernel(network))
    return float(deep.residual_kernels[-2])


def _random_kernels(network: ResidualNetwork, inputs: int, seed: int) -> np.ndarray:
    """K^(0) of random inputs whose components have the variance 1/d_in, shape (inputs,)."""
    inputs = validation.integer("inputs", inputs, 2)
    generator = np.random.default_rng(validation.integer("seed", seed, 0))
    X = generator.standard_normal((inputs, network.input_dim)) / np.sqrt(network.input_dim)
    weight, bias = network.readin_variances
    return weight * (X**2).mean(axis=1) + bias


def _simulated_response(
    network: ResidualNetwork, K0: np.ndarray, samples: int, seed: int, jobs: Any, progress: bool
) -> tuple[np.ndarray, np.ndarray]:
    """η^(l) averaged over networks and inputs, and its standard error, each (L+1,)."""
    from fieldtheory.montecarlo.perturbation import simulate_response

    found = simulate_response(
        network, K0, samples=samples, seed=seed, jobs=jobs, progress=progress
    ).input_average()
    return found["residual_response"], found["residual_response_error"]
