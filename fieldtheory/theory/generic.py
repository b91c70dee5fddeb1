"""The theory for symbolic layers l, k, m: the formulas of F25 as they hold.

Each formula is a function of layer indices. With symbols it is what the papers print; with
integers, `explicit` turns it into the symbols of a derivation of given depth, so that the two can
be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action
from fieldtheory.theory.latex import latex
from fieldtheory.theory.notation import DEPTH

l, k, m, n, j = sp.symbols("l k m n j", integer=True, nonnegative=True)


class LayerQuantity(sp.Function):
    """A quantity with layer indices, printed with them as the papers do."""

    template = ""

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        indices = [printer._print(a) for a in self.args]
        text = self.template.format(*indices)
        if exp is None:
            return text
        return rf"\left[{text}\right]^{{{exp}}}" if "^" in text else f"{text}^{{{exp}}}"


class C(LayerQuantity):
    """The residual kernel C^(l)."""

    template = "C^{{({0})}}"
    is_positive = True


class K(LayerQuantity):
    """K^(l), or the covariance K^(k,l) of the signals of two layers."""

    is_real = True

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        indices = ",".join(printer._print(a) for a in self.args)
        return rf"\left[K^{{({indices})}}\right]^{{{exp}}}" if exp else f"K^{{({indices})}}"


class A(LayerQuantity):
    """The skip matrix A_lm = γ_{m+1} ... γ_l."""

    template = "A_{{{0}, {1}}}"
    is_real = True


class Earlier(LayerQuantity):
    """1 if the first layer comes before the second, else 0."""

    template = r"\mathbb{{1}}_{{{0} < {1}}}"

    @classmethod
    def eval(cls, first: sp.Expr, second: sp.Expr) -> sp.Expr | None:
        if first.is_Integer and second.is_Integer:
            return sp.Integer(int(first) < int(second))
        return None


class Weight(LayerQuantity):
    """a_l = ρ_l² σ²_w, or σ²_w,out for the readout."""

    template = "a_{{{0}}}"


class Bias(LayerQuantity):
    """c_l = ρ_l² σ²_b, or σ²_b,out for the readout."""

    template = "c_{{{0}}}"


class RelativeWidth(LayerQuantity):
    """ν_l."""

    template = r"\nu_{{{0}}}"


class SkipScale(LayerQuantity):
    """γ_l."""

    template = r"\gamma_{{{0}}}"


class G12(LayerQuantity):
    """The response propagator."""

    template = r"\mathcal{{G}}_{{12}}^{{{0} {1}}}"


class S22(LayerQuantity):
    """The source of fluctuations."""

    template = r"\mathcal{{S}}_{{22}}^{{{0} {1}}}"


def residual_kernel(l: Any) -> sp.Expr:
    """C*^(l) for l >= 1 (F25 eq. (29), and (25) for the readout, both with ν_l = 1)."""
    h = sym.signal(l - 1)
    average = GaussianAverage(sym.phi(h) ** 2, h, K(l - 1))
    return (Weight(l) * average + Bias(l)) / RelativeWidth(l)


def kernel(l: Any) -> sp.Expr:
    """K^(l) = Σ_m A_lm² C^(m) for l <= L (F25 eq. (30) for γ = 1)."""
    return sp.Sum(A(l, m) ** 2 * C(m), (m, 0, l))


def susceptibility(l: Any) -> sp.Expr:
    """⟨φ'² + φφ''⟩ at the kernel K^(l)."""
    variance = sp.Symbol("K", positive=True)
    h = sym.signal(l)
    slope = GaussianAverage(sym.phi(h) ** 2, h, variance).diff(variance)
    return slope.xreplace({variance: K(l)})


def mixed_block(k: Any, l: Any) -> sp.Expr:
    """S21[k,l] for k >= 1 (F25 eq. (41), with a_{L+1} = σ²_w,out)."""
    coupling = Weight(k) * susceptibility(k - 1) * A(k - 1, l) ** 2 * Earlier(l, k)
    return sym.WIDTH * (coupling - RelativeWidth(k) * sp.KroneckerDelta(k, l))


def source_block(k: Any, l: Any) -> sp.Expr:
    """S22[k,l] for k, l >= 1 (F25 eq. (39), with a_{L+1} = σ²_w,out)."""
    first, second = sym.signal(k - 1), sym.signal(l - 1)
    F, G = sym.phi(first) ** 2, sym.phi(second) ** 2
    if first == second:
        correlator = ConnectedCorrelator(F, G, first, K(k - 1))
    else:
        covariance = [[K(k - 1), K(k - 1, l - 1)], [K(k - 1, l - 1), K(l - 1)]]
        correlator = ConnectedCorrelator(F, G, (first, second), covariance)
    return sym.WIDTH * Weight(k) * Weight(l) * correlator


def response_recursion(l: Any, m: Any) -> sp.Expr:
    """G12[l,m] for l >= 1 from earlier layers (F25 eq. (49); ν_l divides the second term too)."""
    history = sp.Sum(A(l - 1, k) ** 2 * G12(k, m), (k, m, l - 1))
    source = sp.KroneckerDelta(l, m) / sym.WIDTH
    return (source + Weight(l) * susceptibility(l - 1) * history) / RelativeWidth(l)


