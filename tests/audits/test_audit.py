"""Audit: laws, errors, places, depth, intents, rounding, and refusals."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import chi2, norm

import fieldtheory as ft
from fieldtheory.audits.tensors import score

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from tests.audits.models import GPT, Conv1D, Llama, chain  # noqa: E402
from tests.tables import slow  # noqa: E402


class Holder(nn.Module):
    """A module of one weight."""

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight)


class NormedEmbedding(nn.Embedding):
    """One with a norm behind it, as Inkling of transformers has."""


def _held(weight):
    torch.manual_seed(1)
    return ft.audit(Holder(weight)).tensors[0]


def _drawn(draw, *shape):
    torch.manual_seed(2)
    weight = torch.empty(*(shape or (128, 160)))
    draw(weight)
    return weight


def _cut(deviations):
    return lambda w: nn.init.trunc_normal_(w, std=0.3, a=-0.3 * deviations, b=0.3 * deviations)


LAWS = [
    ("normal", lambda: _drawn(lambda w: nn.init.normal_(w, std=0.3))),
    ("normal", lambda: _drawn(nn.init.normal_, 20, 50)),
    ("uniform", lambda: _drawn(lambda w: nn.init.uniform_(w, -0.2, 0.2))),
    ("uniform", lambda: _drawn(nn.init.kaiming_uniform_, 10, 15)),
    ("truncated normal", lambda: _drawn(_cut(2))),
    ("truncated normal", lambda: _drawn(_cut(1.5))),
    ("truncated normal", lambda: _drawn(_cut(3), 400, 400)),
    ("orthogonal", lambda: _drawn(nn.init.orthogonal_, 30, 70)),
    ("orthogonal", lambda: _drawn(nn.init.orthogonal_, 70, 30)),
    ("orthogonal", lambda: 0.3 * torch.eye(40)),
    ("zeros", lambda: torch.zeros(50, 7)),
    ("ones", lambda: torch.ones(50)),
    ("orthogonal", lambda: torch.eye(30).repeat(3, 1)),
    ("constant", lambda: torch.full((50,), 1e-5)),
    ("few", lambda: _drawn(nn.init.normal_, 9)),
    ("other", lambda: _drawn(nn.init.normal_) ** 3),
    ("other", lambda: _drawn(nn.init.normal_).sign()),
    ("other", lambda: _drawn(lambda w: nn.init.sparse_(w, 0.9))),
    (
        "not initialised: 100 % of the entries are NaN or infinite",
        lambda: torch.full((4, 4), torch.inf),
    ),
    (
        "not initialised: 50 % of the entries are NaN or infinite",
        lambda: torch.tensor([torch.nan, 1.0]),
    ),
    ("not initialised: entries from 1e-41 to 1", lambda: torch.tensor([1e-41, 1.0])),
    (
        "repeated: 3 rows of 8",
        lambda: _drawn(lambda w: nn.init.normal_(w[:5]), 8, 20)[[0, 1, 2, 3, 4, 1, 1, 3]],
    ),
]


@pytest.mark.parametrize(("law", "weight"), LAWS, ids=[f"{i} {r[0]}" for i, r in enumerate(LAWS)])
def test_laws(law, weight):
    assert _held(weight()).law == law


SPREADS = [(nn.init.normal_, 60), (nn.init.normal_, 5000), (_cut(2), 5000)]
# Uniform numbers on both sides of zero.
SPREADS += [(lambda w: nn.init.uniform_(w, -0.1, 0.1), n) for n in (200, 5000)]


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(("draw", "n"), SPREADS)
def test_the_error_is_the_spread_of_repeated_draws(draw, n):
    torch.manual_seed(4)
    rows = []
    for _ in range(300):
        weight = torch.empty(n)
        draw(weight)
        rows.append(ft.audit(Holder(weight)).tensors[0])
    spread = np.std([row.deviation for row in rows], ddof=1)
    error = np.mean([row.error for row in rows])
    # That of 300 numbers has an error of 4 %.
    assert error == pytest.approx(spread, rel=0.16)
    assert rows[0].freedom == pytest.approx(0.5 * (rows[0].deviation / rows[0].error) ** 2)


@pytest.mark.parametrize(("draw", "share"), [(nn.init.normal_, 1.0), (nn.init.uniform_, 2.5)])
def test_degrees_of_freedom_of_a_law_are_exact(draw, share):
    weight = _drawn(draw)
    row = _held(weight - 0.5 if share > 1 else weight)
    assert row.freedom == pytest.approx(share * weight.numel(), rel=1e-12)


@pytest.mark.parametrize(("freedom", "accuracy"), [(50, 0.12), (500, 0.02), (50_000, 1e-3)])
@pytest.mark.parametrize("z", [-6.0, -3.0, -0.5, 0.5, 3.0, 6.0])
def test_z_is_that_of_chi_squared(z, freedom, accuracy):
    square = chi2.ppf(norm.cdf(z), freedom) if z < 0 else chi2.isf(norm.sf(z), freedom)
    measured = score(0.3 * (square / freedom) ** 0.5, 0.3, freedom, 1e-7)
    assert measured == pytest.approx(z, abs=accuracy)


def _conv1d():
    torch.manual_seed(0)
    return Conv1D(96, 32)


PLACES = [
    (lambda: nn.Linear(30, 50), "weight", "linear", 30, 50),
    (lambda: nn.Linear(30, 50), "bias", "bias", 30, 50),
    (_conv1d, "weight", "linear", 32, 96),
    (lambda: nn.Conv2d(6, 20, 3), "weight", "convolution", 54, 180),
    (lambda: nn.Conv2d(6, 20, 3, groups=2), "weight", "convolution", 27, 180),
    (lambda: nn.Embedding(70, 20), "weight", "embedding", None, None),
    (lambda: NormedEmbedding(70, 20), "weight", "embedding", None, None),
    (lambda: nn.LayerNorm(20), "weight", "norm", None, None),
    (lambda: nn.LayerNorm(20), "bias", "norm bias", None, None),
    (lambda: nn.BatchNorm1d(20), "running_var", "buffer", None, None),
    (lambda: nn.MultiheadAttention(20, 2), "in_proj_weight", "matrix", 20, 60),
]


@pytest.mark.parametrize(("build", "name", "kind", "fan_in", "fan_out"), PLACES)
def test_kinds_and_fans(build, name, kind, fan_in, fan_out):
    module = build()
    row = {row.place.name: row for row in ft.audit(module).tensors}[name]
    values = dict(module.named_parameters()) | dict(module.named_buffers())
    square = float(values[name].detach().double().square().mean())
    assert (row.place.kind, row.deviation) == (kind, pytest.approx(square**0.5))
    if fan_in is not None:
        assert (row.place.fan_in, row.place.fan_out) == (fan_in, fan_out)
    is_weight = kind in ("linear", "convolution", "matrix")
    assert row.weight_variance == (pytest.approx(fan_in * square) if is_weight else None)


def test_tied_tensors_are_there_once():
    audit = ft.audit(GPT())
    names = [row.place.name for row in audit.tensors]
    assert len(names) == len(set(names)) == len(list(GPT().parameters()))
    assert "wte.weight" in names and "lm_head.weight" not in names
    assert len(audit.to_dataframe()) == len(names)


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))


def _numbered():
    return nn.ModuleDict({str(i): nn.Linear(8, 8) for i in range(3)})


ROLES = [
    (lambda: GPT(layers=3), "h.1.mlp.c_fc.weight", "h.*.mlp.c_fc.weight", 2, 3),
    (lambda: GPT(layers=3), "ln_f.weight", "ln_f.weight", None, 3),
    # Lists within layers are not the layers.
    (
        lambda: nn.ModuleList(Expert() for _ in range(3)),
        "2.experts.4.weight",
        "*.experts.4.weight",
        3,
        3,
    ),
    (lambda: nn.ModuleList([Expert()]), "0.experts.3.weight", "0.experts.*.weight", 4, 5),
    (lambda: nn.ModuleList(Expert() for _ in range(2)), "1.mlp.2.weight", "*.mlp.2.weight", 2, 2),
    # Activations are no layers.
    (chain, "4.weight", "*.weight", 3, 6),
    (_numbered, "2.bias", "*.bias", 3, 3),
    (
        lambda: nn.ModuleDict({"encoder": chain(2), "decoder": chain(4)}),
        "decoder.6.bias",
        "decoder.*.bias",
        4,
        4,
    ),
]


@pytest.mark.parametrize(("build", "name", "role", "layer", "depth"), ROLES)
def test_roles_and_layers(build, name, role, layer, depth):
    place = {row.place.name: row.place for row in ft.audit(build()).tensors}[name]
    assert (place.role, place.layer, place.depth) == (role, layer, depth)


def _layers(shape, odd=None, factor=1.4):
    torch.manual_seed(5)
    model = nn.ModuleList(nn.Linear(60, 60, bias=False) for _ in range(8))
    for index, linear in enumerate(model):
        deviation = 0.1 * shape(index + 1) * (factor if index == odd else 1.0)
        nn.init.normal_(linear.weight, std=deviation)
    return model


DEPTH_LAWS = [
    (lambda l: 1.0, None, "constant"),
    (lambda l: l**-0.5, None, "1/√l"),
    (lambda l: 1.2**l, None, "varies"),
    (lambda l: 1.0, 0, "layer 1 is out of line"),
    (lambda l: 1.0, 5, "layer 6 is out of line"),
    (lambda l: l**-0.5, 3, "layer 4 is out of line"),
]


@pytest.mark.parametrize(("shape", "odd", "law"), DEPTH_LAWS)
def test_laws_over_the_depth(shape, odd, law):
    audit = ft.audit(_layers(shape, odd))
    (row,) = audit.depth_laws
    assert (row.law, row.layers) == (law, 8)
    assert row.deviation == audit.tensors[0].deviation
    assert audit.ok == (odd is None)
    if odd is not None:
        assert audit.deviations[0].name == f"{odd}.weight"
        assert audit.deviations[0].factor == pytest.approx(1.4, rel=0.04)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_one_constant_layer_among_random_ones_and_one_random_among_constants(value):
    model = _layers(lambda l: 1.0)
    nn.init.constant_(model[4].weight, value)
    assert [row.name for row in ft.audit(model).deviations] == ["4.weight"]
    for linear in model:
        nn.init.constant_(linear.weight, value)
    assert ft.audit(model).ok
    nn.init.normal_(model[2].weight)
    assert [row.name for row in ft.audit(model).deviations] == ["2.weight"]


def test_layers_of_different_fan_in_are_not_compared():
    torch.manual_seed(0)
    sizes = [90, 40, 40, 40, 40, 10]
    model = nn.Sequential(*(nn.Linear(n, m) for n, m in itertools.pairwise(sizes)))
    assert ft.audit(model).ok


INTENTS = [
    ({"*.weight": 0.02, "*.bias": "zeros"}, True),
    ({"*.weight": ("normal", 0.02)}, True),
    ({"*.weight": lambda place: 0.32 * place.fan_in**-0.5}, False),
    ({"*.weight": lambda place: 0.02 if place.layer <= place.depth else "zeros"}, True),
    ({"*.weight": ("uniform", None)}, "TypeError"),
    ({"*.weight": "uniform"}, False),
    ({"*.weight": ("normal", 0.021)}, False),
    # The first pattern that a name has is the one.
    ({"0.weight": None, "*.weight": 0.02}, True),
    ({"*.weight": 0.02, "*.wieght": 0.02}, "ValueError"),
    (lambda place: 0.02 if place.kind == "linear" else None, True),
    (lambda place: 1 / place.depth if place.kind == "linear" else None, False),
]


@pytest.mark.parametrize(("intent", "ok"), INTENTS)
def test_intents(intent, ok):
    torch.manual_seed(6)
    model = chain(layers=4, width=160, start=lambda w: nn.init.normal_(w, std=0.02))
    if isinstance(ok, str):
        with pytest.raises(
            (TypeError, ValueError), match=r"0\.weight must be|none for '\*\.wieght'"
        ):
            ft.audit(model, intent=intent)
        return
    assert ft.audit(model, intent=intent).ok == ok


def test_of_two_that_chance_does_not_give_the_one_farther_off_is_first():
    model = chain(layers=3)
    nn.init.constant_(model[0].bias, 0.2)
    nn.init.constant_(model[2].bias, 1e-3)
    nn.init.constant_(model[4].bias, 0.3)
    audit = ft.audit(model, intent={"*.bias": ("constant", 0.1)})
    assert [row.name for row in audit.deviations] == ["2.bias", "4.bias", "0.bias"]
    assert [row.factor for row in audit.deviations] == pytest.approx([0.01, 3.0, 2.0])


@pytest.mark.parametrize("kind", [slow(torch.float16), slow(torch.bfloat16), torch.float64])
def test_rounding_does_not_alarm(kind):
    torch.manual_seed(7)
    assert ft.audit(GPT().to(kind), intent="gpt2").ok
    for scale in (0.1, 1e-5, 1e-6):
        model = Llama(scale=scale).to(kind)
        assert ft.audit(model, intent={"*.gamma": ("constant", scale)}).ok
        assert not ft.audit(model, intent={"*.gamma": ("constant", 1.1 * scale)}).ok
    weight = _drawn(nn.init.orthogonal_, 24, 24).to(kind)
    assert ft.audit(Holder(weight), intent={"weight": ("orthogonal", 24**-0.5)}).ok


def test_importing_the_package_does_not_import_torch():
    code = "import sys, fieldtheory; fieldtheory.audit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _lazy():
    return nn.Sequential(nn.LazyLinear(4))


def _meta():
    with torch.device("meta"):
        return nn.Linear(3, 3)


def _quantised():
    weight = torch.quantize_per_tensor(torch.randn(4, 4), 0.1, 0, torch.qint8)
    module = nn.Module()
    module.weight = nn.Parameter(weight, requires_grad=False)
    return module


def _integers():
    module = nn.Module()
    module.weight = nn.Parameter(torch.ones(4, 4, dtype=torch.int8), requires_grad=False)
    return module


def _scripted():
    return torch.jit.script(nn.Sequential(nn.Linear(3, 3)))


BAD = [
    (lambda: "gpt2", None, TypeError, "model must be a torch.nn.Module, got 'gpt2'"),
    (lambda: nn.Linear, None, TypeError, "model must be a torch.nn.Module, got <class"),
    (lambda: nn.Tanh(), None, ValueError, "model must have parameters, got none"),
    (_meta, None, ValueError, "model must have its weights, got weight on the meta device"),
    (_quantised, None, ValueError, "model must not be quantised, got weight of torch.qint8"),
    (_integers, None, ValueError, "model must not be quantised, got weight of torch.int8"),
    (_lazy, None, ValueError, r"model must have its shapes, got 0.weight before a first forward"),
    (_scripted, None, ValueError, "model must be the module before torch.jit, got model, a Recurs"),
    (chain, {"*.foo": 0.1}, ValueError, "intent must concern parameters of the model, got none"),
    (chain, {}, ValueError, "intent must concern parameters of the model, got none"),
    (chain, "gtp2", ValueError, "intent must be one of gpt2, .*did you mean gpt2"),
    (chain, 0.02, TypeError, "intent must be one of gpt2, .*got 0.02"),
    (chain, type("Meant", (), {}), TypeError, r"intent must be callable as intent\(place\): too"),
    (chain, {"*.weight": -0.1}, ValueError, r"intent of 0.weight must be .* >= 0, got -0.1"),
    (chain, {"*.weight": "gaussian"}, ValueError, "intent must be one of zeros, .*got 'gaussian'"),
    (chain, {"*.weight": ("normal", 1, 2)}, TypeError, "intent of 0.weight must be"),
    (chain, {"*.weight": [0.1]}, TypeError, "intent of 0.weight must be"),
]


@pytest.mark.parametrize(("build", "intent", "error", "match"), BAD)
@pytest.mark.filterwarnings("ignore")
def test_bad_input(build, intent, error, match):
    with pytest.raises(error, match=match) as caught:
        ft.audit(build(), intent=intent)
    assert "\n" not in str(caught.value)


def test_dynamically_quantised_layers_are_refused():
    module = type("Linear", (nn.Module,), {"__module__": "torch.ao.nn.quantized.dynamic"})()
    with pytest.raises(ValueError, match="model must not be quantised, got 0, a Linear"):
        ft.audit(nn.Sequential(module, nn.Linear(2, 2)))
