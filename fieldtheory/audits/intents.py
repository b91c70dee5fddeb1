"""Intended starts of weights: rules by name, and those of well-known models.

gpt2, llama, megatron: normal of deviation 0.02, last matrices of branches 0.02/√(2L) (Radford et
al. 2019, section 2.3: residual layers times 1/√N; `_init_weights` of GPT-2 in transformers).
plain, lns: all of 0.02, ``initializer_range`` in transformers; LayerNorm scaling (Sun et al.,
arXiv:2502.05795) multiplies what the norms give.
layerscale: vectors in front of branches 0.1 up to 18 layers, 1e-5 up to 24, else 1e-6; weights are
free (Touvron et al., CaiT, arXiv:2103.17239, section 2).
zero: last matrices of branches zero; others are free (Zhang et al., arXiv:1901.09321).
deepnorm: Xavier's law times (8L)^(-1/4) in MLPs, value and output projections, for encoders or
decoders of L layers (Wang et al., arXiv:2203.00555).
mup-depth, completep: hidden matrices of σ²_w = 1 (Yang et al., arXiv:2310.02244).
torch: PyTorch's own, weights and biases uniform up to 1/√fan-in, embeddings normal.
kaiming: σ²_w = 2 (He et al., arXiv:1502.01852). xavier: variance 2/(fan-in + fan-out) (Glorot and
Bengio 2010). All but layerscale and zero have biases zero, and all but zero have norms one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from fieldtheory import validation
from fieldtheory.audits.places import Place
from fieldtheory.audits.tensors import LAWS

Rule = Callable[[Place], Any]
Target = tuple[str | None, float | None]
_VALUES = {"zeros": 0.0, "ones": 1.0}
_NAMES = ("zeros", "ones", "constant", "orthogonal", *LAWS)
_WEIGHTS, _MATRICES = ("linear", "embedding", "matrix"), ("linear", "convolution")


def _starting(weight: Rule, kinds: tuple[str, ...] = _WEIGHTS) -> Rule:
    """Weights of some kinds by a rule, biases zero, norms one."""
    others = {"bias": "zeros", "norm bias": "zeros", "norm": "ones"}
    return lambda place: weight(place) if place.kind in kinds else others.get(place.kind)


def _xavier(place: Place) -> float:
    return (2 / (place.fan_in + place.fan_out)) ** 0.5


def _layerscale(place: Place) -> Any:
    if place.kind == "vector" and place.layer is not None:
        return "constant", 0.1 if place.depth <= 18 else 1e-5 if place.depth <= 24 else 1e-6
    return "ones" if place.kind == "norm" else None


def _deepnorm(place: Place) -> float | None:
    gained = not any(part in place.name for part in ("q_proj", "k_proj", "query", "key"))
    return place.layer and _xavier(place) * ((8 * place.depth) ** -0.25 if gained else 1.0)


_gpt2 = _starting(lambda p: ("normal", 0.02 / (2 * p.depth) ** 0.5 if p.residual else 0.02))
_mup = _starting(lambda place: place.layer and place.fan_in**-0.5, ("linear",))
INTENTS: dict[str, Rule] = {
    **dict.fromkeys(("gpt2", "llama", "megatron"), _gpt2),
    **dict.fromkeys(("plain", "lns"), _starting(lambda place: 0.02)),
    "layerscale": _layerscale,
    "zero": lambda place: "zeros" if place.residual else None,
    "deepnorm": _starting(_deepnorm, ("linear",)),
    **dict.fromkeys(("mup-depth", "completep"), _mup),
    "torch": _starting(
        lambda p: ("normal", 1.0) if p.kind == "embedding" else ("uniform", (3 * p.fan_in) ** -0.5),
        (*_MATRICES, "embedding", "bias"),
    ),
    "kaiming": _starting(lambda place: (2 / place.fan_in) ** 0.5, _MATRICES),
    "xavier": _starting(_xavier, _MATRICES),
}


def targets_of(intent: Any, places: list[Place]) -> dict[str, Target]:
    """The law and the deviation √⟨w²⟩ of the parameters that an intent concerns, by their names.

    It is a name, a mapping from patterns of names, of which the first that fits counts, or a
    function of `Place`.
    """
    if isinstance(intent, str):
        intent = INTENTS[validation.choice("intent", intent.lower(), INTENTS)]
    if not (intent is None or callable(intent) or isinstance(intent, Mapping)):
        words = f"a mapping from patterns of names, or a function, got {validation.excerpt(intent)}"
        raise TypeError(f"intent must be one of {', '.join(INTENTS)}, {words}")
    if callable(intent):
        validation.require_arguments("intent", intent, "place")
    patterns = intent if isinstance(intent, Mapping) else {"*": intent}
    idle, targets = [*patterns], dict[str, Target]()
    for place in places:
        fitting = [pattern for pattern in patterns if fnmatchcase(place.name, pattern)]
        value = patterns[fitting[0]] if fitting else None
        value = value(place) if callable(value) else value
        if isinstance(value, str):
            targets[place.name] = validation.choice("intent", value, _NAMES), _VALUES.get(value)
        elif value is not None:
            law, size = value if isinstance(value, tuple) and len(value) == 2 else (None, value)
            law = law and validation.choice("intent", law, _NAMES)
            targets[place.name] = law, validation.nonnegative(f"intent of {place.name}", size)
        idle = [pattern for pattern in idle if pattern not in fitting]
    if intent is not None and (idle or not targets):
        words = f"got none for {[*idle, intent][0]!r}"
        raise ValueError(f"intent must concern parameters of the model, {words}")
    return targets
