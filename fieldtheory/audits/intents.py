"""Intended starts of weights: rules by name, and those of well-known models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.audits.tensors import LAWS, AuditedTensor, Place
from fieldtheory.networks.gram import GramNetwork

_VALUES = {"zeros": 0.0, "ones": 1.0}


class Target(NamedTuple):
    """The law and the deviation, the root of the mean square, that a tensor is meant to have.

    Parameters
    ----------
    law : str or None
        "zeros", "ones", "constant", "normal", "truncated normal", "uniform", "orthogonal"; None if
        any will do.
    deviation : float or None
        None if any will do.
    """

    law: str | None
    deviation: float | None


Rule = Callable[[Place], Any]


def part_of(network: GramNetwork, place: Place) -> str | None:
    """The parameter of a network that a matrix of a block has: by its shape, None if unclear."""
    N, M = network.width, network.hidden_width
    if place.kind != "linear" or place.layer is None or N == M or place.layer > network.depth:
        return None
    parts = {(M, N): "outer"} | ({(N, M): "inner"} if len(network.signal_names) == 1 else {})
    part = parts.get((place.fan_in, place.fan_out))
    return None if part is None else f"{part}_weight_variance"


def rule_of(network: GramNetwork) -> Rule:
    """The matrices of the blocks of a network; ρ multiplies in the forward pass."""

    def rule(place: Place) -> float | None:
        part = part_of(network, place)
        if part is None or place.layer is None:
            return None
        return float(network.of_layer(place.layer)[part] / place.fan_in) ** 0.5

    return rule


def measured_network(network: GramNetwork, tensors: Iterable[AuditedTensor]) -> GramNetwork:
    """The network with the variances that the matrices of its blocks have."""
    values: dict[str, np.ndarray] = {}
    for row in tensors:
        part = part_of(network, row.place)
        if part is not None and row.place.layer is not None and row.weight_variance is not None:
            values.setdefault(part, np.array(network.parameters[part]))
            values[part][row.place.layer - 1] = row.weight_variance
    return network.replace(**values)


def as_intent(intent: Any) -> Rule | None:
    """An intent by its name, a function of `Place`, or a mapping from patterns of names."""
    if isinstance(intent, GramNetwork):
        return rule_of(intent)
    if intent is None or (callable(intent) and not isinstance(intent, str)):
        return intent
    if isinstance(intent, str):
        return INTENTS[validation.choice("intent", intent.lower(), INTENTS)]
    if not isinstance(intent, Mapping):
        raise TypeError(
            f"intent must be one of {', '.join(INTENTS)}, a mapping from patterns of names, or a "
            f"function of a Place, got {validation.excerpt(intent)}"
        )

    def rule(place: Place) -> Any:
        for pattern, value in intent.items():
            if fnmatchcase(place.name, pattern):
                return value(place) if callable(value) else value
        return None

    return rule


def target_of(rule: Rule, place: Place) -> Target | None:
    """Target of a parameter by a rule: a law, a deviation, both, or None."""
    value = rule(place)
    if value is None:
        return None
    if isinstance(value, str):
        return Target(value, _VALUES.get(validation.choice("intent", value, _NAMES)))
    law, deviation = value if isinstance(value, tuple) and len(value) == 2 else (None, value)
    if law is not None:
        validation.choice("intent", law, _NAMES)
    return Target(law, validation.nonnegative(f"intent of {place.name}", deviation))


_NAMES = ("zeros", "ones", "constant", "orthogonal", *LAWS)


def _vectors(place: Place) -> Any:
    """Biases zero, norms one; other vectors are not tested."""
    if place.kind in ("bias", "norm bias"):
        return "zeros"
    return "ones" if place.kind == "norm" else None


def gpt2(place: Place) -> Any:
    """All weights normal of deviation 0.02, last matrices of branches 0.02/√(2L), biases zero.

    Radford et al. 2019, section 2.3: residual layers times 1/√N, N = 2L the number of them;
    `_init_weights` of GPT2PreTrainedModel in transformers.
    """
    if place.kind in ("linear", "embedding", "matrix"):
        return "normal", 0.02 / (2 * place.depth) ** 0.5 if place.residual else 0.02
    return _vectors(place)


def plain(place: Place) -> Any:
    """Weights of deviation 0.02, biases zero, norms one: ``initializer_range`` in transformers.

    Also "lns": LayerNorm scaling (Sun et al., arXiv:2502.05795) multiplies what the norms give.
    """
    if place.kind in ("linear", "embedding", "matrix"):
        return 0.02
    return _vectors(place)


def layerscale(place: Place) -> Any:
    """Vectors in front of branches 0.1 up to 18 layers, 1e-5 up to 24, else 1e-6; others free.

    Touvron et al., CaiT, arXiv:2103.17239, section 2.
    """
    if place.kind == "vector" and place.layer is not None:
        return "constant", 0.1 if place.depth <= 18 else 1e-5 if place.depth <= 24 else 1e-6
    return _vectors(place) if place.kind == "norm" else None


def zero(place: Place) -> Any:
    """Last matrices of branches zero; others free (Zhang et al., arXiv:1901.09321)."""
    return "zeros" if place.residual else None


def deepnorm(place: Place) -> Any:
    """Xavier's normal law, times (8L)^(-1/4) in MLPs, value and output projections.

    Wang et al., arXiv:2203.00555, for encoders or decoders of L layers.
    """
    if place.kind != "linear" or place.layer is None:
        return _vectors(place) if place.kind == "norm" else None
    gained = not any(part in place.name for part in ("q_proj", "k_proj", "query", "key"))
    gain = (8 * place.depth) ** -0.25 if gained else 1.0
    return gain * (2 / (place.fan_in + place.fan_out)) ** 0.5


def mup(place: Place) -> Any:
    """Hidden matrices of σ²_w = 1, normal: deviation 1/√fan-in (Yang et al., arXiv:2310.02244)."""
    if place.kind == "linear" and place.layer is not None:
        return place.fan_in**-0.5
    return _vectors(place)


def torch(place: Place) -> Any:
    """PyTorch's own: weights and biases uniform up to 1/√fan-in, embeddings normal, norms one."""
    if place.kind in ("linear", "convolution", "bias"):
        return "uniform", (3 * place.fan_in) ** -0.5
    if place.kind == "embedding":
        return "normal", 1.0
    return _vectors(place)


