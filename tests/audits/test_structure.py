"""What parameters are, which layers they are in, and what intents say of them."""

from pathlib import Path

import pytest

import fieldtheory as ft
from fieldtheory.audits import INTENTS, intents

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, weight_norm  # noqa: E402

from tests.audits.models import GPT, Llama, chain  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "audit_a_model.md"


class NormFreeLinear(nn.Linear):
    """A matrix, whatever its name says."""


class QKNormAttention(nn.Module):
    """Parameters of its own beside two norms."""

    def __init__(self, width=16):
        super().__init__()
        self.qkv = nn.Parameter(torch.randn(3 * width, width) * 0.02)
        self.q_norm, self.k_norm = nn.RMSNorm(width), nn.RMSNorm(width)


class Scaled(nn.Module):
    """RMSNorm written in the forward pass: w, or 1 + w as in Gemma."""

    def __init__(self, width=16, offset=0.0, name="weight"):
        super().__init__()
        self.register_parameter(name, nn.Parameter(torch.full((width,), 1 - offset)))
        self.offset, self.name = offset, name

    def forward(self, x):
        w = self.offset + self.get_parameter(self.name)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


class GammaBeta(nn.Module):
    """LayerNorm with the names of TensorFlow."""

    def __init__(self, width=16):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:], self.gamma, self.beta)


class Gamma(nn.Module):
    """LayerScale, which is no norm."""

    def __init__(self, width=16):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        return x * self.gamma


