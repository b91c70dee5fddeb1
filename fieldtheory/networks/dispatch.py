"""Functions such as `solve` with an implementation of their own for other types of networks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import singledispatch, wraps
from importlib import import_module
from typing import Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar, overload

from fieldtheory.networks.parameters import unknown_argument

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)
_F = TypeVar("_F", bound=Callable[..., Any])


def reasons(table: Mapping[str, str]) -> dict[str, str]:
    """Why a family does not have functions, arguments, fields, ..., by their names.

    >>> reasons({"samples, exact": "nothing is drawn"})
    {'samples': 'nothing is drawn', 'exact': 'nothing is drawn'}
    """
    return {name: why for names, why in table.items() for name in names.split(", ")}


def not_there(name: str, network: Any) -> TypeError:
    """The error for what a family of networks does not have, with its reason.

    >>> not_there("samples", SeparateTheory())
    TypeError('samples is not there for a SeparateTheory')
    """
    why = getattr(network, "without", {}).get(name, "")
    because = f", because {why}" if why else ""
    return TypeError(f"{name} is not there for a {type(network).__name__}{because}")


def require_known(options: Iterable[str], known: Collection[str], network: Any) -> None:
    """TypeError for an option that is not known, or that the family does not have."""
    for name in options:
        if name not in known:
            if name in network.without:
                raise not_there(name, network)
            raise TypeError(unknown_argument(name, known))


class SeparateTheory:
    """A network, or a result of one, that layers with residual kernels do not describe.

    A `by_network_type` function raises TypeError for it unless it is registered, by ``room`` where
    that is the name of a module.
    """

    room: ClassVar[str] = ""
    # Why it does not have a function, an argument or a field of a name.
    without: ClassVar[Mapping[str, str]] = {}


class ByNetworkType(Protocol, Generic[_P, _R]):
    """A function of a layered network, and of what is registered."""

    @overload
    def __call__(self, separate: SeparateTheory, /, *args: Any, **options: Any) -> Any: ...
    @overload
    def __call__(self, *args: _P.args, **options: _P.kwargs) -> _R: ...

    def register(self, kind: type) -> Callable[[_F], _F]:
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
        raise not_there(function.__name__, network)

    implementations.register(SeparateTheory, refused)

    @wraps(function)
    def dispatched(*args: Any, **options: Any) -> Any:
        if not args and first in options:
            args = (options.pop(first),)
        if room := getattr(type(args[0]), "room", "") if args else "":
            import_module(room)
        if args and (room or isinstance(args[0], SeparateTheory)):
            own = inspect.signature(implementations.dispatch(type(args[0]))).parameters
            without = getattr(args[0], "without", {})
            require_known((name for name in options if name in without), own, args[0])
        return (implementations if args else function)(*args, **options)

    dispatched.register = implementations.register  # type: ignore[attr-defined]
    return dispatched  # type: ignore[return-value]
