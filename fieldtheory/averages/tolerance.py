"""How exact integrals in float64 have to be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DEFAULT = 1e-12
_RELATIVE: ContextVar[float] = ContextVar("relative_tolerance", default=DEFAULT)


def tolerance() -> float:
    """The relative error that integrals have to reach; two orders may differ by a tenth of it."""
    return _RELATIVE.get()


@contextmanager
def relative_tolerance(rtol: float | None) -> Iterator[None]:
    """Evaluate with another tolerance inside a ``with`` block; None leaves it as it is.

    Examples
    --------
    >>> with relative_tolerance(1e-6):
    ...     tolerance()
    1e-06
    """
    token = _RELATIVE.set(tolerance() if rtol is None else rtol)
    try:
        yield
    finally:
        _RELATIVE.reset(token)
