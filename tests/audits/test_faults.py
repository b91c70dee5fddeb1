"""Faults of public code bases, rebuilt: each is named first, and the mended model is as meant."""

from fnmatch import fnmatchcase

import pytest

import fieldtheory as ft

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from tests.audits.models import GPT, Llama, chain, convolutions  # noqa: E402

LAYERS = 4
ROOT = (2 * LAYERS) ** 0.5


def _gpt(wrong):
    return GPT(residual=0.02 if wrong else None)


def _llama(powers, **others):
    return lambda wrong: Llama(powers if wrong else None, **others)


def _layer_scale(wrong):
    model = Llama(scale=0.1)
    if wrong:
        for block in model.layers:
            nn.init.ones_(block.gamma)
    return model


def _buffer(wrong):
    """A factor in front of every branch, which a move to a device erased."""
    model = Llama()
    for block in model.layers:
        block.register_buffer("factor", torch.zeros(1) if wrong else torch.tensor([1 / ROOT]))
    return model


def _twice(wrong):
    model = Llama()
    if wrong:
        model.layers[2].o_proj.weight.data /= ROOT
    return model


class Wrapper(nn.Module):
    def __init__(self, wrapped):
        super().__init__()
        self.wrapped = wrapped

    def forward(self, x):
        return self.wrapped(x)


def _wrapped(wrong):
    """Torch's own start where the initialisation did not know the names of a wrapper."""
    model = Wrapper(Llama())
    if wrong:
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()
    return model


def _fan(wrong):
    """Deviation from the outputs in place of the inputs."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    for module in (model[0], model[2]):
        nn.init.kaiming_normal_(
            module.weight, nonlinearity="relu", mode="fan_out" if wrong else "fan_in"
        )
        nn.init.zeros_(module.bias)
    return model


def _memory(fill):
    def build(wrong):
        model = chain(width=80)
        if wrong:
            fill(model[4].weight.data)
        return model

    return build


def _truncated(wrong):
    return chain(start=lambda w: _cut(w, 0.02 if wrong else 0.02 / 0.8796))


def _cut(weight, deviation):
    nn.init.trunc_normal_(weight, std=deviation, a=-2 * deviation, b=2 * deviation)


def _one_layer(wrong):
    model = chain(layers=8)
    if wrong:
        model[6].weight.data *= 1.3
    return model


def _biases(wrong):
    model = convolutions()
    if wrong:
        model[3].reset_parameters()
        nn.init.kaiming_normal_(model[3].weight, nonlinearity="relu")
    return model


def _half_scaled(wrong):
    return Llama({"o_proj": 1} if wrong else None)


NAN, SMALL = float("nan"), 1e-41
SCALE = {"layers.*.gamma": ("constant", 0.1)}
BUFFER = {"layers.*.factor": lambda place: (2 * place.depth) ** -0.5}
TRUNCATED = {"*.weight": ("truncated normal", 0.02), "*.bias": "zeros"}
# Name, builder, intent, the pattern of the parameter to be named first, the factor.
FAULTS = [
    ("transformers 47458", _gpt, "gpt2", "h.*.mlp.c_proj.weight", ROOT),
    ("torchtitan 3334", _llama({"o_proj": 1, "w2": 1, "w3": 1}), "gpt2", "*.w3.weight", 1 / ROOT),
    (
        "lingua 39",
        _llama({"q_proj": 1, "k_proj": 1, "v_proj": 1, "o_proj": 1, "w2": 1}),
        "gpt2",
        "*.[qkv]_proj.weight",
        1 / ROOT,
    ),
    ("llama2.c 579", _llama({"o_proj": 1, "w3": 1}), "gpt2", "*.w2.weight", ROOT),
    ("timm 2605", _layer_scale, "layerscale", "layers.0.gamma", 10.0),
    ("OLMo-core 698", _buffer, BUFFER, "layers.0.factor", 0.0),
    ("OLMo 607", _twice, "gpt2", "layers.2.o_proj.weight", 1 / ROOT),
    ("Modalities 460", _wrapped, "gpt2", "wrapped.layers.*.w2.weight", ROOT / 0.02 / 288**0.5),
    ("tt-metal 48716", _fan, "kaiming", "2.weight", 2.0),
    ("litgpt 1137: NaN", _memory(lambda w: w[3].fill_(NAN)), None, "4.weight", None),
    ("litgpt 1137: denormal", _memory(lambda w: w[:9].fill_(SMALL)), None, "4.weight", None),
    (
        "litgpt 1137: repeated",
        _memory(lambda w: w[9:].copy_(w[:-9].clone())),
        None,
        "4.weight",
        None,
    ),
    ("ModernBERT: truncation", _truncated, TRUNCATED, "*.weight", 0.8796),
    ("one layer of a chain", _one_layer, None, "6.weight", 1.3),
    ("biases of torch", _biases, "kaiming", "3.bias", None),
    ("half of the branches", _half_scaled, "gpt2", "*.w2.weight", ROOT),
]


@pytest.mark.parametrize(
    ("build", "intent", "first", "factor"), [row[1:] for row in FAULTS], ids=[r[0] for r in FAULTS]
)
def test_a_fault_is_named_first_and_the_mended_model_is_as_meant(build, intent, first, factor):
    torch.manual_seed(3)
    mended, wrong = (ft.audit(build(fault), intent=intent) for fault in (False, True))
    assert mended.ok, mended.statement
    deviation = wrong.deviations[0]
    assert fnmatchcase(deviation.name, first), wrong.statement
    assert abs(deviation.z) > 5
    if factor is not None:
        assert deviation.factor == pytest.approx(factor, rel=0.04)
