"""The fourth moment of a neuron of a linear diffusion in closed form, exact at every width.

The equations of `neuron_moments` are triangular, and what drives each is a sum of exponentials, so
that they are solved one after the other. Inputs are copied to every neuron (PF section 4.1). That
the outputs are not Gaussian at finite width is PF's statement in section 3.4; by how much is not in
PF.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    TIME,
    MomentSystem,
    displacement,
    gram,
    neuron_moments,
    start,
)
from fieldtheory.diffusions.diffusion_limit.small_increments import SLOPES, WIDTH
from fieldtheory.theory import notation as sym

# λ = φ'(0)² σ²_w, σ²_b/σ²_w, and 1/D.
RATE = sp.Symbol(r"\lambda", positive=True)
RATIO = sp.Symbol("r", nonnegative=True)
_NARROWNESS = sp.Symbol("e", positive=True)
# A sum of exponentials c e^(a t) by a.
_Exponentials = dict[sp.Expr, sp.Expr]


@lru_cache
def moment_of_neuron(power: int) -> sp.Expr:
    """⟨y^n⟩ of one neuron, n = 2 or 4, in `RATE`, `RATIO`, `WIDTH`, z and `TIME`.

    Examples
    --------
    >>> sp.factor(moment_of_neuron(2))
    (r + z_{i}**2)*(exp(\\lambda*t) - 1)
    """
    solved = _solved()[displacement(0) ** power]
    whole = sp.Add(*[c * sp.exp(a * TIME) for a, c in solved.items()])
    return whole.subs(_NARROWNESS, 1 / WIDTH)


@lru_cache
def kurtosis_coefficient() -> sp.Expr:
    """lim D (⟨y⁴⟩/⟨y²⟩² − 3), the excess kurtosis of a wide neuron about its start, times D.

    Examples
    --------
    >>> sp.factor(kurtosis_coefficient().subs(start(0), 0)).has(RATIO)
    False
    """
    fourth = moment_of_neuron(4).subs(WIDTH, 1 / _NARROWNESS)
    first = sp.expand(fourth.diff(_NARROWNESS).subs(_NARROWNESS, 0))
    return sp.factor(first) / sp.factor(moment_of_neuron(2)) ** 2


@lru_cache
def _solved() -> dict[sp.Expr, _Exponentials]:
    system = _of_copied_input(neuron_moments())
    size = range(len(system.moments))
    done: dict[int, _Exponentials] = {}
    while len(done) < len(size):
        # The next one that is driven by known ones alone.
        row = next(
            i
            for i in size
            if i not in done and all(j in done or j == i or system.matrix[i, j] == 0 for j in size)
        )
        drive: _Exponentials = {}
        for j in done:
            for exponent, value in done[j].items():
                drive[exponent] = drive.get(exponent, sp.S.Zero) + system.matrix[row, j] * value
        done[row] = _driven(system.matrix[row, row], drive, system.initial[row])
    return {system.moments[i]: solution for i, solution in done.items()}


def _of_copied_input(system: MomentSystem) -> MomentSystem:
    put = {
        SLOPES[0]: sp.sqrt(RATE) / sym.WEIGHT,
        sym.BIAS: sp.sqrt(RATIO) * sym.WEIGHT,
        WIDTH: 1 / _NARROWNESS,
        gram(0, 0): start(0) ** 2,
    }
    matrix = system.matrix.subs(put).applyfunc(sp.expand)
    initial = tuple(sp.sympify(v).subs(put) for v in system.initial)
    return system._replace(matrix=matrix, initial=initial)


def _driven(rate: sp.Expr, drive: _Exponentials, start_value: sp.Expr) -> _Exponentials:
    """f of f' = rate f + Σ c e^(a t), none of whose terms is in resonance."""
    found: _Exponentials = {}
    own = start_value
    for exponent, value in drive.items():
        if (value := sp.simplify(value)) == 0:
            continue
        found[exponent] = value / sp.expand(exponent - rate)
        own -= found[exponent]
    found[rate] = own
    return {exponent: c for exponent, value in found.items() if (c := sp.simplify(value)) != 0}
