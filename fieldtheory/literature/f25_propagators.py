"""Claims of F25 on response and fluctuations, sections II.3, II.4 and appendix C, and on figures.

The theory of one input has L = 2 and that of two inputs L = 1, both with one ρ, γ = 1 and every φ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.literature.claim import claims_of, double, formula, number
from fieldtheory.literature.f25_prior import SQUARES, constraint
from fieldtheory.literature.f25_theory import (
    OUT,
    READOUT,
    gain,
    printed_matrix,
    printed_source,
    theory,
)
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.linearised import INPUT, LAYER, SCALE, SLOPE

_K0 = sp.Symbol("K_0", positive=True)
_C = sp.symbols("C_11 C_12 C_21 C_22", real=True)
_POINTS = tuple({_K0: sp.Rational(k)} for k in ("1/20", "3/10", "2"))
_PAIR_ALONE = "K_αβ alone is moved, at fixed variances, and σ_w,out = σ_w"
_EQUAL_WIDTH = "d_in = N, as (31) and (32) differ by ν_m"


def _chain() -> sp.Matrix:
    """(31): ∂C^(l)/∂C^(m) of the saddle point, with ε added to C^(m), by the chain rule."""
    kernels = theory(2).network_action.kernels
    responses = sp.zeros(len(kernels))
    for m in range(len(kernels)):
        for l, step in enumerate(theory(2).saddle_point.kernels.values()):
            before = [step.diff(C) * responses[k, m] for k, C in enumerate(kernels[:l])]
            responses[l, m] = sp.Add(*before) + int(l == m)
    return responses


def _response() -> sp.Matrix:
    return sym.WIDTH * theory(2).propagator.G12


def _eta(layer: int) -> sp.Expr:
    """η^(l) from the chain rule, times η^(0) = 1/ν_0."""
    return _chain()[layer, 0] / sym.INPUT_WIDTH


def _chi(layer: int) -> sp.Expr:
    """χ^(l) = Σ_k η^(k)."""
    return sp.Add(*map(_eta, range(layer + 1)))


def _printed_eta(index: int) -> sp.Expr:
    """(51) with φ^(k−1) for a k, here of the signals h^(index)."""
    return (SCALE * sym.WEIGHT) ** 2 * gain(index) * _chi(1)


def _inverse() -> sp.Matrix:
    """G S^(2), with (46)–(48) for the blocks of G."""
    S21, S22, G12 = theory(2).hessian.S21, theory(2).hessian.S22, theory(2).propagator.G12
    S = sp.Matrix(sp.BlockMatrix([[sp.zeros(4), S21.T], [S21, S22]]))
    G = sp.Matrix(sp.BlockMatrix([[_fluctuations(), G12], [G12.T, sp.zeros(4)]]))
    return (G * S).applyfunc(sp.expand)


def _fluctuations() -> sp.Matrix:
    """(131)."""
    G12 = theory(2).propagator.G12
    return G12 * theory(2).hessian.S22 * G12.T


def _by_hand(K: Any, residual: bool = False) -> Any:
    """C^(3) or K^(3) of φ = erf with ρ = σ_w = 1, σ_b = 0, in mpmath."""
    for _ in range(3):
        change = 2 / mpmath.pi * mpmath.asin(2 * K / (1 + 2 * K))
        K = K + change
    return change if residual else K


def _linear_response(residual: bool) -> Callable[..., Any]:
    """∂C^(3)/∂K^(0) or ∂K^(3)/∂K^(0) as the derivative of the recursion in numbers."""

    def derived(point: Any, digits: int) -> Any:
        with mpmath.workdps(3 * digits):
            return mpmath.diff(lambda K: _by_hand(K, residual), mpmath.mpmathify(point[_K0]))

    return derived


def _recursion(of_etas: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """A function of η^(0) to η^(3), from (59) and (60)."""

    def printed(point: Any, digits: int) -> Any:
        with mpmath.workdps(digits + 20):
            K, etas = mpmath.mpmathify(point[_K0]), [mpmath.mpf(1)]
            for _ in range(3):
                slope = 4 / mpmath.pi / ((1 + 2 * K) * mpmath.sqrt(1 + 4 * K))
                etas.append(slope * mpmath.fsum(etas))
                K += 2 / mpmath.pi * mpmath.asin(2 * K / (1 + 2 * K))
            return of_etas(etas)

    return printed


def _pairs_alone(matrix: sp.Matrix) -> sp.Matrix:
    """Entries (αβ) ← (αβ) of three pairs alone, with σ_w,out = σ_w."""
    same = sp.Matrix(*matrix.shape, lambda r, c: matrix[r, c] if (r - c) % 3 == 0 else 0)
    return same.subs(OUT, sym.WEIGHT)


def _pair_responses(G12: sp.Matrix) -> sp.Matrix:
    """η^(0), η^(1), χ^(1) and χ^out of a covariance."""
    first, second, out = (sym.WIDTH * G12[3 * k + 1, 1] for k in range(3))
    return sp.Matrix([first, second, first + second, out])


_SQUARED_INPUT = sp.Symbol("x·x", positive=True)


def _first_term() -> sp.Matrix:
    """The first term of (113) for one input, which is the row of l = 0."""
    row, action = sp.zeros(1, 4), theory(2).network_action
    bracket = sym.READIN_WEIGHT**2 * _SQUARED_INPUT + sym.INPUT_WIDTH * sym.WIDTH
    for k, factor in ((1, SCALE**2), (2, SCALE**2), (3, sp.S.One)):
        square = sym.phi(sym.signal(k - 1)) ** 2
        average = GaussianAverage(square, action.variables, action.covariance)
        row[k] = sym.WIDTH * bracket * factor * sym.WEIGHT**2 * average
    return row


def _data_force() -> sp.Expr:
    """∂S/∂C̃^(0) + N ν_0 C^(0), with the kernel of the data written out."""
    C, width = sym.kernel(0), sym.INPUT_WIDTH * sym.WIDTH
    data = sym.READIN_WEIGHT**2 * _SQUARED_INPUT / width + sym.READIN_BIAS**2
    force = theory(2).network_action.derivative((0,), ()) + width * C
    return sp.expand(force.subs(sym.data_kernel(), data))


def _characteristic(derivative: bool) -> sp.Expr:
    """∂/∂C_12 of exp(x̃ᵀCx̃/2), and (136); C_12 and C_21 are two variables."""
    x = sp.Matrix(sp.symbols("x̃_1 x̃_2", real=True))
    exponent = sp.exp((x.T * sp.Matrix(2, 2, _C) * x)[0] / 2)
    return exponent.diff(_C[1]) if derivative else x[0] * x[1] * exponent / 2


def _connected(printed: bool) -> sp.Expr:
    """(40), (114): ⟨z_α z_β, z_γ z_δ⟩^c of four Gaussian variables."""
    z = sp.symbols("z_1:5", real=True)
    K = sp.Matrix(4, 4, lambda a, b: sp.Symbol(f"K_{min(a, b)}{max(a, b)}", real=True))
    left, right = z[0] * z[1], z[2] * z[3]
    if not printed:
        return ConnectedCorrelator(left, right, z, K).doit()
    both, one, other = (GaussianAverage(F, z, K).doit() for F in (left * right, left, right))
    return both - one * other


_SQUARE, _SOURCE = sp.Symbol("φ²", positive=True), sp.Symbol("ε")


def _printed_bracket(spurious: sp.Expr) -> sp.Expr:
    """The bracket after (31)."""
    weights = SCALE**2 * (sym.WEIGHT**2 * _SQUARE + sym.BIAS**2)
    return -sym.kernel(1) + _SOURCE + spurious * weights


def _finite(variance: int) -> sp.Expr:
    """1 if ⟨e^{x²/2}⟩ is finite, which grows slower than e^{x²}, else 0."""
    x = sp.Symbol("x", real=True)
    average = sp.integrate(sp.exp(x**2 / 2 - x**2 / (2 * variance)), (x, -sp.oo, sp.oo))
    return sp.Integer(bool(average.is_finite))


_TWO_LAYERS = "L = 2, every φ"
_TWO_INPUTS = "L = 1, P = 2, every φ"
_ERF = "φ = erf, ρ = σ_w = 1, σ_b = 0, l = 3"

_STATEMENTS = {
    "line after (31): bracket of the constraint with a source ε": formula(
        "all neurons equal",
        _printed_bracket(sym.WIDTH),
        # The exponent of the constraint (19) on C = C̄ − ε over N C̃.
        lambda: sp.expand(
            constraint(1).subs(
                {sym.kernel(1): sym.kernel(1) - _SOURCE, SQUARES: sym.WIDTH * _SQUARE}
            )
            / (sym.WIDTH * sym.conjugate(1))
        ),
        meant=("no N inside of the bracket", _printed_bracket(sp.S.One)),
    ),
    "(32): Δ_12 = N⟨C C̃⟩ as the response of (31)": formula(
        _TWO_LAYERS,
        _response,
        _chain,
        convention=(_EQUAL_WIDTH, lambda: _chain() * sp.diag(1 / sym.INPUT_WIDTH, 1, 1, 1)),
    ),
    "(38): ∂²S/∂C∂C": formula(
        _TWO_LAYERS,
        sp.zeros(4),
        lambda: theory(2).hessian.S11,
        "the middle expression lacks a factor N",
    ),
    "(112): ∂²S/∂C∂C": formula(
        _TWO_INPUTS,
        sp.zeros(9),
        lambda: theory(1, inputs=2).hessian.S11,
        "the middle expression lacks a factor N, and γβ is γδ",
    ),
    "(40), (114): connected correlator of four Gaussian variables": formula(
        "every covariance", lambda: _connected(True), lambda: _connected(False)
    ),
    "(46)–(48), (122)–(124): G S^(2) = −1 for these blocks of G": formula(
        _TWO_LAYERS, -sp.eye(8), _inverse
    ),
    "(51): η^(l), with φ^(k−1) for k = 1": formula(
        "l = 2, every φ",
        lambda: _printed_eta(0),
        lambda: _eta(2),
        meant=("φ^(l−1)", lambda: _printed_eta(1)),
    ),
    "(52): χ^(2) = ⟨K^(2) C̃^(0)⟩": formula(
        _TWO_LAYERS,
        lambda: sp.Add(*theory(2).propagator.G12[:3, 0]),
        lambda: _chi(2),
        meant=("a factor N", lambda: sp.Add(*_response()[:3, 0])),
    ),
    "(53): χ^(2) = Σ_k η^(k)": formula(
        _TWO_LAYERS, lambda: sp.Add(*_response()[:3, 0]), lambda: _chi(2)
    ),
    "(54): χ^out = ⟨K^(L+1) C̃^(0)⟩": formula(
        _TWO_LAYERS,
        lambda: theory(2).propagator.G12[3, 0],
        lambda: _eta(3),
        meant=("a factor N", lambda: _response()[3, 0]),
    ),
    "(55): χ^out": formula(_TWO_LAYERS, lambda: OUT**2 * gain(2) * _chi(2), lambda: _eta(3)),
    "(56)–(60): ∂C^(l)/∂K^(0)": number(
        _ERF, _recursion(lambda etas: etas[-1]), _linear_response(True), points=_POINTS
    ),
    "(61): ∂K^(l)/∂K^(0) as Σ_k η^(l)": number(
        _ERF,
        _recursion(lambda etas: len(etas) * etas[-1]),
        _linear_response(False),
        points=_POINTS,
        meant=("η^(k) for the last η^(l)", _recursion(mpmath.fsum)),
    ),
    "(62): C^(2) of the linearised network": formula(
        "l = 2",
        (SCALE * sym.WEIGHT * SLOPE) ** 2 * (INPUT + sym.kernel(1)) + (SCALE * sym.BIAS) ** 2,
        lambda: linearised.linearised_rows(2)[2],
    ),
    "(65): K^(3) = Σ_k C^(k) of the linearised network": formula(
        "L = 3",
        lambda: sum(
            (linearised.linearised_residual_kernel().subs(LAYER, k) for k in (1, 2, 3)), INPUT
        ),
        lambda: linearised.linearised_kernel().subs(sym.DEPTH, 3),
    ),
    "(113), first term: ∂²S/∂C̃^(0)∂C̃^(k), with δ_l0 for δ_L0": formula(
        "L = 2, one input, every φ",
        _first_term,
        lambda: theory(2).hessian.S22[0, :],
        "a connected correlator with a constant vanishes; (39) has no such term",
    ),
    "(113), first term: its bracket, ∂S/∂C̃^(0) + d_in C^(0)": formula(
        "one input, d_in = ν_0 N",
        sym.READIN_WEIGHT**2 * _SQUARED_INPUT + sym.INPUT_WIDTH * sym.WIDTH,
        _data_force,
        meant=(
            "d_in σ_b,in² for d_in",
            sym.READIN_WEIGHT**2 * _SQUARED_INPUT
            + sym.INPUT_WIDTH * sym.WIDTH * sym.READIN_BIAS**2,
        ),
    ),
    "(113), second term: S22": formula(
        "L = 2, one input, every φ",
        printed_source,
        lambda: theory(2).hessian.S22,
        meant=(READOUT, lambda: printed_source(OUT)),
    ),
    "(115): S21 of two inputs": formula(
        _TWO_INPUTS,
        lambda: printed_matrix(False, 2),
        lambda: theory(1, inputs=2).hessian.S21,
        "a covariance responds to both variances, too",
        convention=(_PAIR_ALONE, lambda: _pairs_alone(theory(1, inputs=2).hessian.S21)),
    ),
    "(126): G12 of two inputs": formula(
        _TWO_INPUTS,
        lambda: printed_matrix(True, 2),
        lambda: theory(1, inputs=2).propagator.G12,
        "a covariance responds to both variances, too; (k−1) is (l−1)",
        convention=(_PAIR_ALONE, lambda: _pairs_alone(theory(1, inputs=2).propagator.G12)),
    ),
    "(128)–(130): η^(0), η^(1), χ^(1), χ^out of K_12 to K_12": formula(
        f"{_TWO_INPUTS}, fixed variances",
        lambda: _pair_responses(printed_matrix(True, 2, OUT)),
        lambda: _pair_responses(theory(1, inputs=2).propagator.G12),
    ),
    "(131): G11": formula(_TWO_LAYERS, _fluctuations, lambda: theory(2).propagator.G11),
    "(136): ∂/∂C_12 of the characteristic function": formula(
        "C_12 and C_21 two variables",
        lambda: _characteristic(False),
        lambda: _characteristic(True),
    ),
    "text after (134): whether ⟨f⟩ is finite for f = e^{x²/2}, slower than e^{x²}": formula(
        "C_11 = 2", sp.S.One, lambda: _finite(2), "the condition is slower than e^{x²/(2C)}"
    ),
    "(132), (133): Var K^(2) over Σ_kl G11^kl of the residual kernels": double(
        "φ = erf, L = 3",
        sp.S.One,
        lambda point: (
            (three := solve(ResidualNetwork(depth=3), 0.3)).kernel_variance[2]
            / np.sum(three.G11[:3, :3])
        ),
    ),
}

CLAIMS = claims_of("F25", _STATEMENTS)
