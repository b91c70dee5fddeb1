"""From the network to its propagators: everything symbolic about a network, in one object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.dispatch import by_network_type
from fieldtheory.networks.family import LayeredNetwork, checked_network, single_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action, family_action
from fieldtheory.theory.action_theory import ActionTheory
from fieldtheory.theory.appendix import document
from fieldtheory.theory.definitions import Notation
from fieldtheory.theory.diagrams.loop_expansion import Correction, Diagram, diagrams
from fieldtheory.theory.formulas import (
    GENERIC,
    QUANTITIES,
    SATURATION,
    SYMBOLS,
    known_quantities,
    results_latex,
    symbols_latex,
)
from fieldtheory.theory.notation import Symbols
from fieldtheory.theory.scales import Layers, Scales, chosen_scales, require_scales
from fieldtheory.theory.typesetting.latex import in_letters
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH

_LAYERS = ("generic", "explicit")


@dataclass(frozen=True, repr=False)
class Derivation(ActionTheory):
    """The field theory of a network of given depth; each part is derived when first asked for.

    Parameters
    ----------
    depth, inputs : int
    activation : Activation or None
        None leaves φ undetermined.
    network_action : Action
        Fields, observables and covariance; see `Action`.
    family : subclass of LayeredNetwork
        The networks whose theory it is.
    scales : mapping
        ρ and γ of every layer as they stand in it, "branch_scale" and "skip_scale" to tuples of
        length L.

    Examples
    --------
    >>> th = derive(depth=1, activation="linear")
    >>> th.propagator.G12.shape, th.propagator.G22.is_zero_matrix
    ((3, 3), True)
    >>> th.lambdify("G12")(ResidualNetwork(depth=1, activation="linear"), 0.05).shape
    (3, 3)
    """

    depth: int
    inputs: int
    activation: Activation | None
    network_action: Action
    family: type[LayeredNetwork] = ResidualNetwork
    scales: Scales = field(default_factory=dict, hash=False)

    def _formulas(self, quantity: str) -> Callable[[], str]:
        """The LaTeX of a part in a notebook, layer by layer where a matrix can be read."""
        layers = "explicit" if self.depth <= 4 else "generic"
        return lambda: self.latex(quantity, layers)

    def diagrams(self, legs: int = 1, loops: int = 1) -> tuple[Diagram, ...]:
        """All diagrams of ⟨C⟩, ⟨C;C⟩, ... about the saddle point with a number of loops.

        Parameters
        ----------
        legs, loops : int
            As in `fieldtheory.theory.diagrams.loop_expansion.diagrams`.

        Returns
        -------
        tuple of Diagram
            Also those that vanish by causality, with the reason.

        Examples
        --------
        >>> [d.vanishes for d in derive(depth=2).diagrams(legs=1, loops=1)]
        [True, False, False]
        """
        return diagrams(legs, loops)

    def correction(self, legs: int = 1, loops: int = 1) -> Correction:
        """The sum of all diagrams of a cumulant of kernels with a number of loops.

        Parameters
        ----------
        legs, loops : int
            1, 1 is the mean shift to order 1/N and 1, 2 its next order; 2, 0 is G11 and 2, 1 its
            next order; 3, 0 the third cumulant.

        Returns
        -------
        Correction
            With ``expression``, ``latex()``, ``plot()`` and ``tikz()``. `solve` has its numbers at
            any depth.

        Examples
        --------
        >>> shift = derive(depth=1, activation="linear").correction(legs=1, loops=1).expression
        >>> [entry.doit() for entry in shift]
        [0, 0, 0]
        """
        diagrams(legs, loops)  # Bad numbers are refused.
        return Correction(self.network_action, self.propagator, legs, loops, self.family)

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols in it by name: ``symbols.N``, ``symbols.sigma_w``, ``symbols.C_0``, ..."""
        written = {value for values in self.scales.values() for value in values}
        scales = set().union(*(value.free_symbols for value in written))
        return Symbols({*super().symbols.values(), *scales})

    def latex(
        self,
        quantity: str | Sequence[str],
        layers: str | None = None,
        abbreviate: bool = True,
        *,
        width: float = TEXT_WIDTH,
        numbered: bool = False,
        notation: str | None = None,
    ) -> str:
        """LaTeX of results in short symbols, with the definitions of what stands in them.

        Parameters
        ----------
        quantity : str or sequence of str
            Several have their definitions once, below all of them.
            "action" S(C, C̃); "saddle_point"; "kernels" K^(l); "hessian", "propagator", or one
            block, "S11" to "S22" and "G11" to "G22"; "residual_response" η^(l), "response" χ^(l),
            "output_response" χ^out (F25 eqs. (51), (53), (55)); "tangent_kernel" Θ^(l) from its
            definition (SR eq. (9), whose λ_{l,L} should be λ_{l+1,L}); "saturation" and
            "large_depth", the ρ* of F25 eqs. (67) and (68). Also "eta", "chi", "chi_out", "theta",
            "(67)" and "(68)". "symbols" lists what the symbols mean that results do not define.
        layers : {"generic", "explicit"}, optional
            For symbolic layers l, or layer by layer at the depth of the derivation; "generic" if
            left out.
        abbreviate : bool
            Write a_l, c_l for the coefficients of a layer, M'_l = ⟨φ'² + φφ''⟩,
            Ṁ_l = ⟨φ'²⟩, Q_kl = ⟨φ²;φ²⟩, A_lm for products of γ and r_l for the growth of the
            response, and list what they mean below; else write them out.
        width : float
            That of the column in points: 345 is the text of LaTeX's article, 246 a column of a
            paper in two columns.
        numbered : bool
            Environments ``align`` with a number and a ``\\label`` for every equation, which may
            break across pages, in place of one display that may not.
        notation : "F25", optional
            The letters of F25: 𝒮, 𝒢, φ^(l), ⟨A, B⟩^c, coefficients written out.

        Returns
        -------
        str
            An equation, or aligned ones, without delimiters: for ``\\[...\\]`` in a document with
            amsmath or for ``$$...$$`` in a notebook. Matrices that do not fit are listed by
            entries, of which those not listed vanish.

        Raises
        ------
        ValueError
            For an unknown quantity, or one that this network has not.

        Notes
        -----
        At the saddle point, K^(l) is made of C*. For P >= 2 inputs the entries of layers k and l
        are matrices over the pairs (αβ), (γδ) of inputs, α <= β, as are M'_l and Q_kl. G11 layer by
        layer is written out for one input up to depth 3.

        Examples
        --------
        >>> print(derive(depth=1).latex("response").splitlines()[3])
        \\chi^{(l)} &= \\left(1 + a_{l} M'_{l - 1}\\right) \\chi^{(l - 1)} \\\\
        >>> print(derive(depth=1).latex("S21", layers="explicit").splitlines()[1])
        &S_{21} = N \\begin{pmatrix} - \\nu_{0} & 0 & 0 \\\\ a_{1} M'_{0} & -1 & 0 \\\\ \
a_{2} M'_{1} & a_{2} M'_{1} & -1 \\end{pmatrix} \\\\
        """
        quantities = known_quantities(quantity, (*QUANTITIES, SYMBOLS))
        validation.choice("layers", "generic" if layers is None else layers, _LAYERS)
        for name in set(SATURATION).intersection(quantities):
            self._require_paper(f"quantity {name!r}")
        explicit = layers == "explicit"
        last = sp.Integer(self.depth) if explicit else sym.DEPTH
        letters = self._letters(last, abbreviate, width, notation)
        if quantities == [SYMBOLS]:
            texts = sym.meanings(self.family, self.inputs)
            return in_letters(symbols_latex(texts, letters.column, numbered), notation)
        for name in quantities:
            validation.choice("quantity", name, QUANTITIES)
        return in_letters(results_latex(quantities, letters, GENERIC, numbered), notation)

    def _letters(
        self, last: sp.Expr, abbreviate: bool, width: float, notation: str | None
    ) -> Notation:
        """Notation from checked arguments; F25 has no short symbols."""
        width = validation.within("width", width, 240.0, 2000.0)
        if notation is not None:
            validation.choice("notation", notation, ["F25"])
        short = abbreviate and notation is None
        return Notation(self._layers, last, self.inputs, self.activation, short, width)

    def document(
        self,
        layers: str = "generic",
        *,
        width: float = TEXT_WIDTH,
        notation: str | None = None,
        misprints: bool = True,
    ) -> str:
        """The derivation step by step, as a LaTeX document that pdflatex compiles.

        From the definition of the network to the responses (F25 sections II.1 to II.4), with a list
        of symbols.

        Parameters
        ----------
        layers : {"generic", "explicit"}
            For symbolic layers, or with a section that writes them out at the depth of the
            derivation.
        width, notation
            As in `latex`. Columns of up to 270 points stand two on a page.
        misprints : bool
            Whether it remarks which printed equations of F25 do not hold.

        Raises
        ------
        ValueError
            For a network that is neither a `ResidualNetwork` nor a `FeedForwardNetwork`.

        Examples
        --------
        >>> print(derive(depth=2, activation="erf").document().splitlines()[0])
        \\documentclass{article}
        """
        validation.choice("layers", layers, _LAYERS)
        if not issubclass(self.family, ResidualNetwork):
            raise ValueError(f"document is that of a ResidualNetwork, got {self!r}")
        letters = self._letters(sym.DEPTH, True, width, notation)
        # Entries of all pairs would fill pages.
        short = letters.abbreviate or self.inputs > 1
        at_depth = replace(letters, last=sp.Integer(self.depth), abbreviate=short)
        text = document(letters, at_depth if layers == "explicit" else None, misprints)
        return in_letters(text, notation)

    @cached_property
    def _layers(self) -> Layers:
        return Layers.of_scales(self.family, self.scales)

    def _require_paper(self, wanted: str) -> None:
        """Raise if the network is not that of F25."""
        of_paper = self.family.features is ResidualNetwork.features and self._layers.skip == 1
        if not of_paper or "branch_scale" not in dict(self._layers.fixed):
            raise ValueError(
                f"{wanted} is that of a ResidualNetwork with skip_scale=1 and one "
                f"branch_scale, got {self!r} with scales {dict(self.scales)}"
            )

    def _require(self, network: LayeredNetwork) -> None:
        """Raise if the derivation is not that of a network."""
        mine, other = self.family, type(single_network(network))
        offers = [(kind.features, kind.layer, kind.readout) for kind in (mine, other)]
        if offers[0] != offers[1]:
            raise TypeError(f"network must be a {mine.__name__}, got a {other.__name__}")
        if network.depth != self.depth:
            raise ValueError(
                f"network must have the depth {self.depth} of the derivation, got {network.depth}"
            )
        if self.activation not in (None, network.activation):
            raise ValueError(
                f"network must have the activation {self.activation.name} of the derivation, "
                f"got {network.activation.name}"
            )
        require_scales(self.scales, network)


