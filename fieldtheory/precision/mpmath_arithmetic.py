"""The arithmetic of mpmath, to the digits ``mpmath.mp.dps`` at the time of a call."""

from __future__ import annotations

from typing import Any

import mpmath

from fieldtheory.averages.precise_rules import number
from fieldtheory.compiling.translation import for_backend
from fieldtheory.precision.arithmetic import Arithmetic
from fieldtheory.precision.layer_correlators import LayerCorrelators


def _root(value: Any) -> Any:
    # Determinants of singular covariances come out as −0.0…01 by rounding.
    return mpmath.sqrt(max(value, 0))


MPMATH = Arithmetic(
    number=number,
    functions={**vars(mpmath), "sqrt": _root},
    resolved=for_backend("mpmath"),
    correlators=LayerCorrelators,
)