def kaiming(place: Place) -> Any:
    """Matrices of σ²_w = 2, biases zero, norms one (He et al., arXiv:1502.01852)."""
    if place.kind in ("linear", "convolution"):
        return (2 / place.fan_in) ** 0.5
    return _vectors(place)


def xavier(place: Place) -> Any:
    """Matrices of variance 2/(fan-in + fan-out), biases zero, norms one (Glorot, Bengio 2010)."""
    if place.kind in ("linear", "convolution"):
        return (2 / (place.fan_in + place.fan_out)) ** 0.5
    return _vectors(place)


INTENTS: dict[str, Rule] = {
    "gpt2": gpt2,
    "llama": gpt2,
    "megatron": gpt2,
    "plain": plain,
    "lns": plain,
    "layerscale": layerscale,
    "zero": zero,
    "deepnorm": deepnorm,
    "mup-depth": mup,
    "completep": mup,
    "torch": torch,
    "kaiming": kaiming,
    "xavier": xavier,
}


def score(deviation: float, target: float, freedom: float, rounding: float) -> float:
    """z of a measured deviation, by Wilson and Hilferty's root of χ² of so many degrees."""
    if target == 0:
        return 0.0 if deviation == 0 else np.inf
    if np.isinf(freedom):
        return 0.0 if np.isclose(deviation, target, rtol=max(rounding, 1e-6)) else np.inf
    spread = 2 / (9 * freedom)
    return float(((deviation / target) ** (2 / 3) - (1 - spread)) / spread**0.5)
