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

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from fieldtheory import validation
from fieldtheory.audits.tensors import LAWS, Place

Rule = Callable[[Place], Any]
_VALUES = {"zeros": 0.0, "ones": 1.0}
_NAMES = ("zeros", "ones", "constant", "orthogonal", *LAWS)
_WEIGHTS, _MATRICES = ("linear", "embedding", "matrix"), ("linear", "convolution")


def _starting(weight: Rule, kinds: tuple[str, ...] = _WEIGHTS, outside: bool = True) -> Rule:
    """Weights by a rule, in layers alone or also outside of them; biases zero, norms one."""

    def rule(place: Place) -> Any:
        if place.kind in kinds and (outside or place.layer is not None):
            return weight(place)
        return {"bias": "zeros", "norm bias": "zeros", "norm": "ones"}.get(place.kind)

    return rule


def _xavier(place: Place) -> float:
    return (2 / (place.fan_in + place.fan_out)) ** 0.5


def _layerscale(place: Place) -> Any:
    if place.kind == "vector" and place.layer is not None:
        return "constant", 0.1 if place.depth <= 18 else 1e-5 if place.depth <= 24 else 1e-6
    return "ones" if place.kind == "norm" else None


def _deepnorm(place: Place) -> float:
    gained = not any(part in place.name for part in ("q_proj", "k_proj", "query", "key"))
    return _xavier(place) * ((8 * place.depth) ** -0.25 if gained else 1.0)


def _torch(place: Place) -> tuple[str, float]:
    return ("normal", 1.0) if place.kind == "embedding" else ("uniform", (3 * place.fan_in) ** -0.5)


_gpt2 = _starting(lambda p: ("normal", 0.02 / (2 * p.depth) ** 0.5 if p.residual else 0.02))
_plain = _starting(lambda place: 0.02)
_mup = _starting(lambda place: place.fan_in**-0.5, ("linear",), outside=False)
INTENTS: dict[str, Rule] = {
    **dict.fromkeys(("gpt2", "llama", "megatron"), _gpt2),
    **dict.fromkeys(("plain", "lns"), _plain),
    "layerscale": _layerscale,
    "zero": lambda place: "zeros" if place.residual else None,
    "deepnorm": _starting(_deepnorm, ("linear",), outside=False),
    **dict.fromkeys(("mup-depth", "completep"), _mup),
    "torch": _starting(_torch, (*_MATRICES, "embedding", "bias")),
    "kaiming": _starting(lambda place: (2 / place.fan_in) ** 0.5, _MATRICES),
    "xavier": _starting(_xavier, _MATRICES),
}


def as_intent(intent: Any, names: Iterable[str]) -> Rule | None:
    """An intent by its name, a function of `Place`, or a mapping from patterns of the names."""
    if isinstance(intent, str):
        return INTENTS[validation.choice("intent", intent.lower(), INTENTS)]
    if intent is None or callable(intent):
        return intent
    if not isinstance(intent, Mapping):
        words = f"a mapping from patterns of names, or a function, got {validation.excerpt(intent)}"
        raise TypeError(f"intent must be one of {', '.join(INTENTS)}, {words}")
    for pattern in intent:
        if not any(fnmatchcase(name, pattern) for name in names):
            words = f"got none for {pattern!r}"
            raise ValueError(f"intent must concern parameters of the model, {words}")

    def rule(place: Place) -> Any:
        fitting = (value for p, value in intent.items() if fnmatchcase(place.name, p))
        value = next(fitting, None)
        return value(place) if callable(value) else value

    return rule


def target_of(rule: Rule | None, place: Place) -> tuple[str | None, float | None] | None:
    """The law and the deviation √⟨w²⟩ that a parameter is meant to have; None if any will do."""
    value = rule(place) if rule else None
    if value is None:
        return None
    if isinstance(value, str):
        return value, _VALUES.get(validation.choice("intent", value, _NAMES))
    law, deviation = value if isinstance(value, tuple) and len(value) == 2 else (None, value)
    if law is not None:
        validation.choice("intent", law, _NAMES)
    return law, validation.nonnegative(f"intent of {place.name}", deviation)
