"""Claims of F25 on the way from the network to its action: section II.1 and appendices A and B.

Averages over weights are those of two neurons, one residual layer, and one or two inputs: the
exponent is linear in each weight w, and ⟨e^{wz}⟩ = e^{σ²z²/2}.
"""

from __future__ import annotations

from itertools import product

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.literature.claim import claims_of, formula
from fieldtheory.literature.f25_theory import theory
from fieldtheory.theory import notation as sym
from fieldtheory.theory.linearised import SCALE

_D_IN = sp.Symbol("d_in", positive=True)
_C, _SIGMA = sp.symbols("C σ", positive=True)
_h, _j, _w, _x, _z, _dual = sp.symbols("h j w x z x̃", real=True)
_FLIPPED = "C̃ → −C̃, as a Dirac function is even"
_EQUAL = "all neurons equal, as they are after they factorise"


def _fields(name: str, inputs: int, size: int = 2) -> sp.Matrix:
    """Symbols by neuron and input."""
    return sp.Matrix(size, inputs, lambda i, a: sp.Symbol(f"{name}_{i}{a}", real=True))


def _actions(inputs: int, printed: bool) -> sp.Matrix:
    """S_in, S_net and S_out as (13)–(15) and (85)–(87) print them, or from (9) or (73)."""
    t, h, u, g, f, last, x = (_fields(s, inputs) for s in ("h̃", "h", "h̃'", "h'", "φ", "φ'", "x"))
    v, y, actions = _fields("ỹ", inputs, 1), _fields("y", inputs, 1), []
    for conjugate, change, before, scale, weight, bias, width in (
        (t, h, x, sp.S.One, sym.READIN_WEIGHT, sym.READIN_BIAS, _D_IN),
        (u, g - h, f, SCALE, sym.WEIGHT, sym.BIAS, sym.WIDTH),
        (v, y, last, sp.S.One, sym.READOUT_WEIGHT, sym.READOUT_BIAS, sym.WIDTH),
    ):
        if printed:
            K = weight**2 / width * before.T * before + bias**2 * sp.ones(inputs)
            products = sp.hadamard_product(K, conjugate.T * conjugate).doit()
        else:
            # What multiplies W_ij and b_i.
            of_weights, of_biases = conjugate * before.T, conjugate * sp.ones(inputs, 1)
            products = [e**2 * weight**2 / width for e in of_weights]
            products += [e**2 * bias**2 for e in of_biases]
        actions.append((conjugate.T * change).trace() + scale**2 / 2 * sp.Add(*products))
    return sp.Matrix(actions).expand()


def _generating() -> sp.Expr:
    """⟨e^{wz}⟩ of w ~ N(0, σ²), by integration."""
    density = sp.exp(-(_w**2) / (2 * _SIGMA**2)) / sp.sqrt(2 * sp.pi * _SIGMA**2)
    return sp.simplify(sp.integrate(density * sp.exp(_w * _z), (_w, -sp.oo, sp.oo)))


def _fourier() -> sp.Expr:
    """∫ dω/2π exp(iωh − Cω²/2)."""
    phase = sp.exp(sp.I * _w * _h - _C * _w**2 / 2) / (2 * sp.pi)
    return sp.simplify(sp.integrate(phase, (_w, -sp.oo, sp.oo)))


_GAUSSIAN = sp.exp(-(_h**2) / (2 * _C)) / sp.sqrt(2 * sp.pi * _C)


def _printed_observables(inputs: int, average: bool) -> sp.Matrix:
    """(16)–(18), (88) for one neuron; (25), (101) with their averages."""
    action = theory(1, inputs=inputs).network_action
    observables = [sym.data_kernel(pair, inputs) for pair in sym.pairs(inputs)]
    sizes = ((SCALE**2, sym.WEIGHT, sym.BIAS), (sp.S.One, sym.READOUT_WEIGHT, sym.READOUT_BIAS))
    for (layer, (scale, weight, bias)), pair in product(enumerate(sizes), sym.pairs(inputs)):
        square = sp.Mul(*[sym.phi(sym.signal(layer, sample, inputs)) for sample in pair])
        if average:
            square = GaussianAverage(square, action.variables, action.covariance)
        observables.append(scale * (weight**2 * square + bias**2))
    return sp.Matrix(observables).expand()


