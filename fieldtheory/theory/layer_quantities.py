"""Quantities with layer indices, numbers or symbols, as the papers print them."""

from __future__ import annotations

import sympy as sp
from sympy.printing.latex import LatexPrinter

from fieldtheory.theory import notation as sym
from fieldtheory.theory.latex import AVERAGE, COEFFICIENT, FIELD, SKIP, SUM


class LayerQuantity(sp.Function):
    """A quantity with layer indices.

    ``rank`` is its place in a product, ``latest`` whether later layers stand before earlier ones.
    """

    template = ""
    latest = False
    rank: float = AVERAGE

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        text = self.template.format(*(printer._print(a) for a in self.args))
        if exp is None:
            return text
        return rf"\left[{text}\right]^{{{exp}}}" if "^" in text else f"{text}^{{{exp}}}"


class FieldQuantity(LayerQuantity):
    """A field: its layer above, the pair of inputs and the star of the saddle point below."""

    letter = ""
    star = False
    rank = FIELD

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        layer, *below = (printer._print(a) for a in self.args)
        below += ["*"] * self.star
        text = f"{self.letter}^{{({layer})}}" + (f"_{{{', '.join(below)}}}" if below else "")
        return rf"\left[{text}\right]^{{{exp}}}" if exp else text


class C(FieldQuantity):
    """The residual kernel C^(l)."""

    letter = "C"
    is_positive = True


class Stationary(FieldQuantity):
    """The residual kernel at the saddle point, C*^(l)."""

    letter = "C"
    star = True


class Own(Stationary):
    """What a layer itself adds to the tangent kernel, C*^(l), which stands last in a sum."""

    rank = SUM


class Conjugate(FieldQuantity):
    """The conjugate field C̃^(l)."""

    letter = r"\tilde{C}"
    rank = FIELD + 1


class K(LayerQuantity):
    """K^(l), or the covariance K^(k,l) of the signals of two layers."""

    rank = FIELD
    is_real = True

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        indices = ", ".join(printer._print(a) for a in self.args)
        return rf"\left[K^{{({indices})}}\right]^{{{exp}}}" if exp else f"K^{{({indices})}}"


class A(LayerQuantity):
    """The skip matrix A_lm = γ_{m+1} ... γ_l."""

    template = "A_{{{0}, {1}}}"
    rank = SKIP
    is_real = True


class Earlier(LayerQuantity):
    """1 if the first layer comes before the second, else 0."""

    template = "1_{{{0} < {1}}}"
    rank = AVERAGE + 0.5

    @classmethod
    def eval(cls, first: sp.Expr, second: sp.Expr) -> sp.Expr | None:
        """The number where both layers are numbers."""
        if first.is_Integer and second.is_Integer:
            return sp.Integer(int(first) < int(second))
        return None


class Weight(LayerQuantity):
    """a_l = ρ_l² σ²_w, or σ²_w,out for the readout."""

    template = "a_{{{0}}}"
    rank = COEFFICIENT


class Bias(LayerQuantity):
    """c_l = ρ_l² σ²_b, or σ²_b,out for the readout."""

    template = "c_{{{0}}}"
    rank = COEFFICIENT


class RelativeWidth(LayerQuantity):
    """ν_m: d_in/N for the input, m = 0, and 1 for all other layers."""

    template = r"\nu_{{{0}}}"
    rank = COEFFICIENT

    @classmethod
    def eval(cls, layer: sp.Expr) -> sp.Expr | None:
        """ν_0 or 1 where the layer is a number."""
        if layer.is_positive:
            return sp.S.One
        return sym.INPUT_WIDTH if layer == 0 else None


class SkipScale(LayerQuantity):
    """γ_l."""

    template = r"\gamma_{{{0}}}"
    rank = SKIP


class Slope(LayerQuantity):
    """M'_l, the derivative of ⟨g⟩ by the kernel K^(l), ⟨φ'² + φφ''⟩ for a residual network.

    For several inputs M'_{l;αβ,γδ}, the derivative of ⟨g(h_α, h_β)⟩ by K_γδ.
    """

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        return _with_pairs("M'", 1, self.args, printer, exp)


