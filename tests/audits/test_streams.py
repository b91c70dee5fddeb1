"""Signals of models of many forms, and that nothing in a model changes."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fieldtheory as ft

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402


@dataclass
class Output:
    loss: Any
    logits: Any


ENDS = [
    lambda y: y,
    lambda y: (y, None),
    lambda y: {"logits": y},
    lambda y: Output(None, y),
    lambda y: [None, (y,)],
]


class Residual(nn.Linear):
    def forward(self, x):
        return x + torch.tanh(super().forward(x))


class Stack(nn.Module):
    """Blocks on a stream, and what comes behind them."""

    def __init__(self, end):
        super().__init__()
        self.layers, self.end = nn.Sequential(*(Residual(64, 64) for _ in range(3))), end
        # Numbers that are not those of modules.
        self.scales = nn.ParameterList(torch.ones(2) for _ in range(4))

    def forward(self, x):
        return self.end(self.layers(x))


@torch.no_grad()
@pytest.mark.parametrize("end", ENDS)
def test_ends_of_models(end):
    torch.manual_seed(0)
    model = Stack(end)
    x = torch.randn(5, 64)
    blocks = ft.audit(model, inputs=x).blocks
    assert [block.name for block in blocks] == ["0", "1", "2"]
    for block, layer in zip(blocks, model.layers, strict=True):
        added = layer(x) - x
        assert block.before == pytest.approx(float(x.square().mean()), rel=1e-5)
        x = x + added
        assert block.behind == pytest.approx(float(x.square().mean()), rel=1e-5)
        share = float(added.square().mean() / x.square().mean())
        assert block.share == pytest.approx(share, rel=1e-4)


def test_models_without_like_layers_have_no_blocks():
    audit = ft.audit(nn.Sequential(nn.Linear(9, 4), nn.Tanh(), nn.LayerNorm(4)))
    assert audit.ok and audit.blocks == ()
    reason = "No signals: no stack of like layers through which a stream of one shape passes."
    assert str(audit).startswith("Nothing deviates") and str(audit).endswith(reason)
    assert reason in audit.to_html()


def _state(model):
    return {
        "weights": {k: v.clone() for k, v in model.state_dict(keep_vars=False).items()},
        "same": [id(t) for t in (*model.parameters(), *model.buffers())],
        "modes": [module.training for module in model.modules()],
        "gradients": [(p.requires_grad, p.grad) for p in model.parameters()],
        "hooks": [
            (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks))
            for m in model.modules()
        ],
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002
    }


class Counting(nn.Module):
    """A block that writes and replaces its buffers and draws numbers; it may fail."""

    def __init__(self, fails):
        super().__init__()
        self.linear, self.norm, self.fails = nn.Linear(16, 16), nn.BatchNorm1d(16), fails
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("last", torch.zeros(16))

    def forward(self, x):
        self.count += 1
        self.last = x.detach().mean(0)
        np.random.rand(3)  # noqa: NPY002
        if self.fails:
            raise RuntimeError("a block that fails")
        return x + self.norm(self.linear(x)) + 0 * torch.rand(16)


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_in_a_model_changes(fails):
    model = nn.Sequential(*(Counting(fails and i == 2) for i in range(3)))
    model[1].eval()
    model[0].linear.weight.requires_grad_(False)
    model[2].linear.register_forward_hook(lambda *_: None)
    before, whole = _state(model), copy.deepcopy(model)
    if fails:
        with pytest.raises(RuntimeError, match="a block that fails"):
            ft.audit(model, inputs=torch.ones(4, 16))
        # Where inputs are guessed, the weights are audited.
        audit = ft.audit(model)
        assert audit.blocks == () and "failed, RuntimeError: a block that fails" in str(audit)
    else:
        assert len(ft.audit(model, inputs=torch.ones(4, 16), intent="torch").blocks) == 3
    after = _state(model)
    weights, others = after.pop("weights"), before.pop("weights")
    assert weights.keys() == others.keys() == whole.state_dict().keys()
    assert all(torch.equal(weights[k], others[k]) for k in weights)
    assert torch.equal(after.pop("torch"), before.pop("torch"))
    assert after == before


class Gated(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.w1, self.w3 = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.w2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Branched(nn.Module):
    """A block of one branch: the form of a branch, its norm, and a factor in front of it."""

    def __init__(self, branch, norm, factor=1.0):
        super().__init__()
        self.branch, self.norm, self.factor = branch, norm, factor

    def forward(self, x):
        return x + self.factor * self.branch(self.norm(x))


class OneMatrix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.matrix = nn.Linear(width, width)

    def forward(self, x):
        return x + 0.5 * self.matrix(torch.tanh(x))


def _two(function):
    return nn.Sequential(nn.Linear(64, 192), function, nn.Linear(192, 64))


class Written(nn.Module):
    """An RMSNorm with its ε in the forward pass."""

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-2)


class Scaled(Branched):
    """A skip of another scale."""

    def forward(self, x):
        return 0.8 * x + self.factor * self.branch(self.norm(x))


# Builder of a block and what is recognised.
BRANCHES = [
    (lambda: Branched(_two(nn.GELU()), Written(), -0.7), "rms, gelu"),
    (lambda: Scaled(_two(nn.ReLU()), nn.LayerNorm(64), 0.6), "layer, relu"),
    (lambda: Branched(_two(nn.GELU()), nn.LayerNorm(64)), "layer, gelu"),
    (lambda: Branched(_two(nn.ReLU()), nn.Identity(), 0.3), "relu"),
    (lambda: Branched(_two(nn.SiLU()), nn.RMSNorm(64, eps=1e-3)), "rms, swish"),
    (lambda: Branched(Gated(64, 96), nn.RMSNorm(64)), "rms, swish, gate"),
    (lambda: OneMatrix(64), "tanh"),
    # Another function, another norm, other forms.
    (lambda: Branched(_two(nn.Hardswish()), nn.LayerNorm(64)), None),
    (lambda: Branched(_two(nn.GELU()), nn.GroupNorm(4, 64)), None),
    (lambda: Branched(nn.Sequential(_two(nn.GELU()), nn.Tanh()), nn.LayerNorm(64)), None),
    (lambda: Residual(64, 64), None),
]


@pytest.mark.parametrize(("build", "text"), BRANCHES)
def test_branches_are_recognised_by_their_forward_pass(build, text):
    torch.manual_seed(1)
    model = nn.Sequential(*(build() for _ in range(2)))
    audit = ft.audit(model, inputs=torch.randn(3, 64))
    assert [block.branch for block in audit.blocks] == [text] * 2 and audit.ok
    for block in audit.blocks:
        assert (block.predicted is None) == (text is None)
        assert (block.G_Rz is None) == (block.branch_scale is None) == (text is not None)
        assert (block.factor is None) == (text is None)
        if text:
            # OneMatrix has its factor in the forward pass.
            factor = getattr(model[0], "factor", 0.5)
            assert block.factor == pytest.approx(factor, rel=1e-5)
            assert abs(block.z) < 4 and 0 < block.spread < 0.3 * block.predicted


class Opposing(nn.Module):
    """R(z) of two inner layers and of a part that opposes z."""

    def __init__(self, width):
        super().__init__()
        linear = (nn.Linear(width, width) for _ in range(3))
        self.layers = nn.Sequential(next(linear), nn.Tanh(), next(linear), nn.Tanh(), next(linear))

    def forward(self, z):
        return self.layers(z) - z / 2


@torch.no_grad()
def test_blocks_that_are_not_recognised_have_the_numbers_of_measure_block():
    torch.manual_seed(3)
    model = nn.Sequential(*(Branched(Opposing(64), nn.Identity()) for _ in range(3)))
    z = torch.randn(20, 64)
    blocks = ft.audit(model, inputs=z).blocks
    for block, layer in zip(blocks, model, strict=True):
        signal, z = z.double().numpy(), layer(z)
        R = z.double().numpy() - signal
        zz, RR, Rz = np.mean(signal**2), np.mean(R**2), np.mean(R * signal)
        assert block.branch is None and block.G_Rz == pytest.approx(Rz, rel=1e-6)
        assert block.share * block.behind == pytest.approx(RR, rel=1e-6)
        # PDLT-B (B.45) of γ² = 1/2.
        root = (2 * Rz**2 + 2 * zz * RR) ** 0.5
        assert block.branch_scale == pytest.approx((root - 2**0.5 * Rz) / 2 / RR, rel=1e-6)
    samples = 40
    m = ft.measure_block(lambda width, rng: Opposing(width), width=64, samples=samples)
    # That of one draw.
    value, spread = blocks[0].branch_scale, m.branch_scale_error * samples**0.5
    assert abs(value - m.branch_scale) < 3 * spread < 0.5 * value


def test_a_branch_of_zero_has_no_scale():
    model = nn.Sequential(*(Branched(nn.Linear(8, 8, bias=False), nn.Tanh()) for _ in range(2)))
    for layer in model:
        nn.init.zeros_(layer.branch.weight)
    for block in ft.audit(model, inputs=torch.randn(2, 8)).blocks:
        assert (block.branch, block.G_Rz, block.branch_scale) == (None, 0.0, None)


class Mixture(nn.Module):
    """A mean of experts, of which there are more than layers."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(Gated(16, 24) for _ in range(5))

    def forward(self, x):
        return sum(expert(x) for expert in self.experts) / len(self.experts)


