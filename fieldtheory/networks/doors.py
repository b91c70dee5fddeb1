"""Front doors such as `solve` that open for networks with a theory of their own as well."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)
_F = TypeVar("_F", bound=Callable[..., Any])
# By the name of the door, what each class brings for it.
_BROUGHT: dict[str, dict[type, Callable[..., Any]]] = {}


class OwnTheory:
    """What brings its own functions for front doors, see `brings`.

    A network whose layers are not described by residual kernels, and its results.
    """


class Door(Protocol, Generic[_P, _R]):
    """A function of a layered network, or of what brings its own."""

    @overload
    def __call__(self, own: OwnTheory, /, *args: Any, **options: Any) -> Any: ...
    @overload
    def __call__(self, *args: _P.args, **options: _P.kwargs) -> _R: ...


def door(function: Callable[_P, _R]) -> Door[_P, _R]:
    """Make a function give way to the one that the class of its first argument brings.

    Examples
    --------
    >>> @door
    ... def weigh(network): return "one kilogramme"
    >>> class Feather(OwnTheory): pass
    >>> @brings("weigh", Feather)
    ... def weigh_feather(network): return "nothing"
    >>> weigh("stone"), weigh(Feather())
    ('one kilogramme', 'nothing')
    """
    name = function.__name__
    brought = _BROUGHT.setdefault(name, {})
    first = next(iter(inspect.signature(function).parameters))

    @wraps(function)
    def opened(*args: Any, **options: Any) -> Any:
        asked = args[0] if args else options.get(first)
        if not isinstance(asked, OwnTheory):
            return function(*args, **options)
        own = next((brought[kind] for kind in type(asked).__mro__ if kind in brought), None)
        if own is None:
            raise TypeError(f"{name} is not defined for a {type(asked).__name__}")
        return own(*(args or (options.pop(first),)), **options)

    return opened


def brings(name: str, kind: type[OwnTheory]) -> Callable[[_F], _F]:
    """Register a function as what a class brings for the front door of this name."""

    def register(function: _F) -> _F:
        _BROUGHT.setdefault(name, {})[kind] = function
        return function

    return register
