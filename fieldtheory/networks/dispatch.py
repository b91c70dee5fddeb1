"""Functions such as `solve` with an implementation of their own for other types of networks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import singledispatch, wraps
from importlib import import_module
from typing import Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar, overload

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)
_F = TypeVar("_F", bound=Callable[..., Any])


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
        if args and (room := getattr(type(args[0]), "room", "")):
            import_module(room)
        return (implementations if args else function)(*args, **options)

    dispatched.register = implementations.register  # type: ignore[attr-defined]
    return dispatched  # type: ignore[return-value]
