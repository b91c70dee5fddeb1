"""Ensembles as files."""

from __future__ import annotations

import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np

from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.numerics import storage

_NUMBERS = {"samples": int, "seed": int, "method": str, "batches": int}


def save_ensemble(ensemble: Ensemble, path: str | Path) -> None:
    """Write all fields of an ensemble and its network to an .npz file, as a whole or not at all.

    Raises
    ------
    ValueError
        If ``path`` does not end in .npz or lies in no folder, or the activation has a function
        that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import fieldtheory as ft
    >>> from fieldtheory.montecarlo.simulation import simulate
    >>> e = simulate(ft.ResidualNetwork(depth=3, width=50), 0.3, samples=40)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_ensemble(e, f"{folder}/ensemble.npz")
    ...     loaded = load_ensemble(f"{folder}/ensemble.npz")
    >>> loaded.network == e.network, bool((loaded.mean == e.mean).all())
    (True, True)
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"path must end in .npz, got {str(path)!r}")
    names = [f.name for f in fields(Ensemble) if f.name != "network"]
    found = {name: getattr(ensemble, name) for name in names}
    arrays = {name: value for name, value in found.items() if value is not None}
    storage.write_npz(path, arrays | storage.attributes(ensemble.network))


def load_ensemble(path: str | Path) -> Ensemble:
    """The ensemble in a file of `save_ensemble`, every float as it was written.

    Raises
    ------
    ValueError
        If the file is missing, of another kind, or damaged.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"path must be a file that exists, got {str(path)!r}")
    try:
        content = storage.read_npz(path)
        network = storage.network_from_attributes(content)
        names = {f.name for f in fields(Ensemble)} & set(content)
        found = {name: np.asarray(content[name]) for name in names}
        plain = {name: kind(found.pop(name).item()) for name, kind in _NUMBERS.items()}
        return Ensemble(network=network, **plain, **found)  # type: ignore[arg-type]
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"path must be a file written by save_ensemble, {str(path)!r} is not ({reason})"
        ) from None
