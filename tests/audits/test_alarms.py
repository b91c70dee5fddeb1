"""Correct models of many seeds raise no alarm."""

import pytest

import fieldtheory as ft

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from tests.audits.models import GPT, Llama, chain, convolutions, deepnorm  # noqa: E402

UNIFORM = {"*.weight": lambda place: ("uniform", (3 / place.fan_in) ** 0.5)}
TRUNCATED = {"*.weight": ("truncated normal", 0.02), "*.bias": "zeros"}


def _plain():
    return Llama({}, layers=3)


def _small():
    """Few entries in every tensor."""
    return nn.Sequential(*(nn.Linear(n, m) for n, m in [(3, 5), (5, 5), (5, 5), (5, 5), (5, 2)]))


def _truncated(cut):
    def start(weight):
        nn.init.trunc_normal_(weight, std=0.02, a=-cut * 0.02, b=cut * 0.02)

    return lambda: chain(start=start)


def _xavier():
    return chain(layers=12, width=40, start=nn.init.xavier_uniform_)


def _lecun():
    return chain(start=lambda w: nn.init.uniform_(w, -3 / 8, 3 / 8))


def _orthogonal():
    return chain(width=48, start=nn.init.orthogonal_)


def _embedding():
    return nn.Sequential(nn.Embedding(300, 64), *(nn.Linear(64, 64) for _ in range(5)))


def _convolutions_of_torch():
    model = convolutions()
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return model


def _half(build, kind):
    return lambda: build().to(kind)


# Builder and intent of models that are as meant.
CORRECT = [
    (GPT, "gpt2"),
    (lambda: GPT(layers=12, width=32), "gpt2"),
    (Llama, "megatron"),
    (_plain, "llama"),
    (lambda: Llama(scale=0.1), "layerscale"),
    (_embedding, "torch"),
    (_small, "torch"),
    (chain, "torch"),
    (_convolutions_of_torch, "torch"),
    (convolutions, "kaiming"),
    (_xavier, "xavier"),
    (_lecun, UNIFORM),
    (deepnorm, "deepnorm"),
    (_truncated(2), {"*.weight": ("truncated normal", 0.02 * 0.87963), "*.bias": "zeros"}),
    (_truncated(3), {"*.weight": ("truncated normal", 0.02 * 0.98658), "*.bias": "zeros"}),
    (_orthogonal, {"*.weight": ("orthogonal", 48**-0.5)}),
    (_half(GPT, torch.bfloat16), "gpt2"),
    (_half(chain, torch.float16), "torch"),
    (
        lambda: nn.TransformerEncoder(_encoder_layer(), 4),
        {"*.bias": None, "*.norm?.weight": "ones"},
    ),
    (lambda: nn.ModuleList(nn.Linear(16, 16) for _ in range(100)), "torch"),
]


def _encoder_layer():
    return nn.TransformerEncoderLayer(32, 2, dim_feedforward=64, batch_first=True)


def _alarms(seeds):
    alarms = []
    for seed in seeds:
        torch.manual_seed(seed)
        build, intent = CORRECT[seed % len(CORRECT)]
        model = build()
        for meant in (intent, None):
            audit = ft.audit(model, intent=meant)
            if not audit.ok:
                alarms.append((seed, meant, audit.statement))
    return alarms


def test_a_correct_model_of_many_tensors_raises_none():
    torch.manual_seed(3)
    model = nn.ModuleList(nn.Linear(12, 12, bias=False) for _ in range(1500))
    for linear in model:
        nn.init.normal_(linear.weight, std=0.1)
    audit = ft.audit(model, intent={"*": 0.1})
    assert audit.ok and audit.tests == 1500
    # The farthest has a z of 3.9, which a test of it alone would call wrong.
    assert 0.1 < audit.probability < 0.2
    nn.init.normal_(model[7].weight, std=0.2)
    assert [row.name for row in ft.audit(model, intent={"*": 0.1}).deviations] == ["7.weight"]


def test_forty_correct_models_raise_no_alarm():
    assert _alarms(range(40)) == []


@pytest.mark.slow
def test_two_hundred_correct_models_raise_at_most_one():
    assert len(_alarms(range(1000, 1200))) <= 1
