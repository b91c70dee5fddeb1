"""Parameters and arguments by their names, their symbols, and what else people type for them."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")


class Parameter(NamedTuple):
    """Description of a parameter of a network."""

    # As plain text and in LaTeX.
    symbol: str
    latex: str
    meaning: str
    # Other names that are typed for it.
    others: tuple[str, ...] = ()


PARAMETERS: Mapping[str, Parameter] = {
    "depth": Parameter("L", "L", "number of residual layers", ("layers", "n_layers", "num_layers")),
    "activation": Parameter("φ", r"\phi", "activation", ("nonlinearity", "activation_function")),
    "branch_scale": Parameter(
        "ρ",
        r"\rho",
        "scale of the residual branch",
        ("rho_l", "residual_scale", "scaling", "schedule", "lambda"),
    ),
    "skip_scale": Parameter(
        "γ", r"\gamma", "scale of the skip connection", ("gamma_l", "skip_strength")
    ),
    "weight_variance": Parameter(
        "σ_w²", r"\sigma_w^2", "variance of the weights", ("w_var", "w_std", "weight_std", "C_W")
    ),
    "bias_variance": Parameter(
        "σ_b²", r"\sigma_b^2", "variance of the biases", ("b_var", "b_std", "bias_std", "C_b")
    ),
    "readin_weight_variance": Parameter(
        "σ_w,in²", r"\sigma_{w,\mathrm{in}}^2", "variance of the read-in weights"
    ),
    "readin_bias_variance": Parameter(
        "σ_b,in²", r"\sigma_{b,\mathrm{in}}^2", "variance of the read-in biases"
    ),
    "readout_weight_variance": Parameter(
        "σ_w,out²", r"\sigma_{w,\mathrm{out}}^2", "variance of the readout weights"
    ),
    "readout_bias_variance": Parameter(
        "σ_b,out²", r"\sigma_{b,\mathrm{out}}^2", "variance of the readout biases"
    ),
    "normalization": Parameter("n", r"n", "norm", ("norm", "normalisation")),
    "norm_position": Parameter("pre/post", r"\mathrm{pre/post}", "place of the norm"),
    "epsilon": Parameter("ε", r"\epsilon", "what the norm adds to the mean square", ("eps",)),
    "gated": Parameter("gate", r"\mathrm{gate}", "whether branches are gated", ("gate", "glu")),
    "expansion": Parameter("M/N", "M/N", "hidden units over the width", ("mlp_ratio", "ffn_ratio")),
    "inner_weight_variance": Parameter("σ_w²", r"\sigma_{w}^2", "variance of the inner weights"),
    "gate_weight_variance": Parameter("σ_v²", r"\sigma_{v}^2", "variance of the gate weights"),
    "outer_weight_variance": Parameter("σ_w'²", r"\sigma_{w'}^2", "variance of the outer weights"),
    "inner_bias_variance": Parameter("σ_b²", r"\sigma_{b}^2", "variance of the inner biases"),
    "outer_bias_variance": Parameter("σ_b'²", r"\sigma_{b'}^2", "variance of the outer biases"),
    "width": Parameter("N", "N", "width of the layers", ("n", "n_hidden", "neurons", "hidden_dim")),
    "input_dim": Parameter(
        "d_in", r"d_{\mathrm{in}}", "dimension of the inputs", ("d", "n_in", "N_in", "input_size")
    ),
}


def described(name: str) -> tuple[str, str]:
    """A parameter in words and in LaTeX.

    Examples
    --------
    >>> described("width")
    ('width of the layers', 'N')
    """
    if name in PARAMETERS:
        return PARAMETERS[name].meaning, PARAMETERS[name].latex
    words = name.replace("_", " ")
    return words, rf"\mathrm{{{words}}}".replace(" ", r"\ ")


_FUNCTIONS = "an argument of solve, simulate, sweep and optimal_scaling"
# Arguments of functions: where they belong, and what else is typed for them.
_ARGUMENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "K0": (_FUNCTIONS, ("K", "K_in", "kernel", "input_kernel")),
    "X": (
        "data for simulate; elsewhere its kernel K0 = ft.input_kernel(X, network)",
        ("x", "data"),
    ),
    "samples": ("an argument of simulate", ("n", "n_samples", "num_samples", "networks")),
    "seed": ("an argument of simulate", ("rng", "random_state", "key")),
    "method": ("an argument of simulate and optimal_scaling", ("sampler",)),
    "digits": ("an argument of solve for layered networks", ("dps", "precision", "mp_dps")),
    "jobs": ("an argument of simulate and sweep", ("n_jobs", "workers", "processes")),
    "progress": ("an argument of solve, simulate and sweep", ("verbose", "show_progress", "tqdm")),
    "directory": ("an argument of simulate and sweep", ("folder", "path", "cache")),
    "inputs": ("an argument of derive", ("P", "n_inputs", "num_inputs")),
    "over": ("an argument of sweep", ("grid", "parameters", "values")),
    "of": ("an argument of sweep", ("fields", "quantities", "what")),
    "Y": ("an argument of posterior", ("y", "labels", "targets")),
}
_SPELT = str.maketrans(
    {"ρ": "rho", "γ": "gamma", "σ": "sigma", "φ": "phi", "ϕ": "phi", "²": "2"}
    | dict.fromkeys("_^, ", "")
)
# A standard deviation stands for the variance as well.
_DEVIATION = re.compile("s(?:igma)?(in|out)?([wb])(?:read)?(in|out)?")


def unknown_argument(name: str, names: Collection[str]) -> str:
    """The words for an argument that a function or network does not have.

    Examples
    --------
    >>> unknown_argument("rho", ("depth", "branch_scale"))
    "unknown argument 'rho': did you mean branch_scale (ρ)?"
    >>> unknown_argument("rho", ("network", "K0"))
    "unknown argument 'rho': branch_scale (ρ) is a parameter of the network, not given here"
    """
    head = f"unknown argument {name!r}"
    if suggestion := hint(name, names):
        return f"{head}: did you mean {suggestion}?"
    for other in _candidates(name):
        if other in PARAMETERS:
            return f"{head}: {_with_symbol(other)} is a parameter of the network, not given here"
        return f"{head}: {other} is {_ARGUMENTS[other][0]}"
    return f"{head}, known are {', '.join(names)}"


def hint(name: str, names: Collection[str]) -> str:
    """The name that was most likely meant, with its symbol; empty if there is none.

    Examples
    --------
    >>> hint("sigma_w2", PARAMETERS), hint("widht", PARAMETERS), hint("colour", PARAMETERS)
    ('weight_variance (σ_w²)', 'width (N)', '')
    >>> hint("out", ["count", "output"])
    'output'
    """
    candidates = [other for other in _candidates(name) if other in names]
    # Beginnings of names: other names may be nearer by their letters, as count to out.
    candidates += [other for other in names if len(name) > 1 and other.startswith(name)]
    candidates += difflib.get_close_matches(name, list(names), 1, 0.7)
    return _with_symbol(candidates[0]) if candidates else ""


def named_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function say which argument was meant where it is called with an unknown one.

    Examples
    --------
    >>> @named_arguments
    ... def solve(network, K0): ...
    >>> solve(None, k0=1)
    Traceback (most recent call last):
        ...
    TypeError: unknown argument 'k0': did you mean K0?
    >>> solve(3)
    Traceback (most recent call last):
        ...
    TypeError: solve must be given K0, got network=3 alone
    """
    parameters = inspect.signature(function).parameters
    names = tuple(name for name in parameters if name != "self")
    required = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"
    ]

    @wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for name in kwargs:
            if name not in names:
                raise TypeError(unknown_argument(name, names))
        given = dict(zip(names, args, strict=False)) | kwargs
        if "self" not in parameters and (missing := [n for n in required if n not in given]):
            # It loads NumPy, which the shell does without for its help.
            from fieldtheory.validation import excerpt

            got = ", ".join(f"{name}={excerpt(value)}" for name, value in given.items())
            words = f"{function.__name__} must be given {' and '.join(missing)}"
            raise TypeError(f"{words}, got {f'{got} alone' if got else 'nothing'}")
        return function(*args, **kwargs)

    return checked


