"""Copies: equal numbers in different tensors are named, and what is equal by rule is not."""

import copy

import numpy as np
import pytest

import fieldtheory as ft

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from tests.audits.models import GPT, Llama, chain, convolutions  # noqa: E402
from tests.audits.test_alarms import _encoder  # noqa: E402


def _held(*tensors):
    return nn.ParameterList(tensors)


def _pair(change, *shape):
    """Random numbers, other ones, and the first ones changed."""
    x = torch.randn(shape or (20, 30))
    return _held(x, torch.randn(40, 20), change(x).clone())


def _stack(change):
    x = torch.randn(5, 12, 16)
    return _held(change(x), torch.randn(12, 16))


def _repeated_slices(x):
    x[3] = x[1]
    x[4] = -x[1]
    return x


def _seeded(*shapes, start=nn.init.normal_):
    tensors = [torch.empty(shape) for shape in shapes]
    for tensor in tensors:
        torch.manual_seed(0)
        start(tensor)
    return _held(*tensors)


def _towers():
    return nn.ModuleDict({"image": (tower := chain(3)), "text": copy.deepcopy(tower)})


def _of_a_slice():
    x = torch.randn(5, 12, 16)
    return _held(x, x[2].clone())


# Builder, and the deviations: of how many tensors, the first of them and what is said of it.
COPIES = [
    (_encoder, 18, "layers.1.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_weight"),
    (_towers, 6, "text.0.weight", "a copy of image.0.weight"),
    (lambda: _pair(lambda x: x), 1, "2", "a copy of 0"),
    (lambda: _pair(lambda x: x, 16), 1, "2", "a copy of 0"),
    (lambda: _pair(lambda x: x, 8, 3, 3, 3), 1, "2", "a copy of 0"),
    (lambda: _pair(lambda x: -x), 1, "2", "a copy of -1 × 0"),
    (lambda: _pair(lambda x: 0.3 * x), 1, "2", "a copy of 0.3 × 0"),
    (lambda: _pair(lambda x: x.T), 1, "2", "a copy of 0, transposed"),
    (lambda: _pair(lambda x: -0.7 * x.T), 1, "2", "a copy of -0.7 × 0, transposed"),
    (lambda: _pair(lambda x: 1 + 0.1 * x), 1, "2", "a copy of 0.1 × 0"),
    (lambda: _pair(lambda x: 0.3 * x).to(torch.bfloat16), 1, "2", "× 0"),
    (lambda: _stack(_repeated_slices), 1, "0", "[3] a copy of 0[1], 2 slices"),
    (lambda: _stack(lambda x: x[:1].repeat(5, 1, 1)), 1, "0", "[1] a copy of 0[0], 4 slices"),
    (_of_a_slice, 1, "1", "a copy of 0[2]"),
    (lambda: _seeded((30, 20), (50, 40)), 1, "1", "a copy of 0 in its first 5"),
    (
        lambda: _seeded((64, 32), (64, 16), (64,), start=nn.init.uniform_),
        2,
        "1",
        "a copy of 0 in its first 1024 entries",
    ),
]


@pytest.mark.parametrize(("build", "count", "name", "text"), COPIES)
def test_copies_are_named_with_what_they_are_copies_of(build, count, name, text):
    torch.manual_seed(2)
    model = build()
    audit = ft.audit(model)
    assert not audit.ok and len(audit.deviations) == count
    assert audit.deviations[0].name == name and text in audit.deviations[0].measured
    assert name in audit.statement and text in audit.statement


def _tables():
    """Sines and cosines, side by side and in turn, which two positions have."""
    angles = torch.arange(50.0)[:, None] / 10_000 ** (torch.arange(32) / 32)
    parts = angles.sin(), angles.cos()
    tables = torch.cat(parts, 1), torch.stack(parts, -1).reshape(50, 64)
    return _held(*(table[None].clone() for table in tables for _ in range(2)))


def _by_rule():
    """Decays, slopes, offsets in a ring, blurs and identities, the same in every layer."""
    A_log = torch.log(torch.arange(1, 17).float()).repeat(24, 1)
    slopes = 2.0 ** -torch.arange(1, 25)
    ring = torch.stack([(t := torch.arange(8) * np.pi / 4).cos(), t.sin()], -1)[:, None]
    ring = (ring / ring.abs().amax(-1, keepdim=True)).repeat(1, 16, 1).reshape(-1)
    walsh = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    walsh = torch.kron(torch.kron(walsh, walsh), torch.kron(walsh, walsh))
    kinds = A_log, slopes, ring, torch.eye(20), walsh, torch.linspace(-5, 3, 40)
    return _held(*(x.clone() for x in kinds for _ in range(3)))


def _views():
    x = torch.randn(20, 30)
    return _held(x, x.view(30, 20))


def _noisy():
    return _held(*(1 + 1e-3 * torch.randn(200) for _ in range(20)))


def _padded():
    return nn.ModuleList(nn.Embedding(30, 64, padding_idx=0) for _ in range(3))


def _started(start, *shape, kind=torch.float32):
    def build():
        tensors = [torch.empty(*shape) for _ in range(40)]
        for tensor in tensors:
            start(tensor)
        return _held(*tensors).to(kind)

    return build


SILENT = [
    GPT,
    lambda: Llama(scale=1e-6),
    lambda: _encoder(redrawn=True),
    _tables,
    _by_rule,
    _views,
    _noisy,
    _padded,
    lambda: _half_precision(convolutions()),
    _started(nn.init.orthogonal_, 20, 20),
    _started(nn.init.normal_, 5),
    _started(nn.init.normal_, 16, kind=torch.bfloat16),
    _started(lambda w: w.normal_().pow_(9), 30, 30, kind=torch.bfloat16),
    _started(lambda w: w.bernoulli_().mul_(2).sub_(1), 30, 30),
    _started(lambda w: nn.init.sparse_(w, 0.9), 40, 40),
    _started(lambda w: nn.init.dirac_(w), 20, 20, 3),
]


def _half_precision(model):
    return model.to(torch.float16)


@pytest.mark.parametrize("build", SILENT)
def test_what_is_equal_by_rule_or_shared_is_no_copy(build):
    torch.manual_seed(3)
    audit = ft.audit(build())
    assert "copies" not in str(audit) and "a copy of" not in str(audit)


def test_a_frozen_copy_is_a_note():
    torch.manual_seed(4)
    online = chain(3)
    model = nn.ModuleDict({"target": copy.deepcopy(online).requires_grad_(False), "online": online})
    audit = ft.audit(model, intent="torch")
    assert audit.ok
    assert audit.notes[0] == "Frozen copies: 6, as target.0.weight, a copy of online.0.weight."
    assert audit.notes[0] in str(audit) and audit.notes[0] in audit.to_html()
    averages = nn.Module()
    averages.weight = online[0].weight
    averages.register_buffer("average", online[0].weight.detach().clone())
    averages.register_buffer("other", online[0].weight.detach().clone())
    note = ft.audit(averages).notes[0]
    assert note == "Frozen copies: 2, as average, a copy of weight."
