"""Attention by its forward pass, the stream of transformers from their embeddings, and faults."""

import numpy as np
import pytest

import fieldtheory as ft

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from tests.audits.models import GPT  # noqa: E402
from tests.audits.transformers import bert, gpt2, llama, vit  # noqa: E402

KINDS = [gpt2, llama, vit, bert]


def _encoder(batch_first=True, norm_first=False):
    """Of torch, with the start that it has for attention and biases of zero."""
    layer = nn.TransformerEncoderLayer(
        48, 4, 96, batch_first=batch_first, norm_first=norm_first, activation="gelu"
    )
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    for name, p in encoder.named_parameters():
        if "bias" in name:
            nn.init.zeros_(p)
        elif p.ndim > 1:
            nn.init.normal_(p, std=0.05)
    return encoder, "torch"


RECOGNISED = [
    (gpt2, {}, "layer, 4 heads, causal"),
    (gpt2, {"fused": "groups", "shared": 2}, "layer, 4 heads by 2, causal"),
    (gpt2, {"fused": "row", "shared": 4, "rotary": 5e5}, "layer, 4 heads by 4, causal, rotary"),
    (gpt2, {"fused": None, "heads": 1}, "layer, 1 heads, causal"),
    (gpt2, {"causal": False, "heads": 8}, "layer, 8 heads"),
    (llama, {}, "rms, 4 heads by 2, causal, rotary"),
    (
        llama,
        {"normed": True, "deviation": 0.2},
        "rms, 4 heads by 2, causal, rotary, query key norm",
    ),
    (vit, {}, "layer, 3 heads"),
    (bert, {}, "post layer, 4 heads"),
    (_encoder, {}, "post layer, 4 heads"),
    (_encoder, {"batch_first": False, "norm_first": True}, "layer, 4 heads"),
    (lambda: (GPT(3), "gpt2"), {}, "layer, 1 heads, causal"),
]


@pytest.mark.parametrize(("build", "options", "text"), RECOGNISED)
def test_attention_is_recognised_by_its_forward_pass(build, options, text):
    torch.manual_seed(0)
    audit = ft.audit(build(**options)[0])
    assert [step.name for step in audit.stream] == [
        f"{kind} of block {n}" for n in range(3) for kind in ("attention", "mlp")
    ]
    assert {step.form for step in audit.stream[::2]} == {text}
    assert audit.ok and not audit.notes and f"stream of tokens: {text}; " in str(audit)


def test_steps_are_those_of_the_whole_transformer():
    torch.manual_seed(0)
    model, intent = llama(width=128, deviation=0.08)
    ids = torch.arange(8)[None]
    audit = ft.audit(model, ids, intent)
    x = model.embedding(ids)[0].detach().double().numpy()
    size = 128 * 0.08**2
    variances = ("query", "key", "value", "out")
    mlp = {"activation": "swish", "gated": True, "gate_weight_variance": size}
    mlp |= {"inner_weight_variance": size, "outer_weight_variance": 4 * size}
    network = ft.TransformerNetwork(
        depth=3,
        heads=4,
        width=128,
        normalization="rms",
        epsilon=1e-6,
        rotary=1e4,
        grouped_heads=2,
        **{f"{name}_weight_variance": size for name in variances},
        mlp=mlp,
    )
    s = ft.solve(network, x @ x.T / 128)
    K, V = (np.diagonal(y, axis1=1, axis2=2) for y in (s.kernels, s.kernel_variance))
    for step, own, variance in zip(audit.stream, K[1:], V[1:], strict=False):
        # Shifts of order 1/N, and without the fluctuations of the embeddings.
        assert step.predicted == pytest.approx(own.mean(), rel=0.01)
        assert 0 < step.spread < np.sqrt(variance.mean())


def _zs(seeds):
    """z of streams, of what attention adds and of what MLPs add; and alarms."""
    each, alarms = [], []
    for seed in seeds:
        torch.manual_seed(seed)
        model, intent = KINDS[seed % len(KINDS)]()
        audit = ft.audit(model, intent=intent)
        alarms += [] if audit.ok else [(seed, audit.statement)]
        each.append([(step.z, step.added_z) for step in audit.stream])
    z = np.array(each)
    return z[..., 0], z[:, ::2, 1], z[:, 1::2, 1], alarms


def test_correct_transformers_raise_no_alarm():
    *zs, alarms = _zs(range(8))
    assert not alarms and all(abs(z).max() < 4.5 for z in zs)


