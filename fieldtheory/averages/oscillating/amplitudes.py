"""Functions of one signal as sums of waves with amplitudes that have none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.narrow import cuts_of
from fieldtheory.averages.integrands.steps import pieces
from fieldtheory.averages.oscillating.wave_remainders import centres_of
from fieldtheory.averages.oscillating.waves import (
    Spectrum,
    grows,
    has_waves,
    moves,
    product_of,
    spectrum_of,
    terms_of,
    wave_number_of,
)

# How far amplitudes bend beyond their last kink.
_BENDS = 20.0
# Places of a period, and coefficients of its series that are nothing.
_PLACES, _NOTHING = 256, 1e-16


@dataclass(frozen=True, eq=False)
class Amplitudes:
    """A function as Σ_θ A_θ(h) e^{iθh}, A_θ = Σ_j C_θj S_j.

    Parameters
    ----------
    function : callable
    numbers : ndarray, shape (n,)
        θ, of both signs, and zero.
    factors : ndarray, shape (n, m)
        C.
    steady : tuple of callable
        S, which are real.
    kinks : tuple of float
    bends : float
        Beyond, amplitudes change over their distance from zero.
    """

    function: Callable
    numbers: np.ndarray
    factors: np.ndarray
    steady: tuple[Callable, ...]
    kinks: tuple[float, ...]
    bends: float

    @property
    def least(self) -> float:
        """The smallest wave number."""
        return float(np.abs(self.numbers[self.numbers != 0]).min())

    def at(self, h: np.ndarray, some: Sequence[int] | np.ndarray) -> np.ndarray:
        """A_θ of some θ, shape (n, ...)."""
        values = np.stack([S(h) for S in self.steady])
        return np.tensordot(self.factors[list(some)], values, 1)

    def mean(self, h: np.ndarray) -> np.ndarray:
        """A_0."""
        (some,) = np.nonzero(self.numbers == 0)
        return self.at(h, some)[0].real if len(some) else np.zeros_like(h)

    def waves(self, h: np.ndarray) -> np.ndarray:
        """Σ |A_θ|² without A_0."""
        (some,) = np.nonzero(self.numbers)
        return (np.abs(self.at(h, some)) ** 2).sum(axis=0)

    @cached_property
    def mirrored(self) -> Amplitudes:
        """The function of −h."""
        function, kinks = self.function, tuple(-kink for kink in reversed(self.kinks))
        steady = tuple(lambda h, S=S: S(-h) for S in self.steady)
        return Amplitudes(
            lambda h: function(-h), -self.numbers, self.factors, steady, kinks, self.bends
        )


@lru_cache(maxsize=64)
def amplitudes_of(F: sp.Expr, h: sp.Symbol) -> Amplitudes | None:
    """The amplitudes of F; None without waves, and of waves of changing or endless numbers.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> found = amplitudes_of(sp.tanh(h) * sp.cos(2 * h), h)
    >>> found.numbers, found.factors.real
    (array([-2.,  2.]), array([[0.5],
           [0.5]]))
    """
    if not has_waves(F):
        return None
    found: dict[sp.Expr, dict[sp.Expr, complex]] = defaultdict(dict)
    # Terms of one wave may cancel where each of them grows, as eʰ − eʰ θ(h).
    beside: dict[sp.Expr, sp.Expr] = defaultdict(lambda: sp.S.Zero)
    try:
        for term in terms_of(F, h):
            wave = sp.Mul(*[factor for factor in sp.Mul.make_args(term) if moves(factor, h)])
            beside[wave] += term / wave
        for wave, steady in beside.items():
            number, function = steady.as_independent(h, as_Add=False)
            if wave != 1 and grows(pieces(function, [h]), h):
                return None
            for phase, factor in _spectrum(wave, h).items():
                slope = sp.expand(phase).coeff(h, 1)
                if sp.expand(phase - slope * h) != 0 or not slope.is_number:
                    return None
                of_function = found[function]
                of_function[slope] = of_function.get(slope, 0) + complex(number * factor)
    except (QuadratureError, TypeError):
        return None
    numbers = sorted({slope for terms in found.values() for slope in terms}, key=float)
    if not any(numbers):
        return None
    factors = [[terms.get(slope, 0) for terms in found.values()] for slope in numbers]
    bends = max((abs(place) for place in centres_of(F, h)), default=0.0) + _BENDS
    steady = tuple(_compiled(function, h) for function in found)
    kinks = tuple(cuts_of(F, h))
    of_numbers = np.array(list(map(float, numbers)))
    return Amplitudes(_compiled(F, h), of_numbers, np.array(factors), steady, kinks, bends)


def _spectrum(wave: sp.Expr, h: sp.Symbol) -> Spectrum:
    if wave == 1:
        return {sp.S.Zero: sp.S.One}
    try:
        return reduce(product_of, [spectrum_of(factor, h) for factor in sp.Mul.make_args(wave)])
    except QuadratureError:
        return _series(wave, h)


def _series(wave: sp.Expr, h: sp.Symbol) -> Spectrum:
    """Fourier's, of a smooth periodic function."""
    base = wave_number_of(wave, h)
    places = 2 * np.pi / float(base) * np.arange(_PLACES) / _PLACES
    terms = np.fft.fft(vectorised([h], wave)(places) + 0 * places) / _PLACES
    size, half = np.abs(terms).max(), _PLACES // 2
    if not np.abs(terms[half - 8 : half + 8]).max() <= _NOTHING * size:
        raise QuadratureError(f"the waves of {wave} have too many overtones")
    return {
        n * base * h: sp.sympify(complex(terms[n]))
        for n in range(1 - half, half)
        if abs(terms[n]) > _NOTHING * size
    }


def _compiled(F: sp.Expr, h: sp.Symbol) -> Callable:
    function = vectorised([h], F)

    def values(x: np.ndarray) -> np.ndarray:
        # Pieces are evaluated beyond their ends too.
        with np.errstate(all="ignore"):
            return function(x) + np.zeros_like(x)

    return values
