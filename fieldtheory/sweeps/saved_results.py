"""`load`: any result from its file, without its class."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

# Their results are among those that files hold.
from fieldtheory import inference as inference
from fieldtheory import limits as limits
from fieldtheory.families import registered
from fieldtheory.montecarlo import perturbation as perturbation
from fieldtheory.montecarlo.comparison import comparison_result as comparison_result
from fieldtheory.montecarlo.sampling import many_inputs as many_inputs
from fieldtheory.numerics import storage
from fieldtheory.numerics.stored import Stored
from fieldtheory.numerics.tangent import tangent_result as tangent_result


def load(path: str | Path) -> Any:
    """The result in a file that ``save`` of any result has written.

    Parameters
    ----------
    path : str or Path
        Ends in .npz, or in .nc for netCDF, which needs xarray.

    Returns
    -------
    Solution, Ensemble, Comparison, GridDataset, ...
        Of the class that was saved.

    Raises
    ------
    ValueError
        If the file is missing, damaged, of a newer format or no file of a result.

    Examples
    --------
    >>> import tempfile
    >>> import fieldtheory as ft
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ft.solve(ft.ResidualNetwork(depth=20), 0.05).save(f"{folder}/solution.npz")
    ...     load(f"{folder}/solution.npz")
    Solution(depth=20, activation=erf, inputs=1, width=500)
    """
    kind = storage.kind_of(path)
    if kind == "":
        from fieldtheory.sweeps.grid_dataset import GridDataset

        return GridDataset.load_file(path)
    for family in registered():
        import_module(family.room)
    kinds = {each.__name__: each for each in _below(Stored)}  # type: ignore[type-abstract]
    if kind not in kinds:
        raise ValueError(f"path must be a file of a result, {str(path)!r} holds {kind}")
    return kinds[kind].load(path)


def _below(parent: type[Stored]) -> list[type[Stored]]:
    """All classes of results."""
    children = parent.__subclasses__()
    return children + [each for child in children for each in _below(child)]
