"""Which algorithms compute averages, the numbers that decide between them, and the tolerance.

`explain` of a solution says which of them it took, by the counts of `recorded`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

CLOSED, PANELS, LINES = "closed form", "panels", "angles"
SERIES, NESTED, TABLES, MAP = "Mehler series", "nested panels", "tables", "map of layers"
FOURIER, NODES = "Fourier series", "quadrature nodes"
PAIRS, THREE, PATHS = "series of two pairs", "panels of three signals", "sampled paths"

ROUTES: Mapping[str, str] = {
    CLOSED: "derived from φ, where its terms do not cancel: G11 of erf at L = 200 in 7 ms",
    PANELS: "one signal: Gauss-Legendre panels between breakpoints, tables in ln K",
    LINES: "φ = a_± h, and such φ of very wide signals: 1 − c keeps all digits",
    SERIES: "two signals: Hermite coefficients, while the Parseval remainder is small",
    NESTED: "two signals that correlate strongly: panels in their sum and difference",
    TABLES: "100 pairs of one variance and more: interpolants, 8 to 37 times faster than others",
    MAP: "128 pairs and more: all layers in one interpolant, 16 to 80 times faster than each layer",
    FOURIER: "one neuron through the layers, smooth φ²: 4 to 100 times faster than nodes",
    NODES: "one neuron through the layers, φ² with kinks or steep parts",
    PAIRS: "⟨φφ ; φφ⟩ of several inputs: Hermite coefficients of both pairs",
    THREE: "⟨φφ ; φφ⟩ of three signals, where kinks make the series slow",
    PATHS: "⟨φφ ; φφ⟩ where neither converges: Sobol points, with standard errors",
}
_COUNTS: ContextVar[Counter[str] | None] = ContextVar("counts", default=None)


def record(route: str, averages: int | np.integer[Any]) -> None:
    """Count averages for whoever listens, see `recorded`."""
    counts = _COUNTS.get()
    if counts is not None:
        counts[route] += int(averages)


@contextmanager
def recorded(counts: Counter[str]) -> Iterator[None]:
    """Count the averages that are computed in the block, by route.

    >>> counts = Counter()
    >>> with recorded(counts):
    ...     record(PANELS, 3)
    >>> record(PANELS, 4)
    >>> dict(counts)
    {'panels': 3}
    """
    token = _COUNTS.set(counts)
    try:
        yield
    finally:
        _COUNTS.reset(token)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Budgets, as numbers of operations, and errors from which on another algorithm is taken.

    Errors are relative, and those that are asked for unless ``rtol`` of `solve` is larger.

    Examples
    --------
    >>> SETTINGS.series_orders
    (16, 40, 128, 512, 2048)
    """

    # Panels of one function at most: one that needs more varies too fast.
    function_panels: int = 1 << 16
    # Panels of a function at most in an average of two variables.
    nested_panels: int = 1 << 10
    # Orders of Mehler's series that are tried one after the other before nested panels; the first
    # for few digits alone.
    series_orders: tuple[int, ...] = (16, 40, 128, 512, 2048)
    # Pairs from which on the last of ``series_orders`` is tried: its coefficients take as long as
    # some hundred nested averages.
    long_series_pairs: int = 200
    # Pairs of one variance for which a cell of a table is made.
    table_pairs: int = 100
    # Pairs from which on all layers are one interpolated map, and those where networks differ.
    map_pairs: int = 128
    map_pairs_of_batch: int = 2000
    # Nodes of a layer at most, for one neuron's functions that no Fourier series resolves.
    node_count: int = 1 << 14
    # Errors of terms of order 1/N and 1/N² of one input.
    first_order: float = 1e-9
    second_order: float = 1e-8
    # The error of averages over three and more variables.
    three_variables: float = 1e-10
    # Errors of ⟨g ; g⟩ of several inputs and its derivatives.
    pair_correlators: float = 1e-9
    pair_correlators_with_kinks: float = 1e-7
    pair_derivatives_with_kinks: float = 1e-5
    # The error of a correlator of three signals from which on it is an integral on panels, and that
    # of the integral.
    three_signals_missed: float = 1e-6
    three_signals: float = 1e-9
    # How many of them are integrals at most.
    three_signals_count: int = 600
    # Orders of the series of two pairs that are tried one after the other.
    pair_orders: tuple[int, ...] = (24, 32, 40, 50, 60, 75, 90, 110, 130, 155, 180, 240, 320)
    # Multiplications of the series of two pairs at most, for φ with kinks: (L + 1) p² n^(5/2) for n
    # orders and p pairs. Beyond that paths of a neuron are sampled.
    pair_operations: float = 2.4e10
    # The error of those series from which on paths are sampled.
    sampled: float = 1e-4
    # Multiplications of all sampled paths.
    path_operations: float = 2e11


SETTINGS = Settings()
# The promised relative error.
DEFAULT = 1e-12
_RELATIVE: ContextVar[float] = ContextVar("relative_tolerance", default=DEFAULT)


def tolerance() -> float:
    """The relative error that integrals have to reach; two orders may differ by a tenth of it."""
    return _RELATIVE.get()


@contextmanager
def relative_tolerance(rtol: float | None) -> Iterator[None]:
    """Evaluate with another tolerance inside a ``with`` block; None leaves it as it is.

    >>> with relative_tolerance(1e-6):
    ...     tolerance()
    1e-06
    """
    token = _RELATIVE.set(tolerance() if rtol is None else rtol)
    try:
        yield
    finally:
        _RELATIVE.reset(token)
