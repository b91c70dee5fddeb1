"""Schedules: scales ρ_l of the residual branches that follow the depth of a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.validation import excerpt

# Of a function Σ ρ_l² is followed over depths that double, this many times.
_DOUBLINGS = 14


class NamedSchedule(NamedTuple):
    """A schedule that has a name."""

    # ρ_l of the layers l, an array of 1, ..., L, and the depth L.
    values: Callable[[np.ndarray, int], np.ndarray]
    formula: str
    # Whether Σ_l ρ_l² stays bounded as L grows.
    bounded: bool


SCHEDULES: Mapping[str, NamedSchedule] = {
    "uniform": NamedSchedule(lambda l, L: np.full(l.shape, 1 / np.sqrt(L)), "1/√L", True),
    "decreasing": NamedSchedule(
        lambda l, L: 1 / (np.sqrt(l) * np.log1p(l)), "1/(√l ln(l+1))", True
    ),
    "none": NamedSchedule(lambda l, L: np.ones(l.shape), "1", False),
}


def follows_depth(scale: Any) -> bool:
    """Whether a scale is a name or a function, which give numbers for every depth.

    Examples
    --------
    >>> follows_depth("uniform"), follows_depth(0.3), follows_depth((0.1, 0.2))
    (True, False, False)
    """
    return isinstance(scale, str) or callable(scale)


def layer_values(name: str, scale: Any, depth: int) -> np.ndarray:
    """The numbers of a checked scale for every layer, shape (..., L), read-only.

    Examples
    --------
    >>> layer_values("branch_scale", "uniform", 4)
    array([0.5, 0.5, 0.5, 0.5])
    >>> layer_values("branch_scale", lambda l, L: l / L, 4)
    array([0.25, 0.5 , 0.75, 1.  ])
    """
    if isinstance(scale, str):
        values = named_schedule(name, scale).values(np.arange(1.0, depth + 1), depth)
    elif callable(scale):
        values = np.array([_value(name, scale, l, depth) for l in range(1, depth + 1)])
    else:
        values = np.asarray(scale, dtype=float)
    return np.broadcast_to(values, (*values.shape[:-1], depth))


def named_schedule(name: str, schedule: str) -> NamedSchedule:
    """The schedule of a name, or raise."""
    others = "a number, an array, a function of (l, L) or "
    return SCHEDULES[validation.choice(name, schedule, SCHEDULES, others)]


def _value(name: str, function: Callable[[int, int], Any], layer: int, depth: int) -> float:
    """ρ_l of a function, which must be a finite number."""
    try:
        value = function(layer, depth)
        if type(value) is float and math.isfinite(value):
            return value
    except Exception as error:
        where = f"at l={layer}, L={depth}"
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(
            f"{name} must be a function of (l, L) for l = 1, ..., L; {where} it raised {reason}"
        ) from error
    number = math.nan
    if not (isinstance(value, str | bytes | bool | np.bool_) or np.ndim(value)):
        with suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise ValueError(
            f"{name} must be a function of (l, L) with finite real numbers, got {excerpt(value)} "
            f"at l={layer}, L={depth}"
        )
    return number


def require_positive(name: str, scale: Any, values: np.ndarray) -> None:
    """Raise ValueError if a scale is negative, or a function zero: λ_{l,L} of SR (2) is positive.

    Numbers may be zero, which makes a layer without a branch: the limit ρ → 0.
    """
    bad = np.argwhere(values <= 0 if callable(scale) else values < 0)
    if not len(bad):
        return
    *batch, last = map(int, bad[0])
    value, depth = f"{values[tuple(bad[0])]:.6g}", values.shape[-1]
    if callable(scale):
        raise ValueError(
            f"{name} must be a function of (l, L) that is positive, got {value} at l={last + 1}, "
            f"L={depth}; an array may have zeros"
        )
    where = f" at l={last + 1}" if np.ndim(scale) else ""
    of = f" of batch index {tuple(batch)}" if batch else ""
    raise ValueError(f"{name} must be >= 0 in every layer, got {value}{where}{of}")


def require_squares(name: str, values: np.ndarray, variance: float = 1.0) -> None:
    """Raise ValueError if the square of a scale, times a variance, exceeds float64."""
    most = math.sqrt(np.finfo(float).max / variance)
    bad = np.argwhere(np.abs(values) > most)
    if len(bad):
        times = f" times the variance {variance:.6g}" if variance > 1 else ""
        raise ValueError(
            f"{name} must have squares within the range of float64{times}, at most {most:.3g}, got "
            f"{values[tuple(bad[0])]:.6g} at l={int(bad[0][-1]) + 1}"
        )


def scale_text(scale: Any) -> str:
    """A name or function in words.

    Examples
    --------
    >>> scale_text("uniform"), scale_text(np.hypot)
    ('uniform', 'hypot(l, L)')
    """
    if isinstance(scale, str):
        return scale
    return f"{getattr(scale, '__name__', type(scale).__name__)}(l, L)"


@dataclass(frozen=True, eq=False, repr=False)
class Schedule:
    """The scales ρ_l of the residual branches of a network, and whether Σ_l ρ_l² stays bounded.

    If it does as L → ∞, a network with γ = 1 is a Stable ResNet (SR Definition 1): its gradients
    stay bounded at every depth (SR Proposition 1).

    Parameters
    ----------
    scale : float, tuple, str or callable
        As the network has it.
    scales : ndarray, shape (..., L)
        ρ_l.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=50, branch_scale="uniform")
    >>> net.schedule
    Schedule(ρ_l = 1/√L, L = 50: Σρ_l² = 1, bounded as L grows)
    >>> net.replace(branch_scale=lambda l, L: l**-0.5).schedule.bounded
    False
    """

    scale: Any
    scales: np.ndarray

    @property
    def sum_of_squares(self) -> float | np.ndarray:
        """Σ_l ρ_l² of this depth, a number or (...) for batch axes."""
        total = (self.scales**2).sum(axis=-1)
        return total if total.ndim else float(total)

    @cached_property
    def bounded(self) -> bool | None:
        """Whether Σ_l ρ_l² stays bounded as L → ∞; None if that is not known."""
        if isinstance(self.scale, str):
            return SCHEDULES[self.scale].bounded
        if callable(self.scale):
            return _bounded(self.scale)
        if np.ndim(self.scale) and np.shape(self.scale)[-1] > 1:
            return None
        return not np.any(self.scale)

    @property
    def formula(self) -> str:
        """ρ_l in words."""
        if isinstance(self.scale, str):
            return SCHEDULES[self.scale].formula
        if callable(self.scale):
            return scale_text(self.scale)
        if not np.ndim(self.scale):
            return f"{self.scale:.6g}"
        return f"array of shape {np.shape(self.scale)}"

    def __str__(self) -> str:
        sums = np.ravel(self.sum_of_squares)
        total = f"{sums[0]:.6g}" if sums.size == 1 else f"{sums.min():.6g} … {sums.max():.6g}"
        evidence = " by its values up to L = 16384" if callable(self.scale) else ""
        growth = {
            True: f"bounded as L grows{evidence}",
            False: f"not bounded as L grows{evidence}",
            None: "not known whether bounded as L grows",
        }[self.bounded]
        return f"ρ_l = {self.formula}, L = {self.scales.shape[-1]}: Σρ_l² = {total}, {growth}"

    def __repr__(self) -> str:
        return f"Schedule({self})"


def _bounded(function: Callable[[int, int], Any]) -> bool | None:
    """Whether Σ_l f(l, L)² stays bounded, as far as depths up to 2^`_DOUBLINGS` tell."""
    # From here on, and falling no faster, Raabe's test counts as above 1.
    summable, falling = 1.5, 0.25
    # Changes of the sum that are rounding, and changes that count as equal, both relative.
    rounding, equal = 1e-12, 1e-3
    try:
        with np.errstate(over="ignore"):
            sums = np.array(
                [(layer_values("f", function, 2**k) ** 2).sum() for k in range(_DOUBLINGS + 1)]
            )
    except ValueError:
        return None
    if not np.isfinite(sums).all():
        return False
    changes = np.diff(sums)[_DOUBLINGS // 2 :]
    if (changes <= rounding * sums.max()).all():
        return True
    if (changes <= 0).any():
        return None
    if changes[-1] >= (1 - equal) * changes[0]:
        return False
    k = np.arange(_DOUBLINGS // 2, _DOUBLINGS - 1)
    raabe = k * (changes[:-1] / changes[1:] - 1)
    clear = raabe[-1] >= summable and raabe[-1] >= raabe[0] - falling
    return True if clear else None
