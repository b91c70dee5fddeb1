"""Functions such as `solve` with an implementation of their own for other types of networks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import singledispatch, wraps
from importlib import import_module
from typing import Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar, overload

from fieldtheory.networks.parameters import unknown_argument

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)
_F = TypeVar("_F", bound=Callable[..., Any])

# Why blocks do not have it, by names of functions and arguments.
_REASONS = {
    "digits, proven": "its recursions are written for one matrix a layer",
    "convention": "F25 defines it for these",
    "parametrization, weight_rates, bias_rates": "blocks have a rate for every kind of parameters, "
    "rates={'inner_weight': 0}",
    "variance_reduction": "its control variates are those of one matrix a layer",
    "exact": "the integral over last layers is written for one matrix a layer",
    "samples": "G11 of blocks is computed as a whole, not by sampled neurons",
    "layers, abbreviate, notation, misprints, tangent_kernel, saturation, large_depth": (
        "formulas of blocks are those of symbolic layers, in short symbols"
    ),
    "method='saturation', method='large_depth', method='deep_limit', dynamic_range, slope": (
        "approximations to ρ* are those of a φ that reads the stream itself"
    ),
    "a sequence of networks": "their optima share averages of one matrix a layer",
    "labels": "the derivative of what labels say is written for one matrix a layer",
    "optimal_output_variance": "the readout of blocks is linear: no variance is the best for it",
    "depth_limit": "the flow to infinite depth is written for one matrix a layer",
    "tilted_posterior": "it weights the paths of neurons of one kind, and blocks have two",
    "a response after labels": "it needs correlators of three kernels for units of one kind",
    "spectrum, kernel, power_coefficients, NetworkGPRegressor": (
        "the kernel as a function of an angle is tabulated for one matrix a layer"
    ),
    "susceptibilities, component_kernels, the closure of PDLT-B": (
        "the equations of PDLT-B are those of one matrix a layer without norm"
    ),
}
# The same by names of attributes of results.
_OF_RESULTS = {
    "diagrams, correction": "the loop expansion is written for units of one kind",
    "order=2, four_point_2, kernel_shift_2, mean_shift_2, variance_2, third_cumulant, order_ratio, "
    "resummed_mean, resummed_variance": (
        "terms of order 1/N² are derived for units of one kind, and blocks have two"
    ),
    "log_kernels, log_response, log_tangent_kernels, tangent_signs": (
        "numbers beyond float64 follow the asymptote of one φ"
    ),
    "mean_shift_error, four_point_error, response_shift_error": (
        "averages of hidden units of blocks are not sampled"
    ),
}
RESIDUAL_ONLY, _ATTRIBUTES = (
    {name: why for names, why in reasons.items() for name in names.split(", ")}
    for reasons in (_REASONS | _OF_RESULTS, _OF_RESULTS)
)


def residual_only(name: str, network: Any) -> TypeError:
    """The error for what other families do not have: a function, an argument, a method, a field.

    Examples
    --------
    >>> residual_only("samples", SeparateTheory())
    TypeError('samples is of residual networks only, because G11 of blocks is computed as a whole, \
not by sampled neurons; got a SeparateTheory')
    """
    why, kind = RESIDUAL_ONLY[name], type(network).__name__
    return TypeError(f"{name} is of residual networks only, because {why}; got a {kind}")


def require_known(options: Iterable[str], known: Collection[str], network: Any) -> None:
    """TypeError for an option that is not known, of residual networks only or of none."""
    for name in options:
        if name not in known:
            if name in RESIDUAL_ONLY:
                raise residual_only(name, network)
            raise TypeError(unknown_argument(name, known))


def missing(result: Any, name: str) -> AttributeError:
    """The error for an attribute that a result does not have, with the reason if there is one."""
    if name in _ATTRIBUTES:
        return AttributeError(str(residual_only(name, result.network)))
    return AttributeError(f"{type(result).__name__!r} object has no attribute {name!r}")


class SeparateTheory:
    """A network, or a result of one, that layers with residual kernels do not describe.

    A `by_network_type` function raises TypeError for it unless it is registered, by ``room`` where
    that is the name of a module.
    """

    room: ClassVar[str] = ""


class ByNetworkType(Protocol, Generic[_P, _R]):
    """A function of a layered network, and of what is registered."""

    @overload
    def __call__(self, separate: SeparateTheory, /, *args: Any, **options: Any) -> Any: ...
    @overload
    def __call__(self, *args: _P.args, **options: _P.kwargs) -> _R: ...

    def register(self, kind: type[SeparateTheory]) -> Callable[[_F], _F]:
        """Register the implementation for a type, as of `functools.singledispatch`."""


def by_network_type(function: Callable[_P, _R]) -> ByNetworkType[_P, _R]:
    """Dispatch on the type of the first argument, which may be given by its name.

    Examples
    --------
    >>> @by_network_type
    ... def depth_of(network): return network
    >>> class Continuous(SeparateTheory): pass
    >>> @depth_of.register(Continuous)
    ... def depth_of_continuous(network): return "infinite"
    >>> depth_of(3), depth_of(Continuous()), depth_of(network=Continuous())
    (3, 'infinite', 'infinite')
    """
    implementations: Any = singledispatch(function)
    first = next(iter(inspect.signature(function).parameters))

    def refused(network: SeparateTheory, *args: Any, **options: Any) -> Any:
        raise TypeError(f"{function.__name__} is not defined for a {type(network).__name__}")

    implementations.register(SeparateTheory, refused)

    @wraps(function)
    def dispatched(*args: Any, **options: Any) -> Any:
        if not args and first in options:
            args = (options.pop(first),)
        if room := getattr(type(args[0]), "room", "") if args else "":
            import_module(room)
        if args and (room or isinstance(args[0], SeparateTheory)):
            own = inspect.signature(implementations.dispatch(type(args[0]))).parameters
            require_known((name for name in options if name in RESIDUAL_ONLY), own, args[0])
        return (implementations if args else function)(*args, **options)

    dispatched.register = implementations.register  # type: ignore[attr-defined]
    return dispatched  # type: ignore[return-value]
