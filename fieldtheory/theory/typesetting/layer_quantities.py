"""Quantities with layer indices, numbers or symbols, as the papers print them."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from fieldtheory.theory import notation as sym
from fieldtheory.theory.typesetting.latex import AVERAGE, COEFFICIENT, FIELD, SKIP, SUM


class LayerQuantity(sp.Function):
    """A quantity with layer indices, printed by a template of them.

    ``rank`` is its place in a product, ``latest`` whether later layers stand before earlier ones.
    """

    template = ""
    latest = False
    rank: float = AVERAGE

    def __init_subclass__(cls, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(cls, name, value)
        super().__init_subclass__()

    def text(self, *indices: str) -> str:
        """LaTeX without a power, given that of the arguments."""
        return self.template.format(*indices)

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        text = self.text(*(printer._print(a) for a in self.args))
        if exp is None:
            return text
        if "'" in text:
            return rf"\left({text}\right)^{{{exp}}}"
        return rf"\left[{text}\right]^{{{exp}}}" if "^" in text else f"{text}^{{{exp}}}"


class FieldQuantity(LayerQuantity, rank=FIELD):
    """A field: its layer above, the pair of inputs and the star of the saddle point below."""

    letter = ""
    star = False

    def text(self, *indices: str) -> str:
        """The letter with its indices."""
        layer, *below = (*indices, "*") if self.star else indices
        return f"{self.letter}^{{({layer})}}" + (f"_{{{', '.join(below)}}}" if below else "")


class C(FieldQuantity, letter="C"):
    """The residual kernel C^(l)."""

    is_positive = True


class Stationary(FieldQuantity, letter="C", star=True):
    """The residual kernel at the saddle point, C*^(l)."""


class Own(Stationary, rank=SUM):
    """Contribution of a layer itself to the tangent kernel, C*^(l), which stands last in a sum."""


class Conjugate(FieldQuantity, letter=r"\tilde{C}", rank=FIELD + 1):
    """The conjugate field C̃^(l)."""


class Tangent(FieldQuantity, letter=r"\Theta", rank=SUM + 1):
    """The tangent kernel Θ^(l), of a pair of inputs Θ_αβ^(l)."""


class K(LayerQuantity, rank=FIELD):
    """K^(l), or the covariance K^(k,l) of the signals of two layers."""

    is_real = True

    def text(self, *indices: str) -> str:
        """K with one layer or two."""
        return f"K^{{({', '.join(indices)})}}"


class A(LayerQuantity, template="A_{{{0}, {1}}}", rank=SKIP):
    """The skip matrix A_lm = γ_{m+1} ... γ_l; γ_l, 1 and 0 where the layers say so."""

    is_real = True

    @classmethod
    def eval(cls, last: sp.Expr, first: sp.Expr) -> sp.Expr | None:
        """Value for layers that are numbers, if it is short."""
        if not (last.is_Integer and first.is_Integer) or last > first + 1:
            return None
        return SkipScale(last) if last > first else sp.Integer(int(last == first))


class Earlier(LayerQuantity, template="1_{{{0} < {1}}}", rank=AVERAGE + 0.5):
    """1 if the first layer comes before the second, else 0."""

    @classmethod
    def eval(cls, first: sp.Expr, second: sp.Expr) -> sp.Expr | None:
        """The number where both layers are numbers."""
        if first.is_Integer and second.is_Integer:
            return sp.Integer(int(first) < int(second))
        return None


class Weight(LayerQuantity, template="a_{{{0}}}", rank=COEFFICIENT):
    """a_l = ρ_l² σ²_w, or σ²_w,out for the readout."""


class Bias(LayerQuantity, template="c_{{{0}}}", rank=COEFFICIENT):
    """c_l = ρ_l² σ²_b, or σ²_b,out for the readout."""


class SkipScale(LayerQuantity, template=r"\gamma_{{{0}}}", rank=SKIP):
    """γ_l."""


class RelativeWidth(LayerQuantity, template=r"\nu_{{{0}}}", rank=COEFFICIENT):
    """ν_m: d_in/N for the input, m = 0, and 1 for all other layers."""

    @classmethod
    def eval(cls, layer: sp.Expr) -> sp.Expr | None:
        """ν_0 or 1 where the layer is a number."""
        if layer.is_positive:
            return sp.S.One
        return sym.INPUT_WIDTH if layer == 0 else None


class PairMatrix(LayerQuantity):
    """An average of one layer or two, its first indices; of several inputs a matrix over pairs."""

    letter = ""
    layers = 1

    def text(self, *indices: str) -> str:
        """The letter with layers, then pairs below."""
        pairs = ", ".join(indices[self.layers :])
        below = layer_indices(*indices[: self.layers]) + (f"; {pairs}" if pairs else "")
        return f"{self.letter}_{{{below}}}"


class Slope(PairMatrix, letter="M'"):
    """M'_l, the derivative of ⟨g⟩ by the kernel K^(l), ⟨φ'² + φφ''⟩ for a residual network.

    For several inputs M'_{l;αβ,γδ}, the derivative of ⟨g(h_α, h_β)⟩ by K_γδ.
    """


class Correlator(PairMatrix, letter="Q", layers=2):
    """Q_kl, the connected correlator ⟨g;g⟩ of two layers, ⟨φ²;φ²⟩ for a residual network."""


class SlopeSquare(LayerQuantity):
    """Ṁ_l, ⟨φ'²⟩ over the signals of layer l for a residual network.

    For several inputs Ṁ_{l;αβ} = ⟨φ'_α φ'_β⟩, the derivative of ⟨g(h_α, h_β)⟩ by K_αβ.
    """

    def text(self, *indices: str) -> str:
        """Ṁ_l, or an entry of it for a pair of inputs."""
        layer, *pair = indices
        whole = rf"\dot{{M}}_{{{layer}}}"
        return rf"({whole})_{{{pair[0]}}}" if pair else whole


class Growth(LayerQuantity, template="r_{{{0}}}", rank=AVERAGE + 0.05, latest=True):
    """r_l = γ_l² + a_l M'_{l-1}, by which the response of the kernel grows in layer l."""


class ResidualResponse(LayerQuantity, template=r"\eta^{{({0})}}", rank=SUM + 1):
    """The residual response η^(l)."""


class Response(LayerQuantity, template=r"\chi^{{({0})}}", rank=SUM + 1):
    """The response χ^(l)."""


class BlockEntry(LayerQuantity):
    """The entry of a block of the Hessian or propagator for two layers."""

    block = ""

    def text(self, *indices: str) -> str:
        """The name of the block with its layers."""
        return f"{self.block}^{{{layer_indices(*indices)}}}"


class G12(BlockEntry, block="G_{12}", rank=AVERAGE + 0.1):
    """The response propagator."""


class S22(BlockEntry, block="S_{22}", rank=AVERAGE + 0.2):
    """The source of fluctuations."""


class G21(BlockEntry, block="G_{21}", rank=AVERAGE + 0.3):
    """The response propagator transposed."""


class JointAverage(sp.Function):
    """⟨F⟩ over the signals of all layers, for F with sums over symbolic layers."""

    rank = AVERAGE
    measure = r"\mathcal{N}(0, K)"
    functions = property(lambda self: self.args)

    def measure_latex(self, printer: LatexPrinter) -> str:
        """N(0, K), whatever the layers."""
        return self.measure

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
