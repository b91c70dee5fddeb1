"""Branches whose signals the theory predicts: two matrices with a norm and a gate, or one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.networks.activations import as_activation, h
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve

# Usual functions of neurons, and the relative rounding of a branch in single precision.
_FUNCTIONS = "gelu", "gelu_tanh", "relu", "swish", "quick_gelu", "squared_relu", "tanh", "linear"
_ROUNDING, _MATRICES = 1e-4, ("Linear", "Conv1D")
# Rows of what comes into a module and out of it, and a matrix with its bias and its name.
Flow = tuple[np.ndarray, np.ndarray]
Matrix = tuple[np.ndarray, Any, str]


class Branch(NamedTuple):
    """The last branch of a block, and the mean squares of one input before and behind it.

    ``network`` has one layer, with the variances that the weights have, and ``weights`` has the
    names and the fan-in of those. Mean squares are about the mean for LayerNorm.
    """

    network: Any
    weights: dict[str, tuple[str, int]]
    squares: list[float]

    @property
    def text(self) -> str:
        """Its norm, its function and whether it has a gate."""
        norm, gated = (getattr(self.network, n, None) for n in ("normalization", "gated"))
        return ", ".join(filter(None, (norm, self.network.activation.name, gated and "gate")))


def prediction(network: Any, before: float) -> tuple[float, float]:
    """Mean square behind a layer and its deviation over the weights, from that before it.

    Given K^(0), K^(1) has Var K^(1) − χ² Var K^(0) over networks, to order 1/N. Kernels of a
    `ResidualNetwork` are means over the weights of their layer, so that its units add theirs.
    """
    s = solve(network, before)
    (K0, K), (V0, V), chi = s.kernels[:2], s.kernel_variance[:2], s.response[1]
    if isinstance(network, ResidualNetwork):
        V0, C = 2 * K0**2 / network.width, K - K0
        V, chi = V + (2 * C**2 + 4 * K0 * C) / network.width, chi - 1
    return float(K), float(max(V - chi**2 * V0, 0.0)) ** 0.5


def recognised(block: Any, flows: dict[Any, Flow], names: dict[int, str]) -> Branch | None:
    """The last branch, where what a block adds is, to rounding, a multiple of that of a network.

    ``flows`` has what came in and out of its modules in a forward pass, ``names`` those of weights.
    """
    start, out = flows[block]
    linear = {m: _matrix(m, names) for m in flows if type(m).__name__.endswith(_MATRICES)}
    for last, outer in reversed(linear.items()):
        # Before it one matrix, or two that read the same; or none.
        like = [m for m in linear if linear[m][0].T.shape == outer[0].shape and m is not last]
        inner = [m for m in like if np.array_equal(flows[m][0], flows[like[-1]][0])]
        if len(outer[0]) != out.shape[1] or len(inner) > 2 or (not inner and len(linear) > 1):
            continue
        matrices, x = [linear[m] for m in inner], flows[inner[0]][0] if inner else start
        orders = (matrices, matrices[::-1])[: max(len(inner), 1)]
        for (stream, norm, eps), name, order in product(_norms(x, flows), _FUNCTIONS, orders):
            signals, added = [x @ W.T + b for W, b, _ in order] or [x], out - stream
            signals[0] = function_of(as_activation(name).expression, h)(signals[0])
            f = np.prod(signals, axis=0) @ outer[0].T + outer[1]
            scale = float((f * added).sum() / max((f * f).sum(), np.finfo(float).tiny))
            if scale and np.linalg.norm(added - scale * f) < _ROUNDING * np.linalg.norm(added):
                centred = [y[0] - (norm == "layer") * y[0].mean() for y in (stream, out)]
                squares = [float(np.square(y).mean()) for y in centred]
                return _branch([*order, outer], name, abs(scale), norm, eps, squares)
    return None


def _matrix(module: Any, names: dict[int, str]) -> Matrix:
    W = module.weight.detach().cpu().double().numpy()
    b = 0.0 if module.bias is None else module.bias.detach().cpu().double().numpy()
    return W.T if type(module).__name__ == "Conv1D" else W, b, names[id(module.weight)]


def _norms(x: np.ndarray, flows: dict[Any, Flow]) -> Iterator[tuple[np.ndarray, Any, float]]:
    """Streams of which x is a norm, with its kind and ε, or x itself."""
    streams = {id(a): a for a, b in flows.values() if a.shape == x.shape}.values()
    # That of torch's RMSNorm may be None, for the rounding of its numbers.
    epsilons = {getattr(m, n, None) or 0.0 for m in flows for n in ("eps", "variance_epsilon")}
    for stream, eps in product(streams, epsilons | {0.0}):
        for norm, y in (("rms", stream), ("layer", stream - stream.mean(axis=1, keepdims=True))):
            read = y / np.sqrt((y**2).mean(axis=1, keepdims=True) + eps + np.finfo(float).tiny)
            if np.linalg.norm(read - x) < _ROUNDING * np.linalg.norm(x):
                yield stream, norm, eps
    yield x, None, 0.0


def _branch(
    matrices: list[Matrix], name: str, scale: float, norm: Any, eps: float, squares: list[float]
) -> Branch | None:
    """A branch with the variances of its matrices; none that the theory does not have."""
    N, M = matrices[-1][0].shape
    parts = {1: ("",), 2: ("inner_", "outer_"), 3: ("inner_", "gate_", "outer_")}[len(matrices)]
    values: dict[str, Any] = {"depth": 1, "width": N, "activation": name, "branch_scale": scale}
    weights = {}
    for part, (W, b, path) in zip(parts, matrices, strict=True):
        weights[f"{part}weight_variance"] = path, W.shape[1]
        # σ²_w is fan-in times the mean square.
        values[f"{part}weight_variance"] = float((W**2).sum() / len(W))
        values[f"{part}bias_variance"] = float(np.mean(np.square(b)))
    if values.pop("gate_bias_variance", 0.0) or (norm and parts == ("",)):
        return None
    if parts == ("",):
        return Branch(ResidualNetwork(**values), weights, squares)
    values |= {"normalization": norm, "epsilon": eps, "gated": len(parts) > 2, "expansion": M / N}
    return Branch(BlockNetwork(**values), weights, squares)
