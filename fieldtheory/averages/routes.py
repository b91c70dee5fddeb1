"""The algorithms that compute averages, each with what it saves, and how often each was taken.

At most six compute ⟨φ(x)φ(y)⟩ of two signals; `explain` of a solution says which of them it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
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

    Examples
    --------
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
