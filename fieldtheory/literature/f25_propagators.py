"""Claims of F25 on response and fluctuations, sections II.3, II.4 and appendix C, and on figures.

The theory of one input has L = 2 and that of two inputs L = 1, both with one ρ, γ = 1 and every φ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.literature import f25_theory as one_input
from fieldtheory.literature.claim import Statements, claims_of, double, formula, number
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.derivation import Derivation, derive
from fieldtheory.theory.linearised import INPUT, SCALE, SLOPE

PAPER = one_input.PAPER

_PAIRS = sym.pairs(2)
_K0 = sp.Symbol("K_0", positive=True)
_C = sp.symbols("C_11 C_12 C_21 C_22", real=True)
_POINTS = tuple({_K0: sp.Rational(k)} for k in ("1/20", "3/10", "2"))
_OUT = sym.READOUT_WEIGHT
_AS_HIDDEN = {_OUT: sym.WEIGHT}
_PAIR_ALONE = "K_αβ alone is moved, at fixed variances, and σ_w,out = σ_w"
_EQUAL_WIDTH = "d_in = N, as (31) and (32) differ by ν_m"


@lru_cache
def _theory(inputs: int = 1) -> Derivation:
    return derive(2 if inputs == 1 else 1, inputs=inputs)


def _width_free(matrix: sp.Matrix) -> sp.Matrix:
    return matrix.subs(sym.INPUT_WIDTH, 1)


def _chain() -> sp.Matrix:
    """(31): ∂C^(l)/∂C^(m) of the saddle point, with ε added to C^(m), by the chain rule."""
    kernels = _theory().network_action.kernels
    steps = list(_theory().saddle_point.kernels.values())
    found = sp.zeros(len(kernels))
    for m in range(len(kernels)):
        for l, step in enumerate(steps):
            before = [step.diff(C) * found[k, m] for k, C in enumerate(kernels[:l])]
            found[l, m] = sp.Add(*before) + int(l == m)
    return found


def _response() -> sp.Matrix:
    return sym.WIDTH * _theory().propagator.G12


def _eta(layer: int) -> sp.Expr:
    """η^(l) from the chain rule, times η^(0) = 1/ν_0."""
    return _chain()[layer, 0] / sym.INPUT_WIDTH


def _printed_eta(index: int, layer: int = 2) -> sp.Expr:
    """(51) with φ^(k−1) for a k, here of the signals h^(index)."""
    history = sp.Add(*[_eta(k) for k in range(layer)])
    return (SCALE * sym.WEIGHT) ** 2 * one_input._gain(index) * history


def _printed_output() -> sp.Expr:
    """(55)."""
    return _OUT**2 * one_input._gain(2) * sp.Add(*[_eta(k) for k in range(3)])


def _correlators(rows: int) -> sp.Expr:
    """Σ_k ⟨C^(k) C̃^(0)⟩ up to a layer, or that of the output."""
    G12 = _theory().propagator.G12
    return G12[3, 0] if rows == 3 else sp.Add(*[G12[k, 0] for k in range(rows + 1)])


def _whole(printed: bool) -> sp.Matrix:
    """G S^(2), with (46)–(48) for the blocks of G."""
    blocks, propagator = _theory().hessian, _theory().propagator
    S21, S22 = (sp.Matrix(block) for block in (blocks.S21, blocks.S22))
    G12 = sp.Matrix(propagator.G12)
    size = S21.rows
    G11, none = G12 * S22 * G12.T, sp.zeros(size)
    if printed:
        return -sp.eye(2 * size)
    S = sp.BlockMatrix([[none, S21.T], [S21, S22]]).as_explicit()
    G = sp.BlockMatrix([[G11, G12], [G12.T, none]]).as_explicit()
    return (-G * S).applyfunc(sp.expand) * -1


def _kernel_by_hand(K: Any, layers: int, residual: bool = False) -> Any:
    """C^(l) or K^(l) of φ = erf with ρ = σ_w = 1, σ_b = 0, in mpmath."""
    change = K
    for _ in range(layers):
        change = 2 / mpmath.pi * mpmath.asin(2 * K / (1 + 2 * K))
        K = K + change
    return change if residual else K


def _linear_response(layers: int, residual: bool) -> Callable[..., Any]:
    """∂C^(l)/∂K^(0) or ∂K^(l)/∂K^(0) as the derivative of the recursion in numbers."""

    def derived(point: Any, digits: int) -> Any:
        with mpmath.workdps(3 * digits):
            start = mpmath.mpf(point[_K0].p) / point[_K0].q
            return mpmath.diff(lambda K: _kernel_by_hand(K, layers, residual), start)

    return derived


def _recursion(layers: int, what: str) -> Callable[..., Any]:
    """η^(l), χ^(l) = Σ_k η^(k), or Σ_k η^(l) as (61) ends, from (59) and (60)."""

    def printed(point: Any, digits: int) -> Any:
        with mpmath.workdps(digits + 20):
            K = mpmath.mpf(point[_K0].p) / point[_K0].q
            etas = [mpmath.mpf(1)]
            for layer in range(layers):
                before = _kernel_by_hand(K, layer)
                gain = 4 / mpmath.pi / ((1 + 2 * before) * mpmath.sqrt(1 + 4 * before))
                etas.append(gain * mpmath.fsum(etas))
            sums = {"χ": mpmath.fsum(etas), "last": len(etas) * etas[-1]}
            return sums.get(what, etas[-1])

    return printed


def _gain_of_pair(layer: int, pair: tuple[int, int]) -> sp.Expr:
    """⟨φ'_α φ'_β + δ_αβ φ''_α φ_β⟩ at K^(layer)."""
    action = _theory(2).network_action
    h = [sym.signal(layer, sample, 2) for sample in pair]
    slopes = [sym.phi(one).diff(one) for one in h]
    F = slopes[0] * slopes[1]
    if pair[0] == pair[1]:
        F += sym.phi(h[0]).diff(h[0], 2) * sym.phi(h[0])
    chosen = list(dict.fromkeys(h))
    places = [action.variables.index(one) for one in chosen]
    return GaussianAverage(F, chosen, action.covariance.extract(places, places))


def _pair_matrix(response: bool, readout: sp.Symbol = sym.WEIGHT) -> sp.Matrix:
    """(115), or (126): an entry (αβ) of a layer responds to (αβ) of the layers before."""
    size, layers = len(_PAIRS), range(3)
    found = sp.zeros(3 * size)
    for p, pair in enumerate(_PAIRS):
        for k in layers:
            factor = SCALE**2 * sym.WEIGHT**2 if k == 1 else readout**2
            nu = sym.INPUT_WIDTH if k == 0 else 1
            for l in layers:
                row, column = k * size + p, l * size + p
                gain = factor * _gain_of_pair(k - 1, pair) if k else 0
                if response:
                    history = sp.Add(*[found[m * size + p, column] for m in range(k)])
                    found[row, column] = sp.Integer(k == l) / (nu * sym.WIDTH) + gain * history
                else:
                    found[row, column] = sym.WIDTH * (gain if k > l else -nu if k == l else 0)
    return found


def _pairs_alone(matrix: sp.Matrix) -> sp.Matrix:
    """Entries (αβ) ← (αβ) alone, with σ_w,out = σ_w."""
    size = len(_PAIRS)
    same = sp.Matrix(*matrix.shape, lambda r, c: matrix[r, c] if (r - c) % size == 0 else 0)
    return same.subs(_AS_HIDDEN)


def _pair_responses(printed: bool) -> sp.Matrix:
    """η^(0), η^(1), χ^(1) and χ^out of a covariance."""
    G12 = sym.WIDTH * (_pair_matrix(True, _OUT) if printed else _theory(2).propagator.G12)
    entries = [G12[3 * k + 1, 1] for k in range(3)]
    return sp.Matrix([entries[0], entries[1], entries[0] + entries[1], entries[2]])


def _first_term() -> sp.Matrix:
    """(113) for one input, with its first term in the row of l = 0."""
    found = sp.Matrix(one_input._printed_source())
    data = sym.INPUT_WIDTH * sym.data_kernel()
    for k in range(1, 4):
        h = sym.signal(k - 1)
        average = GaussianAverage(sym.phi(h) ** 2, h, one_input._kernel(k - 1, k - 1))
        factor = SCALE**2 if k <= 2 else sp.S.One
        found[0, k] += sym.WIDTH**2 * data * factor * sym.WEIGHT**2 * average
    return found


def _variance_of_sum() -> sp.Matrix:
    """(131): Σ_kn G12^lk S22^kn G21^nm, written out."""
    G12, S22, size = _theory().propagator.G12, _theory().hessian.S22, range(4)
    return sp.Matrix(
        4, 4, lambda l, m: sp.Add(*[G12[l, k] * S22[k, n] * G12[m, n] for k in size for n in size])
    )


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
    each = (GaussianAverage(F, z, K).doit() for F in (left * right, left, right))
    both, one, other = each
    return both - one * other


def _constraint_with_source(spurious: sp.Expr) -> sp.Expr:
    """The bracket after (31), with φ² of all neurons equal to their mean."""
    square = sp.Symbol("φ²", positive=True)
    weights = SCALE**2 * (sym.WEIGHT**2 * square + sym.BIAS**2)
    return -sym.kernel(1) + sp.Symbol("ε") + spurious * weights


def _ratio_of_variances() -> float:
    solution = solve(ResidualNetwork(depth=3), 0.3)
    return float(solution.kernel_variance[2] / np.sum(solution.G11[:3, :3]))


def _finite(variance: int) -> sp.Expr:
    """1 if ⟨e^{x²/2}⟩ is finite, which grows slower than e^{x²}, else 0."""
    x = sp.Symbol("x", real=True)
    found = sp.integrate(sp.exp(x**2 / 2 - x**2 / (2 * variance)), (x, -sp.oo, sp.oo))
    return sp.Integer(bool(found.is_finite))


_TWO_LAYERS = "L = 2, every φ"
_TWO_INPUTS = "L = 1, P = 2, every φ"
_ERF = "φ = erf, ρ = σ_w = 1, σ_b = 0, l = 3"

_STATEMENTS: Statements = {
    "line after (31): bracket of the constraint with a source ε": formula(
        "all neurons equal",
        _constraint_with_source(sym.WIDTH),
        lambda: _constraint_with_source(sp.S.One),
        meant=("no N inside of the bracket", _constraint_with_source(sp.S.One)),
    ),
    "(32): Δ_12 = N⟨C C̃⟩ as the response of (31)": formula(
        _TWO_LAYERS,
        lambda: _response(),
        _chain,
        convention=(
            _EQUAL_WIDTH,
            lambda: _chain() * sp.diag(1 / sym.INPUT_WIDTH, 1, 1, 1),
        ),
    ),
    "(38): ∂²S/∂C∂C": formula(
        _TWO_LAYERS,
        sp.zeros(4),
        lambda: sp.Matrix(_theory().hessian.S11),
        "the middle expression lacks a factor N",
    ),
    "(112): ∂²S/∂C∂C": formula(
        _TWO_INPUTS,
        sp.zeros(9),
        lambda: sp.Matrix(_theory(2).hessian.S11),
        "the middle expression lacks a factor N, and γβ is γδ",
    ),
    "(40), (114): connected correlator of four Gaussian variables": formula(
        "every covariance", lambda: _connected(True), lambda: _connected(False)
    ),
    "(46)–(48), (122)–(124): G S^(2) = −1 for these blocks of G": formula(
        _TWO_LAYERS, lambda: _whole(True), lambda: _whole(False)
    ),
    "(51): η^(l), with φ^(k−1) for k = 1": formula(
        "l = 2, every φ",
        lambda: _printed_eta(0),
        lambda: _eta(2),
        meant=("φ^(l−1)", lambda: _printed_eta(1)),
    ),
    "(52): χ^(2) = ⟨K^(2) C̃^(0)⟩": formula(
        _TWO_LAYERS,
        lambda: _correlators(2),
        lambda: sp.Add(*[_eta(k) for k in range(3)]),
        meant=("a factor N", lambda: sym.WIDTH * _correlators(2)),
    ),
    "(53): χ^(2) = Σ_k η^(k)": formula(
        _TWO_LAYERS,
        lambda: sp.Add(*[_response()[k, 0] for k in range(3)]),
        lambda: sp.Add(*[_eta(k) for k in range(3)]),
    ),
    "(54): χ^out = ⟨K^(L+1) C̃^(0)⟩": formula(
        _TWO_LAYERS,
        lambda: _correlators(3),
        lambda: _eta(3),
        meant=("a factor N", lambda: sym.WIDTH * _correlators(3)),
    ),
    "(55): χ^out": formula(_TWO_LAYERS, _printed_output, lambda: _eta(3)),
    "(56)–(60): ∂C^(l)/∂K^(0)": number(
        _ERF, _recursion(3, "η"), _linear_response(3, True), points=_POINTS
    ),
    "(61): ∂K^(l)/∂K^(0) as Σ_k η^(l)": number(
        _ERF,
        _recursion(3, "last"),
        _linear_response(3, False),
        points=_POINTS,
        meant=("η^(k) for the last η^(l)", _recursion(3, "χ")),
    ),
    "(62): C^(2) of the linearised network": formula(
        "l = 2",
        (SCALE * sym.WEIGHT * SLOPE) ** 2 * (INPUT + sym.kernel(1)) + (SCALE * sym.BIAS) ** 2,
        lambda: linearised.linearised_rows(2)[2],
    ),
    "(65): K^(3) = Σ_k C^(k) of the linearised network": formula(
        "L = 3",
        lambda: (
            INPUT
            + sp.Add(
                *[
                    linearised.linearised_residual_kernel().subs(linearised.LAYER, k)
                    for k in (1, 2, 3)
                ]
            )
        ),
        lambda: linearised.linearised_kernel().subs(sym.DEPTH, 3),
    ),
    "(113): S22, with the first term for l = 0": formula(
        "L = 2, one input, every φ",
        _first_term,
        lambda: sp.Matrix(_theory().hessian.S22),
        "the correlator with a constant vanishes; (39) has no such term",
        meant=("no first term, and σ_w,out", lambda: one_input._printed_source(_OUT)),
    ),
    "(115): S21 of two inputs": formula(
        _TWO_INPUTS,
        lambda: _pair_matrix(False),
        lambda: sp.Matrix(_theory(2).hessian.S21),
        "a covariance responds to both variances, too",
        convention=(_PAIR_ALONE, lambda: _pairs_alone(sp.Matrix(_theory(2).hessian.S21))),
    ),
    "(126): G12 of two inputs": formula(
        _TWO_INPUTS,
        lambda: _pair_matrix(True),
        lambda: sp.Matrix(_theory(2).propagator.G12),
        "a covariance responds to both variances, too; (k−1) is (l−1)",
        convention=(_PAIR_ALONE, lambda: _pairs_alone(sp.Matrix(_theory(2).propagator.G12))),
    ),
    "(128)–(130): η^(0), η^(1), χ^(1), χ^out of K_12 to K_12": formula(
        f"{_TWO_INPUTS}, fixed variances",
        lambda: _pair_responses(True),
        lambda: _pair_responses(False),
    ),
    "(131): G11": formula(
        _TWO_LAYERS, _variance_of_sum, lambda: sp.Matrix(_theory().propagator.G11)
    ),
    "(136): ∂/∂C_12 of the characteristic function": formula(
        "C_12 and C_21 two variables", lambda: _characteristic(False), lambda: _characteristic(True)
    ),
    "text after (134): whether ⟨f⟩ is finite for f = e^{x²/2}, slower than e^{x²}": formula(
        "C_11 = 2", sp.S.One, lambda: _finite(2), "the condition is slower than e^{x²/(2C)}"
    ),
    "(132), (133): Var K^(2) over Σ_kl G11^kl of the residual kernels": double(
        "φ = erf, L = 3", sp.S.One, lambda point: _ratio_of_variances()
    ),
}

CLAIMS = claims_of(PAPER, _STATEMENTS)
