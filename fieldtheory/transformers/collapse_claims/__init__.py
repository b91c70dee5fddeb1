"""Claims on rank collapse, of wide random transformers.

DCL is Y. Dong, J.-B. Cordonnier, A. Loukas, Attention is not all you need: pure attention loses
rank doubly exponentially with depth (ICML 2021, arXiv:2103.03404); SPT is L. Noci and others,
Signal propagation in transformers: theoretical perspectives and the role of rank collapse (NeurIPS
2022, arXiv:2206.03126). Their abstracts and introductions were read, which say in words what is
held here against kernels of tokens: these are alike where their correlations c are 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fieldtheory.literature.claim import claims_of, interval
from fieldtheory.literature.evidence import at
from fieldtheory.numerics.covariance_roots import lower_root
from fieldtheory.numerics.solution import solve
from fieldtheory.transformers.transformer_chain import TransformerKernels
from fieldtheory.transformers.transformer_network import TransformerNetwork

_TOKENS, _SAMPLES = 8, 1024
# 1 − c of tokens.
_GAPS = 0.1, 0.03, 0.01
_CUBIC = 2.9, 3.2
# Of uniform attention, c = s/(1 + s) with s = ((1 + ρ²)^L − 1)/T.
_LIMIT = (math.e - 1) / (_TOKENS + math.e - 1)
_CHAOTIC = {"activation": "tanh", "inner_weight_variance": 9.0}
_SEEN, _DEEP = f"{_TOKENS} tokens, ", f"{_TOKENS} tokens, uniform attention, L = 12, 48, 192, ρ = "


def _tokens(gap: float) -> np.ndarray:
    return (1 - gap) * np.ones((_TOKENS, _TOKENS)) + gap * np.eye(_TOKENS)


def _behind(gap: float, **changes: Any) -> Any:
    """The solution for attention alone, that sees all tokens, without a norm or a skip."""
    own: dict[str, Any] = {"depth": 1, "heads": 8, "width": 64, "mlp": None, "causal": False}
    net = TransformerNetwork(**own | {"normalization": None, "skip_scale": 0.0} | changes)
    return solve(net, _tokens(gap), samples=_SAMPLES)


def _gap(gap: float, **changes: Any) -> float:
    """1 − c of the last two tokens behind the last step."""
    return float(1 - _behind(gap, **changes).correlation[-1, -1, -2])


def _exponents(value: Callable[[float], float]) -> dict[str, float]:
    """d ln value/d ln(1 − c)."""
    moved = 1.001
    return at("1 − c", _GAPS, lambda x: math.log(value(moved * x) / value(x)) / math.log(moved))


def _correlations(power: float) -> dict[str, float]:
    """c behind L blocks with skip connections and ρ = L^power, from 0 on."""

    def value(L: float) -> float:
        sizes = {"depth": int(L), "branch_scale": L**power, "skip_scale": 1.0}
        return 1 - _gap(1.0, key_weight_variance=0.0, **sizes)

    return at("L", (12, 48, 192), value)


def _residuals() -> dict[str, float]:
    """Σ_a ‖x_a − x̄‖² behind l blocks with skip connections, over that before."""
    K = _behind(1.0, depth=6, skip_scale=1.0).kernels
    sizes = np.trace(K, axis1=1, axis2=2) - K.sum((1, 2)) / _TOKENS
    return at("l", range(1, 7), lambda l: sizes[l] / sizes[0])


def _gradient(gap: float, of: str) -> float:
    """The mean square of the gradient of a head by W_Q or W_K, over that by W_V.

    ∂o_a/∂q_a = s Σ_c A_ac v_c (k_c − Σ_e A_ae k_e)ᵀ,   ∂o_a/∂k_c = s A_ac (v_c − o_a) q_aᵀ
    """
    R = _tokens(gap)
    kernels = TransformerKernels(_behind(gap).network, R, _SAMPLES, 0)
    attention, head = kernels.attention, kernels.heads[0]
    g = np.random.default_rng(0).standard_normal((2, _SAMPLES, 1, _TOKENS, attention.head_width))
    roots = lower_root(head.queries(R)), lower_root(head.keys(R))
    q, k = (L @ x for L, x in zip(roots, g, strict=True))
    A = attention.softmax(attention.logits(head.logit, [q], [k])[0])
    read = (A @ R * A).sum(-1)
    if of == "queries":
        centred = A[..., None] * (k[..., None, :, :] - (A @ k)[..., None, :])
        square = (centred @ centred.swapaxes(-1, -2) * R).sum((-1, -2))
    else:
        square = (A**2 * (np.diag(R) - 2 * A @ R + read[..., None])).sum(-1) * (q**2).sum(-1)
    return float(head.logit**2 * square.mean() / read.mean())


def _slowed(gap: float) -> float:
    return _gap(gap, mlp=_CHAOTIC) / _gap(gap)


_MASKED = "the paper has no mask, with which tokens see different ones: 1 − c falls exponentially"
_SHARED = "what tokens share grows faster than what differs: 1 − c falls as 2^-L"
_FACTOR = "an MLP multiplies a small 1 − c by a factor: the rate stays cubic"
_SLOWED = "1 − c with an MLP over that without; for φ that orders it is below 1"
_ORDER = "the exponent in 1 − c of their mean square, over that of values"
_OF_DONG = {
    "abstract, pure attention: rank one, doubly exponentially, by a cubic rate in each layer": [
        interval(f"{_SEEN}no mask", _CUBIC, lambda: _exponents(_gap)),
        interval(f"{_SEEN}causal", _CUBIC, lambda: _exponents(partial(_gap, causal=True)), _MASKED),
    ],
    "abstract, skip connections: they stop the degeneration": [
        interval(f"{_SEEN}x_a less its mean over tokens, L = 6", (1.0, math.inf), _residuals),
        interval(f"{_DEEP}1, correlations", (-1.0, 0.9), lambda: _correlations(0), _SHARED),
    ],
    "abstract, MLPs: they stop the degeneration": interval(
        f"{_SEEN}tanh, σ²_w = 9", (0, 1.5), lambda: _exponents(partial(_gap, mlp=_CHAOTIC)), _FACTOR
    ),
    "introduction, MLPs: they can slow down the convergence": interval(
        f"{_SEEN}tanh, σ²_w = 9", (1, math.inf), lambda: at("1 − c", _GAPS, _slowed), _SLOWED
    ),
}
_OF_NOCI = {
    "abstract, rank collapse: prevented by a scaling of the branches with depth": [
        interval(f"{_DEEP}1, without it", (0.99, 1 + 1e-12), lambda: _correlations(0)),
        interval(f"{_DEEP}1/√L", (0, _LIMIT), lambda: _correlations(-0.5)),
    ],
    "abstract, gradients: those of queries and keys vanish under rank collapse": [
        interval(f"{_SEEN}{of}", (0.9, 2.2), partial(_exponents, partial(_gradient, of=of)), _ORDER)
        for of in ("queries", "keys")
    ],
}
CLAIMS = (*claims_of("DCL", _OF_DONG), *claims_of("SPT", _OF_NOCI))
