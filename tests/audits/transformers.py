"""Transformers of the kinds of GPT-2, Llama, ViT and BERT, and faults of one of their layers."""

from fnmatch import fnmatch

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402


def rotated(x, theta):
    """RoPE as Llama has it, of (..., tokens, d)."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * theta ** (-torch.arange(half) / half)
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Attention(nn.Module):
    """Heads with own or shared keys and values; ``fused`` is how one matrix has q, k and v."""

    def __init__(self, width, heads, shared=1, fused=None, rotary=None, normed=False, causal=True):
        super().__init__()
        self.heads, self.shared, self.d = heads, shared, width // heads
        self.fused, self.rotary, self.normed, self.causal = fused, rotary, normed, causal
        # Of ALiBi, if that is not zero.
        self.slope = 0.0
        self.scale, sizes = self.d**-0.5, (width, width // shared, width // shared)
        if fused:
            self.qkv = nn.Linear(width, sum(sizes))
        else:
            for name, size in zip(("q_proj", "k_proj", "v_proj"), sizes, strict=True):
                self.register_module(name, nn.Linear(width, size))
        self.o_proj = nn.Linear(width, width)

    def projected(self, x):
        if not self.fused:
            return self.q_proj(x), self.k_proj(x), self.v_proj(x)
        groups, y = self.heads // self.shared, self.qkv(x)
        if self.fused == "row":
            sizes = [n * self.d for n in (self.heads, groups, groups)]
            return y.split(sizes, dim=-1)
        y = y.unflatten(-1, (groups, self.shared + 2, self.d))
        return (each.flatten(2) for each in (y[..., :-2, :], y[..., -2, :], y[..., -1, :]))

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (-1, self.d)).transpose(1, 2) for y in self.projected(x))
        if self.normed:
            q, k = (nn.functional.rms_norm(y, (self.d,), eps=1e-5) for y in (q, k))
        if self.rotary:
            q, k = (rotated(y, self.rotary) for y in (q, k))
        k, v = (y.repeat_interleave(self.shared, dim=1) for y in (k, v))
        tokens = torch.arange(x.shape[1])
        far = (tokens[:, None] - tokens)[None]
        mask = (-self.slope * far.abs()).masked_fill(self.causal & (far < 0), -torch.inf)
        y = nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=self.scale)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Feedforward(nn.Module):
    def __init__(self, width, gated):
        super().__init__()
        self.w1, self.w2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.w3 = nn.Linear(width, 4 * width) if gated else None

    def forward(self, x):
        if self.w3:
            return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))
        return self.w2(nn.functional.gelu(self.w1(x)))


class Block(nn.Module):
    def __init__(self, width, norm, post, gated, attention):
        super().__init__()
        self.norm1, self.norm2 = norm(width), norm(width)
        self.attn, self.mlp, self.post = (
            Attention(width, **attention),
            Feedforward(width, gated),
            post,
        )

    def forward(self, x):
        if self.post:
            x = self.norm1(x + self.attn(x))
            return self.norm2(x + self.mlp(x))
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Of tokens, or of patches of images with a token of their own."""

    def __init__(self, width, depth, block, patches=None, positions=True):
        super().__init__()
        self.embedding = (
            nn.Conv2d(3, width, patches, patches) if patches else nn.Embedding(99, width)
        )
        self.token = nn.Parameter(torch.empty(1, 1, width)) if patches else None
        self.positions = nn.Parameter(torch.empty(1, 32, width)) if positions else None
        self.first = block["norm"](width) if block.get("post") else None
        self.layers = nn.ModuleList(Block(width, **block) for _ in range(depth))
        self.norm = block["norm"](width)

    def forward(self, x):
        x = self.embedding(x)
        if self.token is not None:
            x = x.flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1)
        if self.positions is not None:
            x = x + self.positions[:, : x.shape[1]]
        if self.first:
            x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


def started(model, deviation=0.02, last=1.0):
    """Normal entries, those of the last matrices of branches times ``last``, biases zero."""
    for name, p in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(p)
        elif p.ndim > 1:
            nn.init.normal_(
                p, std=deviation * (last if name.endswith(("o_proj.weight", "w2.weight")) else 1)
            )
    return model


def gpt2(width=48, depth=3, heads=4, **attention):
    block = {"norm": nn.LayerNorm, "post": False, "gated": False}
    attention = {"heads": heads, "fused": "row", **attention}
    model = Transformer(width, depth, {**block, "attention": attention})
    return started(model, last=(2 * depth) ** -0.5), "gpt2"


def llama(width=64, depth=3, heads=4, deviation=0.02, **attention):
    attention = {"heads": heads, "shared": 2, "rotary": 1e4, **attention}
    block = {"norm": lambda n: nn.RMSNorm(n, eps=1e-6), "post": False, "gated": True}
    model = Transformer(width, depth, {**block, "attention": attention}, positions=False)
    names = "*proj.weight", "*.w?.weight", "*.qkv.weight"
    found = [n for n in names if any(fnmatch(p, n) for p, _ in model.named_parameters())]
    return started(model, deviation), dict.fromkeys(found, deviation)


def vit(width=48, depth=3, heads=3, **attention):
    attention = {"heads": heads, "causal": False, "fused": "row", **attention}
    block = {"norm": nn.LayerNorm, "post": False, "gated": False, "attention": attention}
    return started(Transformer(width, depth, block, patches=8)), "plain"


def bert(width=48, depth=3, heads=4, **attention):
    attention = {"heads": heads, "causal": False, **attention}
    block = {"norm": lambda n: nn.LayerNorm(n, eps=1e-12), "post": True, "gated": False}
    return started(Transformer(width, depth, {**block, "attention": attention})), "plain"
