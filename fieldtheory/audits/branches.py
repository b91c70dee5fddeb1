"""Branches whose signals the theory predicts: two matrices with a norm and a gate, or one."""

from __future__ import annotations

from collections import defaultdict
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
from fieldtheory.transformers.transformer_network import TransformerNetwork

# A matrix with its bias and the name of its weight.
Matrix = tuple[np.ndarray, Any, str]
# Usual functions of neurons, the relative rounding of a branch in single precision, and the digits
# to which a fit of it has a factor.
_FUNCTIONS = "gelu", "gelu_tanh", "relu", "swish", "quick_gelu", "squared_relu", "tanh", "linear"
_ROUNDING, _DIGITS = 1e-4, 6
# Relative rounding of mean squares in single precision.
_SINGLE = 3e-7


class AuditedBlock(NamedTuple):
    """Mean squares of the stream ``before`` and ``behind`` a block, and more about it.

    ``share`` is what it adds over what is behind, ``linear`` the first mean square with all that
    blocks add up to here, ``correlation`` that of two inputs, and ``gradient`` the norm of that of
    a random direction of the output, over that of the last block. If the last ``branch`` is
    recognised, the ``factor`` in front of it, as fitted; where no norm is behind the sum the mean
    square of one input behind it, about the mean for LayerNorm: ``measured``; ``predicted`` by
    theory with the weights as meant, with the ``spread`` over draws and ``z``; and ``by_weights``,
    with the variances that they have. If not, as in `measure_block`: ``G_Rz``, the mean of what
    the block adds times what is before it, PDLT-B (B.43), and the ``branch_scale`` ξ with which it
    keeps the variance behind a skip of 1/√2, PDLT-B (B.45), None if there is none.
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
    factor: float | None = None
    measured: float | None = None
    predicted: float | None = None
    spread: float | None = None
    z: float | None = None
    by_weights: float | None = None


class Branch(NamedTuple):
    """A branch as that of a layer of a network: out = skip × stream + factor × f(n(stream)).

    ``matrices`` are those before the last and the last, with biases and the names of the weights;
    ``signals`` rows of the stream, of factor × f and of what is behind before its norm.
    ``is_whole`` says that the block has nothing else, ``heads`` how it attends.
    """

    matrices: list[Matrix]
    activation: str
    factor: float
    skip: float
    norm: str | None
    position: str
    epsilon: float
    signals: tuple[np.ndarray, ...]
    is_whole: bool
    heads: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Norm, function and gate."""
        norm = f"{self.position} " * (self.position == "post") + (self.norm or "")
        more = [self.activation, "gate" * (len(self.matrices) > 2)]
        if form := self.heads:
            groups = f" by {form['grouped_heads']}" * (form["grouped_heads"] > 1)
            more = [n.replace("_", " ") for n in ("causal", "rotary", "query_key_norm") if form[n]]
            more = [f"{form['heads']} heads{groups}", *more]
        return ", ".join(filter(None, (norm, *more)))

    @property
    def squares(self) -> list[float]:
        """Mean squares of one input of the stream and of what is behind it."""
        rows = [y[0] - (self.norm == "layer") * y[0].mean() for y in self.signals[::2]]
        return [float(np.square(y).mean()) for y in rows]


def recognised(names: dict[Any, str], block: Any, flows: dict[Any, Any]) -> Branch | None:
    """The last branch of a block, None if that is not one of a network."""
    start, out = flows[block]
    linear = matrices_of(names, flows)
    for last, outer in reversed(linear.items()):
        # Before it one matrix, or two that read the same; or none.
        like = [m for m in linear if linear[m][0].T.shape == outer[0].shape and m is not last]
        inner = [m for m in like if np.array_equal(flows[m][0], flows[like[-1]][0])]
        if len(outer[0]) != out.shape[1] or len(inner) > 2 or (not inner and len(linear) > 1):
            continue
        x, orders = flows[inner[0]][0] if inner else start, permutations(linear[m] for m in inner)
        fits = []
        for (stream, norm, eps), name, order in product(norms_of(x, flows), _FUNCTIONS, orders):
            signals, position = [x @ W.T + b for W, b, _ in order] or [x], "pre"
            signals[0] = function_of(as_activation(name).expression, h)(signals[0])
            f = np.prod(signals, axis=0) @ outer[0].T + outer[1]
            fit = scales(stream, f, out)
            if not fit and norm is None and order:
                fit, norm, eps = scales_behind(stream, f, out, flows)
                position = "post"
            # A gate has no bias, and a branch of one matrix no norm, in networks.
            if not fit or (norm and not order) or (len(order) > 1 and np.any(order[1][1])):
                continue
            form = norm, position, eps, stream, f, np.array_equal(stream, start)
            fits.append((fit[0], branch_of([*order, outer], name, fit, *form)))
        if fits:
            # Of functions that are near each other, as GELU and its tanh, the nearest.
            return min(fits, key=lambda each: each[0])[1]
    return None


