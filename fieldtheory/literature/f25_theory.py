"""Claims of F25 on the action, the Hessian, the propagators and Price's theorem.

Matrices are those of two residual layers, L = 2, of one input, or of L = 1 and two inputs, with one
ρ, γ = 1 and φ left open; [k,l] counts their rows and columns from the input, 0, to the output.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.literature.checks import COVARIANCE, VARIANCE_X, VARIANCE_Y, density_score, x, y
from fieldtheory.literature.claim import claims_of, formula, interval, number
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.theory import notation as sym
from fieldtheory.theory.derivation import derive
from fieldtheory.theory.linearised import SCALE

theory = lru_cache(derive)
_EVERY_ROW = "L = 2, every row"
OUT = sym.READOUT_WEIGHT
READOUT = "the readout row has σ_w,out² for σ_w²"


def _strength(layer: int, inputs: int, readout: sp.Symbol) -> sp.Expr:
    """ρ²σ_w² for residual layers, and for the readout the square of what a formula has there."""
    return (SCALE * sym.WEIGHT) ** 2 if layer <= 3 - inputs else readout**2


def gain(layer: int, pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Expr:
    """⟨φ'_α φ'_β + δ_αβ φ''_α φ_β⟩ at K^(layer)."""
    action = theory(3 - inputs, inputs=inputs).network_action
    one, other = (sym.signal(layer, sample, inputs) for sample in pair)
    F = sym.phi(one).diff(one) * sym.phi(other).diff(other)
    if one == other:
        F += sym.phi(one).diff(one, 2) * sym.phi(one)
    return GaussianAverage(F, action.variables, action.covariance)


def printed_source(readout: sp.Symbol = sym.WEIGHT) -> sp.Matrix:
    """Eq. (39)."""
    action, source = theory(2).network_action, sp.zeros(4)
    for k, l in product(range(1, 4), repeat=2):
        squares = [sym.phi(sym.signal(layer - 1)) ** 2 for layer in (k, l)]
        correlator = ConnectedCorrelator(*squares, action.variables, action.covariance)
        source[k, l] = sym.WIDTH * _strength(k, 1, readout) * _strength(l, 1, readout) * correlator
    return source


def printed_matrix(response: bool, inputs: int = 1, readout: sp.Symbol = sym.WEIGHT) -> sp.Matrix:
    """Eqs. (41), (115), or (49), (126): (αβ) of a layer responds to (αβ) of layers before."""
    pairs, layers = sym.pairs(inputs), range(5 - inputs)
    size = len(pairs)
    matrix = sp.zeros(size * len(layers))
    for (p, pair), k, l in product(enumerate(pairs), layers, layers):
        row, column = k * size + p, l * size + p
        # ν_0 = d_in/N and ν_l = 1 for l > 0, as the text before (20) sets.
        nu = sym.INPUT_WIDTH if l == 0 else sp.S.One
        step = _strength(k, inputs, readout) * gain(k - 1, pair, inputs) if k else 0
        if response:
            history = sp.Add(*matrix[p:row:size, column])
            matrix[row, column] = sp.Integer(k == l) / (sym.WIDTH * nu) + step * history
        elif k >= l:
            matrix[row, column] = sym.WIDTH * (step if k > l else -nu)
    return matrix


def _input_response() -> sp.Expr:
    """η^(0) = N G12^(00), its definition (50)."""
    return sym.WIDTH * theory(2).propagator.G12[0, 0]


def _kernel_variance(layer: int) -> sp.Expr:
    """Var K^(layer) to order 1/N, from the derivatives of K^(layer) by the C^(k)."""
    action = theory(2).network_action
    slopes = sp.Matrix([action.covariance[layer, layer].diff(C) for C in action.kernels])
    return (slopes.T * theory(2).propagator.G11 * slopes)[0]


def _share_of_layers() -> dict[str, float]:
    """Σ_k Var C^(k) over Var K^(L), to order 1/N."""
    shares = {}
    for depth, rho in product((10, 20), (1.0, 0.3)):
        solution = solve(ResidualNetwork(depth=depth, branch_scale=rho), 0.05)
        layers = np.trace(solution.G11[:-1, :-1])
        shares[f"L = {depth}, ρ = {rho:g}"] = float(layers / solution.kernel_variance[depth])
    return shares


def _printed_data_action(factor: sp.Expr = sym.WIDTH) -> sp.Expr:
    """Terms of eqs. (98) and (99) in C̃^(0), with K_data = σ²_w,in/d_in x·x + σ²_b,in."""
    C, conjugate, data = sym.kernel(0), sym.conjugate(0), sym.data_kernel()
    return sym.WIDTH * sym.INPUT_WIDTH * conjugate * (factor * data - C)


def _price(size: int, by_density: bool = False) -> sp.Expr:
    """⟨∂_k ∂_l f⟩, or ∂⟨f⟩/∂K_kl from the derivative of the Gaussian density, φ = erf."""
    variables = (x, y)[:size]
    f = sp.erf(x) * sp.erf(variables[-1])
    K = [row[:size] for row in ([VARIANCE_X, COVARIANCE], [COVARIANCE, VARIANCE_Y])[:size]]
    F = f * density_score(size) if by_density else sp.diff(f, x, variables[-1])
    return GaussianAverage(F, variables, K)


def _slope(*_: Any, size: int = 1) -> sp.Expr:
    """∂⟨f⟩/∂K_kl."""
    return _price(size, by_density=True)


_CURVATURE, _MEANT = _price(1), ("the factor 1/2 of (137)", _price(1) / 2)

_STATEMENTS = {
    "(39): S22, the fluctuations of the conjugate fields": formula(
        _EVERY_ROW,
        printed_source,
        lambda: theory(2).hessian.S22,
        meant=(READOUT, lambda: printed_source(OUT)),
    ),
    "(41): S21, the derivative by C and C̃": formula(
        _EVERY_ROW,
        lambda: printed_matrix(False),
        lambda: theory(2).hessian.S21,
        meant=(READOUT, lambda: printed_matrix(False, readout=OUT)),
    ),
    "(42): ∂⟨φ²⟩/∂K, Price's theorem for one variable": number(
        "φ = erf, K = 7/10", _CURVATURE, _slope, meant=_MEANT
    ),
    "(49): G12, the response": formula(
        _EVERY_ROW,
        lambda: printed_matrix(True),
        lambda: theory(2).propagator.G12,
        meant=(READOUT, lambda: printed_matrix(True, readout=OUT)),
    ),
    "text after (51): η^(0) = N/d_in, of the definition (50)": formula(
        "d_in = ν_0 N", 1 / sym.INPUT_WIDTH, _input_response
    ),
    "(57): η^(0) as the derivative ∂C^(0)/∂K^(0) = 1": formula(
        "d_in = ν_0 N",
        sp.S.One,
        _input_response,
        "the definition (50) gives N/d_in; the package reports derivatives, as (57) does",
        convention=("d_in = N", lambda: _input_response().subs(sym.INPUT_WIDTH, 1)),
    ),
    "(96), (99): terms of the action in C̃^(0)": formula(
        "L = 2",
        _printed_data_action,
        lambda: sp.expand(
            sp.expand_log(
                theory(2).action.subs({sym.conjugate(l): 0 for l in (1, 2, 3)}).doit(), force=True
            )
        ),
        meant=("the term of the data over N", lambda: _printed_data_action(sp.S.One)),
    ),
    "(109): K^(2) = K^(1) + C^(1)": formula(
        "l = 2",
        lambda: theory(2).network_action.covariance[1, 1] + sym.kernel(1),
        lambda: theory(2).network_action.covariance[2, 2],
        meant=(
            "K^(l) = K^(l-1) + C^(l)",
            lambda: theory(2).network_action.covariance[1, 1] + sym.kernel(2),
        ),
    ),
    "(116): ∂⟨φφ⟩/∂K_αβ, Price's theorem for a pair": number(
        "α ≠ β, K_αβ = K_βα one variable, φ = erf", _price(2), partial(_slope, size=2)
    ),
    "(116): ∂⟨φφ⟩/∂K_αα, Price's theorem for a variance": number(
        "α = β, φ = erf", _CURVATURE, _slope, meant=_MEANT
    ),
    "text after (133): Var K^(l) as the sum of Var C^(k) alone": [
        formula(
            "l = 1",
            lambda: theory(2).propagator.G11[:2, :2].trace(),
            lambda: _kernel_variance(1),
        ),
        formula(
            "l = 2",
            lambda: theory(2).propagator.G11[:3, :3].trace(),
            lambda: _kernel_variance(2),
            "the C^(k) are correlated: it is the sum of G11^(km) over all pairs of layers",
        ),
        interval(
            "L = 10 and 20, ρ = 1 and 0.3, the network of Fig. 4, its ratio to Var K^(L)",
            (0.99, 1.01),
            _share_of_layers,
            "Var K^(L) is 3.9 to 12 times the sum",
        ),
    ],
    "(137): ∂⟨f⟩/∂C_kk, Price's theorem": number("k = l, f = erf²", _MEANT[1], _slope),
    "(137): ∂⟨f⟩/∂C_kl, Price's theorem": number(
        "k ≠ l, C_kl and C_lk two variables, f = erf erf",
        _price(2) / 2,
        # Half of the derivative by the pair belongs to either.
        lambda *_: _price(2, by_density=True) / 2,
    ),
}

CLAIMS = claims_of("F25", _STATEMENTS)