def named_parameters(family: type[_T]) -> type[_T]:
    """Make a family of networks, a dataclass by names alone, say which parameter was meant."""
    initialise = named_arguments(family.__init__)

    @wraps(initialise)
    def checked(self: _T, *arguments: Any, **parameters: Any) -> None:
        if arguments:
            raise TypeError(
                f"{family.__name__} takes its parameters by name, such as depth={arguments[0]!r}"
            )
        initialise(self, **parameters)

    family.__init__ = checked  # type: ignore[method-assign,assignment]
    return family


def _with_symbol(name: str) -> str:
    return f"{name} ({PARAMETERS[name].symbol})" if name in PARAMETERS else name


def _candidates(name: str) -> list[str]:
    """The parameters and arguments that a typed name may stand for."""
    exact = [other for other in (*PARAMETERS, *_ARGUMENTS) if other == name]
    return exact + _spellings().get(name, []) + _spellings().get(_spelt(name), [])


def _spelt(name: str) -> str:
    """A name without its case and signs; σ_w² and its like as σ, w or b, and in or out."""
    text = name.translate(_SPELT)
    # One letter is a symbol, where K is no k.
    text = text.lower() if len(text) > 1 else text
    match = _DEVIATION.fullmatch(re.sub("squared|sq|2", "", text))
    return f"sigma{match[2]}{match[1] or match[3] or ''}" if match else text


@cache
def _spellings() -> dict[str, list[str]]:
    """Names that each spelling may stand for."""
    spellings: dict[str, list[str]] = {}
    for name, parameter in PARAMETERS.items():
        for spelling in dict.fromkeys(map(_spelt, (parameter.symbol, *parameter.others))):
            spellings.setdefault(spelling, []).append(name)
    for name, (_, others) in _ARGUMENTS.items():
        for spelling in (name, *others):
            spellings.setdefault(_spelt(spelling), []).append(name)
    return spellings