def _observables(inputs: int) -> sp.Matrix:
    action = theory(1, inputs=inputs).network_action
    pairs = zip(action.observables, action.relative_widths, strict=True)
    return sp.Matrix([g / nu for g, nu in pairs]).expand()


def _saddle(inputs: int) -> sp.Matrix:
    return sp.Matrix([*theory(1, inputs=inputs).saddle_point.kernels.values()]).expand()


def _cumulants() -> sp.Expr:
    """W of (22): the conjugate signals are integrated out, which leaves h ~ N(0, K)."""
    action = theory(1).network_action
    g = [sym.INPUT_WIDTH * sym.data_kernel(), *_printed_observables(1, False)[1:]]
    exponent = sp.Add(*[c * o for c, o in zip(action.conjugates, g, strict=True)])
    return sp.log(GaussianAverage(sp.exp(exponent), action.variables, action.covariance))


def _fields_of_action(first: int) -> sp.Expr:
    """−N Σ ν_l C^(l) C̃^(l) from a layer on."""
    terms = [sym.kernel(l) * sym.conjugate(l) for l in range(3)]
    return -sym.WIDTH * sp.Add(*[sym.INPUT_WIDTH * terms[0], *terms[1:]][first:])


def _signal_variance(factor: sp.Expr) -> sp.Expr:
    """Var h^(0) of the density of h^(0) and h̃^(0) with the exponent factor · (h̃h + C h̃²/2)."""
    t, h = sp.symbols("h̃ h", real=True)
    exponent = factor * (t * h + sym.kernel(0) * t**2 / 2)
    return exponent.diff(t, 2) / exponent.diff(t, h) ** 2


def _by_derivative(sign: int) -> sp.Expr:
    """−∂/∂x of exp(xx̃ + Cx̃²/2), the exponential in (137), over it; with sign · x̃ for x̃."""
    exponential = sp.exp(_x * _dual + _C * _dual**2 / 2).subs(_dual, sign * _dual)
    return sp.simplify(-exponential.diff(_x) / exponential)


def _slope_of_exponential(printed: bool) -> sp.Expr:
    """∂⟨e^{jx}⟩/∂C, and the first line of (137) for it, the integral over x̃ = iω done first."""
    f = sp.exp(_j * _h)
    integrand = _fourier() * f.diff(_h, 2) / 2 if printed else _GAUSSIAN * f
    average = sp.simplify(sp.integrate(integrand, (_h, -sp.oo, sp.oo)))
    return average if printed else average.diff(_C)


def _quadratic_form(printed: bool) -> sp.Expr:
    """Σ f²/C of independent residuals, or hᵀ K^(−1) h of signals."""
    action = theory(2).network_action
    h = sp.Matrix(action.variables[:3])
    if not printed:
        return sp.simplify((h.T * action.covariance[:3, :3].inv() * h)[0])
    steps = h[0], h[1] - h[0], h[2] - h[1]
    return sp.Add(*[f**2 / C for f, C in zip(steps, action.kernels[:3], strict=True)])


SQUARES, _BIAS = sp.Symbol("φ·φ", real=True), SCALE**2 * sym.BIAS**2


def _printed_constraint(sign: int, width: sp.Expr = sym.WIDTH) -> sp.Expr:
    """The exponent of a Dirac function that fixes width · C."""
    t, source = sym.conjugate(1), SCALE**2 * sym.WEIGHT**2 * sym.conjugate(1) * SQUARES
    return sign * (-width * t * sym.kernel(1) + source + width * _BIAS * t)


