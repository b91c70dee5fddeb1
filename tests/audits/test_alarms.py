"""Correct models of many seeds raise no alarm; roles as a whole; what was not tested is said."""

import numpy as np
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


class Vision(nn.Module):
    """Patches and a class token for an encoder of torch."""

    def __init__(self):
        super().__init__()
        self.patches, self.layers = nn.Conv2d(3, 32, 8, stride=8), _encoder(redrawn=True)
        self.token, self.positions = (nn.Parameter(torch.empty(1, n, 32)) for n in (1, 17))
        for weight in (self.token, self.positions, self.patches.weight):
            nn.init.trunc_normal_(weight, std=0.02)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1)
        return self.layers(x + self.positions)


class SquaredGate(nn.Module):
    """A block whose hidden units have heavy tails."""

    def __init__(self, width=64, hidden=128):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.w1, self.w3 = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.w2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return x + self.w2(torch.relu(self.w1(y)).square() * self.w3(y))


def _few():
    """Up to nine entries a tensor."""
    return nn.ParameterList(torch.randn(1 + i % 9) for i in range(300))


def _experts():
    """Stacks of matrices."""
    model = nn.ParameterList(torch.randn(8, 12, 16) * 0.02 for _ in range(6))
    model.append(nn.Parameter(torch.eye(16).repeat(4, 1, 1)))
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
        lambda: _encoder(redrawn=True),
        {"*.bias": None, "*.norm?.weight": "ones"},
    ),
    (lambda: nn.ModuleList(nn.Linear(16, 16) for _ in range(100)), "torch"),
    (Vision, {"[tp]o*s": ("truncated normal", 0.02), "*.norm?.weight": "ones"}),
    (lambda: nn.Sequential(*(SquaredGate() for _ in range(4))), "torch"),
    (lambda: nn.LSTM(24, 32, num_layers=4), {"*": ("uniform", 96**-0.5)}),
    (lambda: nn.MultiheadAttention(48, 4), {"in_proj_weight": 96**-0.5, "*bias": "zeros"}),
    (_few, {"*": ("normal", 1.0)}),
    (_experts, {"6": 0.25, "*": 0.02}),
    (lambda: nn.ModuleList(nn.Linear(5, 1) for _ in range(200)), "torch"),
]


def _encoder(redrawn=False):
    """Of torch, which copies its layer, and with own numbers in every layer."""
    layer = nn.TransformerEncoderLayer(32, 2, dim_feedforward=64, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 4)
    for module in encoder.modules() if redrawn else ():
        if hasattr(module, "_reset_parameters") and module is not encoder:
            module._reset_parameters()
        elif hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return encoder


def _audits(seeds):
    for seed in seeds:
        torch.manual_seed(seed)
        build, intent = CORRECT[seed % len(CORRECT)]
        model = build()
        for meant in (intent, None):
            yield seed, meant, ft.audit(model, intent=meant)


def _alarms(seeds):
    return [(seed, meant, a.statement) for seed, meant, a in _audits(seeds) if not a.ok]


def test_a_correct_model_of_many_tensors_raises_none():
    torch.manual_seed(3)
    model = nn.ModuleList(nn.Linear(12, 12, bias=False) for _ in range(1500))
    for linear in model:
        nn.init.normal_(linear.weight, std=0.1)
    audit = ft.audit(model, intent={"*": 0.1})
    assert audit.ok and audit.tests == 1501
    # The farthest has a z of 3.9, which a test of it alone would call wrong.
    assert 0.1 < audit.probability < 0.2
    nn.init.normal_(model[7].weight, std=0.2)
    assert [row.name for row in ft.audit(model, intent={"*": 0.1}).deviations] == ["7.weight"]


def _deep(factor, sizes=lambda layer: 0.02):
    torch.manual_seed(8)
    model = nn.ModuleList(nn.Linear(28, 28, bias=False) for _ in range(24))
    for layer, linear in enumerate(model, start=1):
        nn.init.normal_(linear.weight, std=factor * sizes(layer))
    return model, {"*": lambda place: ("normal", sizes(place.layer))}


def _audit(model, intent):
    return ft.audit(model, intent=intent)


def test_a_role_is_tested_as_a_whole():
    audit = _audit(*_deep(1.05))
    row = audit.deviations[0]
    assert (row.name, row.meant) == ("24 × *.weight", "0.02") and audit.tests == 25
    assert row.factor == pytest.approx(1.05, abs=0.01) and 8 < row.z < 12
    # None is far by itself.
    assert max(abs(test.z) for test in audit.tested if test is not row) < 4.5
    scaled = _audit(*_deep(1.05, lambda layer: 0.1 * layer**-0.5)).deviations[0]
    assert (scaled.name, scaled.meant) == ("24 × *.weight", "1 × its size")
    assert scaled.z == pytest.approx(row.z, rel=0.01)


def test_one_layer_that_is_named_says_nothing_about_its_role():
    model, intent = _deep(1.0)
    model[4].weight.data *= 3
    assert [row.name for row in ft.audit(model, intent=intent).deviations] == ["4.weight"]


# Intent of a model with an embedding, what was not tested, and tests of tensors 0, 1 and 2.
LIMITS = [
    ("torch", "", ["intent"] * 3),
    (
        None,
        " Layers agree with each other; sizes were not tested. Not tested: 0.weight.",
        [None, "layers", "layers"],
    ),
    (
        {"1.weight": 48**-0.5 / 3**0.5, "*.bias": None},
        " Only between layers: 2.weight, 3.weight, 4.weight. Not tested: 0.weight, *.bias.",
        [None, "intent", None],
    ),
    (
        {"0.weight": ("normal", 1.0), "1.*": None, "*": ("uniform", 144**-0.5)},
        " Not tested: 1.weight, 1.bias.",
        ["intent", None, None],
    ),
]


@pytest.mark.parametrize(("intent", "text", "tested"), LIMITS)
def test_what_was_not_tested_is_said(intent, text, tested):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 48), *(nn.Linear(48, 48) for _ in range(4)))
    audit = ft.audit(model, intent=intent)
    assert audit.ok and audit.statement.endswith(f"for all together.{text}")
    frame = audit.to_dataframe()
    assert [each or None for each in frame["tested"].head(3).fillna("")] == tested
    has_test = frame["tested"].notna()
    for column in ("meant", "factor", "z"):
        assert (frame[column].notna() == has_test).all()
    # Those of roles are not tensors.
    assert audit.probability > 0.1 and audit.tests >= has_test.sum() - 2


def test_forty_correct_models_raise_no_alarm():
    assert _alarms(range(40)) == []


@pytest.mark.slow
def test_of_two_thousand_correct_models_one_in_a_thousand_raises_one():
    p = {True: [], False: []}
    for seed, meant, audit in _audits(range(1000, 3000)):
        p[meant is None].append(audit.probability)
        if not audit.ok:
            print(seed, audit.statement)
    for each in p.values():
        print([float(np.mean(np.array(each) < level)) for level in (1e-3, 1e-2, 0.1, 0.5)])
        # Of the Poisson law of mean 2, more than 6 have a probability of 0.5 %.
        assert np.sum(np.array(each) < 1e-3) <= 6
        # The tests of a role and of its tensors are not independent.
        assert 0.02 < np.mean(np.array(each) < 0.1) < 0.12
