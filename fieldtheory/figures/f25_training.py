"""F25 Fig. 7, the response function of trained networks; reached as `f25.fig7`."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.data import load_mnist, normalise
from fieldtheory.figures.f25_tasks import INPUT_SCALE
from fieldtheory.figures.parts import Numbers, count_layers, picture
from fieldtheory.figures.trainer import Size, accuracy, langevin_step, ratio_of_means
from fieldtheory.inference import posterior
from fieldtheory.networks.residual import ResidualNetwork, input_kernel
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve, matrix_rows, over_layers
from fieldtheory.plotting.style import BLUE, GRAY, GREEN

# ρ of the networks, and how they are drawn.
_SCALES = {1.0: BLUE, 0.3: GREEN}
_STATES = ("before", "after")
# The temperature κ, which the caption leaves open.
_NOISE = 0.05
# h (1 + λ/κ) for the step h, at ρ = 1.
_STABLE = 0.8
# Pairs of images over which the response is averaged.
_PAIRS = 50
# Those of the caption, and those of tests.
_FULL = Size(networks=((10, 500),), images=100, tested=200, steps=10_000)
_QUICK = Size(networks=((3, 30),), images=10, tested=200, steps=60)
# Many small networks at several temperatures, of at most so many steps.
_SCAN = Size(networks=((10, 60),), images=20, tested=0, steps=8000, copies=20)
_QUICK_SCAN = Size(networks=((3, 20),), images=10, tested=0, steps=60, copies=4)
_TEMPERATURES, _QUICK_TEMPERATURES = (0.02, 0.05, 0.2, 0.8), (0.2, 0.8)


def fig7(
    quick: bool = False,
    seed: int = 0,
    directory: str | Path | None = None,
    progress: bool = False,
) -> Numbers:
    """Response, loss and kernels of networks before and after training (F25 Fig. 7); needs torch.

    Parameters
    ----------
    quick : bool
        3 layers of 30 neurons, 10 images and 60 steps, in ten seconds; else those of the caption,
        10 layers of 500 neurons, 100 images and 10,000 steps, in twenty minutes on one core.
    seed, directory, progress
        As for `simulate`; an interrupted call goes on from the checkpoints in the folder.

    Returns
    -------
    Numbers
        For ρ = 1 and 0.3: (a) η_αβ^(l) of pairs of images before and after training, means with
        standard errors over the pairs, and of infinitely wide networks; (b) the training loss
        ½ (y − f)² of an image and the test accuracy; (c) the output kernels; (d) residual kernels
        of pairs within a class less those of pairs between classes, before and after training (mean
        over the second half of the steps), at infinite width and in the posterior to order 1/N;
        (e) the mean η_αβ^(L) of small trained networks over that of untrained ones against the
        temperature, with standard errors over the networks.

    Notes
    -----
    Digits 0 and 3 of MNIST with K^(0) = 0.05 and labels ±1, one network for each ρ, trained in
    float32 by `fieldtheory.training.Langevin`. The caption leaves open the temperature, here 0.05,
    the step, here the same for both ρ and 0.4 of the largest stable one at ρ = 1, and the test
    images, here 200. The response is the central difference of C^(l) over that of the input kernel
    when both images of a pair turn by ±1e-4 in their plane and keep their lengths. C^(l) of trained
    networks is a_l φφᵀ/N + c_l with the a_l and c_l of the prior, in all panels.

    What is found with the seed 0 is on the page docs/howto/train_networks.md.
    """
    size = _QUICK if quick else _FULL
    seed = validation.integer("seed", seed, 0)
    if directory is not None:
        Path(directory).mkdir(parents=True, exist_ok=True)
    data = _classes(size.images, size.tested)
    ((depth, width),) = size.networks
    nets = [_network(depth, width, rho) for rho in _SCALES]
    step = langevin_step(nets[0], data[0], _NOISE, _STABLE)
    rows = [_trained(net, data, step, size.steps, seed, directory, progress) for net in nets]
    small = _QUICK_SCAN if quick else _SCAN
    scan = small, _QUICK_TEMPERATURES if quick else _TEMPERATURES, seed, directory, progress
    rows += [[_scanned(rho, *scan)] for rho in _SCALES]
    chosen = (
        f"{depth} layers of {width} neurons, {size.images} images, {size.steps} steps, "
        rf"temperature {_NOISE:g}, $K^{{(0)}} = {INPUT_SCALE:g}$; dots before, "
        "crosses after training; lines: infinite width, dashed: posterior to order $1/N$; (e) "
        f"{small.copies} networks of {small.networks[0][1]} neurons, {small.images} images"
    )
    return Numbers([curve for curves in rows for curve in curves], chosen)


def _network(depth: int, width: int, rho: float) -> ResidualNetwork:
    return ResidualNetwork(
        depth=depth, branch_scale=rho, bias_variance=0.0, width=width, input_dim=784
    )


def _classes(count: int, tested: int) -> tuple[np.ndarray, ...]:
    """Samples and labels for training, as many of both classes, and those for tests."""
    images = load_mnist(count=count + tested)
    samples = normalise(images.samples, INPUT_SCALE, ResidualNetwork(depth=1).weight_variance)
    labels = np.where(np.asarray(images.labels) == 0, 1.0, -1.0)
    # Sorted by class: the first of each are for training.
    first = np.arange(len(labels)) % (len(labels) // 2) < count // 2
    return samples[first], labels[first], samples[~first], labels[~first]


def _trained(
    net: ResidualNetwork,
    data: tuple[np.ndarray, ...],
    step_size: float,
    steps: int,
    seed: int,
    directory: str | Path | None,
    progress: bool,
) -> list[Curve]:
    """All curves of one network."""
    # Records of loss and kernels during the training.
    records = 100
    from fieldtheory.training import Langevin, torch_module, train

    X, Y, tested, labels = data
    name = f"rho = {net.branch_scale:g}"
    module = torch_module(net, seed=seed, dtype="float32")
    before = deepcopy(module)

    def observe(module: Any) -> dict[str, Any]:
        contrast = _contrast(module.residual_kernels(X).numpy(), Y)
        return {"accuracy": accuracy(module, tested, labels), "contrast": contrast}

    history = train(
        module, X, Y, Langevin(module.priors(), step_size, _NOISE, seed), steps=steps,
        every=max(1, steps // records), observe=observe, progress=progress and f"f25.fig7, {name}",
        checkpoint=None if directory is None else Path(directory) / f"{name}.pt",
    )  # fmt: skip
    contrast = history.observed["contrast"]
    solved = solve(net, input_kernel(X, net))
    learned = posterior(net, solved.input_kernel, Y, _NOISE, seed=seed)
    pairs = _pairs(len(X), seed)
    theory = solved.residual_response[:, pairs[:, 0], pairs[:, 1]].mean(axis=1)
    curves = [
        over_layers("a", f"{name}, theory", theory),
        Curve("b", f"{name}, loss", history.steps, history.loss / len(X)),
        Curve("b", f"{name}, accuracy", history.steps, history.observed["accuracy"]),
        over_layers("d", f"{name}, theory", _contrast(solved.residual_kernels, Y)),
        over_layers("d", f"{name}, posterior", _contrast(learned.residual_kernels, Y)),
        over_layers("d", f"{name}, before", contrast[0]),
        over_layers("d", f"{name}, after", contrast[len(contrast) // 2 :].mean(axis=0)),
    ]
    for state, each in zip(_STATES, (before, module), strict=True):
        eta = _responses(each, X[pairs])
        error = eta.std(axis=0, ddof=1) / _PAIRS**0.5
        curves.append(over_layers("a", f"{name}, {state}", eta.mean(axis=0), error))
        output = each.residual_kernels(X)[-1].detach().numpy()
        curves += matrix_rows(f"c, {name}, {state}", output)
    return curves


def _scanned(
    rho: float,
    size: Size,
    temperatures: tuple[float, ...],
    seed: int,
    directory: str | Path | None,
    progress: bool,
) -> Curve:
    """The mean response of the last layer after training, of that before, over temperatures."""
    # Step size times steps of the scan, the relaxation time of the prior being 1; and its records,
    # over whose second half the response is averaged.
    duration, times = 2.0, 16
    from fieldtheory.training import Langevin, torch_module, train

    samples, Y, *_ = _classes(size.images, size.tested)
    net = _network(*size.networks[0], rho)
    # Inputs of the same kernel with as few numbers as there are of them.
    values, vectors = np.linalg.eigh(input_kernel(samples, net))
    X = vectors * np.sqrt(np.maximum(values, 0) * len(Y) / net.weight_variance)
    net = net.replace(input_dim=len(Y))
    pairs = X[_pairs(len(X), seed)]

    def last(module: Any) -> np.ndarray:
        return _responses(module, pairs)[..., -1].mean(axis=0)

    untrained = torch_module(net, seed=seed + 1, dtype="float32", copies=100)
    before = last(untrained)
    ratios = []
    for number, noise in enumerate(temperatures):
        step = langevin_step(net, X, noise, _STABLE)
        steps = min(size.steps, math.ceil(duration / step))
        module = torch_module(net, seed=seed, dtype="float32", copies=size.copies)
        name = f"scan, rho = {rho:g}, {number}"
        history = train(
            module, X, Y, Langevin(module.priors(), step, noise, seed), steps=steps,
            every=max(1, steps // times), observe=lambda module: {"response": last(module)},
            progress=progress and f"f25.fig7, {name}",
            checkpoint=None if directory is None else Path(directory) / f"{name}.pt",
        )  # fmt: skip
        responses = history.observed["response"]
        after = responses[len(responses) // 2 :].mean(axis=0)
        ratios.append(ratio_of_means(after, before))
    values, errors = np.transpose(ratios)
    return Curve("e", f"rho = {rho:g}, ratio", np.array(temperatures), values, errors)


def _pairs(count: int, seed: int) -> np.ndarray:
    """Pairs of different images, (n, 2)."""
    rng = np.random.default_rng(seed)
    return rng.permuted(np.tile(np.arange(count), (_PAIRS, 1)), axis=1)[:, :2]


def _contrast(kernels: np.ndarray, Y: np.ndarray) -> np.ndarray:
    same = np.equal.outer(Y, Y)
    others = same & ~np.eye(len(Y), dtype=bool)
    return np.asarray(kernels[..., others].mean(axis=-1) - kernels[..., ~same].mean(axis=-1))


def _responses(module: Any, pairs: np.ndarray) -> np.ndarray:
    """∂C_αβ^(l)/∂C_αβ^(0), l = 0, ..., L, for pairs (n, 2, d), (n, [copies,] L + 1)."""
    double, rows, first = deepcopy(module).double(), [], 2 * np.arange(len(pairs))
    # By which both inputs of a pair turn, in radians.
    turn = 1e-4
    for angle in (turn, -turn):
        turned = np.stack([_turned(pairs[:, i], pairs[:, 1 - i], angle) for i in (0, 1)], axis=1)
        kernels = double.residual_kernels(turned.reshape(-1, turned.shape[-1])).detach().numpy()
        rows.append(np.moveaxis(kernels[..., :-1, first, first + 1], -1, 0))
    change = rows[0] - rows[1]
    return np.asarray(change / change[..., :1])


def _turned(a: np.ndarray, b: np.ndarray, angle: float) -> np.ndarray:
    """Each row of a turned towards that of b, with its length kept."""
    length = np.linalg.norm(a, axis=1, keepdims=True)
    across = b - (a * b).sum(axis=1, keepdims=True) / length**2 * a
    across *= length / np.linalg.norm(across, axis=1, keepdims=True)
    return np.cos(angle) * a + np.sin(angle) * across


@picture((2.7, 3.1, 2.6, 2.7, 2.7), 2.9)
def draw_fig7(axes: Any, numbers: Numbers) -> None:
    """(a) Response, (b) loss and accuracy, (c) output kernels, (d) of layers, (e) temperatures."""
    curves_of = numbers.panels()
    colours = {f"rho = {rho:g}": colour for rho, colour in _SCALES.items()}
    forms = {"theory": "-", "before": "o", "after": "x", "posterior": "--"}
    forms |= {"loss": "-", "ratio": "x-"}
    accuracies = axes[1].twinx()
    for ax, panel in ((axes[0], "a"), (axes[1], "b"), (axes[3], "d"), (axes[4], "e")):
        for curve in curves_of[panel]:
            name, kind = curve.label.split(", ")
            points = {"color": colours[name], "markersize": 3.5, "elinewidth": 0.8}
            if kind == "accuracy":
                accuracies.plot(curve.x, 100 * curve.y, ":", color=colours[name])
            else:
                label = name.replace("rho", r"$\rho$") if kind == "theory" else None
                ax.errorbar(curve.x, curve.y, curve.error, fmt=forms[kind], label=label, **points)
    axes[0].legend()
    count_layers(axes[0], ylabel=r"response $\eta_{\alpha\beta}^{(l)}$", yscale="log")
    count_layers(axes[3], ylabel="$C^{(l)}$ within less between classes", yscale="log")
    axes[4].set(xlabel="temperature", ylabel=r"$\eta_{\alpha\beta}^{(L)}$ after / before training")
    temperatures = curves_of["e"][0].x
    axes[4].set_xscale("log")
    axes[4].set_xticks(temperatures, [f"{noise:g}" for noise in temperatures])
    axes[4].set_xticks([], minor=True)
    axes[4].axhline(1.0, color=GRAY, linewidth=0.8)
    axes[1].set(xlabel="step", ylabel="training loss (solid)", yscale="log")
    accuracies.set_ylabel("test accuracy in % (dotted)")
    accuracies.spines["right"].set_visible(True)
    rows = []
    for name in colours:
        pair = [[curve.y for curve in curves_of[f"c, {name}, {state}"]] for state in _STATES]
        rows.append(np.hstack(pair) / np.max(pair))
    axes[2].imshow(np.vstack(rows), cmap="cividis", interpolation="nearest")
    centres = len(rows[0]) * np.array([0.5, 1.5])
    axes[2].set_xticks(centres, _STATES)
    axes[2].set_yticks(centres, [name.replace("rho", r"$\rho$") for name in colours], rotation=90)
    axes[2].set_xlabel("output kernel / its maximum")
