"""The stream of a transformer, token by token, from the Gram matrix of its embeddings alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fieldtheory.audits.branches import Branch, network_of
from fieldtheory.audits.tensors import score
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.block_chain import BlockChain
from fieldtheory.numerics.markov.chain_fluctuations import Fluctuations
from fieldtheory.numerics.symmetric_matrices import packed, unpacked
from fieldtheory.transformers.transformer_chain import TransformerKernels
from fieldtheory.transformers.transformer_network import TransformerNetwork

# Heads over which a softmax is averaged, most tokens, and how near two streams are the same.
_SAMPLES, _TOKENS, _SAME = 512, 20, 1e-3
# By how much of its mean square a token is moved from all others.
_APART = 1e-6
# Fewest layers of which one is out of line, and to what part numbers are alike.
_FEWEST, _LIKE = 3, 0.01
# What branches of all blocks share: fields of a branch, and of its heads.
_FORM = "norm", "position", "activation", "skip", "factor"
_HEADS = "heads", "head_width", "grouped_heads", "causal", "logit_scale", "rotary", "query_key_norm"


class AuditedStep(NamedTuple):
    """The stream behind attention or MLP of a block, before a norm behind the sum.

    Mean squares over tokens: ``measured`` and ``predicted`` by theory from the Gram matrix of the
    embeddings, with the ``spread`` over networks and z; the token or the pair of tokens with the
    ``worst`` z. What the branch adds is ``added``, and by theory ``meant`` given what it reads,
    with ``added_z``. Errors of averages that are sampled are in spreads and z.
    """

    name: str
    measured: float
    predicted: float
    spread: float
    z: float
    worst: str
    worst_z: float
    added: float
    meant: float
    added_spread: float
    added_z: float


class _State(NamedTuple):
    """Entries a <= b of the kernel with its shift of order 1/N, and their covariances."""

    kernel: np.ndarray
    shift: np.ndarray
    covariance: np.ndarray


def steps_of(
    branches: list[tuple[str, Branch | None]], meant: dict[str, Any]
) -> list[AuditedStep]:
    """Steps of a stack one after the other; what is not predicted begins anew behind it."""
    state, behind, rows, drawn = None, np.zeros(0), list[AuditedStep](), dict[Any, Any]()
    for name, branch in branches:
        network = branch and network_of([branch], meant)
        if branch is None or not isinstance(network, BlockNetwork | TransformerNetwork):
            state = None
            continue
        n = _TOKENS if not branch.heads or branch.heads.causal else None
        stream, added, out = (y[:n] for y in branch.signals)
        if len(stream) > _TOKENS:
            state = None
            continue
        before, after = (_gram(y, network.centred) for y in (stream, out))
        if state is None or not _same(before, behind):
            # Tokens that are the same, which derivatives do not bear.
            K = unpacked(before, True)
            K = packed(K + _APART * np.trace(K) / len(K) * np.eye(len(K)))
            state = _State(K, np.zeros(len(K)), np.zeros((len(K),) * 2))
        (state, moments), behind = _next(network, state, drawn), after
        own = np.array_equal(*np.triu_indices(len(stream))) or np.equal(*np.triu_indices(len(stream)))
        u = own / len(stream)
        far = after - state.kernel - state.shift
        deviations = np.sqrt(np.diag(state.covariance))
        at = int(np.abs(far / deviations).argmax())
        a, b = (each[at] + 1 for each in np.triu_indices(len(stream)))
        spread = float(u @ state.covariance @ u) ** 0.5
        numbers = float(u @ after), float(u @ (state.kernel + state.shift)), spread
        worst = f"token {a}" if a == b else f"tokens {a}, {b}"
        rows.append(
            AuditedStep(
                name, *numbers, float(u @ far) / spread, worst, float(far[at] / deviations[at]),
                *_added(network, before, float(np.square(added).mean()), u, moments, drawn),
            )
        )
    return rows


def _gram(y: np.ndarray, centred: bool) -> np.ndarray:
    y = y - centred * y.mean(axis=1, keepdims=True)
    return packed(y @ y.T / y.shape[1])


def _same(before: np.ndarray, behind: np.ndarray) -> bool:
    """Whether a stream is that behind the last step, or a norm of it."""
    if before.shape != behind.shape:
        return False
    x, y = unpacked(before, True), unpacked(behind, True)
    scale = np.sqrt(np.diag(x) / np.diag(y))
    return bool(np.linalg.norm(x - scale[:, None] * y * scale) < _SAME * np.linalg.norm(x))


def _chains(network: Any, K: np.ndarray, drawn: dict[Any, Any]) -> list[BlockChain]:
    """Those of one step, of independent draws where it is attention."""
    if isinstance(network, BlockNetwork):
        return [BlockChain(MeanField(network, unpacked(K, True)))]
    kernels = TransformerKernels(network, unpacked(K, True), _SAMPLES, 0)
    attention, form = kernels.attention, network.replace(branch_scale=1.0)
    # The same random numbers serve all layers.
    key = attention.mask.tobytes(), attention.head_width, attention.grouped, network.rotary
    key = *key, attention.epsilon, attention.fixed
    vars(kernels)["attention"] = drawn.setdefault(key, attention)
    return [kernels.run(r) for r in range(kernels.runs)]


def _next(network: Any, state: _State, drawn: Any) -> tuple[_State, Any]:
    """What is behind a step, and C with its covariance given what is read."""
    runs = list[Any]()
    N, V, one = network.width, state.covariance, np.eye(len(state.kernel))
    for chain in _chains(network, state.kernel, drawn):
        of = Fluctuations(chain)
        C, X = (each[1] for each in chain.states)
        F = of._carried(1, one) + of._branch(1, one)
        units = chain.unit_covariances[0][1] / N
        curved = chain.curvature(1, V) + chain.skips[1] * chain.stream_curvature(0, V)
        half = unpacked(C[None], True)
        runs.append((C, X, F, units, of.stream_sources[1] / N, of._wick(half / 2, half)[0] / N, curved))
    C, X, F, units, sources, wick, curved = (np.mean(each, axis=0) for each in zip(*runs))
    error = _error([run[0] for run in runs])
    shift = F @ state.shift + curved - network.centred * C / N
    return _State(X, shift, F @ V @ F.T + units + sources + error), (C, units + wick)


def _error(runs: Any) -> np.ndarray:
    """Covariance of the mean over independent runs."""
    far = np.array(runs) - np.mean(runs, axis=0)
    return far.T @ far / max(len(far) * (len(far) - 1), 1)


def _added(network: Any, before: np.ndarray, added: float, u: Any, moments: Any, drawn: Any) -> Any:
    """The mean square that a branch adds, as meant given what it reads, its spread and z."""
    C, covariance = moments
    runs = [chain.states[0][1] for chain in _chains(network, before, drawn)]
    meant, error = float(u @ np.mean(runs, axis=0)), float(u @ _error(runs) @ u)
    relative = float(u @ covariance @ u) / float(u @ C) ** 2 + error / meant**2
    z = score(added**0.5, meant**0.5, 2 / relative, 0.0)
    return added, meant, meant * relative**0.5, z


def out_of_line(branches: dict[str, Branch]) -> tuple[dict[str, Branch], list[tuple[str, ...]]]:
    """Branches with the forms of most, and block, form and both values where one is another."""
    meant, found = dict(branches), list[tuple[str, ...]]()
    for attribute in (*_FORM, *_HEADS):
        owners = {n: b.heads if attribute in _HEADS else b for n, b in branches.items()}
        values = {n: getattr(owner, attribute) for n, owner in owners.items() if owner}
        for name, value in values.items():
            others = [v for n, v in values.items() if n != name]
            if len(others) < _FEWEST - 1 or _alike(value, others[0]):
                continue
            if all(_alike(v, others[0]) for v in others):
                found.append((name, attribute.replace("_", " "), f"{value}", f"{others[0]}"))
                model = next(b for n, b in branches.items() if n != name)
                branch = meant[name]
                if attribute in _HEADS:
                    heads = branch.heads and branch.heads._replace(**{attribute: others[0]})
                    branch = branch._replace(heads=heads)
                else:
                    branch = branch._replace(**{attribute: others[0]})
                epsilon = model.epsilon if attribute == "norm" else branch.epsilon
                meant[name] = branch._replace(epsilon=epsilon)
    return meant, found


def _alike(a: Any, b: Any) -> bool:
    numbers = isinstance(a, float) and isinstance(b, float)
    return bool(abs(a - b) <= _LIKE * abs(b)) if numbers else a == b
