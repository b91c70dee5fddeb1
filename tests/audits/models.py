"""Small models of public code bases, written here, with the start that they were meant to have."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402


class Conv1D(nn.Module):
    """A layer of the name of that of transformers, which has its weight transposed."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.02)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(3 * width, width), Conv1D(width, width)

    def forward(self, x):
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        return self.c_proj(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))


class Feedforward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(4 * width, width), Conv1D(width, 4 * width)

    def forward(self, x):
        return self.c_proj(nn.functional.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width), Feedforward(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """GPT-2 with deviations 0.02, and ``residual`` in front of the stream."""

    def __init__(self, layers=4, width=48, tokens=200, residual=None):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(tokens, width), nn.Embedding(32, width)
        self.h = nn.ModuleList(Block(width) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, tokens, bias=False)
        self.lm_head.weight = self.wte.weight
        residual = 0.02 / (2 * layers) ** 0.5 if residual is None else residual
        for name, parameter in self.named_parameters():
            if name.startswith("w"):
                nn.init.normal_(parameter, std=0.02)
            if name.endswith("c_proj.weight"):
                nn.init.normal_(parameter, std=residual)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


LINEAR = {"attention": ("q_proj", "k_proj", "v_proj", "o_proj"), "mlp": ("w1", "w2", "w3")}


class LlamaBlock(nn.Module):
    def __init__(self, width, hidden, scale):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.ffn_norm = nn.RMSNorm(width)
        for name in LINEAR["attention"]:
            self.register_module(name, nn.Linear(width, width, bias=False))
        for name in LINEAR["mlp"]:
            sizes = (hidden, width) if name == "w2" else (width, hidden)
            self.register_module(name, nn.Linear(*sizes, bias=False))
        if scale is not None:
            self.gamma = nn.Parameter(torch.full((width,), scale))

    def forward(self, x):
        y = self.norm(x)
        q, k, v = self.q_proj(y), self.k_proj(y), self.v_proj(y)
        x = x + self.o_proj(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        y = self.ffn_norm(x)
        return x + self.w2(nn.functional.silu(self.w1(y)) * self.w3(y))


class Llama(nn.Module):
    """Gated blocks whose deviations 0.02 are divided by √(2L) where ``scaled`` says so.

    ``powers`` has the exponent of 1/√(2L) by the short name of a matrix; all others are 0.
    """

    def __init__(self, powers=None, layers=4, width=64, hidden=96, scale=None):
        super().__init__()
        powers = {"o_proj": 1, "w2": 1} if powers is None else powers
        self.tok_embeddings = nn.Embedding(150, width)
        self.layers = nn.ModuleList(LlamaBlock(width, hidden, scale) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.output = nn.Linear(width, 150, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                power = powers.get(name.split(".")[-2], 0)
                nn.init.normal_(parameter, std=0.02 * (2 * layers) ** (-power / 2))

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for block in self.layers:
            x = block(x)
        return self.output(self.norm(x))


def chain(layers=6, width=64, start=None, bias=True):
    """Linear layers with tanh, torch's start unless another is given."""
    parts = []
    for _ in range(layers):
        linear = nn.Linear(width, width, bias=bias)
        if start is not None:
            start(linear.weight)
            if bias:
                nn.init.zeros_(linear.bias)
        parts += [linear, nn.Tanh()]
    return nn.Sequential(*parts)


def convolutions(channels=24, layers=4, start=None):
    """Three-by-three convolutions with batch norms and a readout, He's start unless another."""
    parts = []
    for layer in range(layers):
        convolution = nn.Conv2d(3 if layer == 0 else channels, channels, 3, padding=1)
        (start or (lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu")))(convolution.weight)
        nn.init.zeros_(convolution.bias)
        parts += [convolution, nn.BatchNorm2d(channels), nn.ReLU()]
    readout = nn.Linear(channels, 40)
    nn.init.kaiming_normal_(readout.weight, nonlinearity="relu")
    nn.init.zeros_(readout.bias)
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), readout)


def deepnorm(layers=6, width=64):
    """Matrices of DeepNorm's start with the names of transformers."""
    model = nn.ModuleList(
        nn.ModuleDict(
            {
                **{f"{n}_proj": nn.Linear(width, width, bias=False) for n in "qkvo"},
                "fc1": nn.Linear(width, 2 * width, bias=False),
                "fc2": nn.Linear(2 * width, width, bias=False),
                "norm": nn.LayerNorm(width),
            }
        )
        for _ in range(layers)
    )
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            gained = "q_proj" not in name and "k_proj" not in name
            nn.init.xavier_normal_(parameter, gain=(8 * layers) ** -0.25 if gained else 1.0)
    return model
