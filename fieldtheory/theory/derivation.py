"""From the network to its propagators: everything symbolic about a network, in one object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.dispatch import not_there, of_families
from fieldtheory.networks.family import CONVENTIONS, DeepNetwork, checked_network, single_network
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import appendix, block_formulas
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action, family_action
from fieldtheory.theory.block_action import block_action
from fieldtheory.theory.definitions import Notation
from fieldtheory.theory.diagrams.loop_expansion import Correction, Diagram, diagrams
from fieldtheory.theory.evaluation import block_function, propagator_function
from fieldtheory.theory.formulas import FORMULAS, SATURATION
from fieldtheory.theory.hessian import Hessian, hessian
from fieldtheory.theory.notation import Symbols
from fieldtheory.theory.propagator import Propagator
from fieldtheory.theory.quantities import SYMBOLS, known_quantities, results_latex, symbols_latex
from fieldtheory.theory.saddle_point import SaddlePoint, saddle_point
from fieldtheory.theory.scales import Layers, Scales, chosen_scales, require_scales
from fieldtheory.theory.typesetting.latex import in_letters
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH

BLOCKS = ("S11", "S12", "S21", "S22", "G11", "G12", "G21", "G22")
_LAYERS = ("generic", "explicit")


@dataclass(frozen=True, repr=False)
class Derivation:
    """The field theory of a network of given depth; each part is derived when first asked for.

    Parameters
    ----------
    depth, inputs : int
    activation : Activation or None
        None leaves φ undetermined.
    network_action : Action
        Fields, observables and covariance; see `Action`. Rows and columns of all blocks are its
        fields, C^(0), C^(1), ..., and C^(0), X^(0), C^(1), X^(1), ... of blocks.
    family : subclass of DeepNetwork
        The networks whose theory it is.
    scales : mapping
        ρ and γ of every layer as they stand in it, "branch_scale" and "skip_scale" to tuples of
        length L.
    network : DeepNetwork or None
        The one whose norms and gates stand in it, where the family has hidden units.

    Examples
    --------
    >>> th = derive(depth=1, activation="linear")
    >>> th.propagator.G12.shape, th.propagator.G22.is_zero_matrix
    ((3, 3), True)
    >>> th.lambdify("G12")(ResidualNetwork(depth=1, activation="linear"), 0.05).shape
    (3, 3)
    >>> from fieldtheory.networks.block import BlockNetwork
    >>> of_blocks = derive(BlockNetwork(depth=1, activation="linear", normalization=None))
    >>> of_blocks.saddle_point.kernels[of_blocks.symbols.X_1]
    C^{(0)}*\\gamma**2 + C^{(1)}
    >>> of_blocks.lambdify("G11")(of_blocks.network, 1.0).diagonal().round(4)
    array([0.   , 0.004, 0.005, 0.029, 0.029])
    """

    depth: int
    inputs: int
    activation: Activation | None
    network_action: Action
    family: Any = ResidualNetwork
    scales: Scales = field(default_factory=dict, hash=False)
    network: Any = None

    @property
    def action(self) -> sp.Expr:
        """S(C, C̃), one SymPy expression."""
        return self.network_action.expression

    @cached_property
    def saddle_point(self) -> SaddlePoint:
        """C* of every field and C̃* = 0."""
        return replace(saddle_point(self.network_action), formulas=self._formulas("saddle_point"))

    @cached_property
    def hessian(self) -> Hessian:
        """The blocks S11, S12, S21, S22 at the saddle point."""
        return replace(hessian(self.network_action), formulas=self._formulas("hessian"))

    @cached_property
    def propagator(self) -> Propagator:
        """The blocks G11, G12, G21, G22 of −(S^(2))^{-1}."""
        return Propagator(self.hessian, formulas=self._formulas("propagator"))

    def _formulas(self, quantity: str) -> Callable[[], str]:
        """The LaTeX of a part in a notebook, layer by layer where a matrix can be read."""
        layers = "explicit" if self.depth <= 4 and self.network is None else "generic"
        return lambda: self.latex(quantity, layers)

    def block(self, name: str) -> sp.ImmutableMatrix:
        """One block of the Hessian (S..) or the propagator (G..)."""
        validation.choice("name", name, BLOCKS)
        return getattr(self.hessian if name.startswith("S") else self.propagator, name)

    def diagrams(self, legs: int = 1, loops: int = 1) -> tuple[Diagram, ...]:
        """All diagrams of ⟨C⟩, ⟨C;C⟩, ... with a number of loops, also those that vanish.

        Examples
        --------
        >>> [d.vanishes for d in derive(depth=2).diagrams(legs=1, loops=1)]
        [True, False, False]
        """
        self._refuse_blocks(diagrams=True)
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
        self.diagrams(legs, loops)  # Bad numbers are refused.
        return Correction(self.network_action, self.propagator, legs, loops, self.family)

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols in it by name: ``symbols.N``, ``symbols.sigma_w``, ``symbols.C_0``, ..."""
        action, scales = self.network_action, set().union(*self.scales.values())
        fields = (*action.kernels, *action.conjugates, *action.variables)
        written = (self.action.free_symbols, *(scale.free_symbols for scale in scales))
        return Symbols({*fields, *set().union(*written)})

    def lambdify(self, quantity: str, convention: str = "derivative") -> Callable[..., Any]:
        """A block as a numeric function of a network and its input kernel.

        Parameters
        ----------
        quantity : str
            A block, "S11" to "S22" or "G11" to "G22".
        convention : {"derivative", "F25"}
            ν_0 = 1, so that N G12 are derivatives by the kernel of the input, or ν_0 = d_in/N as
            in F25; as in `solve`. G11 and S22 are the same.

        Returns
        -------
        callable
            ``f(network, K0)`` gives the block at the saddle point, shape (n, n) with n the number
            of fields. K0 is a variance, or a matrix (P, P) for P inputs. With an
            undetermined φ the network's activation is put in.

        Raises
        ------
        ValueError
            For an unknown block or convention; from the function, if the network has
            another depth, activation or scale than the derivation, or K0 is not of its inputs.
        """
        validation.choice("quantity", quantity, BLOCKS)
        validation.choice("convention", convention, CONVENTIONS)
        saddle, name = self.saddle_point.kernels, quantity
        if name.startswith("S"):
            evaluated = block_function(saddle, self.block(name), self.inputs)
        else:
            evaluated = propagator_function(saddle, self.hessian, name, self.inputs)

        def function(network: Any, K0: Any) -> Any:
            self._require(network)
            activation = network.activation if self.activation is None else None
            return evaluated(network, K0, activation, convention)

        return function

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
            Blocks have, from "residual_response" on, "response" of the stream and of residual
            kernels; "fluctuations" and "mean_shift", recursions for N times the covariance and the
            shift of the mean of X, to which the propagator and loops amount; "symbols".
        layers : {"generic", "explicit"}, optional
            For symbolic layers l, or with their numbers put in at the depth of the derivation;
            "generic" if left out.
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
        TypeError, ValueError
            For an unknown quantity, or one that this network has not; for ``layers``,
            ``abbreviate`` or ``notation`` of blocks.

        Notes
        -----
        At the saddle point, K^(l) is made of C*. For P >= 2 inputs the entries of layers k and l
        are matrices over the pairs (αβ), (γδ) of inputs, α <= β, as are M'_l and Q_kl.

        Examples
        --------
        >>> print(derive(depth=1).latex("response").splitlines()[3])
        \\chi^{(l)} &= \\left(1 + a_{l} M'_{l - 1}\\right) \\chi^{(l - 1)} \\\\
        >>> print(derive(depth=1).latex("S21", layers="explicit").splitlines()[1])
        &S_{21} = N \\begin{pmatrix} - \\nu_{0} & 0 & 0 \\\\ a_{1} M'_{0} & -1 & 0 \\\\ \
a_{2} M'_{1} & a_{2} M'_{1} & -1 \\end{pmatrix} \\\\
        """
        validation.choice("layers", layers or "generic", _LAYERS)
        letters = self._letters(layers or "generic", abbreviate, width, notation)
        if isinstance(quantity, str):
            self._refuse_blocks(**{quantity: True})
        names = known_quantities(quantity, (*self._table, SYMBOLS))
        for name in set(SATURATION).intersection(names):
            features = self.family.features
            of_paper = features is ResidualNetwork.features and self._layers.skip == 1
            if not of_paper or "branch_scale" not in dict(self._layers.fixed):
                raise ValueError(
                    f"quantity {name!r} is that of a ResidualNetwork with skip_scale=1 and one "
                    f"branch_scale, got {self!r} with scales {dict(self.scales)}"
                )
        if names == [SYMBOLS]:
            text = symbols_latex(letters.meanings(), letters.column, numbered)
        else:
            for name in names:
                validation.choice("quantity", name, tuple(self._table))
            text = results_latex(names, letters, self._table, numbered)
        return in_letters(text, notation)

    def _letters(self, layers: str, abbreviate: bool, width: float, notation: str | None) -> Any:
        """How formulas are written, from checked arguments; F25 has no short symbols."""
        width = validation.within("width", width, 240.0, 2000.0)
        explicit, short = layers == "explicit", abbreviate and notation is None
        self._refuse_blocks(layers=explicit, abbreviate=not abbreviate, notation=notation)
        if notation is not None:
            validation.choice("notation", notation, ["F25"])
        if self.network is not None:
            return block_formulas.OneLayer(self.network, self.inputs > 1, width)
        last = sp.Integer(self.depth) if explicit else sym.DEPTH
        return Notation(self._layers, last, self.inputs, self.activation, short, width)

    def _refuse_blocks(self, **given: Any) -> None:
        """Raise for what the theory of blocks does not have."""
        for name, value in given.items():
            if self.network is not None and name in self.network.without and value:
                raise not_there(name, self.network)

    def document(
        self,
        layers: str = "generic",
        *,
        width: float = TEXT_WIDTH,
        notation: str | None = None,
        misprints: bool = True,
    ) -> str:
        """The derivation step by step, as a LaTeX document that pdflatex compiles.

        From the definition of the network to the responses (F25 sections II.1 to II.4), or to the
        order 1/N of blocks, with a list of symbols.

        Parameters
        ----------
        layers : {"generic", "explicit"}
            For symbolic layers, or with a section that has their numbers put in.
        width, notation
            As in `latex`. Columns of up to 270 points stand two on a page.
        misprints : bool
            Whether it remarks which printed equations of F25 do not hold.

        Raises
        ------
        TypeError, ValueError
            For a network that is no `ResidualNetwork`, `FeedForwardNetwork` or one of blocks, and
            for arguments other than ``width`` of blocks.

        Examples
        --------
        >>> print(derive(depth=2, activation="erf").document().splitlines()[0])
        \\documentclass{article}
        """
        validation.choice("layers", layers, _LAYERS)
        self._refuse_blocks(layers=layers == "explicit", misprints=not misprints)
        if self.network is None and not issubclass(self.family, ResidualNetwork):
            raise ValueError(f"document is that of a ResidualNetwork, got {self!r}")
        letters = self._letters("generic", True, width, notation)
        if self.network is not None:
            return appendix.block_document(letters)
        explicit = replace(letters, last=sp.Integer(self.depth)) if layers == "explicit" else None
        return in_letters(appendix.document(letters, explicit, misprints), notation)

    @property
    def _table(self) -> Any:
        return FORMULAS if self.network is None else block_formulas.FORMULAS

    @cached_property
    def _layers(self) -> Layers:
        return Layers.of_scales(self.family, self.scales)

    def _require(self, network: Any) -> None:
        """Raise if the derivation is not that of a network."""
        mine, other = self.family, type(single_network(network, GramNetwork))
        names = ("features", "layer", "readout")
        if any(getattr(mine, x, None) is not getattr(other, x, None) for x in names):
            raise TypeError(f"network must be a {mine.__name__}, got a {other.__name__}")
        if self.network is not None:
            if derive(network, self.inputs).network_action != self.network_action:
                raise ValueError(
                    f"network must have the action of {self!r}, its depth, activation and norm, "
                    "and the same parameters equal in all layers; derive(network) has that of "
                    f"{network!r}"
                )
            return
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

    def __repr__(self) -> str:
        inputs = "one input" if self.inputs == 1 else f"{self.inputs} inputs"
        phi = "undetermined" if self.activation is None else self.activation.name
        family, depth = self.family.__name__, self.depth
        return f"{type(self).__name__}({family}, depth {depth}, {inputs}, φ {phi})"

    def _repr_latex_(self) -> str:
        return f"$${self.latex(['action', 'saddle_point', 'hessian', 'propagator'])}$$"


@of_families
@named_arguments
def derive(
    network: DeepNetwork | int | None = None,
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
    network : DeepNetwork or int, optional
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
        for all layers, and γ = 1 or γ = 0 as a number. Those of blocks are those of the network.

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
    >>> from fieldtheory.networks.block import BlockNetwork
    >>> derive(BlockNetwork(depth=2, activation="erf"), inputs=2)
    Derivation(BlockNetwork, depth 2, 2 inputs, φ erf)
    """
    if (network is None) == (depth is None):
        raise TypeError(f"derive needs a network or a depth, got {network!r} and depth={depth!r}")
    of: Any = network if isinstance(network, DeepNetwork) else None
    if of is not None:
        if activation is not None:
            raise TypeError(f"activation is that of the network, got {activation!r}")
        depth, activation = of.depth, of.activation
    depth = validation.integer("depth", network if depth is None else depth, 1)
    inputs = validation.integer("inputs", inputs, 1)
    function = None if activation is None else as_activation(activation)
    arguments = {"branch_scale": branch_scale, "skip_scale": skip_scale}
    if hasattr(of, "signals"):  # Its branches have hidden units.
        for name, value in arguments.items():
            if value is not None:
                raise TypeError(f"{name} is that of the network, got {value!r}")
        action = block_action(single_network(of, GramNetwork), inputs)
        return Derivation(depth, inputs, function, action, type(of), network=of)
    family: Any = ResidualNetwork if of is None else type(checked_network(of))
    scales = chosen_scales(family, depth, of, arguments)
    fixed = dict(Layers.of_scales(family, scales).fixed)
    action = family_action(family, depth, inputs, function, fixed)
    return Derivation(depth, inputs, function, action, family, scales)