def branch_of(matrices: Any, name: str, fit: Any, *form: Any) -> Branch:
    """With the factors of a fit; norm, its position and ε, the stream, f and the last fields."""
    norm, position, epsilon, stream, f, is_whole, *heads = form
    rho, gamma = (float(f"{x:.{_DIGITS}g}") for x in fit[1:])
    signals = stream, rho * f, gamma * stream + rho * f
    own = norm, position, epsilon, signals, is_whole
    return Branch(matrices, name, rho, gamma, *own, heads=heads[0] if heads else None)


def scales(stream: np.ndarray, f: np.ndarray, out: np.ndarray) -> tuple[float, ...]:
    """Remainder, ρ and γ of out = γ × stream + ρ f, none if it is not that."""
    added = out - stream
    rho, gamma = float((f * added).sum() / max((f * f).sum(), np.finfo(float).tiny)), 1.0
    if np.linalg.norm(added - rho * f) > _ROUNDING * np.linalg.norm(added):
        both = np.stack([f.ravel(), stream.ravel()], axis=1)
        rho, gamma = np.linalg.lstsq(both, out.ravel(), rcond=None)[0].tolist()
        if np.linalg.norm(gamma * stream) < _ROUNDING * np.linalg.norm(out):
            gamma = 0.0
    size, rest = np.linalg.norm(rho * f), np.linalg.norm(out - gamma * stream - rho * f)
    return (float(rest / size), rho, gamma) if size and rest < _ROUNDING * size else ()


def scales_behind(stream: np.ndarray, f: np.ndarray, out: np.ndarray, flows: Any) -> Any:
    """Remainder, ρ and γ = 1, norm and ε of out = n(stream + ρ f), rows parallel to the sum."""
    for norm in ("rms", "layer"):
        parts = [y - y.mean(axis=1, keepdims=True) if norm == "layer" else y for y in (stream, f)]
        along = out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), np.finfo(float).tiny)
        a, b = (y - along * (along * y).sum(axis=1, keepdims=True) for y in parts)
        rho = -float((a * b).sum() / max((b * b).sum(), np.finfo(float).tiny))
        size, rest = np.linalg.norm(rho * parts[1]), np.linalg.norm(a + rho * b)
        if size and rest < _ROUNDING * size:
            for eps in [eps for _, n, eps in norms_of(out, flows, stream + rho * f) if n == norm]:
                return (float(rest / size), rho, 1.0), norm, eps
    return (), None, 0.0


def matrix_of(module: Any, flow: Any, names: dict[Any, str]) -> Matrix | None:
    """A matrix with its bias and its name, if that is what a module multiplies with."""
    x, y = flow
    weight: Any = getattr(module, "weight", None)
    if getattr(weight, "ndim", 0) != 2 or weight.is_sparse:
        return None
    whole = weight.detach().cpu().double().numpy()
    bias = getattr(module, "bias", None)
    b = 0.0 if bias is None else bias.detach().cpu().double().numpy()
    for W in (whole, whole.T):
        if (len(W), W.shape[1], len(y)) == (y.shape[1], x.shape[1], len(x)):
            if np.linalg.norm(x @ W.T + b - y) <= _ROUNDING * np.linalg.norm(y):
                return W, b, f"{names[module]}.weight".lstrip(".")
    return None


def matrices_of(names: dict[Any, str], flows: dict[Any, Any]) -> dict[Any, Matrix]:
    """Those of all modules that multiply with one."""
    found = ((m, matrix_of(m, flows[m], names)) for m in flows)
    return {m: matrix for m, matrix in found if matrix is not None}


