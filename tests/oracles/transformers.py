"""Transformers with all their weights, token by token: what the theory of attention is held to."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Transformer:
    """Parameters; ``mlp`` is φ, ``gated`` multiplies it with a linear gate."""

    depth: int
    heads: int
    head_width: int
    causal: bool = True
    norm: str | None = "rms"
    post: bool = False
    epsilon: float = 0.05
    rho: tuple = (1.0, 1.0)  # of attention and MLP
    query: float = 1.0
    key: float = 1.0
    value: float = 1.0
    out: float = 1.0
    biases: tuple = (0.0, 0.0, 0.0, 0.0)  # of queries, keys, values, outputs
    grouped: int = 1
    rotary: float | None = None
    query_key_norm: bool = False
    mlp: object = None
    hidden: int = 0
    inner: float = 1.0
    inner_bias: float = 0.0
    outer: float = 1.0
    outer_bias: float = 0.0
    parallel: bool = False
    sequences: int = 1


def normalized(x, net):
    """n(x) of the stream (..., tokens, N)."""
    if net.norm is None:
        return x
    if net.norm == "layer":
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + net.epsilon)


def rotated(x, base):
    """RoPE as Llama has it: halves of a head are the planes."""
    d = x.shape[-1]
    angles = np.arange(x.shape[-2])[:, None] * base ** (-2 * np.arange(d // 2) / d)
    first, second = x[..., : d // 2], x[..., d // 2 :]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], -1)


def attention(n, net, rng):
    """What one attention adds for n (samples, tokens, N) of one sequence or several."""
    samples, tokens, N = n.shape
    H, d, kv = net.heads, net.head_width, net.heads // net.grouped
    T = tokens // net.sequences

    def projected(variance, heads, bias):
        weights = rng.standard_normal((samples, N, heads * d)) * np.sqrt(variance / N)
        x = n @ weights + np.sqrt(bias) * rng.standard_normal((samples, 1, heads * d))
        return x.reshape(samples, net.sequences, T, heads, d).transpose(0, 1, 3, 2, 4)

    sizes = (net.query, H), (net.key, kv), (net.value, kv)
    q, k, v = (projected(*each, b) for each, b in zip(sizes, net.biases, strict=False))
    if net.query_key_norm:
        q, k = (x / np.sqrt((x**2).mean(-1, keepdims=True) + net.epsilon) for x in (q, k))
    if net.rotary:
        q, k = rotated(q, net.rotary), rotated(k, net.rotary)
    k, v = (np.repeat(x, net.grouped, axis=2) for x in (k, v))
    z = q @ k.swapaxes(-1, -2) / np.sqrt(d)
    if net.causal:
        z = np.where(np.tri(T, dtype=bool), z, -np.inf)
    A = np.exp(z - z.max(-1, keepdims=True))
    o = (A / A.sum(-1, keepdims=True)) @ v
    o = o.transpose(0, 1, 3, 2, 4).reshape(samples, tokens, H * d)
    f = o @ (rng.standard_normal((samples, H * d, N)) * np.sqrt(net.out / (H * d)))
    return f + np.sqrt(net.biases[3]) * rng.standard_normal((samples, 1, N))


def perceptron(n, net, rng):
    """What one MLP adds."""
    samples, _, N = n.shape
    M = net.hidden
    weights = rng.standard_normal((samples, N, M)) * np.sqrt(net.inner / N)
    u = n @ weights + np.sqrt(net.inner_bias) * rng.standard_normal((samples, 1, M))
    f = net.mlp(u) @ (rng.standard_normal((samples, M, N)) * np.sqrt(net.outer / M))
    return f + np.sqrt(net.outer_bias) * rng.standard_normal((samples, 1, N))


def drawn(net, K0, width, samples, seed):
    """The Gram matrices of the stream behind every branch, (samples, steps + 1, T, T)."""
    parts = [
        _drawn(net, np.asarray(K0), width, min(500, samples - start), [seed, start])
        for start in range(0, samples, 500)
    ]
    return np.concatenate(parts)


def _drawn(net, K0, width, samples, seed):
    rng = np.random.default_rng(seed)
    x = np.linalg.cholesky(K0) @ rng.standard_normal((samples, len(K0), width))
    branches = [(attention, net.rho[0])] + [(perceptron, net.rho[1])] * (net.mlp is not None)
    steps = [branches] if net.parallel else [[branch] for branch in branches]
    if net.post:
        x = normalized(x, net)
    grams = [_gram(x, net)]
    for step in steps * net.depth:
        read = x if net.post else normalized(x, net)
        x = x + sum(rho * branch(read, net, rng) for branch, rho in step)
        if net.post:
            x = normalized(x, net)
        grams.append(_gram(x, net))
    return np.stack(grams, axis=1)


def _gram(x, net):
    if net.norm == "layer":
        x = x - x.mean(-1, keepdims=True)
    return x @ x.swapaxes(-1, -2) / x.shape[-1]


def estimates(grams, width):
    """Means, N Cov of the entries a <= b of every step and their standard errors: four arrays."""
    X = grams[..., *np.triu_indices(grams.shape[-1])]
    n = len(X)
    centred = X - X.mean(0)
    products = width * centred[..., :, None] * centred[..., None, :]
    return (
        X.mean(0),
        X.std(0) / np.sqrt(n),
        products.mean(0) * n / (n - 1),
        products.std(0) / np.sqrt(n),
    )