def response_product(l: Any, m: Any) -> sp.Expr:
    """G12[l,m] for l > m, a running product over the layers between."""

    def growth(j: Any) -> sp.Expr:
        return SkipScale(j) ** 2 + Weight(j) * susceptibility(j - 1) / RelativeWidth(j)

    if isinstance(l, int) and isinstance(m, int):
        factors = sp.Mul(*[growth(i) for i in range(m + 1, l)])
    else:
        factors = sp.Product(growth(j), (j, m + 1, l - 1))
    norm = sym.WIDTH * RelativeWidth(l) * RelativeWidth(m)
    return Weight(l) * susceptibility(l - 1) * factors / norm


def kernel_propagator(l: Any, m: Any) -> sp.Expr:
    """G11[l,m] = Σ_kn G12[l,k] S22[k,n] G12[m,n] (F25 eq. (131))."""
    return sp.Sum(G12(l, k) * S22(k, n) * G12(m, n), (k, 1, l), (n, 1, m))


def layer_formulas() -> dict[str, str]:
    """LaTeX of the theory of the residual network for symbolic layers.

    Returns
    -------
    dict of str
        Equations by name: "weights", "kernel", "saddle_point", "S21", "S22", "G12",
        "G12_product", "G11", "response", "output_response".

    Examples
    --------
    >>> print(layer_formulas()["kernel"])
    K^{(l)} = \\sum_{m=0}^{l} A_{l, m}^{2} C^{(m)}
    """
    chi, out = r"\chi^{{({})}}", r"\chi^{\mathrm{out}}"
    gain = latex(Weight(l) * susceptibility(l - 1))
    last = latex(sym.READOUT_WEIGHT**2 * susceptibility(DEPTH))
    skip = r"A_{l, m} = \prod_{j=m+1}^{l} \gamma_{j}"
    weights = _cases("a_{l}", sym.WEIGHT, sym.READOUT_WEIGHT)
    biases = _cases("c_{l}", sym.BIAS, sym.READOUT_BIAS)
    return {
        "weights": rf"{weights}, \qquad {biases}, \qquad {skip}",
        "saddle_point": rf"C^{{(l)}}_* = {latex(residual_kernel(l))}, "
        r"\qquad \tilde{C}^{(l)}_* = 0",
        "kernel": rf"K^{{(l)}} = {latex(kernel(l))}",
        "S21": rf"\mathcal{{S}}_{{21}}^{{k l}} = {latex(mixed_block(k, l))}",
        "S22": rf"\mathcal{{S}}_{{22}}^{{k l}} = {latex(source_block(k, l))}",
        "G12": rf"{latex(G12(l, m))} = {latex(response_recursion(l, m))}",
        "G12_product": rf"{latex(G12(l, m))} = {latex(response_product(l, m))} \quad (l > m)",
        "G11": rf"\mathcal{{G}}_{{11}}^{{l m}} = {latex(kernel_propagator(l, m))}",
        "response": rf"{chi.format('l')} = \left(\gamma_{{l}}^{{2}} + {gain}\right) "
        rf"{chi.format('l-1')}, \qquad {chi.format('0')} = 1",
        "output_response": rf"{out} = {last} {chi.format('L')}",
    }


def _cases(name: str, hidden: sp.Symbol, readout: sp.Symbol) -> str:
    first, last = latex(sp.Symbol(r"\rho_{l}") ** 2 * hidden**2), latex(readout**2)
    rows = rf"{first} & 1 \leq l \leq L \\ {last} & l = L + 1"
    return rf"{name} = \begin{{cases}} {rows} \end{{cases}}"


def explicit(formula: sp.Expr, action: Action, depth: int) -> sp.Expr:
    """A formula at integer layers in the symbols of an explicit derivation.

    Parameters
    ----------
    formula : sympy.Expr
        A function of this module, called with integers.
    action : Action
        Of the residual network, one input, symbolic scales.
    depth : int
        Its depth L.

    Returns
    -------
    sympy.Expr
    """
    formula = formula.doit()
    covariance = action.covariance
    skip = {
        (row, column): sp.Mul(*[sym.skip_scale(i) for i in range(column + 1, row + 1)])
        for row in range(depth + 1)
        for column in range(row + 1)
    }

    def scaled(layer: int, hidden: sp.Expr, readout: sp.Expr) -> sp.Expr:
        return readout**2 if layer == depth + 1 else sym.branch_scale(layer) ** 2 * hidden**2

    rules: dict[Any, Callable[..., sp.Expr]] = {
        C: lambda i: sym.kernel(i),
        K: lambda i, j=None: covariance[i, i if j is None else j],
        A: lambda i, j: skip.get((i, j), sp.S.Zero),
        Weight: lambda i: scaled(i, sym.WEIGHT, sym.READOUT_WEIGHT),
        Bias: lambda i: scaled(i, sym.BIAS, sym.READOUT_BIAS),
        RelativeWidth: lambda i: sym.relative_width(i),
        SkipScale: lambda i: sym.skip_scale(i),
    }
    values = {
        quantity: rules[type(quantity)](*map(int, quantity.args))
        for quantity in formula.atoms(*rules)
    }
    return formula.xreplace(values)