def test_layers_of_experts_are_the_blocks():
    torch.manual_seed(0)
    model = Stack(lambda y: y)
    model.layers = nn.Sequential(*(Branched(Mixture(), nn.RMSNorm(16)) for _ in range(3)))
    audit = ft.audit(model, inputs=torch.randn(3, 16))
    assert [block.name for block in audit.blocks] == ["0", "1", "2"]
    assert all(block.share > 0 and block.branch_scale > 0 for block in audit.blocks)
    place = {row.place.name: row.place for row in audit.tensors}[
        "layers.1.branch.experts.3.w1.weight"
    ]
    role = "layers.*.branch.experts.3.w1.weight"
    assert (place.role, place.layer, place.depth) == (role, 2, 3)


@pytest.mark.slow_but(0, 2)
@pytest.mark.parametrize(("build", "text"), [BRANCHES[i] for i in (1, 2, 6)])
def test_the_spread_is_that_of_models(build, text):
    z = []
    for seed in range(6):
        torch.manual_seed(seed)
        model = nn.Sequential(*(build() for _ in range(4)))
        z += [block.z for block in ft.audit(model, inputs=torch.randn(3, 64)).blocks]
    # The deviation of 24 numbers has an error of 14 %.
    assert 0.5 < np.std(z) < 1.5 and abs(np.mean(z)) < 0.7


