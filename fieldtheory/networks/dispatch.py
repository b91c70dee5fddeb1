"""What a family of networks is without, and functions of families with a theory of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar, overload

from fieldtheory.families import named
from fieldtheory.networks.parameters import unknown_argument

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)


def reasons(table: Mapping[str, str]) -> dict[str, str]:
    """Why a family does not have functions, arguments, fields, ..., by their names.

    >>> reasons({"samples, exact": "nothing is drawn"})
    {'samples': 'nothing is drawn', 'exact': 'nothing is drawn'}
    """
    return {name: why for names, why in table.items() for name in names.split(", ")}


def not_there(name: str, network: Any) -> TypeError:
    """The error for what a family of networks does not have, with its reason.

    >>> not_there("samples", 3)
    TypeError('samples is not there for a int')
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


class OwnTheory(Protocol):
    """A network whose family registers functions of its own, or a result of one."""

    functions: ClassVar[Mapping[str, str]]


class OfFamilies(Protocol[_P, _R]):
    """A function of layered networks, and of families that have one of this name."""

    @overload
    def __call__(self, own: OwnTheory, /, *args: Any, **options: Any) -> Any: ...
    @overload
    def __call__(self, *args: _P.args, **options: _P.kwargs) -> _R: ...


def of_families(function: Callable[_P, _R]) -> OfFamilies[_P, _R]:
    """The function, or that of its name which the family of the first argument registers.

    The first argument is a network or a result of one, and may be given by its name. A family that
    registers this very function takes that of layered networks.
    """
    name, first = function.__name__, next(iter(inspect.signature(function).parameters))

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        subject = args[0] if args else options.get(first)
        network: Any = getattr(subject, "network", subject)
        functions = getattr(network, "functions", None)
        if functions is None:
            return function(*args, **options)
        if name not in functions:
            raise not_there(name, network)
        own = named(functions[name])
        if own is called:
            return function(*args, **options)
        known = inspect.signature(own).parameters
        require_known((each for each in options if each in network.without), known, network)
        return own(*args, **options) if args else own(options.pop(first), **options)

    return called
