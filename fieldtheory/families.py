"""Families of networks with a theory of their own: each registers by one object.

A new one is a line of `_OWN`, or in a package of one's own an entry point of the group
"fieldtheory.families"; both are "module:object" of a `Family`. No other file names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

_OWN = (
    "fieldtheory.diffusions.registration:FAMILY",
    "fieldtheory.transformers.registration:FAMILY",
)


@dataclass(frozen=True, kw_only=True)
class Family:
    """What a family adds to the package, by names, so that nothing loads before it is used.

    network : "module:class" of its networks
    functions: by name `derive`, `solve`, `simulate` and `compare`, each the "module:function" that
              takes such networks, or results of them, in place of those of layered networks
    room    : module that has the classes of their results and the public names
    names   : what the room adds to the public names of the package
    fields  : "module:table" of the fields in which theory and simulation are compared
    torch   : "module:class" of its torch modules, a `fieldtheory.training.modules.TorchNetwork`
    command : "module:function" of its command in the shell
    papers  : by paper the edition that was read and the numbers of its equations, "1–17"
    claims  : package with their CLAIMS, definitions.tsv and expected_verdicts.tsv
    pictures: by paper, in the names of the shell, the module of its figures
    figures : by PAPER.FIGURE the arguments that the shell passes
    figure_notes : what the help of the command `figures` says of them
    """

    network: str
    room: str
    functions: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    fields: str = ""
    torch: str = ""
    command: str = ""
    papers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    claims: str = ""
    pictures: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)
    figure_notes: str = ""


def named(name: str) -> Any:
    """The object of "module:object".

    >>> named("fieldtheory.families:Family") is Family
    True
    """
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


@cache
def registered() -> tuple[Family, ...]:
    """All families, the package's own first.

    >>> [isinstance(family, Family) for family in registered()][:1]
    [True]
    """
    from importlib.metadata import entry_points

    others = entry_points(group="fieldtheory.families")
    return tuple(named(name) for name in (*_OWN, *(entry.value for entry in others)))
