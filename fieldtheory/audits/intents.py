"""Intended starts of weights: a name, a mapping from patterns of names, or a function.

Those with a name, L layers, in and out the fans of a matrix:
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from fieldtheory import validation
from fieldtheory.audits.places import Place
from fieldtheory.audits.tensors import LAWS

Rule = Callable[[Place], Any]
# Law and deviation, either None where it is free; None for what is excluded.
Target = tuple[str | None, float | None] | None
_VALUES = {"zeros": 0.0, "ones": 1.0}
_NAMES = ("zeros", "ones", "constant", "orthogonal", *LAWS)
_WEIGHTS, _MATRICES = ("linear", "embedding", "matrix"), ("linear", "convolution")
_FREE = "free"


class Intent(NamedTuple):
    """A named start: deviations σ of the roles in words, whose start it is, and its rule.

    ``matrices`` are those of linear layers, ``last`` the last ones of branches, by their names;
    ``others`` are embeddings and all that is not in another column. L is the number of layers,
    in and out are the fan-in and fan-out of a matrix. Norms that multiply by 1 + weight have 0 in
    place of 1. What is free is compared over the layers.

    Examples
    --------
    >>> INTENTS["gpt2"].last
    'normal, 0.02/√(2L)'
    """

    matrices: str
    last: str
    others: str
    biases: str
    norms: str
    source: str
    rule: Rule

    def __call__(self, place: Place) -> Any:
        """What the rule says of a parameter."""
        return self.rule(place)


def _starting(weight: Rule, kinds: tuple[str, ...] = _WEIGHTS) -> Rule:
    """Weights of some kinds by a rule, biases zero, norms one."""
    others = {"bias": "zeros", "norm bias": "zeros", "norm": "ones", "norm offset": "zeros"}
    return lambda place: weight(place) if place.kind in kinds else others.get(place.kind)


def _xavier(place: Place) -> float:
    return (2 / (place.fan_in + place.fan_out)) ** 0.5


def _layerscale(place: Place) -> Any:
    if place.kind == "vector" and place.layer is not None:
        return "constant", 0.1 if place.depth <= 18 else 1e-5 if place.depth <= 24 else 1e-6
    return {"norm": "ones", "norm offset": "zeros"}.get(place.kind)


def _deepnorm(place: Place) -> float | None:
    gained = not any(part in place.name for part in ("q_proj", "k_proj", "query", "key"))
    return place.layer and _xavier(place) * ((8 * place.depth) ** -0.25 if gained else 1.0)


def _torch(place: Place) -> Any:
    of, is_attention = place.module, place.module == "MultiheadAttention"
    if place.kind == "embedding":
        return ("normal", 1.0) if of else None
    # The projection behind attention is a class of its own.
    if place.kind == "bias" and (is_attention or of == "NonDynamicallyQuantizableLinear"):
        return "zeros"
    if of == "Transformer" or is_attention:
        return "normal" if place.name.endswith(("bias_k", "bias_v")) else "uniform", _xavier(place)
    if place.kind == "vector":
        return ("constant", 0.25) if of == "PReLU" else None
    is_recurrent = of.removesuffix("Cell") in ("RNN", "LSTM", "GRU")
    size = place.fan_out if is_recurrent else place.fan_in
    return ("uniform", (3 * size) ** -0.5) if of else None


_gpt2 = _starting(lambda p: ("normal", 0.02 / (2 * p.depth) ** 0.5 if p.residual else 0.02))
_plain = _starting(lambda place: 0.02)
_mup = _starting(lambda place: place.layer and place.fan_in**-0.5, ("linear",))
_DEEP = "0.1 for L ≤ 18, 1e-5 for L ≤ 24, else 1e-6"
INTENTS: dict[str, Intent] = {
    "gpt2": Intent(
        *(
            "normal, 0.02",
            "normal, 0.02/√(2L)",
            "embeddings as matrices, convolutions free",
            "0",
            "1",
        ),
        "GPT-2 in transformers; Radford et al. 2019, section 2.3",
        _gpt2,
    ),
    "llama": Intent(
        *("normal, 0.02", "normal, 0.02", "embeddings as matrices, convolutions free", "0", "1"),
        "Llama in transformers, initializer_range",
        _starting(lambda place: ("normal", 0.02)),
    ),
    "megatron": Intent(
        *(
            "normal, 0.02",
            "normal, 0.02/√(2L)",
            "embeddings as matrices, convolutions free",
            "0",
            "1",
        ),
        "Megatron-LM, scaled_init_method_normal; arXiv:1909.08053",
        _gpt2,
    ),
    "plain": Intent(
        *("0.02 of any law", "0.02", "embeddings as matrices, convolutions free", "0", "1"),
        "BERT and most of transformers, initializer_range",
        _plain,
    ),
    "lns": Intent(
        *("0.02 of any law", "0.02", "embeddings as matrices, convolutions free", "0", "1"),
        "LayerNorm scaling of what norms give; arXiv:2502.05795",
        _plain,
    ),
    "layerscale": Intent(
        *(_FREE, _FREE, f"vectors in layers: {_DEEP}", _FREE, "1, biases free"),
        "CaiT; arXiv:2103.17239, section 2",
        _layerscale,
    ),
    "zero": Intent(
        *(_FREE, "0", _FREE, _FREE, _FREE),
        "Fixup; arXiv:1901.09321",
        lambda place: "zeros" if place.residual else None,
    ),
    "deepnorm": Intent(
        *("√(2/(in + out)) (8L)^(-1/4), of queries and keys √(2/(in + out))", "as matrices"),
        *("free, as all outside of layers", "0", "1"),
        "DeepNet, encoders or decoders; arXiv:2203.00555",
        _starting(_deepnorm, ("linear",)),
    ),
    "mup-depth": Intent(
        *("1/√in", "1/√in", "free, as all outside of layers", "0", "1"),
        "Depth-μP; arXiv:2310.02244",
        _mup,
    ),
    "completep": Intent(
        *("1/√in", "1/√in", "free, as all outside of layers", "0", "1"),
        "CompleteP; arXiv:2505.01618",
        _mup,
    ),
    "torch": Intent(
        *("uniform, 1/√(3 in)", "as matrices"),
        "convolutions as matrices; embeddings normal, 1; recurrent layers uniform, 1/√(3 × state); "
        "attention uniform, √(2/(in + out)), as all matrices of Transformer",
        *("uniform, 1/√(3 in); 0 of attention", "1"),
        "PyTorch, reset_parameters of each class",
        _starting(_torch, (*_WEIGHTS, "convolution", "bias", "vector")),
    ),
    "kaiming": Intent(
        *("√(2/in)", "√(2/in)", "convolutions as matrices, embeddings free", "0", "1"),
        "He et al.; arXiv:1502.01852",
        _starting(lambda place: (2 / place.fan_in) ** 0.5, _MATRICES),
    ),
    "xavier": Intent(
        *("√(2/(in + out))", "√(2/(in + out))", "convolutions as matrices, embeddings free"),
        *("0", "1"),
        "Glorot and Bengio 2010, eq. (16)",
        _starting(_xavier, _MATRICES),
    ),
}
# Rows of the table that this docstring, the page and the shell show.
INTENT_ROWS = [
    {"intent": n} | dict(zip(Intent._fields[:-1], r, strict=False)) for n, r in INTENTS.items()
]
__doc__ = "\n".join(
    [__doc__ or "", *("; ".join(f"{n}: {v}" for n, v in row.items()) for row in INTENT_ROWS)]
)


def targets_of(intent: Any, places: list[Place]) -> dict[str, Target]:
    """The law and the deviation √⟨w²⟩ of the parameters that an intent concerns, by their names."""
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
        if value is None and fitting and isinstance(intent, Mapping):
            targets[place.name] = None
        value = value(place) if callable(value) else value
        if isinstance(value, str) and value in INTENTS:
            value = INTENTS[value](place)
        if isinstance(value, str):
            value = validation.choice("intent", value, (*_NAMES, *INTENTS))
            targets[place.name] = value, _VALUES.get(value)
        elif value is not None:
            law, size = value if isinstance(value, tuple) and len(value) == 2 else (None, value)
            law = law and validation.choice("intent", law, _NAMES)
            targets[place.name] = law, validation.nonnegative(f"intent of {place.name}", size)
        idle = [pattern for pattern in idle if pattern not in fitting]
    if intent is not None and (idle or not any(targets.values())):
        words = f"got none for {[*idle, intent][0]!r}"
        raise ValueError(f"intent must concern parameters of the model, {words}")
    return targets
