"""The field theory of a network of Gram chains, symbolically, in one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fieldtheory import validation
from fieldtheory.networks.dispatch import RESIDUAL_ONLY, missing, require_known, residual_only
from fieldtheory.networks.family import single_network
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.theory import block_formulas as formulas
from fieldtheory.theory import gram_appendix
from fieldtheory.theory.action import Action
from fieldtheory.theory.action_theory import ActionTheory
from fieldtheory.theory.block_action import block_action
from fieldtheory.theory.derivation import derive
from fieldtheory.theory.formulas import SYMBOLS, known_quantities, results_latex, symbols_latex
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH


@dataclass(frozen=True, repr=False)
class GramDerivation(ActionTheory):
    """The field theory of a network of a stream and branches; each part is derived when asked for.

    Parameters
    ----------
    network : GramNetwork
        Its structure and φ are taken; its parameters stay symbols.
    inputs : int
    network_action : Action
        Its fields are C^(0), X^(0), C^(1), X^(1), ..., C^(L+1), see `block_action`; rows and
        columns of all blocks are in this order.

    Examples
    --------
    >>> from fieldtheory.networks.block import BlockNetwork
    >>> th = derive_gram(BlockNetwork(depth=1, activation="linear", normalization=None))
    >>> th.saddle_point.kernels[th.symbols.X_1]
    C^{(0)}*\\gamma**2 + C^{(1)}
    >>> th.hessian.S22[1, 3]
    2*C^{(0)}**2*N*\\gamma**2
    >>> th.lambdify("G11")(th.network, 1.0).diagonal().round(4)
    array([0.   , 0.004, 0.005, 0.029, 0.029])
    """

    network: GramNetwork
    inputs: int
    network_action: Action

    family = property(lambda self: type(self.network))
    depth = property(lambda self: self.network.depth)
    activation = property(lambda self: self.network.activation)

    def latex(
        self,
        quantity: str | Sequence[str],
        *,
        width: float = TEXT_WIDTH,
        numbered: bool = False,
        **others: Any,
    ) -> str:
        """LaTeX of results for symbolic layers, with the definitions of what stands in them.

        Parameters
        ----------
        quantity : str or sequence of str
            "action"; "saddle_point"; "kernels", of what the skip connection carries; "hessian",
            "propagator", or one block, "S11" to "S22" and "G11" to "G22"; "response" of the stream
            and of residual kernels; "fluctuations" and "mean_shift", recursions for N times the
            covariance and the shift of the mean of X, to which the propagator and loops amount.
            "symbols" lists what the symbols mean that results do not define.
        width, numbered
            As in `Derivation.latex`.

        Raises
        ------
        ValueError
            For an unknown quantity.

        Examples
        --------
        >>> from fieldtheory.networks.block import BlockNetwork
        >>> print(derive_gram(BlockNetwork(depth=2)).latex("saddle_point").splitlines()[4])
        X^{(l)}_{*} &= C^{(l)}_{*} + \\gamma^{2} X^{(l - 1)}_{*} \\quad (1 \\leq l \\leq L) \\\\
        """
        require_known(others, ("quantity", "width", "numbered"), self.network)
        if isinstance(quantity, str) and quantity in RESIDUAL_ONLY:
            raise residual_only(quantity, self.network)
        names = known_quantities(quantity, (*formulas.TABLE, SYMBOLS))
        if names == [SYMBOLS]:
            texts = gram_appendix.meanings(self._layer(width))
            return symbols_latex(texts, width, numbered)
        for name in names:
            validation.choice("quantity", name, tuple(formulas.TABLE))
        return results_latex(names, self._layer(width), formulas.TABLE, numbered)

    def document(self, *, width: float = TEXT_WIDTH, **others: Any) -> str:
        """The derivation step by step, from the network to its order 1/N, a document for pdflatex.

        Columns of up to 270 points stand two on a page.
        """
        require_known(others, ("width",), self.network)
        return gram_appendix.document(self._layer(width))

    def __getattr__(self, name: str) -> Any:
        raise missing(self, name)

    def _layer(self, width: float) -> formulas.OneLayer:
        column = validation.within("width", width, 240.0, 2000.0)
        return formulas.OneLayer(self.network, self.inputs > 1, column)

    def _require(self, network: Any) -> None:
        if not isinstance(network, GramNetwork):
            raise TypeError(f"network must be a GramNetwork, got {validation.excerpt(network)}")
        if derive_gram(network, self.inputs).network_action != self.network_action:
            raise ValueError(
                f"network must have the action of {self!r}, its depth, activation and norm, and "
                f"the same parameters equal in all layers; derive(network) has that of {network!r}"
            )


@derive.register(GramNetwork)
@named_arguments
def derive_gram(network: GramNetwork, inputs: int = 1) -> GramDerivation:
    """Result of `derive` for a network of a stream and branches, such as a `BlockNetwork`.

    Parameters
    ----------
    network : GramNetwork
        Without batch axes.
    inputs : int
        Number of inputs P >= 1.

    Examples
    --------
    >>> from fieldtheory.networks.block import BlockNetwork
    >>> derive_gram(BlockNetwork(depth=2, activation="erf"), inputs=2)
    GramDerivation(BlockNetwork, depth 2, 2 inputs, φ erf)
    """
    inputs = validation.integer("inputs", inputs, 1)
    single_network(network, GramNetwork)
    return GramDerivation(network, inputs, block_action(network, inputs))
