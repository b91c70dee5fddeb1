"""From a residual network with small parameters to its diffusion, symbolically, in one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.compiling.functions import lambdify
from fieldtheory.diffusions.diffusion_limit import diffusion_formulas as formulas
from fieldtheory.diffusions.diffusion_limit import small_increments as limit
from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    ClosedForm,
    MomentSystem,
    WideRates,
    closed_form,
    neuron_moments,
    pair_moments,
    wide_rates,
)
from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import (
    DiffusionConditions,
    diffusion_conditions,
)
from fieldtheory.diffusions.diffusion_limit.small_increments import SLOPES, WIDTH, increments
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.networks.activations import h
from fieldtheory.networks.dispatch import not_there
from fieldtheory.networks.parameters import named_arguments

_NUMBERS = ("instantaneous_mean", "quadratic_covariation", "next_mean", "next_covariance")


class NextOrder(NamedTuple):
    """Coefficients of Δt² of the cumulants of an increment, given the layer before.

    ``mean`` of neuron o; ``covariance`` of neurons o, p and inputs i, j; ``third_cumulant`` of one
    neuron and inputs i, j, k in their S_ij = σ²_b + σ²_w ψ(x^(i))·ψ(x^(j))/D, for independent
    parameters, of which different neurons have none.
    """

    mean: sp.Expr
    covariance: sp.Expr
    third_cumulant: sp.Expr | None


class ExactMoments(NamedTuple):
    """Closed linear systems of moments at every width: ``pair`` of the Gram matrix, ``neuron``."""

    pair: MomentSystem
    neuron: MomentSystem


@dataclass(frozen=True, repr=False)
class DiffusionDerivation:
    """The diffusion of a network; each part is derived when first asked for.

    Parameters
    ----------
    network : DiffusionNetwork
        Its φ, ψ and kind of law are taken; variances, width and horizon stay symbols.
    undetermined : bool
        Whether φ'(0), φ''(0), ... stay symbols as well, see ``general``.

    Examples
    --------
    >>> th = derive_diffusion(DiffusionNetwork(activation="swish"))
    >>> print(th)
    DiffusionDerivation(φ swish, ψ linear, independent parameters)
    >>> th.slopes[:2], th.general.slopes[:2]
    ((1/2, 1/2), (\\phi_1, \\phi_2))
    >>> th.instantaneous_mean
    \\sigma_{b}**2/4 + \\sigma_{w}**2*Sum(x^{(i)}[k]**2, (k, 1, D))/(4*D)
    >>> th.conditions.cannot_explode
    False
    """

    network: DiffusionNetwork
    undetermined: bool = False

    def __getattr__(self, name: str) -> Any:
        if name in DiffusionNetwork.without:
            raise AttributeError(str(not_there(name, self.network)))
        raise AttributeError(f"DiffusionDerivation has no {name!r}")

    @property
    def general(self) -> DiffusionDerivation:
        """The same with φ left undetermined: its derivatives at 0 are symbols."""
        return replace(self, undetermined=True)

    @cached_property
    def slopes(self) -> tuple[sp.Expr, ...]:
        """φ'(0), ..., φ''''(0), exact; symbols if undetermined.

        Raises
        ------
        ValueError
            If there is no limit; ``conditions`` says why.
        """
        return SLOPES if self.undetermined else self.network.exact_slopes

    @property
    def law(self) -> str:
        """ "independent", "matrix normal" or "full" (PF Assumptions 3.4, 3.3, 3.1)."""
        law = self.network.parameter_law
        if law is None:
            return limit.LAWS[0]
        return limit.LAWS[1 if law.weight_covariance is None else 2]

    @cached_property
    def instantaneous_mean(self) -> sp.Expr:
        """μ_x,o(x) = lim E[Δx_o | x]/Δt of neuron o (PF eq. (1))."""
        return self._put(limit.law_increments().mean[0])

    @cached_property
    def instantaneous_covariance(self) -> sp.Expr:
        """σ²_x,op(x) = lim Cov[Δx_o, Δx_p | x]/Δt of neurons o, p (PF eq. (2))."""
        return limit.one_input(self.quadratic_covariation)

    @property
    def drift(self) -> sp.Expr:
        """The drift of neuron o in dx = φ'(0) dn + drift dt, n of no mean (PF eqs. (11), (14))."""
        return self.instantaneous_mean

    @cached_property
    def diffusion(self) -> sp.Expr:
        """σ_x, a square root of ``instantaneous_covariance``, for one neuron (PF eqs. (11), (17)).

        For parameters that are not independent the root is one of matrices, φ'(0) V^(1/2) of
        V = V_op.
        """
        if self.law != limit.LAWS[0]:
            return self.slopes[0] * sp.sqrt(sp.MatrixSymbol("V", WIDTH, WIDTH))
        variance = limit.noise_covariance(self.law, "ii", (limit.O, limit.O))
        return self.slopes[0] * sp.sqrt(self._put(variance))

    @cached_property
    def quadratic_covariation(self) -> sp.Expr:
        """d[x_o^(i), x_p^(j)]/dt of neurons o, p and inputs i, j (PF eqs. (13), (14), (17))."""
        return self._put(limit.law_increments().covariance[0])

    @cached_property
    def next_order(self) -> NextOrder:
        """The terms of order Δt² of the increments, the error of finite depth."""
        moments = limit.law_increments()
        third = None
        if self.law == limit.LAWS[0]:
            third = increments().third_cumulant.subs(self._values)
        return NextOrder(self._put(moments.mean[1]), self._put(moments.covariance[1]), third)

    @property
    def wide_limit(self) -> WideRates:
        """The rates of means and covariances for D → ∞, with those of their order Δt.

        Raises
        ------
        ValueError
            For parameters that are not independent, for which D → ∞ has no meaning.
        """
        self._require_independent("the wide limit")
        return WideRates(*[rate.subs(self._values) for rate in wide_rates()])

    @cached_property
    def closed_form(self) -> ClosedForm:
        """The wide limit in closed form for ψ(x) = x, see `ClosedForm`.

        Raises
        ------
        ValueError
            For another ψ, and for parameters that are not independent.
        """
        self._require_independent("a closed form")
        self._require_linear_input("a closed form")
        return closed_form(self.slopes)

    @cached_property
    def exact_moments(self) -> ExactMoments:
        """The moments that close at every width D, for ψ(x) = x and φ''(0) = 0.

        Raises
        ------
        ValueError
            Where moments do not close.
        """
        self._require_independent("a closed system of moments")
        self._require_linear_input("a closed system of moments")
        if not self.undetermined and self.slopes[1] != 0:
            raise ValueError(
                "a closed system of moments needs an activation with φ''(0) = 0, got "
                f"{self.network.activation.name}, where it is {self.slopes[1]}"
            )
        put = {} if self.undetermined else {SLOPES[0]: self.slopes[0]}
        return ExactMoments(
            *[
                system._replace(
                    matrix=system.matrix.subs(put),
                    parameters=tuple(s for s in system.parameters if s not in put),
                )
                for system in (pair_moments(), neuron_moments())
            ]
        )

    @property
    def conditions(self) -> DiffusionConditions:
        """Conditions of PF on φ and ψ, which of them hold and what follows; prints as a table."""
        return diffusion_conditions(self.network.activation, self.network.input_activation)

    def latex(self, quantity: str) -> str:
        """LaTeX of a result, with the definitions of what stands in it.

        Parameters
        ----------
        quantity : str
            "network", "instantaneous_mean",
            "instantaneous_covariance", "diffusion" (the stochastic differential equation),
            "quadratic_covariation", "next_order", "wide_limit", "closed_form" or "exact_moments".

        Returns
        -------
        str
            Without delimiters, within the text width of LaTeX's article; needs amsmath.

        Raises
        ------
        ValueError
            For an unknown quantity, or one that this network has not.

        Examples
        --------
        >>> print(derive_diffusion(DiffusionNetwork()).latex("closed_form").splitlines()[2])
        m_{i}(t) &= 0 \\\\
        """
        validation.choice("quantity", quantity, formulas.QUANTITIES)
        phi, psi = self.network.activation, self.network.input_activation
        own = None if self.undetermined else phi
        notation = formulas.DiffusionNotation(self.law, self.slopes, own, psi)
        match quantity:
            case "wide_limit":
                return formulas.wide_latex(notation, self.wide_limit)
            case "closed_form":
                return formulas.closed_form_latex(notation, self.closed_form)
            case "exact_moments":
                return formulas.moments_latex(notation, self.exact_moments)
        return formulas.OF_LAYERS[quantity](notation)

    def lambdify(self, quantity: str) -> Callable[..., np.ndarray]:
        """A quantity as a numeric function of layers, with the numbers of the network.

        Parameters
        ----------
        quantity : str
            "instantaneous_mean" or "next_mean": f(x) of a layer x (..., D) is (..., D).
            "quadratic_covariation" or "next_covariance": f(x, y) of the layers of two inputs is
            (..., D, D); f(x, x) is the instantaneous covariance. The next orders are the
            coefficients of Δt².

        Returns
        -------
        callable

        Examples
        --------
        >>> th = derive_diffusion(DiffusionNetwork(width=2, activation="swish"))
        >>> th.lambdify("instantaneous_mean")([1.0, 1.0])
        array([0.5, 0.5])
        """
        validation.choice("quantity", quantity, _NUMBERS)
        moments = limit.law_increments()
        expressions = (
            moments.mean[0],
            moments.covariance[0],
            moments.mean[1],
            moments.covariance[1],
        )
        expression = expressions[_NUMBERS.index(quantity)].subs(self._values)
        symbols = [limit.MU_O, limit.MU_P, limit.V_OO, limit.V_PP, limit.V_OP]
        compiled = lambdify(symbols, expression)
        psi = lambdify([h], self.network.input_activation.expression)

        def of_layer(x: Any) -> np.ndarray:
            mu, V, _ = self._law_of(psi(np.asarray(x, dtype=float)))
            variance = np.diagonal(V, axis1=-2, axis2=-1)
            return compiled(mu, mu, variance, variance, variance)

        def of_layers(x: Any, y: Any) -> np.ndarray:
            features = [psi(np.asarray(layer, dtype=float)) for layer in (x, y)]
            (mu, V, across), (nu, U, _) = self._law_of(*features), self._law_of(features[1])
            rows, columns = (np.diagonal(matrix, axis1=-2, axis2=-1) for matrix in (V, U))
            of_rows = (mu[..., :, None], rows[..., :, None])
            of_columns = (nu[..., None, :], columns[..., None, :])
            return compiled(of_rows[0], of_columns[0], of_rows[1], of_columns[1], across)

        return of_layer if quantity.endswith("mean") else of_layers

    def __repr__(self) -> str:
        phi = "undetermined" if self.undetermined else self.network.activation.name
        psi = self.network.input_activation.name
        return f"DiffusionDerivation(φ {phi}, ψ {psi}, {self.law} parameters)"

    def _repr_latex_(self) -> str:
        return f"$${self.latex('diffusion')}$$"

    @property
    def _values(self) -> dict[sp.Symbol, sp.Expr]:
        return dict(zip(SLOPES, self.slopes, strict=True))

    def _put(self, expression: sp.Expr) -> sp.Expr:
        """The law, φ's derivatives and ψ put in."""
        substituted = limit.of_law(expression.subs(self._values), self.law)
        return substituted.replace(limit.psi, lambda x: self.network.input_activation(x))

    def _law_of(self, *features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """μ, V_op of the first features, and V_op between the first and the last."""
        network, first, last = self.network, features[0], features[-1]
        if (law := network.parameter_law) is not None:
            mean = law.mean_of(first)
            return mean, law.covariance_of(first, first), law.covariance_of(first, last)
        if first.shape[-1] != network.width:
            raise ValueError(f"x must have {network.width} neurons, got shape {first.shape}")

        def covariance(other: np.ndarray) -> np.ndarray:
            gram = (first * other).mean(axis=-1)[..., None, None]
            return (network.bias_variance + network.weight_variance * gram) * np.eye(network.width)

        return np.zeros(first.shape), covariance(first), covariance(last)

    def _require_independent(self, what: str) -> None:
        if self.law != limit.LAWS[0]:
            raise ValueError(f"{what} needs a network without parameter_law, got a {self.law} one")

    def _require_linear_input(self, what: str) -> None:
        if (psi := self.network.input_activation).expression != h:
            raise ValueError(f"{what} needs the input_activation linear, got {psi.name}")


@named_arguments
def derive_diffusion(network: DiffusionNetwork) -> DiffusionDerivation:
    """Result of `derive` for a `DiffusionNetwork`.

    >>> from fieldtheory.theory.derivation import derive
    >>> derive(DiffusionNetwork(activation="erf")).slopes[:2]
    (2/sqrt(pi), 0)
    """
    return DiffusionDerivation(network)
