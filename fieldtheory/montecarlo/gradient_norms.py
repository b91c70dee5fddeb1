"""`simulate_gradients`: how large the gradients of random finite networks are in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory.montecarlo.sampling import plan
from fieldtheory.montecarlo.sampling.backward import draw_squares
from fieldtheory.montecarlo.sampling.forward import feature_functions
from fieldtheory.networks.activations import named_activation
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork, checked_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.infinite_width.homogeneous import lines_of
from fieldtheory.numerics.infinite_width.layer_functions import network_functions
from fieldtheory.numerics.infinite_width.tangents import Trained, own_of_inputs, slope_gains
from fieldtheory.numerics.result import Result
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.tangent.parametrizations import require_split, trained
from fieldtheory.plotting.curves import Curve

FIELDS = fields_of(
    r"""
    gradients | layer | N_l \langle (\partial y / \partial W_{ij}^{(l)})^2 \rangle
        | mean squares of the gradients by one weight, times the rows of the matrix
        | always with_error of_none panel=gradients column=gradient
    theory | layer | N_l \langle (\partial y / \partial W_{ij}^{(l)})^2 \rangle_\infty
        | the same of infinitely wide networks | always of_none panel=gradients column=theory
    upper_bound | - | C\,e^{\sigma_w^2 \Sigma_l \rho_l^2 / 2}
        | upper bound for all layers of infinitely wide networks | always of_none
    lower_bound | - | \kappa (1 + \rho_{\min}^2 \sigma_w^2 / 2)^L
        | lower bound for the layers 1, ..., L of infinitely wide networks | always of_none
    """
)


@dataclass(frozen=True, eq=False)
class SimulatedGradients(Result):
    """Squares of the gradients of random finite networks, with their theory and bounds.

    With L the depth, N_l the number of rows of the matrix of layer l (N, and 1 for the readout),
    and for P inputs an axis (P,) in front:

    ===============  ========  ==================================================================
    field            shape     meaning
    ===============  ========  ==================================================================
    gradients        (L+2,)    N_l ⟨(∂y/∂W_ij^(l))²⟩ of the read-in, the layers and the readout
    gradients_error  (L+2,)    standard error
    theory           (L+2,)    the same for N → ∞
    upper_bound      ()        of ``theory``, all layers (SR Proposition 1); None if it has none
    lower_bound      ()        of ``theory``, layers 1, ..., L
    ===============  ========  ==================================================================

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=4, activation="relu", weight_variance=2.0, width=200)
    >>> found = ft.simulate_gradients(net, 0.5, samples=100, seed=1)
    >>> found.gradients.shape, bool((found.theory < found.upper_bound).all())
    ((6,), True)
    """

    table = FIELDS
    settings = {"samples": int, "seed": int, "method": str, "loss_slope": str}  # noqa: RUF012

    network: LayeredNetwork
    input_kernel: np.ndarray
    samples: int
    seed: int
    method: str
    gradients: np.ndarray
    gradients_error: np.ndarray
    theory: np.ndarray
    upper_bound: np.ndarray | None = None
    lower_bound: np.ndarray | None = None
    loss_slope: str | None = None

    def __repr__(self) -> str:
        net = self.network
        return (
            f"SimulatedGradients(depth={net.depth}, activation={net.activation.name}, "
            f"width={net.width}, samples={self.samples}, method={self.method}, seed={self.seed})"
        )

    def _curves(self) -> dict[str, list[list[Curve]]]:
        panels = super()._curves()
        if self.upper_bound is not None and self.lower_bound is not None:
            lines, (groups,) = [], panels.values()
            bounds = np.ravel(self.upper_bound), np.ravel(self.lower_bound)
            for pair in zip(*bounds, strict=True):
                for bound, first in zip(pair, (0, 1), strict=True):
                    layers = np.arange(first, self.network.depth + 1)
                    y = np.full(len(layers), bound)
                    lines.append(Curve("gradients", "bounds", layers, y))
            groups.append(lines)
        return panels


@named_arguments
def simulate_gradients(
    network: LayeredNetwork,
    K0: Any = None,
    *,
    X: Any = None,
    loss_slope: Any = None,
    samples: int = 1000,
    seed: int = 0,
    method: str = "kernel",
) -> SimulatedGradients:
    """Draw finite networks at random and measure the gradients by the weights of every layer.

    Estimated is the mean over networks and over the entries of one matrix,

        g_l = N_l ⟨(∂y/∂W_ij^(l))²⟩,   l = 0, ..., L + 1,

    of one output y, where W_ij are the weights themselves, of the read-in (l = 0), the layers and
    the readout, and N_l is the number of rows of W^(l): N, and 1 for the readout. That is
    ‖∂y/∂W^(l)‖² over the number of columns, which is finite for N → ∞; a single weight has g_l/N_l.
    For a loss ℓ(y) it is the same of ℓ'(y) ∂y/∂W_ij, the E|∂L/∂W_l^{11}|² of SR Proposition 1.

    The signals δ^(l) = ∂y/∂h^(l) go backward through the network,

        δ^(l-1) = γ_l δ^(l) + ρ_l φ'(h^(l-1)) ⊙ W^(l)ᵀ δ^(l),
        g_l = ρ_l² |δ^(l)|² |φ(h^(l-1))|²/N   averaged,   g_0 = |δ^(0)|² |x|²/d,

    which for N → ∞ gives

        g_l = ρ_l² ⟨φ²⟩_{l-1} Π_{k=l+1}^{L+1} (γ_k² + a_k ⟨φ'²⟩_{k-1}),   γ_{L+1} = 0,

    with ⟨·⟩_l over h ~ N(0, K^(l)), 1 in place of ρ_l² for the readout, and |x|²/d in place of
    ρ_l² ⟨φ²⟩ for the read-in; for a loss times ⟨ℓ'(y)²⟩.

    Parameters
    ----------
    network : LayeredNetwork
        Of any family, without batch axes; its ``width`` is N.
    K0 : float or array_like, shape (P,)
        The variance of the signals h^(0) of one input, or of each of P inputs, of which |x|²/d is
        (K0 − σ²_b,in)/σ²_w,in. Every input has networks of its own.
    X : array_like, shape (d,) or (P, d)
        The inputs themselves, in place of K0.
    loss_slope : str, Activation, sympy.Expr or callable, optional
        ℓ' as a function of y, in the forms that an activation has: "y - 1" for squared loss and
        the target 1. Without it the gradients are those of y.
    samples : int
        Number of networks for every input, at least 20.
    seed : int
        Seed of the random numbers, >= 0.
    method : {"kernel", "weights"}
        "weights" draws every weight and goes through the networks forward and backward. "kernel"
        draws no weights: forward as `simulate` does, and backward W^(l)ᵀ δ^(l) from its law given
        the signals f^(l) that the same weights gave; exact, and about N times cheaper.

    Returns
    -------
    SimulatedGradients

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed; if the read-in has no weights, or K0 is less than the
        variance of its biases; if φ has jumps or slopes so steep that ⟨φ'²⟩ is infinite.
    OverflowError
        If a kernel or a gradient exceeds the range of float64.

    Notes
    -----
    The bounds of ``theory`` are those of SR Proposition 1 with their constants. They exist for
    γ = 1, σ²_w, σ²_w,out > 0 and φ(th) = t φ(h) for t > 0, such as ReLU. With
    v = ⟨φ²⟩/K = ⟨φ'²⟩, 1/2 for ReLU, and Q = K^(0) + σ_b²/(v σ_w²),

        g_l <= C exp(v σ_w² Σ_k ρ_k²),                l = 0, ..., L + 1,
        g_l >= κ (1 + v σ_w² ρ_min²)^L,               l = 1, ..., L,
        C = max(σ²_w,out v |x|²/d, σ²_w,out v² ρ_max² Q, v Q),
        κ = σ²_w,out v² ρ_min² K^(0)/(1 + v σ_w² ρ_min²),

    for a loss times ⟨ℓ'(y)²⟩. SR takes |ℓ'| bounded on compacts, but y is not: for squared loss
    ⟨ℓ'²⟩ itself grows as K^(L+1), and no C serves all depths of an unscaled network. Of single
    weights of the read-in there is no lower bound: that of an x_j = 0 has no gradient.

    SR has no readout, its loss is of the neuron y_L^1. What is said here then holds for the sum
    over all rows i of E(∂L/∂W_l^{ij})²; of the row i = 1 alone, to which skip connections lead
    straight, only λ_l² ⟨φ²⟩_{l-1} is left for N → ∞, and of the other rows nothing.

    At finite N the mean differs from ``theory`` by a relative O(L/N), for linear φ by nothing. Its
    logarithm spreads over networks with a variance of the same order: for L beyond N the mean is
    that of rare networks, which the standard error does not see.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=20, activation="relu", weight_variance=2.0, bias_variance=0.0)
    >>> first = lambda net: simulate_gradients(net, X=[1.0, 2.0, 2.0], samples=50).theory[1]
    >>> for name in ("none", "uniform", "decreasing"):
    ...     print(f"{name:10s} {first(net.replace(branch_scale=name)):.4g}")
    none       1.573e+06
    uniform    0.379
    decreasing 15.16
    """
    kernel = _variances(checked_network(network, "simulate_gradients"), K0, X)
    inputs = np.atleast_1d(kernel)
    if not network.parameters["readin_weight_variance"]:
        raise ValueError(
            "readin_weight_variance must be positive for gradients by the read-in weights, got 0"
        )
    run = plan.checked_run(network, inputs[0], None, samples, seed, method, False, False)
    # ‖∂h_i^(l)/∂W^(l)‖² = w_l ⟨φ²⟩ + u_l for one neuron i, over the number of columns of W^(l).
    rates = trained(network, "standard", bias_rates=0.0)
    columns = np.array([network.input_dim, *[network.width] * (network.depth + 1)])
    trainable = Trained(rates.weights / columns, rates.biases / columns)
    require_split(network, trainable, inputs)
    # ℓ' in the place of an activation, for its numbers and its averages.
    loss = None
    if loss_slope is not None:
        slope = named_activation("loss_slope", loss_slope)
        loss = ResidualNetwork(depth=1, activation=slope)
    theory, bounds = _theory(network, trainable, inputs, loss)
    drawn = [
        _drawn(run, trainable, variance, number, loss) for number, variance in enumerate(inputs)
    ]
    mean, error = (np.stack(part) for part in zip(*drawn, strict=True))
    for l in range(network.depth + 2):
        require_finite("the gradient", np.stack([theory[:, l], mean[:, l], error[:, l]]), l)
    layers = (*kernel.shape, -1)
    return SimulatedGradients(
        network,
        kernel,
        run.samples,
        run.seed,
        run.method,
        gradients=mean.reshape(layers),
        gradients_error=error.reshape(layers),
        theory=theory.reshape(layers),
        upper_bound=None if bounds is None else bounds[0].reshape(kernel.shape),
        lower_bound=None if bounds is None else bounds[1].reshape(kernel.shape),
        loss_slope=loss.activation.name if loss else None,
    )


def _variances(network: LayeredNetwork, K0: Any, X: Any) -> np.ndarray:
    """K^(0) of single inputs, () or (P,)."""
    kernel, data = plan.given_kernel(network, K0, X if np.ndim(X) != 1 else [X])
    if data is not None:
        kernel = np.diagonal(kernel).copy() if np.ndim(X) > 1 else kernel[0, 0]
    if kernel.ndim > 1:
        raise ValueError(
            "K0 must be a variance or variances (P,), one for every input, got shape "
            f"{kernel.shape}"
        )
    return np.asarray(kernel)


def _theory(
    network: LayeredNetwork, trainable: Trained, inputs: np.ndarray, loss: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """The g_l for N → ∞, (P, L + 2), and both bounds, (2, P), where there are any."""
    solution = solve(network, inputs)
    K = np.moveaxis(solution.kernels, -1, 0)
    own = own_of_inputs(network, trainable, K)
    skips = layer_coefficients(network).skips[:, None]
    factors = (skips + slope_gains(network, K))[1:]
    factor = 1.0 if loss is None else network_functions(loss).second_moment(K[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        behind = np.concatenate([np.cumprod(factors[::-1], axis=0)[::-1], np.ones_like(K[:1])])
        bounds = _bounds(network, trainable, inputs, own[0])
        return (own * behind * factor).T, None if bounds is None else bounds * factor


def _bounds(
    network: LayeredNetwork, trainable: Trained, inputs: np.ndarray, squares: np.ndarray
) -> np.ndarray | None:
    """SR Proposition 1 with its constants; ``squares`` are |x|²/d."""
    layers = layer_coefficients(network)
    # ⟨Σψ²⟩/K = ⟨Σψ'²⟩ of features with ψ(th) = t ψ(h) for t > 0.
    slopes = [lines_of(psi) for psi in network_functions(network).functions]
    share = None if None in slopes else float(sum(each.moment for each in slopes if each))
    if share is None or (layers.skips[1:-1] != 1).any() or (layers.weights[1:] <= 0).any():
        return None
    steps, scales = share * layers.weights[1:-1], trainable.weights[1:-1]
    readout = share * layers.weights[-1]
    most = inputs + (layers.biases[1:-1] / steps).max()
    constants = [readout * squares, readout * share * scales.max() * most, share * most]
    upper = np.max(constants, axis=0) * np.exp(steps.sum())
    least = readout * share * scales.min() * inputs
    return np.array([upper, least * (1 + steps.min()) ** (network.depth - 1)])


def _drawn(
    run: plan.Run, trainable: Trained, variance: float, number: int, loss: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of the g_l of one input, (L + 2,)."""
    squares = draw_squares(run.network, variance, run.samples, run.seed, number, run.method)
    of_input = max(trainable.weights[0] * variance + trainable.biases[0], 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        values = squares.backward
        values[:, 0] *= of_input
        values[:, 1:] *= trainable.weights[1:] * squares.forward
        if loss is not None:
            values *= feature_functions(loss)(squares.output)[0][:, None] ** 2
        return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(run.samples)
