"""From the network to its propagators: everything symbolic about a network, in one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.family import CONVENTIONS, LayeredNetwork, checked_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory.action import Action, family_action
from fieldtheory.theory.evaluation import block_function
from fieldtheory.theory.hessian import Hessian, hessian
from fieldtheory.theory.latex import aligned, latex
from fieldtheory.theory.propagator import Propagator
from fieldtheory.theory.saddle_point import SaddlePoint, saddle_point
from fieldtheory.theory.scales import Scales, chosen_scales, require_scales

_BLOCKS = ("S11", "S12", "S21", "S22", "G11", "G12", "G21", "G22")
# G11 grows like the third power of its columns times their depth; twelve take five megabytes.
_WRITTEN_OUT = 5
QUANTITIES = ("action", "saddle_point", "hessian", "propagator", *_BLOCKS)


@dataclass(frozen=True)
class Derivation:
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

    @property
    def action(self) -> sp.Expr:
        """S(C, C̃), one SymPy expression."""
        return self.network_action.expression

    @cached_property
    def saddle_point(self) -> SaddlePoint:
        """C* of every field and C̃* = 0."""
        return saddle_point(self.network_action)

    @cached_property
    def hessian(self) -> Hessian:
        """The blocks S11, S12, S21, S22 at the saddle point."""
        return hessian(self.network_action)

    @cached_property
    def propagator(self) -> Propagator:
        """The blocks G11, G12, G21, G22 of −(S^(2))^{-1}."""
        return Propagator(self.hessian)

    def block(self, name: str) -> sp.ImmutableMatrix:
        """One block of the Hessian (S..) or the propagator (G..)."""
        validation.choice("name", name, _BLOCKS)
        return getattr(self.hessian if name.startswith("S") else self.propagator, name)

    def latex(self, quantity: str) -> str:
        """LaTeX of a result in the notation of F25.

        Parameters
        ----------
        quantity : str
            "action", "saddle_point", "hessian", "propagator", or one block ("S21", "G11", ...).

        Returns
        -------
        str
            An equation or aligned equations, without delimiters. K^(l) is the covariance of the
            signals of layer l and K^(k,l) that of the signals of two layers. G11 is written out up
            to five columns and as the product G12 S22 G21 beyond.

        Raises
        ------
        ValueError
            For an unknown quantity.

        Examples
        --------
        >>> print(derive(depth=1).latex("saddle_point").splitlines()[1])
        C^{(0)}_* &= C^{(0)}_{\\mathrm{data}} \\\\
        """
        validation.choice("quantity", quantity, QUANTITIES)
        if quantity == "action":
            return rf"S(C, \tilde{{C}}) = {latex(self.action)}"
        if quantity == "saddle_point":
            return aligned([(_starred(C), latex(v)) for C, v in self._saddle_entries()])
        if quantity == "hessian":
            return aligned([self._block_latex(b) for b in _BLOCKS[:4]])
        if quantity == "propagator":
            return aligned([self._block_latex(b) for b in _BLOCKS[4:]])
        return " = ".join(self._block_latex(quantity))

    def lambdify(self, quantity: str, convention: str = "derivative") -> Callable[..., Any]:
        """A block as a numeric function of a network and its input kernel.

        Parameters
        ----------
        quantity : str
            A block: "S11", "S12", "S21", "S22", "G11", "G12", "G21", "G22".
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
        block = self.block(validation.choice("quantity", quantity, _BLOCKS))
        validation.choice("convention", convention, CONVENTIONS)
        evaluated = block_function(self.saddle_point.kernels, block, self.inputs)

        def function(network: LayeredNetwork, K0: Any) -> Any:
            self._require(network)
            activation = network.activation if self.activation is None else None
            return evaluated(network, K0, activation, convention)

        return function

    def _require(self, network: LayeredNetwork) -> None:
        """Raise if the derivation is not that of a network."""
        mine, other = self.family, type(checked_network(network))
        offers = [(kind.features, kind.layer, kind.readout) for kind in (mine, other)]
        if offers[0] != offers[1]:
            raise TypeError(f"network must be a {mine.__name__}, got a {other.__name__}")
        if network.depth != self.depth:
            raise ValueError(
                f"network must have the depth {self.depth} of the derivation, got {network.depth}"
            )
        if network.batch_shape:
            raise ValueError("network must not have batch axes, got a scale with one")
        if self.activation not in (None, network.activation):
            raise ValueError(
                f"network must have the activation {self.activation.name} of the derivation, "
                f"got {network.activation.name}"
            )
        require_scales(self.scales, network)

    def _saddle_entries(self) -> list[tuple[sp.Symbol, sp.Expr]]:
        found = self.saddle_point
        return [*found.kernels.items(), *found.conjugates.items()]

    def _block_latex(self, name: str) -> tuple[str, str]:
        symbol = rf"\mathcal{{{name[0]}}}_{{{name[1:]}}}"
        if name == "G11" and len(self.network_action.kernels) > _WRITTEN_OUT:
            return symbol, r"\mathcal{G}_{12} \mathcal{S}_{22} \mathcal{G}_{21}"
        matrix = self.block(name)
        if matrix.is_zero_matrix:
            return symbol, "0"
        return symbol, latex(matrix)


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
    >>> derive(ResidualNetwork(depth=2, activation="linear")).saddle_point.kernels.keys()
    dict_keys([C^{(0)}, C^{(1)}, C^{(2)}, C^{(3)}])
    """
    if (network is None) == (depth is None):
        raise TypeError(f"derive needs a network or a depth, got {network!r} and depth={depth!r}")
    family: type[LayeredNetwork] = ResidualNetwork
    if isinstance(network, LayeredNetwork):
        family, depth = type(network), network.depth
        if activation is not None:
            raise TypeError(f"activation is that of the network, got {activation!r}")
        activation = network.activation
    depth = validation.integer("depth", network if depth is None else depth, 1)
    inputs = validation.integer("inputs", inputs, 1)
    function = None if activation is None else as_activation(activation)
    given = {"branch_scale": branch_scale, "skip_scale": skip_scale}
    of = network if isinstance(network, LayeredNetwork) else None
    scales = chosen_scales(family, depth, of, given)
    action = family_action(family, depth, inputs, function, scales)
    return Derivation(depth, inputs, function, action, family, scales)


def _starred(symbol: sp.Symbol) -> str:
    name = latex(symbol)
    return f"{name[:-1]}, *}}" if "_{" in name else f"{name}_*"
