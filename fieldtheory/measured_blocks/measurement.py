"""The result of `measure_block`: the scales that make a block critical."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory.plotting.tables import table_html, table_text

# |z| up to which a deviation of a susceptibility from 1 counts as chance.
_CHANCE = 3.0
_ROUNDING = 1e-9
_SYMBOLS = {"skip_scale": "γ", "branch_scale": "ξ", "parallel": "χ_∥", "perpendicular": "χ_⊥"}


@dataclass(frozen=True, eq=False)
class BlockMeasurement:
    """Result of `measure_block`; it prints as a table, with its meaning below.

    =============  ===============  ===============================================================
    field          shape            meaning
    =============  ===============  ===============================================================
    skip_scale     ()               γ, as it was given
    branch_scale   ()               ξ with which a layer keeps the mean variance, PDLT-B (B.45)
    parallel       ()               χ_∥ with these (γ, ξ), PDLT-B (B.13), (B.15)
    perpendicular  ()               χ_⊥ with these (γ, ξ), PDLT-B (B.14), (B.16)
    kernel         (P, P)           the kernel after a layer with these (γ, ξ), PDLT-B (B.44)
    =============  ===============  ===============================================================

    The susceptibilities are NaN where they cannot be measured, see `measure_block`. They are those
    of all inputs together: all of z is stretched, and z is compared with a signal that differs in
    an independent direction of the same covariance K0.

    Each but γ has its standard error in ``<name>_error``, from the jackknife over at most 40
    batches, so that ratios and solutions have the correlations of what was measured. ``block`` is
    what the block is called, ``input_kernel`` (P, P) is K0.

    Examples
    --------
    >>> from fieldtheory.measured_blocks.measuring import measure_block
    >>> def leaky(width, rng):                              # R(z) = W z − z/2
    ...     W = rng.normal(size=(width, width)) / width**0.5
    ...     return lambda z: z @ W.T - z / 2
    >>> m = measure_block(leaky, width=50, samples=200)
    >>> m.branch_scale, m.branch_scale_error
    (0.982, 0.009)
    >>> print(m.statement)
    Scale the skip by 0.707107 and the branch by 0.9820 ± 0.0094 to keep the variance 1.
    Perturbations of the size of the signal are kept: a factor 1 a layer.
    Perturbations of differences between signals are kept: a factor 0.996 ± 0.021 a layer.
    """

    block: str
    width: int
    input_kernel: np.ndarray
    samples: int
    seed: int
    skip_scale: float
    branch_scale: float
    branch_scale_error: float
    parallel: float
    parallel_error: float
    perpendicular: float
    perpendicular_error: float
    kernel: np.ndarray
    kernel_error: np.ndarray

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every number measured: ``quantity``, ``symbol``, ``value``, ``error``."""
        rows = []
        for name, symbol in _SYMBOLS.items():
            value, error = float(getattr(self, name)), float(getattr(self, f"{name}_error", 0.0))
            # A susceptibility that cannot be measured is left to the statement.
            if np.isfinite(value):
                # What is the same for every block fluctuates by rounding.
                error = 0.0 if error <= _ROUNDING * abs(value) else error
                rows.append({"quantity": name, "symbol": symbol, "value": value, "error": error})
        return rows

    @property
    def statement(self) -> str:
        """Advice on the block, and whether the network is critical then, in words."""
        variance = self.input_kernel.trace() / len(self.input_kernel)
        return "\n".join(
            [
                f"Scale the skip by {self.skip_scale:.6g} and the branch by "
                f"{_with_error(self.branch_scale, self.branch_scale_error)} to keep the variance "
                f"{variance:.6g}.",
                _fate("the size of the signal", self.parallel, self.parallel_error),
                _fate("differences between signals", self.perpendicular, self.perpendicular_error),
            ]
        )

    @property
    def title(self) -> str:
        """Description of the measurement, in a line."""
        return f"{self.block}, width {self.width}, {self.samples} samples"

    def __str__(self) -> str:
        return f"{table_text(self.rows, self.title)}\n{self.statement}"

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{line}</p>" for line in self.statement.splitlines())
        return table_html(self.rows, self.title) + words

    def __repr__(self) -> str:
        branch = _with_error(self.branch_scale, self.branch_scale_error)
        return (
            f"BlockMeasurement({self.block}, width={self.width}, samples={self.samples}, "
            f"γ={self.skip_scale:.6g}, ξ={branch})"
        )


def _with_error(value: float, error: float) -> str:
    """A value to two digits of its error, as 1.234 ± 0.015."""
    if error <= _ROUNDING * abs(value):
        return f"{value:.6g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _fate(what: str, value: float, error: float) -> str:
    """Fate of perturbations in many layers, from a susceptibility."""
    if not np.isfinite(value):
        return f"Perturbations of {what} cannot be measured: the block jumps or is rounded."
    growth = f"a factor {_with_error(value, error)} a layer"
    if abs(value - 1) <= max(_CHANCE * error, _ROUNDING):
        return f"Perturbations of {what} are kept: {growth}."
    if value <= 0:
        return f"Perturbations of {what} are lost: {growth}."
    fate = "grow" if value > 1 else "decay"
    return f"Perturbations of {what} {fate}: {growth}, e in {1 / abs(math.log(value)):.3g} layers."