def norms_of(
    x: np.ndarray, flows: dict[Any, Any], only: Any = None
) -> Iterator[tuple[np.ndarray, str | None, float]]:
    """Streams of which x is a norm, with its kind and ε, or x itself."""
    inputs = {id(a): a for a, b in flows.values() if a.shape == x.shape}.values()
    # That of torch's RMSNorm may be None, for the rounding of its numbers.
    known = {getattr(m, n, None) or 0.0 for m in flows for n in ("eps", "variance_epsilon")}
    for stream in inputs if only is None else [only]:
        for norm, y in (("rms", stream), ("layer", stream - stream.mean(axis=1, keepdims=True))):
            before, behind = ((each**2).mean(axis=1, keepdims=True) for each in (y, x))
            # ε of a forward pass may be written there: by the mean squares K/(K + ε).
            ratios = before * (1 / np.maximum(behind, np.finfo(float).tiny) - 1)
            resolved, fitted = _SINGLE * float(before.mean()), float(np.median(ratios))
            is_one = float(before.mean()) > fitted > resolved > 0
            digits = int(np.log10(fitted / resolved)) if is_one else 0
            fitted = float(f"{fitted:.{digits}g}") if digits else 0.0
            for epsilons in ({*known, 0.0}, {fitted}):
                reads = {e: y / np.sqrt(before + e + np.finfo(float).tiny) for e in epsilons}
                far = {e: float(np.linalg.norm(read - x)) for e, read in reads.items()}
                eps = min(far, key=lambda e: far[e])
                if far[eps] < _ROUNDING * np.linalg.norm(x):
                    yield stream, norm, float(eps)
                    break
    yield x, None, 0.0


def predicted(branch: Branch, meant: dict[str, Any]) -> tuple[Any, ...]:
    """Fields of `AuditedBlock` on a branch: theory with weights as they are meant, and as they are.

    ``meant`` are deviations by the names of weights. What a norm leaves behind is no prediction.
    """
    if branch.position == "post":
        return branch.text, branch.factor
    before, behind = branch.squares
    intended = network_of([branch], meant)
    value, spread = _prediction(intended, before)
    z = score_behind(intended, before, behind) if spread else 0.0
    by_weights = _prediction(network_of([branch], {}), before)[0]
    return branch.text, branch.factor, behind, value, spread, z, by_weights


def network_of(branches: list[Branch], meant: dict[str, Any], **more: Any) -> Any:
    """The network of branches of one form, with variances as meant, or those of the weights."""
    first, count = branches[0], len(branches[0].matrices)
    parts: Any = {1: ("",), 2: ("inner_", "outer_"), 3: ("inner_", "gate_", "outer_")}
    parts = parts.get(count, ("query_", "key_", "value_", "out_"))
    (N, M), layers = first.matrices[-1][0].shape, defaultdict[str, list[float]](list)
    for branch in branches:
        layers["branch_scale"].append(abs(branch.factor))
        layers["skip_scale"].append(branch.skip)
        for part, (W, b, name) in zip(parts, branch.matrices, strict=True):
            # σ²_w is fan-in times the mean square.
            deviation = meant.get(name)
            size = float((W**2).sum() / len(W)) if deviation is None else W.shape[1] * deviation**2
            layers[f"{part}weight_variance"].append(size)
            layers[f"{part}bias_variance"].append(float(np.mean(np.square(b))))
    values: dict[str, Any] = {n: v if len({*v}) > 1 else v[0] for n, v in layers.items()}
    # One number for all layers.
    biases = {n: float(np.mean(v)) for n, v in layers.items() if "bias" in n and n[:4] != "gate"}
    values = {n: v for n, v in values.items() if "bias" not in n} | biases | more
    values |= {"depth": len(branches), "width": N}
    if first.heads:
        form = {n: v for n, v in first.heads.items() if n != "form"}
        form |= {"normalization": first.norm, "norm_position": first.position, "mlp": None}
        values = {n: v for n, v in values.items() if "bias" not in n} | form
        return TransformerNetwork(**values, epsilon=first.epsilon)
    values["activation"] = first.activation
    if count == 1:
        # Its layers have one variance: what they differ by is in their scales.
        sizes = np.array(layers["weight_variance"])
        mean = values["weight_variance"] = float(sizes.mean())
        if np.ptp(sizes):
            values["branch_scale"] = np.multiply(layers["branch_scale"], (sizes / mean) ** 0.5)
        return ResidualNetwork(**values)
    values |= {"normalization": first.norm, "norm_position": first.position, "gated": count > 2}
    return BlockNetwork(**values, epsilon=first.epsilon, expansion=M / N)


def _prediction(network: Any, before: float) -> tuple[float, float]:
    """Mean square behind a layer and its deviation over the weights, from that before it."""
    s = solve(network, before)
    (K0, K), (V0, V), chi = s.kernels[:2], s.kernel_variance[:2], s.response[1]
    if isinstance(network, ResidualNetwork):
        skip = float(network.skip_scales[0]) ** 2
        V0, C = 2 * K0**2 / network.width, K - skip * K0
        V, chi = V + (2 * C**2 + 4 * skip * K0 * C) / network.width, chi - skip
    return float(K), float(max(V - chi**2 * V0, 0.0)) ** 0.5