def test_weights_that_are_not_as_meant_explain_the_stream():
    torch.manual_seed(0)
    model = nn.Sequential(*(Branched(_two(nn.GELU()), nn.LayerNorm(64), 10.0) for _ in range(3)))
    intent = {"1.*": None, "*.branch.2.weight": 0.1 * (3 * 192) ** -0.5}
    blocks = ft.audit(model, intent=intent).blocks
    for block in (blocks[0], blocks[2]):
        # Of one draw, whose deviation is a fifth.
        assert block.z > 5 and block.by_weights == pytest.approx(block.measured, rel=0.5)


class Tower(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        self.embedding = nn.Embedding(20, width)
        self.layers = nn.ModuleList(Residual(width, width) for _ in range(depth))

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return x


class Towers(nn.Module):
    """Two towers, of which the second may have inputs of its own."""

    def __init__(self):
        super().__init__()
        self.text, self.image = Tower(3, 16), Tower(2, 24)

    def forward(self, ids, other=None, *, scale=1.0):
        other = ids if other is None else other
        return {"similarity": scale * self.text(ids).mean() * self.image(other).mean()}


IDS = torch.arange(20).reshape(4, 5)


@pytest.mark.parametrize("inputs", [None, {"other": IDS, "ids": IDS, "scale": 2.0}, (IDS, IDS)])
def test_every_tower_is_there_by_name(inputs):
    audit = ft.audit(Towers(), inputs=inputs)
    names = [block.name for block in audit.blocks]
    assert names == [*(f"text.layers.{i}" for i in range(3)), "image.layers.0", "image.layers.1"]
    # Gradients are those over the last block of the same tower, sums begin anew.
    assert [block.gradient for block in audit.blocks][2::2] == [1.0, 1.0]
    first = audit.blocks[3]
    assert first.linear == pytest.approx(first.before + first.share * first.behind)
    assert audit.notes == ()


def test_wrappers_hide_no_stream():
    torch.manual_seed(0)
    tower = Tower(3, 16)
    flat = nn.Sequential(tower.embedding, *tower.layers, nn.LayerNorm(16), nn.Linear(16, 4))
    for model, names in ((nn.Sequential(tower, nn.Linear(16, 4)), "012"), (flat, "123")):
        audit = ft.audit(model, inputs=IDS)
        assert [block.name for block in audit.blocks] == [*names]


class Keyword(nn.Sequential):
    def forward(self, ids, decoder_ids):
        return super().forward(ids + decoder_ids)


class Nothing(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))


REASONS = [
    (Nothing, "no inputs could be drawn, for want of an embedding"),
    (
        lambda: nn.Transformer(16, 2, 2, 2, 32),
        "the model has an encoder and a decoder, give inputs of both; a forward pass of random",
    ),
    (lambda: Keyword(nn.Embedding(5, 4)), "the model has an encoder and a decoder, give"),
    (lambda: nn.Conv2d(3, 4, 64), "a forward pass of random images failed, RuntimeError: "),
    (lambda: nn.ModuleDict({"a": nn.Linear(3, 3)}), "random vectors failed, NotImplementedError"),
    (lambda: nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 4)), "no stack of like layers"),
]


@pytest.mark.parametrize(("build", "reason"), REASONS)
def test_why_there_are_no_signals_is_said(build, reason):
    audit = ft.audit(build())
    (note,) = audit.notes
    assert audit.blocks == () and note.startswith("No signals: ") and reason in note
    assert "\n" not in note


def test_streams_of_sequences_are_drawn():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    model = nn.Sequential(*(Sequences(layer) for layer in (layer, copy.deepcopy(layer))))
    assert [block.name for block in ft.audit(model).blocks] == ["0", "1"]


class Sequences(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        assert x.ndim == 3
        return self.layer(x)