@by_network_type
@named_arguments
def derive(
    network: LayeredNetwork | int | None = None,
    inputs: int = 1,
    activation: str | Activation | sp.Expr | None = None,
    branch_scale: Any = None,
    skip_scale: Any = None,
    *,
    depth: int | None = None,
) -> Derivation:
    """Derive the field theory of a network.

    Parameters
    ----------
    network : LayeredNetwork or int, optional
        A network of any family: its depth and activation are taken, its other parameters stay
        symbols, per layer where its scales differ from layer to layer. Or a number of layers, as
        ``depth``.
    inputs : int
        Number of inputs P >= 1.
    activation : str, Activation, sympy.Expr or callable, optional
        φ in any form that a network takes; that of the network, or left undetermined if there is
        none.
    depth : int
        Number L >= 1 of layers of a residual network, in place of ``network``.
    branch_scale, skip_scale : number, sympy.Expr, "symbol" or "per layer", optional
        ρ and γ: an expression for all layers, one symbol for all, or symbols ρ_l and γ_l. Without
        ``network`` they default to one ρ and γ = 1 as in F25; ``skip_scale=0`` is the feed-forward
        network. Else they default to what the network has: one symbol for a scale that is the same
        for all layers, and γ = 1 or γ = 0 as a number.

    Returns
    -------
    Derivation
        With ``action``, ``saddle_point``, ``hessian``, ``propagator``, ``latex`` and ``lambdify``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> th = derive(depth=2)
    >>> th.hessian.S21[0, 0], th.hessian.S11.is_zero_matrix
    (-N*\\nu_{0}, True)
    >>> th.scales, derive(depth=2, skip_scale="per layer").scales["skip_scale"]
    ({'branch_scale': (\\rho, \\rho), 'skip_scale': (1, 1)}, (\\gamma_{1}, \\gamma_{2}))
    """
    if (network is None) == (depth is None):
        raise TypeError(f"derive needs a network or a depth, got {network!r} and depth={depth!r}")
    family: type[LayeredNetwork] = ResidualNetwork
    of = network if isinstance(network, LayeredNetwork) else None
    if of is not None:
        family, depth = type(checked_network(of)), of.depth
        if activation is not None:
            raise TypeError(f"activation is that of the network, got {activation!r}")
        activation = of.activation
    depth = validation.integer("depth", network if depth is None else depth, 1)
    inputs = validation.integer("inputs", inputs, 1)
    function = None if activation is None else as_activation(activation)
    arguments = {"branch_scale": branch_scale, "skip_scale": skip_scale}
    scales = chosen_scales(family, depth, of, arguments)
    action = family_action(family, depth, inputs, function, scales)
    return Derivation(depth, inputs, function, action, family, scales)