class SlopeSquare(LayerQuantity):
    """Ṁ_l, ⟨φ'²⟩ over the signals of layer l for a residual network.

    For several inputs Ṁ_{l;αβ} = ⟨φ'_α φ'_β⟩, the derivative of ⟨g(h_α, h_β)⟩ by K_αβ.
    """

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        layer, *pair = (printer._print(a) for a in self.args)
        text = rf"\dot{{M}}_{{{layer}}}"
        text = rf"({text})_{{{pair[0]}}}" if pair else text
        return f"{text}^{{{exp}}}" if exp else text


class Tangent(FieldQuantity):
    """The tangent kernel Θ^(l), of a pair of inputs Θ_αβ^(l)."""

    letter = r"\Theta"
    rank = SUM + 1


class Correlator(LayerQuantity):
    """Q_kl, the connected correlator ⟨g;g⟩ of two layers, ⟨φ²;φ²⟩ for a residual network."""

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        return _with_pairs("Q", 2, self.args, printer, exp)


class Growth(LayerQuantity):
    """r_l = γ_l² + a_l M'_{l-1}, by which the response of the kernel grows in layer l."""

    template = "r_{{{0}}}"
    rank = AVERAGE + 0.05
    latest = True


class ResidualResponse(LayerQuantity):
    """The residual response η^(l)."""

    template = r"\eta^{{({0})}}"
    rank = SUM + 1


class Response(LayerQuantity):
    """The response χ^(l)."""

    template = r"\chi^{{({0})}}"
    rank = SUM + 1


class BlockEntry(LayerQuantity):
    """The entry of a block of the Hessian or propagator for two layers."""

    block = ""

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        text = f"{self.block}^{{{layer_indices(*(printer._print(a) for a in self.args))}}}"
        return rf"\left[{text}\right]^{{{exp}}}" if exp else text


class G12(BlockEntry):
    """The response propagator."""

    block = "G_{12}"
    rank = AVERAGE + 0.1


class S22(BlockEntry):
    """The source of fluctuations."""

    block = "S_{22}"
    rank = AVERAGE + 0.2


class G21(BlockEntry):
    """The response propagator transposed."""

    block = "G_{21}"
    rank = AVERAGE + 0.3


class JointAverage(sp.Function):
    """⟨F⟩ over the signals of all layers, for F with sums over symbolic layers."""

    rank = AVERAGE
    functions = property(lambda self: self.args)

    def measure_latex(self, printer: LatexPrinter) -> str:
        """N(0, K), whatever the layers."""
        return r"\mathcal{N}(0, K)"

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        inside = printer._print(self.args[0])
        return rf"\left\langle {inside} \right\rangle_{{{self.measure_latex(printer)}}}"


class PairSum(sp.Function):
    """The sum over the pairs α <= β of inputs of a quantity with these indices."""

    rank = SUM

    @property
    def sign(self) -> str:
        """The sign of the sum."""
        return r"\sum_{\alpha \leq \beta}"

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        return f"{self.sign} {printer.product([self.args[0]], bracket=True)}"


def layer_indices(*layers: str) -> str:
    """Layers side by side, with commas where one is longer than a letter."""
    return (" " if all(len(layer) == 1 for layer in layers) else ", ").join(layers)


def _with_pairs(
    name: str, layers: int, args: tuple[sp.Expr, ...], printer: LatexPrinter, exp: str | None
) -> str:
    """A name with its layers below, then pairs of inputs, and a power."""
    shown = [printer._print(a) for a in args]
    index = layer_indices(*shown[:layers])
    pairs = ", ".join(shown[layers:])
    text = f"{name}_{{{index}; {pairs}}}" if pairs else f"{name}_{{{index}}}"
    if exp is None:
        return text
    return rf"\left({text}\right)^{{{exp}}}" if "'" in name else f"{text}^{{{exp}}}"
