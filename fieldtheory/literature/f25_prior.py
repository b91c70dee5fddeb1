"""Claims of F25 on the way from the network to its action: section II.1 and appendices A and B.

Averages over weights are those of two neurons, one residual layer, and one or two inputs: the
exponent is linear in each weight w, and ⟨e^{wz}⟩ = e^{σ²z²/2}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.literature.claim import Statements, claims_of
from fieldtheory.literature.evidence import symbolically
from fieldtheory.literature.f25_theory import PAPER
from fieldtheory.theory import notation as sym
from fieldtheory.theory.derivation import Derivation, derive
from fieldtheory.theory.linearised import SCALE

# By neuron and input.
Fields = list[list[sp.Expr]]

_N = 2
_NEURONS = range(_N)
_D_IN = sp.Symbol("d_in", positive=True)
_C, _SIGMA = sp.symbols("C σ", positive=True)
_h, _j, _w, _z = sp.symbols("h j w z", real=True)
_FLIPPED = "C̃ → −C̃, as a Dirac function is even"
_EQUAL = "all neurons equal, as they are after they factorise"


def _fields(name: str, inputs: int, size: int = _N) -> Fields:
    """Symbols by neuron and input."""
    return [[sp.Symbol(f"{name}_{i}{a}", real=True) for a in range(inputs)] for i in range(size)]


def _dot(one: Fields, other: Fields, a: int = 0, b: int = 0) -> sp.Expr:
    return sp.Add(*[u[a] * v[b] for u, v in zip(one, other, strict=True)])


@lru_cache
def _actions(inputs: int) -> tuple[sp.Matrix, sp.Matrix]:
    """S_in, S_net and S_out as (13)–(15) and (85)–(87) print them, and from (9) or (73)."""
    t, h, u, g = (_fields(name, inputs) for name in ("h̃", "h", "h̃'", "h'"))
    f, last, x = (_fields(name, inputs) for name in ("φ", "φ'", "x"))
    v, y = _fields("ỹ", inputs, 1), _fields("y", inputs, 1)
    each = range(inputs)

    def printed(conjugates: Fields, difference: Fields, before: Fields, *sizes: sp.Expr) -> sp.Expr:
        scale, weight, bias, width = sizes
        found = sp.Add(*[_dot(conjugates, difference, a, a) for a in each])
        for a, b in product(each, each):
            quartic = weight**2 / width * _dot(before, before, a, b) + bias**2
            found += scale**2 / 2 * quartic * _dot(conjugates, conjugates, a, b)
        return found

    def averaged(
        conjugates: Fields, difference: Fields, before: Fields, *sizes: sp.Expr
    ) -> sp.Expr:
        scale, weight, bias, width = sizes
        found = sp.Add(*[_dot(conjugates, difference, a, a) for a in each])
        for i in range(len(conjugates)):
            for j in _NEURONS:
                source = sp.Add(*[scale * conjugates[i][a] * before[j][a] for a in each])
                found += weight**2 / width * source**2 / 2
            found += (scale * bias * sp.Add(*conjugates[i])) ** 2 / 2
        return found

    steps = [[u[i][a] for a in each] for i in _NEURONS]
    changes = [[g[i][a] - h[i][a] for a in each] for i in _NEURONS]
    cases = (
        (t, h, x, sp.S.One, sym.READIN_WEIGHT, sym.READIN_BIAS, _D_IN),
        (steps, changes, f, SCALE, sym.WEIGHT, sym.BIAS, sym.WIDTH),
        (v, y, last, sp.S.One, sym.READOUT_WEIGHT, sym.READOUT_BIAS, sym.WIDTH),
    )
    one, other = ([sp.expand(side(*case)) for case in cases] for side in (printed, averaged))
    return sp.Matrix(one), sp.Matrix(other)


def _generating() -> sp.Expr:
    """⟨e^{wz}⟩ of w ~ N(0, σ²), by integration."""
    density = sp.exp(-(_w**2) / (2 * _SIGMA**2)) / sp.sqrt(2 * sp.pi * _SIGMA**2)
    return sp.simplify(sp.integrate(density * sp.exp(_w * _z), (_w, -sp.oo, sp.oo)))


def _fourier() -> sp.Expr:
    """∫ dω/2π exp(iωh − Cω²/2)."""
    phase = sp.exp(sp.I * _w * _h - _C * _w**2 / 2) / (2 * sp.pi)
    return sp.simplify(sp.integrate(phase, (_w, -sp.oo, sp.oo)))


_GAUSSIAN = sp.exp(-(_h**2) / (2 * _C)) / sp.sqrt(2 * sp.pi * _C)


def _normalised() -> sp.Expr:
    """∫ dh dh̃ exp(h̃h + Ch̃²/2 + j̃h̃), over h̃ the Gaussian of h + j̃."""
    return sp.simplify(sp.integrate(_GAUSSIAN.subs(_h, _h + _j), (_h, -sp.oo, sp.oo)))


@lru_cache
def _theory(inputs: int = 1) -> Derivation:
    return derive(1, inputs=inputs)


def _rows(rows: Iterable[sp.Expr]) -> sp.Matrix:
    return sp.Matrix([sp.expand(row) for row in rows])


def _printed_observables(inputs: int, average: bool) -> sp.Matrix:
    """(16)–(18), (88) for one neuron; (25), (101) with their averages."""
    action = _theory(inputs).network_action
    found = [sym.data_kernel(pair, inputs) for pair in sym.pairs(inputs)]
    sizes = ((SCALE**2, sym.WEIGHT, sym.BIAS), (sp.S.One, sym.READOUT_WEIGHT, sym.READOUT_BIAS))
    for layer, (scale, weight, bias) in enumerate(sizes):
        for a, b in sym.pairs(inputs):
            one, other = (sym.signal(layer, sample, inputs) for sample in (a, b))
            square = sym.phi(one) * sym.phi(other)
            if average:
                chosen = [one] if a == b else [one, other]
                places = [action.variables.index(h) for h in chosen]
                K = action.covariance.extract(places, places)
                square = GaussianAverage(square, chosen, K)
            found.append(scale * (weight**2 * square + bias**2))
    return _rows(found)


def _observables(inputs: int) -> sp.Matrix:
    action = _theory(inputs).network_action
    pairs = zip(action.observables, action.relative_widths, strict=True)
    return _rows(g / nu for g, nu in pairs)


def _sum_of_fields(first: int) -> sp.Expr:
    """N Σ ν_l C^(l) C̃^(l) from a layer on."""
    action = _theory().network_action
    fields = zip(action.relative_widths, action.kernels, action.conjugates, strict=True)
    return sym.WIDTH * sp.Add(*[nu * C * t for nu, C, t in list(fields)[first:]])


def _cumulants() -> sp.Expr:
    """W of (22): the conjugate signals are integrated out, which leaves h ~ N(0, K)."""
    action = _theory().network_action
    g = [sym.INPUT_WIDTH * sym.data_kernel(), *_printed_observables(1, False)[1:]]
    exponent = sp.Add(*[c * o for c, o in zip(action.conjugates, g, strict=True)])
    return sp.log(GaussianAverage(sp.exp(exponent), action.variables, action.covariance))


def _signal_variance(factor: sp.Expr) -> sp.Expr:
    """Var h^(0) of the density of h^(0) and h̃^(0) with the exponent factor · (h̃h + C h̃²/2)."""
    t, h = sp.symbols("h̃ h", real=True)
    exponent = factor * (t * h + sym.kernel(0) * t**2 / 2)
    return exponent.diff(t, 2) / exponent.diff(t, h) ** 2


def _by_derivative(sign: int) -> sp.Expr:
    """−∂/∂x of exp(xx̃ + Cx̃²/2), the exponential in (137), over it; with sign · x̃ for x̃."""
    exponential = sp.exp(_h * _w + _C * _w**2 / 2).subs(_w, sign * _w)
    return sp.simplify(-exponential.diff(_h) / exponential)


def _slope_of_exponential(printed: bool) -> sp.Expr:
    """∂⟨e^{jx}⟩/∂C, and the first line of (137) for it, the integral over x̃ = iω done first."""
    f = sp.exp(_j * _h)
    integrand = _fourier() * f.diff(_h, 2) / 2 if printed else _GAUSSIAN * f
    found = sp.simplify(sp.integrate(integrand, (_h, -sp.oo, sp.oo)))
    return found if printed else found.diff(_C)


def _quadratic_form(signals: bool) -> Callable[[], sp.Expr]:
    """Σ f²/C of independent residuals, printed; hᵀ K^(−1) h of signals, derived."""
    action = derive(2).network_action
    kernels, h = action.kernels[:3], sp.Matrix(action.variables[:3])
    if signals:
        K = action.covariance[:3, :3]
        return lambda: sp.simplify((h.T * K.inv() * h)[0])
    steps = [h[0], *(h[l] - h[l - 1] for l in (1, 2))]
    return lambda: sp.Add(*[f**2 / C for f, C in zip(steps, kernels, strict=True)])


def _summed(first: int, own: bool) -> sp.Expr:
    """Var of Σ_k f from k on, with f^(k), or with f^(l) in every term."""
    kernels = derive(2).network_action.kernels[: 2 + 1]
    terms = len(kernels) - first
    return sp.Add(*kernels[first:]) if own else terms**2 * kernels[-1]


def _constraint(printed: bool, sign: int, width: sp.Expr = sym.WIDTH) -> sp.Expr:
    """C̃ times the argument of a Dirac function that fixes width · C, and its expanded form."""
    t, C = sym.conjugate(1), sym.kernel(1)
    square, bias = sp.Symbol("φ·φ", real=True), SCALE**2 * sym.BIAS**2
    if printed:
        source = SCALE**2 * sym.WEIGHT**2 * t * square
        return sign * (-width * t * C + source + width * bias * t)
    return sign * t * (-width * C + SCALE**2 * sym.WEIGHT**2 * square + width * bias)


def _last_line(of_one: bool) -> sp.Expr:
    """Line 3 of (19) for two neurons: N φ_i² of one neuron, and the sum of φ_j² over both."""
    first, second = _fields("φ", 1)
    rest = sym.conjugate(1) * SCALE**2 * sym.WEIGHT**2
    return rest * (_N * first[0] ** 2 if of_one else first[0] ** 2 + second[0] ** 2)


_LEADING = "order 1/N, L = 1, φ(h) = h"


def _shifted() -> sp.Matrix:
    """The limit of ⟨C⟩ − C* for N → ∞, from the one-loop diagrams."""
    shift = derive(1, activation="linear").correction(1, 1).expression
    return sp.Matrix([sp.limit(sp.sympify(entry).doit(), sym.WIDTH, sp.oo) for entry in shift])


_TWO = "L = 1, N = 2"
_FLIP = sym.conjugate(1), -sym.conjugate(1)
_STATEMENTS: Statements = {
    ("(7), (8), (72), (90), (135)", "δ(h) = ∫ dω/2π e^{iωh}, with e^{−Cω²/2}", symbolically): (
        "C → 0, where the Gaussian is δ(h)",
        _GAUSSIAN,
        _fourier,
    ),
    ("(20), (97)", "density of an output given C^(L+1)", symbolically): (
        "every C",
        _GAUSSIAN,
        _fourier,
    ),
    ("(10), (74)–(76)", "⟨e^{wz}⟩ over w ~ N(0, σ²)", symbolically): (
        "every σ and z",
        sp.exp(_SIGMA**2 * _z**2 / 2),
        _generating,
    ),
    ("(11)–(15)", "S_in, S_net and S_out from the average of (9) over the weights", symbolically): (
        f"{_TWO}, one input",
        lambda: _actions(1)[0],
        lambda: _actions(1)[1],
    ),
    (
        "(77)–(87)",
        "S_in, S_net and S_out from the average of (73) over the weights",
        symbolically,
    ): (
        f"{_TWO}, P = 2",
        lambda: _actions(2)[0],
        lambda: _actions(2)[1],
    ),
    ("(16)–(18)", "what C^(l) is the mean of, over neurons", symbolically): (
        "L = 1, one input",
        lambda: _printed_observables(1, False),
        lambda: _observables(1),
    ),
    ("(88)", "what C^(l)_αβ is the mean of, over neurons", symbolically): (
        "L = 1, P = 2",
        lambda: _printed_observables(2, False),
        lambda: _observables(2),
    ),
    ("(19), lines 1 and 2", "exponent of the constraint on C^(l)", symbolically): (
        "every l and N",
        _constraint(True, 1),
        lambda: _constraint(False, 1),
    ),
    ("(19), line 3", "Σ_j φ_j² as N φ_i² of one neuron", symbolically): (
        "N = 2",
        _last_line(True),
        lambda: _last_line(False),
        {"convention": (_EQUAL, lambda: _last_line(False).subs(*map(sum, _fields("φ", 1)[::-1])))},
    ),
    ("(91)–(93)", "exponents of the constraints", symbolically): [
        (
            f"{name}, every N",
            _constraint(True, -1, width),
            lambda width=width: _constraint(False, -1, width),
        )
        for name, width in (("input", sym.WIDTH * sym.INPUT_WIDTH), ("layers", sym.WIDTH))
    ],
    ("(94)", "exponent of the constraint on C^(l), with (92) put in", symbolically): (
        "every l and N",
        _constraint(True, 1),
        lambda: _constraint(False, -1),
        {"convention": (_FLIPPED, lambda: _constraint(False, -1).subs(*_FLIP))},
    ),
    ("(95)", "Σ_j φ_j² as N φ² of one neuron", symbolically): (
        "N = 2",
        _last_line(True),
        lambda: _last_line(False),
        {"convention": (_EQUAL, lambda: _last_line(False).subs(*map(sum, _fields("φ", 1)[::-1])))},
    ),
    ("(21)", "the action", symbolically): (
        "L = 1, every φ",
        lambda: -_sum_of_fields(1) + sym.WIDTH * _cumulants(),
        lambda: _theory().action,
        {"meant": ("the sum from l = 0", lambda: -_sum_of_fields(0) + sym.WIDTH * _cumulants())},
    ),
    ("(98)", "the action", symbolically): (
        "L = 1, every φ",
        lambda: -_sum_of_fields(0) + sym.WIDTH * _cumulants(),
        lambda: _theory().action,
    ),
    ("(99)", "Var h^(0), from the terms in h̃^(0)", symbolically): (
        "every N",
        lambda: _signal_variance(sym.WIDTH),
        lambda: _theory().network_action.covariance[0, 0],
        {"meant": ("no N in these terms, as in (96)", lambda: _signal_variance(sp.S.One))},
    ),
    ("(22)", "W(C̃|C), conjugate signals integrated out", symbolically): (
        "L = 1, every φ",
        _cumulants,
        lambda: (_theory().action + _sum_of_fields(0)) / sym.WIDTH,
    ),
    ("text after (23)", "⟨C⟩ − C* for N → ∞", symbolically): (
        _LEADING,
        sp.zeros(3, 1),
        _shifted,
    ),
    ("(25), (29)", "C*^(l)", symbolically): (
        "L = 1, every φ",
        lambda: _printed_observables(1, True),
        lambda: _rows(_theory().saddle_point.kernels.values()),
    ),
    ("(101), (108)", "C*^(l)_αβ", symbolically): (
        "L = 1, P = 2, every φ",
        lambda: _printed_observables(2, True),
        lambda: _rows(_theory(2).saddle_point.kernels.values()),
    ),
    ("(26), (102)", "C̃* = 0, where ∂S/∂C vanishes", symbolically): [
        (
            f"L = 1, P = {inputs}, every φ",
            sp.zeros(3 * len(sym.pairs(inputs)), 1),
            lambda inputs=inputs: sp.Matrix(
                [
                    _theory(inputs).network_action.derivative((), (j,))
                    for j in range(3 * len(sym.pairs(inputs)))
                ]
            ),
        )
        for inputs in (1, 2)
    ],
    (
        "(27), (28), (103), (107)",
        "minus twice the exponent of the signals' density",
        symbolically,
    ): (
        "L = 2, residuals f^(l) = h^(l) − h^(l−1) independent",
        _quadratic_form(False),
        _quadratic_form(True),
    ),
    ("(30)", "K^(l) = Σ_{k<=l} C*^(k), and of the output", symbolically): (
        "L = 1, every φ",
        lambda: sp.Matrix(
            [sym.kernel(0), sym.kernel(0) + sym.kernel(1), _printed_observables(1, True)[2]]
        ),
        lambda: sp.Matrix(
            [
                *_theory().network_action.covariance.diagonal(),
                sp.expand([*_theory().saddle_point.kernels.values()][2]),
            ]
        ),
    ),
    ("text before (108)", "Var h^(2) of h^(2) = Σ_{k=1}^2 f^(2)", symbolically): (
        "l = 2",
        lambda: _summed(1, own=False),
        lambda: derive(2).network_action.covariance[2, 2],
        {"meant": ("Σ_{k=0}^l f^(k)", lambda: _summed(0, own=True))},
    ),
    ("(106)", "Z[0, j̃], the normalisation", symbolically): ("every j̃ and C", sp.S.One, _normalised),
    ("(137), first line", "x̃ as −∂/∂x of the exponential, over it", symbolically): (
        "one variable, every x and C",
        _w,
        lambda: _by_derivative(1),
        "the sign of xx̃ is not that of (135) and (136); the integral is the same",
        {"convention": ("x̃ → −x̃", lambda: _by_derivative(-1))},
    ),
    ("(137), first line", "∂⟨f⟩/∂C as the integral over x and x̃", symbolically): (
        "one variable, f = e^{jx}, every j and C",
        lambda: _slope_of_exponential(True),
        lambda: _slope_of_exponential(False),
    ),
}
CLAIMS = claims_of(PAPER, _STATEMENTS)