class Looked(nn.Module):
    """A table of words that is no torch embedding."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(50, 16))

    def forward(self, ids):
        return nn.functional.embedding(ids, self.weight)


class Kernel(nn.Module):
    """A square matrix from the right."""

    def __init__(self):
        super().__init__()
        self.kernel, self.bias = nn.Parameter(torch.randn(16, 16)), nn.Parameter(torch.zeros(16))

    def forward(self, x):
        return x @ self.kernel + self.bias


def _sines(rows=50, width=32):
    angle = torch.arange(rows)[:, None] * 1e4 ** (-torch.arange(0, width, 2) / width)
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).flatten(1)


def _grid():
    a = _sines(8, 16)
    both = torch.cat([a[:, None].expand(8, 8, -1), a[None].expand(8, 8, -1)], dim=-1)
    return torch.cat([torch.zeros(1, 32), both.reshape(64, 32)])[None]


def _table(x, trained=False):
    module = nn.Module()
    module.pos = nn.Parameter(x, requires_grad=trained)
    return module


KINDS = [
    (NormFreeLinear, (16, 16), "weight", "linear"),
    (QKNormAttention, (), "qkv", "matrix"),
    (QKNormAttention, (), "q_norm.weight", "norm"),
    (Scaled, (), "weight", "norm"),
    (Scaled, (16, 1.0), "weight", "norm offset"),
    (Scaled, (16, 0.0, "g"), "g", "norm"),
    (GammaBeta, (), "gamma", "norm"),
    (GammaBeta, (), "beta", "norm bias"),
    (Gamma, (), "gamma", "vector"),
    (Looked, (), "weight", "embedding"),
    (Kernel, (), "kernel", "linear"),
    (Kernel, (), "bias", "bias"),
    (nn.EmbeddingBag, (50, 16), "weight", "embedding"),
    (nn.BatchNorm1d, (16,), "weight", "norm"),
    (nn.PReLU, (16,), "weight", "vector"),
    (nn.LSTM, (16, 16), "weight_hh_l0", "matrix"),
    (nn.LSTM, (16, 16), "bias_hh_l0", "bias"),
    (nn.MultiheadAttention, (16, 2, 0.0, True, True), "bias_k", "matrix"),
    *(
        (_table, (x, trained), "pos", "buffer")
        for x in (_sines(), _sines()[None], _sines()[:, None], _sines().T, _sines()[:, :31])
        for trained in (False, True)
    ),
    (_table, (_grid(),), "pos", "buffer"),
    (_table, (_grid()[0, 1:].T.reshape(1, 32, 8, 8),), "pos", "buffer"),
    (_table, (torch.randn(50, 32),), "pos", "matrix"),
    (_table, (torch.randn(2, 4),), "pos", "matrix"),
    (_table, (torch.randn(1, 32).repeat(50, 1),), "pos", "matrix"),
    (_table, (torch.eye(30),), "pos", "matrix"),
]


@pytest.mark.parametrize(("build", "arguments", "name", "kind"), KINDS)
def test_kinds_are_those_of_classes_and_of_use(build, arguments, name, kind):
    module = build(*arguments)
    tensors = {row.place.name: row for row in ft.audit(nn.ModuleDict({"m": module})).tensors}
    place = tensors[f"m.{name}"].place
    assert place.kind == kind and tensors[f"m.{name}"].shape == tuple(
        module.get_parameter(name).shape
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("normed", [weight_norm, parametrizations.weight_norm])
@pytest.mark.parametrize("build", [lambda: nn.Linear(40, 60), lambda: nn.Conv1d(20, 30, 3)])
def test_of_a_weight_norm_the_weight_is_there(normed, build):
    torch.manual_seed(0)
    model = nn.Sequential(*(normed(build()) for _ in range(3)))
    audit = ft.audit(model, intent="torch")
    assert audit.ok, audit.statement
    assert [row.place.name for row in audit.tensors] == [
        f"{i}.{n}" for i in range(3) for n in ("bias", "weight")
    ]
    # An initialisation of `weight` alone would not be there in the next forward pass.
    parts = model[1]._parameters if normed is weight_norm else model[1].parametrizations.weight
    size = parts["weight_g"] if normed is weight_norm else parts.original0
    size.data *= 2
    (row,) = ft.audit(model, intent="torch").deviations
    assert row.name == "1.weight" and row.factor == pytest.approx(2, rel=0.05)


# Class with its arguments, whose start is its own.
OF_TORCH = [
    *((nn.Linear, (30, 50)), (nn.Bilinear, (20, 30, 40)), (nn.Conv2d, (6, 20, 3))),
    *((nn.ConvTranspose2d, (6, 20, 3)), (nn.Embedding, (70, 20)), (nn.EmbeddingBag, (70, 20))),
    *((c, (30, 40, 2)) for c in (nn.LSTM, nn.GRU, nn.RNN)),
    *((c, (30, 40)) for c in (nn.LSTMCell, nn.GRUCell, nn.RNNCell)),
    (lambda: nn.LSTM(30, 40, proj_size=16), ()),
    (nn.MultiheadAttention, (48, 4)),
    (nn.MultiheadAttention, (48, 4, 0.0, True, True, False, 20, 30)),
    (nn.TransformerEncoderLayer, (48, 4, 96)),
    (nn.TransformerDecoderLayer, (48, 4, 96)),
    (nn.Transformer, (48, 4, 1, 1, 96)),
    (nn.PReLU, (60,)),
    (nn.GroupNorm, (4, 60)),
]


@pytest.mark.parametrize(("build", "arguments"), OF_TORCH)
def test_torch_is_the_start_of_its_classes(build, arguments):
    for seed in range(8):
        torch.manual_seed(seed)
        audit = ft.audit(nn.ModuleDict({"m": build(*arguments)}), intent="torch")
        assert audit.ok, audit.statement
    # No tensor of these is free.
    assert audit.tests >= len(audit.tensors)


@pytest.mark.parametrize("start", [nn.init.xavier_uniform_, nn.init.xavier_normal_])
def test_xavier_is_that_of_convolutions(start):
    torch.manual_seed(0)
    model = nn.Conv2d(16, 48, 3)
    start(model.weight)
    nn.init.zeros_(model.bias)
    assert ft.audit(model, intent="xavier").ok


class Gemma(Llama):
    """Norms that multiply by 1 + weight."""

    def __init__(self):
        super().__init__({})
        for block in self.layers:
            block.norm, block.ffn_norm = Scaled(64, 1.0), Scaled(64, 1.0)
        self.norm = Scaled(64, 1.0)


def test_norms_of_one_plus_weight_are_zeros():
    torch.manual_seed(0)
    model = Gemma()
    for intent in ("llama", "plain"):
        assert ft.audit(model, intent=intent).ok
    nn.init.ones_(model.layers[1].norm.weight)
    (row,) = ft.audit(model, intent="llama").deviations
    assert (row.name, row.meant) == ("layers.1.norm.weight", "zeros 0")


def _head():
    return nn.Linear(200, 30, bias=False)


def _flat(layers=4):
    gpt = GPT(layers)
    return nn.Sequential(gpt.wte, *gpt.h, gpt.ln_f, gpt.lm_head)


# Model, name of a parameter, its role, l and L.
LAYERS = [
    (lambda: nn.Sequential(GPT(5), _head()), "0.h.2.ln_1.bias", "0.h.*.ln_1.bias", 3, 5),
    (lambda: nn.Sequential(GPT(5), _head()), "1.weight", "1.weight", None, 5),
    (lambda: nn.ModuleDict({"model": nn.Sequential(GPT(5), _head())}), None, None, 1, 5),
    (_flat, "3.mlp.c_fc.weight", "*.mlp.c_fc.weight", 3, 4),
    (_flat, "5.weight", "5.weight", None, 4),
    (lambda: nn.ModuleList([GPT(3), GPT(6)]), "0.h.2.ln_1.bias", "0.h.*.ln_1.bias", 3, 3),
    (lambda: nn.ModuleList([GPT(3), GPT(6)]), "1.h.2.ln_1.bias", "1.h.*.ln_1.bias", 3, 6),
    (lambda: nn.ModuleList([GPT(3), GPT(6)]), "0.wpe.weight", "0.wpe.weight", None, 3),
    (
        lambda: nn.ModuleDict({"text": GPT(3), "image": Llama(layers=2)}),
        "image.layers.1.w2.weight",
        "image.layers.*.w2.weight",
        2,
        2,
    ),
    (lambda: nn.Sequential(*chain(3), nn.LayerNorm(64)), "2.weight", "*.weight", 2, 3),
    (lambda: nn.Sequential(*chain(3), nn.LayerNorm(64)), "6.weight", "6.weight", None, 3),
]


@pytest.mark.parametrize(("build", "name", "role", "layer", "depth"), LAYERS)
def test_layers_are_found_below_wrappers(build, name, role, layer, depth):
    places = {row.place.name: row.place for row in ft.audit(build()).tensors}
    name, role = name or "model.0.h.0.ln_1.bias", role or "model.0.h.*.ln_1.bias"
    place = places[name]
    assert (place.role, place.layer, place.depth) == (role, layer, depth)


@pytest.mark.parametrize(
    ("wrap", "prefix"),
    [
        (lambda gpt: nn.Sequential(gpt, _head()), "0.h.2"),
        (lambda gpt: nn.Sequential(gpt.wte, *gpt.h, gpt.ln_f), "3"),
        (lambda gpt: nn.ModuleList([GPT(6), gpt]), "1.h.2"),
    ],
)
def test_one_layer_out_of_line_below_a_wrapper_is_named(wrap, prefix):
    torch.manual_seed(0)
    gpt = GPT(5)
    model = wrap(gpt)
    assert ft.audit(model).ok
    gpt.h[2].mlp.c_fc.weight.data *= 1.3
    (row,) = ft.audit(model).deviations
    assert row.name == f"{prefix}.mlp.c_fc.weight"
    assert row.factor == pytest.approx(1.3, rel=0.05)


def _with_lora():
    model = GPT()
    for block in model.h:
        nn.init.normal_(block.mlp.c_proj.weight, std=0.02)
        nn.init.normal_(block.attn.c_proj.weight, std=0.02)
        block.lora_A, block.lora_B = nn.Linear(48, 4, bias=False), nn.Linear(4, 48, bias=False)
        nn.init.zeros_(block.lora_B.weight)
        nn.init.normal_(block.lora_A.weight, std=0.5)
    nn.init.normal_(model.wpe.weight, std=0.7)
    return model


MIXED = {"*lora_A*": None, "*lora_B*": "zeros", "wpe*": None, "*": "plain"}


def test_mappings_hold_names_of_intents_and_exclude():
    torch.manual_seed(0)
    model = _with_lora()
    assert ft.audit(model, intent=MIXED).ok
    assert ft.audit(model, intent={**MIXED, "*": lambda place: "plain"}).ok
    # What is excluded is not compared over the layers either; the first match wins.
    model.h[1].lora_A.weight.data *= 9
    model.h[2].lora_B.weight.data += 1
    model.h[2].ln_1.bias.data += 1
    names = [row.name for row in ft.audit(model, intent=MIXED).deviations]
    assert sorted(names) == ["h.2.ln_1.bias", "h.2.lora_B.weight"]
    assert not ft.audit(model, intent={"*": "plain", "*lora*": None}).ok
    # Memory that nobody wrote is named in any case.
    model.wpe.weight.data[3] = torch.nan
    assert "wpe.weight" in [row.name for row in ft.audit(model, intent=MIXED).deviations]


def test_the_table_of_intents_is_on_the_page_and_in_the_docstring():
    text = PAGE.read_text(encoding="utf-8")
    assert len(intents.INTENT_ROWS) == len(INTENTS) == 13
    for row in intents.INTENT_ROWS:
        assert f"| {' | '.join(row.values())} |" in text
        assert "; ".join(f"{name}: {value}" for name, value in row.items()) in intents.__doc__
