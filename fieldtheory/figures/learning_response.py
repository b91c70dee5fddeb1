"""The response of networks before and after they learn labels; reached as `learning.response`."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fieldtheory.data import normalise
from fieldtheory.figures.f25_tasks import INPUT_SCALE
from fieldtheory.figures.parts import Numbers, curves_of, in_turn, picture
from fieldtheory.figures.trainer import langevin_step, ratio_of_means
from fieldtheory.inference import posterior
from fieldtheory.networks.residual import ResidualNetwork, input_kernel
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, tints

# Angles of three inputs with labels and two without, the labels and their noise.
_ANGLES, _LABELS, _NOISE = (0.0, 1.3, 0.6, 0.9, 2.0), np.array([2.0, -2.0, 2.0]), 0.2
_ENTRY = 3, 4
# Directions in which trained networks are moved; duration of the training, of which the first half
# is left out, where the prior relaxes in 1, and records of it; width of the dashed lines.
_DIRECTIONS, _DURATION, _RECORDS, _WIDTH = 8, 6.0, 24, 120
# Depths, ρ√L and paths of the theory; widths, ρ√L and copies of trained networks.
_FULL = (4, 10, 30, 100), (0.4, 0.7, 1.0, 1.4, 1.9, 2.6, 3.4), 8192, (60, 120), (0.7, 1.4, 2.6), 200
_QUICK = (4, 10), (0.4, 1.0, 2.0), 640, (30,), (1.0,), 20


def response(quick: bool = False, seed: int = 0, progress: bool = False) -> Numbers:
    """Response of the output before and after labels over the scaling of the residual branch."""
    depths, scales, samples, widths, trained, copies = _QUICK if quick else _FULL
    X = np.zeros((len(_ANGLES), 2 + _DIRECTIONS))
    X[:, :2] = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
    net = ResidualNetwork(depth=1, readin_bias_variance=0.0, input_dim=X.shape[1])
    X = normalise(X, INPUT_SCALE, net.weight_variance)

    def network(depth: int, width: int, scale: float) -> ResidualNetwork:
        return net.replace(depth=depth, branch_scale=scale / depth**0.5, width=width)

    wide = [network(L, 10**6, c) for L, c in product(depths, scales)]
    finite = [network(depths[0], N, c) for N, c in product(widths, trained)]
    tasks = [partial(_theory, each, X, samples, seed) for each in wide]
    tasks += [partial(_measured, each, X, copies, seed) for each in finite]
    results = in_turn(tasks, "learning.response", progress)
    before, learned, error = np.reshape(results[: len(wide)], (len(depths), -1, 3)).transpose(
        2, 0, 1
    )
    measured = np.reshape(results[len(wide) :], (len(widths), -1, 2))
    c, curves = np.array(scales), []
    for L, chi, shift, deviation in zip(depths, before, learned, error, strict=True):
        names = f"L = {L}, before", f"L = {L}, after"
        curves += curves_of("a", names, c, [chi, chi * (1 + shift / _WIDTH)])
        curves.append(Curve("b", f"L = {L}", c, shift, deviation))
    for N, points in zip(widths, measured, strict=True):
        curves.append(Curve("b", f"N = {N}", np.array(trained), *points.T))
    chosen = rf"labels $\pm 2$ of three inputs, $\kappa = {_NOISE}$, dashed: after, $N = {_WIDTH}$"
    values = {"depths": np.array(depths), "scales": c, "before": before, "learned": learned}
    return Numbers(curves, chosen, values)


def _theory(net: ResidualNetwork, X: np.ndarray, samples: int, seed: int) -> tuple[float, ...]:
    """χ, N (χ_Y − χ)/χ and its standard error."""
    K0 = input_kernel(X, net)
    result = posterior(net, K0, _LABELS, _NOISE, samples=samples, seed=seed)
    shift, error = result.output_response_shift[_ENTRY], result.output_response_shift_error[_ENTRY]
    before = solve(net, K0).output_response[_ENTRY]
    return before, net.width * shift / before, net.width * error / before


def _measured(net: ResidualNetwork, X: np.ndarray, copies: int, seed: int) -> tuple[float, ...]:
    """N (χ_Y − χ)/χ of trained networks and its standard error."""
    from fieldtheory.training import Langevin, measure_response, torch_module, train

    training, directions = X[: len(_LABELS)], np.eye(X.shape[1])[2:]

    def output(module: Any) -> dict[str, np.ndarray]:
        each = [measure_response(module, X[list(_ENTRY)], v)[:, -1, 0, 1] for v in directions]
        return {"response": np.mean([x.numpy() for x in each], axis=0)}

    step = langevin_step(net, training, _NOISE, 0.5)
    untrained = torch_module(net, seed=seed + 1, dtype="float32", copies=4 * copies)
    module = torch_module(net, seed=seed, dtype="float32", copies=copies)
    steps, langevin = int(_DURATION / step), Langevin(module.priors(), step, _NOISE, seed)
    options: Any = {"steps": steps, "every": max(1, steps // _RECORDS), "observe": output}
    records = train(module, training, _LABELS, langevin, **options).observed["response"]
    learned = records[len(records) // 2 :].mean(axis=0)
    ratio, error = ratio_of_means(learned, output(untrained)["response"])
    return net.width * (ratio - 1), net.width * error


@picture((3.2, 3.2), 2.6)
def draw_response(axes: Any, numbers: Numbers) -> None:
    """(a) χ^out before and, dashed, after the labels; (b) N times its relative change, trained."""
    panels, shades = numbers.panels(), tints(BLUE, len(numbers.depths))
    for i, curve in enumerate(panels["a"]):
        axes[0].plot(curve.x, curve.y, "-" if i % 2 == 0 else "--", color=shades[i // 2])
    colours = [*shades, *tints(ORANGE, len(panels["b"]) - len(shades))]
    for curve, colour in zip(panels["b"], colours, strict=True):
        form = "o" if curve.label.startswith("N") else "-"
        look = {"color": colour, "markersize": 3.5, "elinewidth": 0.8, "label": f"${curve.label}$"}
        axes[1].errorbar(curve.x, curve.y, curve.error, fmt=form, **look)
    axes[1].axhline(0.0, color=GRAY, linewidth=0.8)
    axes[0].set(xlabel=r"$\rho\sqrt{L}$", ylabel=r"$\chi^{\mathrm{out}}_{\alpha\beta}$")
    axes[1].set(xlabel=r"$\rho\sqrt{L}$", ylabel=r"$N (\chi_Y / \chi - 1)$")
    axes[1].legend()
