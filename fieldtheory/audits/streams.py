"""The stream of a transformer, token by token, from the Gram matrix of its embeddings alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fieldtheory.audits.branches import Branch, network_of
from fieldtheory.audits.tensors import score
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.block_chain import BlockChain
from fieldtheory.numerics.markov.chain_fluctuations import Fluctuations
from fieldtheory.numerics.symmetric_matrices import packed, unpacked
from fieldtheory.transformers.transformer_chain import TransformerKernels

# Heads over which a softmax is averaged, and the first tokens, which do not see those behind them.
_SAMPLES, _FIRST = 512, 12
# How near two streams are the same, and by what part of its square a token is moved from others.
_SAME, _APART = 1e-3, 1e-6
# Fewest layers of which one is out of line, to what part numbers are alike, and what is compared.
_FEWEST, _LIKE = 3, 0.01
_FORM = "norm", "position", "skip", "factor", "epsilon"


class AuditedStep(NamedTuple):
    """The stream behind attention or MLP of a block, before a norm that is behind the sum.

    Mean squares over tokens: ``measured`` and ``predicted`` by theory from the Gram matrix of the
    embeddings, with the ``spread`` over networks and z; the token or the pair with the ``worst`` z.
    What the branch adds is ``added``, by theory ``expected`` ± ``error`` of what it reads, with
    ``added_z``. ``form`` is what is recognised. Errors of sampled averages are in spreads and z.
    """

    name: str
    form: str
    measured: float
    predicted: float
    spread: float
    z: float
    worst: str
    worst_z: float
    added: float
    expected: float
    error: float
    added_z: float


def steps_of(branches: list[tuple[str, Branch]], meant: dict[str, Any]) -> list[AuditedStep]:
    """Steps one after the other; behind what is not among them the prediction begins anew."""
    behind, rows, drawn = np.zeros((0, 0)), list[AuditedStep](), dict[Any, Any]()
    all_causal = all(branch.heads is None or branch.heads["causal"] for _, branch in branches)
    for name, branch in branches:
        network = network_of([branch], meant)
        if isinstance(network, ResidualNetwork):
            continue
        stream, added, out = (y[: _FIRST if all_causal else None] for y in branch.signals)
        centred = [y - network.centred * y.mean(axis=1, keepdims=True) for y in (stream, out)]
        before, after = (y @ y.T / network.width for y in centred)
        (a, b), N = np.triu_indices(len(before)), network.width
        # Derivatives do not bear tokens that are the same.
        apart = packed(before) + _APART * np.trace(before) / len(before) * (a == b)
        if not _is_same(before, behind):
            K, m, V = apart, 0.0 * apart, np.zeros((len(a), len(a)))
        behind, u = after, (a == b) / len(before)
        C, K, F, curved, sources, _, error = _step(network, K, V, drawn)
        m, V = F @ m + curved - network.centred * C / N, F @ V @ F.T + sources + error
        far, deviations = packed(after) - K - m, np.sqrt(np.diag(V))
        at, spread = int(np.abs(far / deviations).argmax()), float(u @ V @ u) ** 0.5
        worst = f"token {a[at] + 1}" if a[at] == b[at] else f"tokens {a[at] + 1}, {b[at] + 1}"
        numbers = [*(float(u @ x) for x in (packed(after), K + m)), spread, float(u @ far) / spread]
        # What is added, given what is read.
        C, *_, own, error = _step(network, apart, None, drawn)
        size, aim = float(np.square(added).mean()), float(u @ C)
        relative = float(u @ (own + error) @ u) / aim**2
        z = score(size**0.5, aim**0.5, 2 / relative, 0.0)
        numbers += [worst, float(far[at] / deviations[at]), size, aim, aim * relative**0.5, z]
        rows.append(AuditedStep(name, branch.text, *numbers))
    return rows


def _step(network: Any, K: np.ndarray, V: Any, drawn: dict[Any, Any]) -> list[np.ndarray]:
    """C, K' and F' of a step from K, F'':V/2, what is new in V, the covariance of C, its error."""
    runs, one, N = list[Any](), np.eye(len(K)), network.width
    for chain in _chains(network, K, drawn):
        of = Fluctuations(chain)
        C, X = (each[1] for each in chain.states)
        F, curved = of._carried(1, one) + of._branch(1, one), np.zeros(len(K))
        if V is not None:
            curved = chain.curvature(1, V) + chain.skips[1] * chain.stream_curvature(0, V)
        half, units = unpacked(C[None], True) / 2, chain.unit_covariances[0][1]
        own = units + of._wick(half, 2 * half)[0]
        runs.append((C, X, F, curved, (units + of.stream_sources[1]) / N, own / N))
    mean = [np.mean(each, axis=0) for each in zip(*runs, strict=True)]
    far = np.array([run[0] for run in runs]) - mean[0]
    return [*mean, far.T @ far / max(len(far) * (len(far) - 1), 1)]


def _is_same(before: np.ndarray, behind: np.ndarray) -> bool:
    """Whether a stream is that behind the last step, or a norm of it."""
    if before.shape != behind.shape:
        return False
    scale = np.sqrt(np.diag(before) / np.diag(behind))
    rest = before - scale[:, None] * behind * scale
    return bool(np.linalg.norm(rest) < _SAME * np.linalg.norm(before))


def _chains(network: Any, K: np.ndarray, drawn: dict[Any, Any]) -> list[BlockChain]:
    """Those of one step from a kernel, of independent draws where it is attention."""
    if isinstance(network, BlockNetwork):
        return [BlockChain(MeanField(network, unpacked(K, True)))]
    kernels = TransformerKernels(network, unpacked(K, True), _SAMPLES, 0)
    new = kernels.attention
    # The same random numbers serve all layers.
    key = new.mask.tobytes(), new.head_width, new.grouped, new.epsilon, new.fixed, network.rotary
    vars(kernels)["attention"] = drawn.setdefault(key, new)
    return [kernels.run(r) for r in range(kernels.runs)]


def out_of_line(branches: dict[str, Branch]) -> tuple[dict[str, Branch], list[tuple[Any, ...]]]:
    """Branches in the form of all others; and block, what of it is another, and both values."""
    found, forms = list[tuple[Any, ...]](), dict[str, dict[str, Any]]()
    for name, branch in branches.items():
        forms[name] = {n: getattr(branch, n) for n in _FORM} | (branch.heads or {})
    for name, form in forms.items():
        others = [each for n, each in forms.items() if n != name]
        for n in form if len(others) >= _FEWEST - 1 else ():
            aim = others[0][n]
            if _alike(form[n], aim) or not all(_alike(each[n], aim) for each in others):
                continue
            if n not in ("epsilon", "form"):
                found.append((name, n.replace("_", " "), form[n], aim))
            form[n] = aim
    for name, branch in branches.items():
        form = forms[name]
        heads = branch.heads and {n: form[n] for n in branch.heads}
        branches[name] = branch._replace(**{n: form[n] for n in _FORM}, heads=heads)
    return branches, found


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= _LIKE * abs(b)
    return bool(a == b)
