"""Families whose branches have a hidden layer of their own: their Gram matrices are a chain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fieldtheory.networks.activations import Activation
from fieldtheory.networks.dispatch import reasons
from fieldtheory.networks.family import DeepNetwork, Parameters


class GramEntry(NamedTuple):
    """An entry R_αβ of a Gram matrix with the two on the diagonal, R_αα and R_ββ."""

    xy: Any
    xx: Any
    yy: Any


_WITHOUT = reasons(
    {
        "variance_reduction": "its control variates are those of one matrix a layer",
        "exact": "the integral over last layers is written for one matrix a layer",
        "samples": "G11 of blocks is computed as a whole, not by sampled neurons",
        "abbreviate, misprints, tangent_kernel, saturation, large_depth": (
            "formulas of blocks are those of symbolic layers, in short symbols"
        ),
        "method='saturation', method='large_depth', method='deep_limit', dynamic_range, slope": (
            "approximations to ρ* are those of a φ that reads the stream itself"
        ),
        "a sequence of networks": "their optima share averages of one matrix a layer",
        "labels": "the derivative of what labels say is written for one matrix a layer",
        "optimal_output_variance": (
            "the readout of blocks is linear: no variance is the best for it"
        ),
        "tilted_posterior": "it weights the paths of neurons of one kind, and blocks have two",
        "a response after labels": "it needs correlators of three kernels for units of one kind",
        "component_kernels": "behind a norm (B.14) of PDLT-B has terms more than χ_⊥'/2",
        "the closure of PDLT-B": (
            "Gram matrices of blocks are a Markov chain, whose exact recursion closes by itself"
        ),
        "diagrams, correction": (
            "the Gram matrices are a Markov chain, whose cumulants follow from those of the layer "
            "before without loops"
        ),
    }
)


class GramNetwork(DeepNetwork, abstract=True):
    """A family of two populations: N units of a stream, and M hidden units of every branch.

        x^(0) = W_in x + b_in,   R^(l) = (1/N) x^(l) x^(l)ᵀ
        C^(l) = a_l (1/M) Σ_j Π_k φ_k(u_kj) φ_k(u_kj) + c_l,   u_k ~ N(0, Q_k(R^(l-1)))
        x^(l) = γ_l s(x^(l-1)) + f^(l),   f_i^(l) ~ N(0, C^(l)),   l = 1, ..., L

    Given R^(l-1) the hidden units are independent, and given C^(l) the units of a branch are: the
    Gram matrices are a Markov chain at every width. Norms make the Q_k functions of R that are not
    linear. A family says what the properties and methods below are, of which ``branch`` is with
    explicit weights.

    ``parameters`` are symbols of SymPy for formulas and numbers of one layer for simulations.
    `solve`, `derive`, `simulate` and all others follow.
    """

    markov: ClassVar[bool] = True
    without: ClassVar[Mapping[str, str]] = _WITHOUT
    # What the weights of the hidden signals are called, in the names of their parameters.
    signal_names: ClassVar[tuple[str, ...]] = ("inner",)

    @property
    @abstractmethod
    def factors(self) -> tuple[Activation, ...]:
        """φ_k, functions of independent signals whose product is the activity of a hidden unit."""

    @property
    @abstractmethod
    def hidden_width(self) -> int:
        """M, the number of hidden units of a branch."""

    @property
    def centred(self) -> bool:
        """Whether the stream has no mean over its units, so that N − 1 are independent."""
        return False

    @abstractmethod
    def stream(self, R: GramEntry, parameters: Parameters) -> Any:
        """Entry of the Gram matrix of what the skip connection carries, which `kernels` are of."""

    @abstractmethod
    def read(self, R: GramEntry, parameters: Parameters) -> Any:
        """Entry of the Gram matrix of what branches and the readout read."""

    @abstractmethod
    def signals(self, read: Any, parameters: Parameters) -> tuple[Any, ...]:
        """Q_k, entries of the covariances of the signals of a hidden unit."""

    def passed(self, x: Any, parameters: Parameters) -> tuple[Any, ...]:
        """s(x), and what is read of x (..., P, N): x rescaled as `stream` and `read` say."""
        if self.centred:
            x = x - x.mean(axis=-1, keepdims=True)
        R = (x**2).mean(axis=-1, keepdims=True)
        # Signals that vanish stay zero.
        R = R + (R == 0)
        after = (of(GramEntry(R, R, R), parameters) for of in (self.stream, self.read))
        return tuple(x if square is R else x * (square / R) ** 0.5 for square in after)

    @abstractmethod
    def branch(
        self,
        read: np.ndarray,
        affine: Callable[..., Any],
        activity: Callable[..., Any],
        parameters: Parameters,
    ) -> Any:
        """f^(l) with explicit weights.

        ``affine(x, units, weight_variance, bias_variance)`` as of `LayeredNetwork.branch`, with the
        number of units that it returns; ``activity(u_1, ...)`` is Π_k φ_k(u_k).
        """
