"""Statistical field theory of deep networks, symbolic and numeric.

A network averaged over its random weights is a field theory in its kernels. `derive` gives its
action, saddle point, Hessian and propagator as SymPy expressions and LaTeX; `solve` gives kernels,
response functions and 1/N fluctuations as numbers; `simulate` draws finite networks and `compare`
holds the two against each other.
"""

from importlib import import_module as _import_module
from pkgutil import iter_modules as _iter_modules
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from fieldtheory.front import *  # noqa: F403

# Where classes of results are that nobody makes by their names, or that need more libraries.
_ELSEWHERE = {
    "Correction": "theory.diagrams",
    "Dataset": "data",
    "Diagram": "theory.diagrams",
    "EnclosedSolution": "precision.enclosed_solution",
    "Explanation": "compiling.explanation",
    "FunctionSamples": "diffusions.functions_drawn",
    "GridDataset": "sweeps.grid_dataset",
    "Hessian": "theory.hessian",
    "OutputDistances": "diffusions.output_distances",
    "PreciseSolution": "numerics.precise_solution",
    "Propagator": "theory.propagator",
    "SaddlePoint": "theory.saddle_point",
    "Susceptibilities": "criticality.susceptibility",
    "TrainedEnsemble": "inference.trained_ensemble",
}
_ROOMS = ("criticality", "data", "figures", "inference", "scaling", "sklearn", "training")
_MODULES = {module.name for module in _iter_modules(__path__)}  # noqa: F405


def __getattr__(name: str) -> _Any:
    # Nothing is loaded before it is asked for: the shell answers --help without SymPy and SciPy.
    if name == "__version__":
        from importlib.metadata import version

        return version("fieldtheory-networks")
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        return getattr(_import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    front = _import_module(f"{__name__}.front") if name[0] != "_" or name == "__all__" else None
    if not hasattr(front, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(front, name))


def __dir__() -> list[str]:
    names = _import_module(f"{__name__}.front").__all__
    return sorted({*globals(), *names, *_ROOMS, *_ELSEWHERE, "__all__", "__version__"})
