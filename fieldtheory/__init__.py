"""Statistical field theory of deep networks, symbolic and numeric.

A network averaged over its random weights is a field theory in its kernels. `derive` gives its
action, saddle point, Hessian and propagator as SymPy expressions and LaTeX; `solve` gives kernels,
response functions and 1/N fluctuations as numbers; `simulate` draws finite networks and `compare`
holds the two against each other.
"""

import ast as _ast
from functools import cache as _cache
from importlib import import_module as _import_module
from pathlib import Path as _Path
from pkgutil import iter_modules as _iter_modules
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from fieldtheory.front import *  # noqa: F403

# Where classes of results are that nobody makes by their names, or that need more libraries.
_ELSEWHERE = {
    "Correction": "theory.diagrams.loop_expansion",
    "Dataset": "data",
    "Diagram": "theory.diagrams.loop_expansion",
    "EnclosedSolution": "precision.enclosed_solution",
    "Explanation": "compiling.explanation",
    "GridDataset": "sweeps.grid_dataset",
    "Hessian": "theory.hessian",
    "PreciseSolution": "numerics.precise_solution",
    "Propagator": "theory.propagator",
    "SaddlePoint": "theory.saddle_point",
    "Susceptibilities": "criticality.susceptibility",
    "TrainedEnsemble": "inference.trained_ensemble",
}
_ROOMS = ("criticality", "data", "figures", "inference", "scaling", "sklearn", "training")
_MODULES = {module.name for module in _iter_modules(__path__)}  # noqa: F405


def __getattr__(name: str) -> _Any:
    # A name loads what it needs: the shell answers --help without SymPy and SciPy.
    if name == "__version__":
        from importlib.metadata import version

        return version("fieldtheory-networks")
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        return getattr(_import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    if name == "__all__":
        return sorted({*_homes(), *_of_families()})
    home = _homes().get(name) or _of_families().get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(_import_module(home), name))


@_cache
def _homes() -> dict[str, str]:
    """The module of every public name: the imports in front.py, which only type checkers run."""
    front = _ast.parse(_Path(__file__).with_name("front.py").read_text(encoding="utf-8"))
    return {
        name.name: node.module
        for node in front.body
        if isinstance(node, _ast.ImportFrom) and node.module
        for name in node.names
    }


def _of_families() -> dict[str, str]:
    """The same of the names of families."""
    from fieldtheory.families import registered

    return {name: family.room for family in registered() for name in family.names}


def __dir__() -> list[str]:
    return sorted(
        {*globals(), *_homes(), *_of_families(), *_ROOMS, *_ELSEWHERE, "__all__", "__version__"}
    )