@pytest.mark.slow
def test_of_200_correct_transformers_as_many_are_far_as_by_chance():
    *zs, alarms = _zs(range(100, 300))
    assert len(alarms) <= 1
    for z in zs:
        # Steps of one stream depend on each other.
        assert abs(z.mean()) < 0.2 and 0.85 < z.std() < 1.15
        assert 0.02 < (abs(z) > 1.96).mean() < 0.08
    # What MLPs add has wider tails than a sum of squares; they have their own test.
    assert all(abs(z).max() < 4.5 for z in zs[:2]) and abs(zs[2]).max() < 5


def _weight(name, factor):
    def change(layer):
        layer.get_submodule(name).weight.data *= factor

    return change


def _attribute(name, value):
    return lambda layer: setattr(layer.attn, name, value)


def _without(name):
    return lambda layer: setattr(layer, name, nn.Identity())


def _doubled(layer):
    layer.mlp.register_forward_hook(lambda module, inputs, output: 2 * output)


# A model, what is wrong with its second layer, and how that is named.
FAULTS = [
    (llama, _weight("attn.v_proj", 1.5), "⟨f²⟩ 0.00", "± "),
    (gpt2, _weight("attn.o_proj", 6**0.5), "⟨f²⟩ ", "± "),
    (gpt2, _attribute("scale", 1.0), "logit scale 3.464", "logit scale 1 as in other layers"),
    (bert, _attribute("scale", 1 / 12), "logit scale 0.2887", "logit scale 1 as in other layers"),
    (gpt2, _attribute("causal", False), "causal False", "causal True as in other layers"),
    (llama, _attribute("rotary", None), "rotary None", "rotary 1e+04 as in other layers"),
    (gpt2, _without("norm1"), "norm None", "norm layer as in other layers"),
    (llama, _attribute("normed", True), "query key norm True", "query key norm False as in "),
]


@pytest.mark.parametrize(("build", "change", "measured", "meant"), FAULTS)
def test_a_fault_is_named_at_its_layer(build, change, measured, meant):
    torch.manual_seed(0)
    model, intent = build()
    change(model.layers[1])
    audit = ft.audit(model, intent=intent)
    rows = [row for row in audit.deviations if row.name.startswith(("attention", "mlp"))]
    assert {row.name for row in rows} == {"attention of block 1"}
    assert rows[0].measured.startswith(measured) and meant in rows[0].meant
    # What is behind is as it must be of what comes there.
    assert all(abs(step.added_z) < 4 for step in audit.stream[3:])


@pytest.mark.parametrize(
    ("change", "what"), [(_doubled, "factor 2"), (_without("norm2"), "norm None")]
)
def test_a_fault_of_an_mlp_is_named_at_its_layer(change, what):
    torch.manual_seed(0)
    model, intent = gpt2()
    change(model.layers[2])
    (row, *_) = ft.audit(model, intent=intent).deviations
    assert (row.name, row.measured) == ("mlp of block 2", what)


def test_what_is_not_recognised_is_said_and_the_rest_is_predicted():
    torch.manual_seed(0)
    model, _ = gpt2()
    model.layers[1].attn.slope = 0.5
    audit = ft.audit(model)
    assert audit.notes == ("Not recognised: attention of block 1.",)
    assert len(audit.stream) == 5 and all(abs(step.z) < 4 for step in audit.stream)
    nn.init.normal_(model.layers[2].attn.o_proj.bias, std=1e-3)
    audit = ft.audit(model)
    # Nor what has biases.
    names = "attention of block 1, attention of block 2"
    assert f"Not recognised: {names}." in str(audit)
    assert [step.name[-1] for step in audit.stream] == ["0", "0", "1", "2"]
    for layer in model.layers:
        layer.attn.slope = 0.5
    audit = ft.audit(model)
    names = ", ".join(f"attention of block {n}" for n in range(3))
    assert audit.notes == (f"Not recognised: {names}.",) and not audit.stream


def test_what_all_logits_have_is_a_note():
    torch.manual_seed(0)
    model, intent = gpt2(width=64)
    for layer in model.layers:
        layer.attn.scale = 1.0
    audit = ft.audit(model, intent=intent)
    assert audit.ok and audit.notes == ("Logits are q·k/√d times 4.",)


def test_tokens_may_be_the_same():
    torch.manual_seed(0)
    model, intent = llama()
    audit = ft.audit(model, torch.zeros(2, 6, dtype=torch.long), intent)
    assert audit.ok and len(audit.stream) == 6 and abs(audit.stream[-1].z) < 4
