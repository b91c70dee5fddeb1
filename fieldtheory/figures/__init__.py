"""Printed figures of the papers, redrawn: one module per paper.

Figures that no paper prints: `width` shows finite networks, `learning` what they learn, `blocks`
networks as transformers have them.

For each figure a function such as ``fig3`` computes the plotted numbers and another, ``draw_fig3``,
draws them as a matplotlib Figure, so that the numbers can be used without the picture; their method
``curves`` lists what a csv file next to it holds:

>>> from fieldtheory.figures import f25
>>> numbers = f25.fig3(depth=5)
>>> numbers.kernels.shape
(3, 6)
>>> [curve.label for curve in numbers.curves() if curve.panel == "b"]
['rho = 1', 'rho = 0.3', 'rho = 0.1']
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from fieldtheory.families import registered

_MODULES = {module.name: f"{__name__}.{module.name}" for module in iter_modules(__path__)}


def __getattr__(name: str) -> Any:
    # A paper on a family has its figures in the room of that family.
    modules = _MODULES | {paper: at for f in registered() for paper, at in f.pictures.items()}
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(modules[name])
