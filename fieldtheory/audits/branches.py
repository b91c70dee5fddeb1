"""Branches whose signals the theory predicts: two matrices with a norm and a gate, or one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.audits.laws import score_behind
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.networks.activations import as_activation, h
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve

# Usual functions of neurons, and the relative rounding of a branch in single precision.
_FUNCTIONS = "gelu", "gelu_tanh", "relu", "swish", "quick_gelu", "squared_relu", "tanh", "linear"
_ROUNDING, _MATRICES = 1e-4, ("Linear", "Conv1D")


class AuditedBlock(NamedTuple):
    """Mean squares of the stream ``before`` and ``behind`` a block, and more about it.

    ``share`` is what it adds over what is behind, ``linear`` the first mean square with all that
    blocks add up to here, ``correlation`` that of two inputs, and ``gradient`` the norm of that of
    a random direction of the output, over that of the last block. If the last ``branch`` is
    recognised, the mean square of one input behind it, about the mean for LayerNorm: ``measured``;
    ``predicted`` by theory with the weights as meant, with the ``spread`` over draws and ``z``; and
    ``by_weights``, with the variances that they have. If not, what `measure_block` has: ``G_Rz``,
    the mean of what the block adds times what is before it, PDLT-B (B.43), and the ``branch_scale``
    ξ with which it keeps the variance behind a skip of 1/√2, PDLT-B (B.45), None if there is none.
    """

    name: str
    before: float
    behind: float
    share: float
    linear: float
    correlation: float | None
    gradient: float
    G_Rz: float | None
    branch_scale: float | None
    branch: str | None = None
    measured: float | None = None
    predicted: float | None = None
    spread: float | None = None
    z: float | None = None
    by_weights: float | None = None


def recognised(block: Any, flows: dict[Any, Any], meant: dict[int, Any]) -> tuple[Any, ...]:
    """Fields of `AuditedBlock` on the last branch, none if that is not one of a network.

    What a block adds is, to rounding, a multiple of what the matrices of the branch give. ``flows``
    has what came in and out of modules in a forward pass, ``meant`` deviations by id of weights.
    """
    start, out = flows[block]
    linear = {m: _matrix(m, meant) for m in flows if type(m).__name__.endswith(_MATRICES)}
    for last, outer in reversed(linear.items()):
        # Before it one matrix, or two that read the same; or none.
        like = [m for m in linear if linear[m][0].T.shape == outer[0].shape and m is not last]
        inner = [m for m in like if np.array_equal(flows[m][0], flows[like[-1]][0])]
        if len(outer[0]) != out.shape[1] or len(inner) > 2 or (not inner and len(linear) > 1):
            continue
        x, orders = flows[inner[0]][0] if inner else start, permutations(linear[m] for m in inner)
        for (stream, norm, eps), name, order in product(_norms(x, flows), _FUNCTIONS, orders):
            signals, added = [x @ W.T + b for W, b, _ in order] or [x], out - stream
            signals[0] = function_of(as_activation(name).expression, h)(signals[0])
            f = np.prod(signals, axis=0) @ outer[0].T + outer[1]
            scale = float((f * added).sum() / max((f * f).sum(), np.finfo(float).tiny))
            if scale and np.linalg.norm(added - scale * f) < _ROUNDING * np.linalg.norm(added):
                centred = [y[0] - (norm == "layer") * y[0].mean() for y in (stream, out)]
                squares = [float(np.square(y).mean()) for y in centred]
                return _predicted([*order, outer], name, abs(scale), norm, eps, squares)
    return ()


def _matrix(module: Any, meant: dict[int, Any]) -> tuple[np.ndarray, Any, float | None]:
    """A matrix with its bias and its meant deviation."""
    W = module.weight.detach().cpu().double().numpy()
    bias = getattr(module, "bias", None)
    b = 0.0 if bias is None else bias.detach().cpu().double().numpy()
    return W.T if type(module).__name__ == "Conv1D" else W, b, meant.get(id(module.weight))


def _norms(x: np.ndarray, flows: dict[Any, Any]) -> Iterator[tuple[np.ndarray, Any, float]]:
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


def _predicted(
    matrices: list[Any], name: str, scale: float, norm: Any, eps: float, squares: list[float]
) -> tuple[Any, ...]:
    """Theory of a branch with weights as they are meant, and as they are; none if it has none."""
    parts = {1: ("",), 2: ("inner_", "outer_"), 3: ("inner_", "gate_", "outer_")}[len(matrices)]
    (N, M), is_block, is_gated = matrices[-1][0].shape, len(parts) > 1, len(parts) > 2
    meant = dict[str, float]()
    values: dict[str, Any] = {"depth": 1, "width": N, "activation": name, "branch_scale": scale}
    for part, (W, b, deviation) in zip(parts, matrices, strict=True):
        # σ²_w is fan-in times the mean square.
        values[f"{part}weight_variance"] = float((W**2).sum() / len(W))
        values[f"{part}bias_variance"] = float(np.mean(np.square(b)))
        if deviation is not None:
            meant[f"{part}weight_variance"] = W.shape[1] * deviation**2
    if values.pop("gate_bias_variance", 0.0) or (norm and not is_block):
        return ()
    if is_block:
        values |= {"normalization": norm, "epsilon": eps, "gated": is_gated, "expansion": M / N}
    network: Any = (BlockNetwork if is_block else ResidualNetwork)(**values)
    before, behind = squares
    intended = network.replace(**meant)
    value, spread = _prediction(intended, before)
    z = score_behind(intended, before, behind) if spread else 0.0
    text = ", ".join(filter(None, (norm, name, "gate" * is_gated)))
    return text, behind, value, spread, z, _prediction(network, before)[0]


def _prediction(network: Any, before: float) -> tuple[float, float]:
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
