"""Consequences of any action: saddle point, Hessian, propagator and their numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.family import CONVENTIONS
from fieldtheory.theory.action import Action
from fieldtheory.theory.evaluation import block_function, propagator_function
from fieldtheory.theory.hessian import Hessian, hessian
from fieldtheory.theory.notation import Symbols
from fieldtheory.theory.propagator import Propagator
from fieldtheory.theory.saddle_point import SaddlePoint, saddle_point

BLOCKS = ("S11", "S12", "S21", "S22", "G11", "G12", "G21", "G22")


class ActionTheory(ABC):
    """The field theory of an action; each part is derived when first asked for.

    A frozen dataclass that derives from it has ``network_action``, ``family``, ``depth``,
    ``inputs`` and ``activation``, which is None where φ is undetermined.
    """

    network_action: Action
    family: Any
    depth: int
    inputs: int
    activation: Activation | None

    @abstractmethod
    def latex(self, quantity: str | Sequence[str]) -> str:
        """LaTeX of results."""

    def _formulas(self, quantity: str) -> Callable[[], str]:
        """The LaTeX of a part in a notebook."""
        return lambda: self.latex(quantity)

    @abstractmethod
    def _require(self, network: Any) -> None:
        """Raise if it is not the theory of a network."""

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

    def block(self, name: str) -> sp.ImmutableMatrix:
        """One block of the Hessian (S..) or the propagator (G..)."""
        validation.choice("name", name, BLOCKS)
        return getattr(self.hessian if name.startswith("S") else self.propagator, name)

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols in it by name: ``symbols.N``, ``symbols.sigma_w``, ``symbols.C_0``, ..."""
        action = self.network_action
        fields = (*action.kernels, *action.conjugates, *action.variables)
        return Symbols({*fields, *self.action.free_symbols})

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

    def __repr__(self) -> str:
        inputs = "one input" if self.inputs == 1 else f"{self.inputs} inputs"
        phi = "undetermined" if self.activation is None else self.activation.name
        family, depth = self.family.__name__, self.depth
        return f"{type(self).__name__}({family}, depth {depth}, {inputs}, φ {phi})"

    def _repr_latex_(self) -> str:
        return f"$${self.latex(['action', 'saddle_point', 'hessian', 'propagator'])}$$"