def constraint(sign: int, width: sp.Expr = sym.WIDTH) -> sp.Expr:
    """C̃ times the argument of that function."""
    argument = SCALE**2 * sym.WEIGHT**2 * SQUARES + width * _BIAS - width * sym.kernel(1)
    return sign * sym.conjugate(1) * argument


def _shifted() -> sp.Matrix:
    """The limit of ⟨C⟩ − C* for N → ∞, from the one-loop diagrams."""
    shift = theory(1, activation="linear").correction(1, 1).expression
    return sp.Matrix([sp.limit(sp.sympify(entry).doit(), sym.WIDTH, sp.oo) for entry in shift])


def _forces(inputs: int) -> sp.Matrix:
    """∂S/∂C at C̃ = 0."""
    action = theory(1, inputs=inputs).network_action
    return sp.Matrix([action.derivative((), (j,)) for j in range(len(action.kernels))])


# Line 3 of (19) for two neurons: N φ_i² of one neuron, and the sum of φ_j² over both.
_ONE, _OTHER = _fields("φ", 1)
_WEIGHT = sym.conjugate(1) * SCALE**2 * sym.WEIGHT**2
_LAST_LINE = formula(
    "N = 2",
    2 * _WEIGHT * _ONE**2,
    lambda: _WEIGHT * (_ONE**2 + _OTHER**2),
    convention=(_EQUAL, lambda: (_WEIGHT * (_ONE**2 + _OTHER**2)).subs(_OTHER, _ONE)),
)
_TWO = "L = 1, N = 2"
_FLIP = sym.conjugate(1), -sym.conjugate(1)
_STATEMENTS = {
    "(7), (8), (72), (90), (135): δ(h) = ∫ dω/2π e^{iωh}, with e^{−Cω²/2}": formula(
        "C → 0, where the Gaussian is δ(h)", _GAUSSIAN, _fourier
    ),
    "(20), (97): density of an output given C^(L+1)": formula("every C", _GAUSSIAN, _fourier),
    "(10), (74)–(76): ⟨e^{wz}⟩ over w ~ N(0, σ²)": formula(
        "every σ and z", sp.exp(_SIGMA**2 * _z**2 / 2), _generating
    ),
    "(11)–(15): S_in, S_net and S_out from the average of (9) over the weights": formula(
        f"{_TWO}, one input", lambda: _actions(1, True), lambda: _actions(1, False)
    ),
    "(77)–(87): S_in, S_net and S_out from the average of (73) over the weights": formula(
        f"{_TWO}, P = 2", lambda: _actions(2, True), lambda: _actions(2, False)
    ),
    "(16)–(18): what C^(l) is the mean of, over neurons": formula(
        "L = 1, one input", lambda: _printed_observables(1, False), lambda: _observables(1)
    ),
    "(88): what C^(l)_αβ is the mean of, over neurons": formula(
        "L = 1, P = 2", lambda: _printed_observables(2, False), lambda: _observables(2)
    ),
    "(19), lines 1 and 2: exponent of the constraint on C^(l)": formula(
        "every l and N", _printed_constraint(1), lambda: constraint(1)
    ),
    "(19), line 3: Σ_j φ_j² as N φ_i² of one neuron": _LAST_LINE,
    "(91)–(93): exponents of the constraints": [
        formula(
            f"{name}, every N",
            _printed_constraint(-1, width),
            lambda width=width: constraint(-1, width),
        )
        for name, width in (("input", sym.WIDTH * sym.INPUT_WIDTH), ("layers", sym.WIDTH))
    ],
    "(94): exponent of the constraint on C^(l), with (92) put in": formula(
        "every l and N",
        _printed_constraint(1),
        lambda: constraint(-1),
        convention=(_FLIPPED, lambda: constraint(-1).subs(*_FLIP)),
    ),
    "(95): Σ_j φ_j² as N φ² of one neuron": _LAST_LINE,
    "(21): the action": formula(
        "L = 1, every φ",
        lambda: _fields_of_action(1) + sym.WIDTH * _cumulants(),
        lambda: theory(1).action,
        meant=("the sum from l = 0", lambda: _fields_of_action(0) + sym.WIDTH * _cumulants()),
    ),
    "(98): the action": formula(
        "L = 1, every φ",
        lambda: _fields_of_action(0) + sym.WIDTH * _cumulants(),
        lambda: theory(1).action,
    ),
    "(99): Var h^(0), from the terms in h̃^(0)": formula(
        "every N",
        lambda: _signal_variance(sym.WIDTH),
        lambda: theory(1).network_action.covariance[0, 0],
        meant=("no N in these terms, as in (96)", lambda: _signal_variance(sp.S.One)),
    ),
    "(22): W(C̃|C), conjugate signals integrated out": formula(
        "L = 1, every φ", _cumulants, lambda: (theory(1).action - _fields_of_action(0)) / sym.WIDTH
    ),
    "text after (23): ⟨C⟩ − C* for N → ∞": formula(
        "order 1/N, L = 1, φ(h) = h", sp.zeros(3, 1), _shifted
    ),
    "(25), (29): C*^(l)": formula(
        "L = 1, every φ",
        lambda: _printed_observables(1, True),
        lambda: _saddle(1),
    ),
    "(101), (108): C*^(l)_αβ": formula(
        "L = 1, P = 2, every φ",
        lambda: _printed_observables(2, True),
        lambda: _saddle(2),
    ),
    "(26), (102): C̃* = 0, where ∂S/∂C vanishes": [
        formula("L = 1, P = 1, every φ", sp.zeros(3, 1), lambda: _forces(1)),
        formula("L = 1, P = 2, every φ", sp.zeros(9, 1), lambda: _forces(2)),
    ],
    "(27), (28), (103), (107): minus twice the exponent of the signals' density": formula(
        "L = 2, residuals f^(l) = h^(l) − h^(l−1) independent",
        lambda: _quadratic_form(True),
        lambda: _quadratic_form(False),
    ),
    "(30): K^(l) = Σ_{k<=l} C*^(k), and of the output": formula(
        "L = 1, every φ",
        lambda: sp.Matrix(
            [sym.kernel(0), sym.kernel(0) + sym.kernel(1), _printed_observables(1, True)[2]]
        ),
        lambda: sp.Matrix([*theory(1).network_action.covariance.diagonal(), _saddle(1)[2]]),
    ),
    "text before (108): Var h^(2) of h^(2) = Σ_{k=1}^2 f^(2)": formula(
        "l = 2",
        2**2 * sym.kernel(2),
        lambda: theory(2).network_action.covariance[2, 2],
        meant=("Σ_{k=0}^l f^(k)", sp.Add(*map(sym.kernel, range(3)))),
    ),
    "(106): Z[0, j̃], the normalisation": formula(
        "every j̃ and C",
        sp.S.One,
        # Over h̃ the Gaussian of h + j̃ is left.
        lambda: sp.simplify(sp.integrate(_GAUSSIAN.subs(_h, _h + _j), (_h, -sp.oo, sp.oo))),
    ),
    "(137), first line: x̃ as −∂/∂x of the exponential, over it": formula(
        "one variable, every x and C",
        _dual,
        lambda: _by_derivative(1),
        "the sign of xx̃ is not that of (135) and (136); the integral is the same",
        convention=("x̃ → −x̃", lambda: _by_derivative(-1)),
    ),
    "(137), first line: ∂⟨f⟩/∂C as the integral over x and x̃": formula(
        "one variable, f = e^{jx}, every j and C",
        lambda: _slope_of_exponential(True),
        lambda: _slope_of_exponential(False),
    ),
}
CLAIMS = claims_of("F25", _STATEMENTS)
