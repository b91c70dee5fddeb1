"""`depth_limit`: kernels and tangent kernels of infinitely deep networks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.limits.depth_trajectory import SummableTrajectory, UniformTrajectory, trajectory_of
from fieldtheory.limits.kernel_flow import PairLayout
from fieldtheory.networks.family import DeepNetwork, deep_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import DIMENSIONS, Field, fields_of, notes
from fieldtheory.numerics.storage import Variables
from fieldtheory.numerics.stored import Stored

FIELDS = fields_of(
    r"""
    remaining | place | \sum_{k>l} \rho_k^2 | sum of the squared scales behind the place
        | always of_none
    kernels | place | q_t | kernels | always
    tangent_kernels | place | \theta_t | tangent kernels | always
    output_kernel | - | q^{\mathrm{out}} | kernel of the output | always
    output_tangent_kernel | - | \theta^{\mathrm{out}} | tangent kernel of the output | always
    """
)
_CORRECTION = "first_correction"


class Kernels(NamedTuple):
    """Kernel and tangent kernel, () or (P, P) at a place."""

    kernel: np.ndarray
    tangent_kernel: np.ndarray


class FirstCorrection(NamedTuple):
    """Correction of a finite depth L to `DepthLimit` to first order, by the names of its fields.

    For ``"uniform"`` the coefficients of 1/L, of the same shapes; for the same scales at every
    depth those of Σ_{k>L} ρ_k², of the kernels of layer L and of the outputs, () or (P, P).
    """

    kernels: np.ndarray
    tangent_kernels: np.ndarray
    output_kernel: np.ndarray
    output_tangent_kernel: np.ndarray


@dataclass(frozen=True, eq=False)
class DepthLimit(Stored):
    """The limit of infinite depth of one network, on a grid of t and everywhere between.

    ======================  ======================  ===============================================
    field                   shape                   meaning
    ======================  ======================  ===============================================
    places                  (n,)                    t = l/L from 0 to 1 for ρ_l = λ(l/L)/√L; layers
                                                    l from 0 to infinity for ρ_l the same at every
                                                    depth
    remaining               (n,)                    Σ ρ² of the layers behind the place
    kernels                 (n, ...), (n, P, P)     q_t, or K^(l) and at last Q_∞
    tangent_kernels         the same                θ_t, or Θ^(l) and at last Θ_∞
    output_kernel           (...) or (P, P)         kernel of the readout at the last place
    output_tangent_kernel   the same                tangent kernel of the readout there
    error                   ()                      relative error of the above, see below
    first_correction        `FirstCorrection`       what a finite depth adds; computed when asked
    ======================  ======================  ===============================================

    The tangent kernels are those of networks with all weights trained, Θ^(0) = K^(0).

    ``error`` is in units of √(K_αα K_ββ): for sums over layers what the last half of the layers
    before the flow changes, else the tolerance of the solver in each step. With averages that have
    no closed form (tanh, softplus) kernels of several inputs are right to 1e-11.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=1, activation="relu", branch_scale="uniform",
    ...     weight_variance=2.0, bias_variance=0.0)
    >>> limit = ft.depth_limit(net, 1.0)
    >>> limit
    DepthLimit(activation=relu, inputs=1, error=1e-12)
    >>> float(limit.output_kernel.round(6)), float(limit.at(0.5).kernel.round(6))  # e and √e
    (2.718282, 1.648721)
    """

    table = FIELDS
    settings: ClassVar = {"error": float, "last": int}

    network: DeepNetwork
    input_kernel: np.ndarray
    places: np.ndarray
    remaining: np.ndarray
    kernels: np.ndarray
    tangent_kernels: np.ndarray
    output_kernel: np.ndarray
    output_tangent_kernel: np.ndarray
    error: float
    last: int = 0

    @cached_property
    def first_correction(self) -> FirstCorrection:
        """The next order: K^(L) = q_1 + e/L + O(1/L²), or Q_∞ + e Σ_{k>L} ρ_k² + ... (SR Prop. 7).

        The error of Euler's steps, by the modified flow that they follow: e' = (Dv)(e − v/2) for
        ρ_l = 1/√L. For a schedule that does not follow the depth, a network of depth L is that of
        infinite depth without its last layers, and e = −v at infinity.

        Raises
        ------
        ArithmeticError
            If it is not finite, as for φ with kinks on both sides (hard tanh) and opposite inputs.
        """
        layout, trajectory = PairLayout(self.input_kernel), self._trajectory
        flow, readout = layout.flows(self.network)
        if isinstance(trajectory, UniformTrajectory):
            start = np.stack([layout.packed(self.kernels[0])] * 2)
            changes = list(trajectory.changes(flow, start))
            corrections, (state, e) = np.stack([change for _, change in changes]), changes[-1]
        else:
            state = np.stack([layout.packed(K[-1]) for K in (self.kernels, self.tangent_kernels)])
            corrections = e = -flow.rates(state)
        out = readout.change_rates(state, e, 0.0)[1]
        if not (np.isfinite(corrections).all() and np.isfinite(out).all()):
            raise ArithmeticError("first_correction is not finite for these inputs")
        parts = corrections[..., 0, :], corrections[..., 1, :], *out
        return FirstCorrection(*(layout.unpacked(part) for part in parts))

    def at(self, place: float) -> Kernels:
        """The kernels at a place between those of the grid, to the same accuracy.

        Parameters
        ----------
        place : float
            t = l/L from 0 to 1, or for ρ_l the same at every depth the layer l = 0, 1, ..., inf.

        Returns
        -------
        Kernels
            ``kernel`` and ``tangent_kernel``, () or (P, P).

        Raises
        ------
        ValueError
            If there is no such place.
        """
        trajectory = self._trajectory
        trajectory.require(place)
        before = int(np.searchsorted(self.places, place, side="right")) - 1
        layout = PairLayout(self.input_kernel)
        state = np.stack(
            [layout.packed(values[before]) for values in (self.kernels, self.tangent_kernels)]
        )
        flow, _ = layout.flows(self.network)
        reached = trajectory.advance(flow, state, self.places[before], place)
        return Kernels(*(layout.unpacked(part) for part in reached))

    @cached_property
    def _trajectory(self) -> UniformTrajectory | SummableTrajectory:
        return trajectory_of(self.network, self.last)

    def plot(self) -> Any:
        """Kernels and tangent kernels over t or, for sums over layers, over Σ_{k<=l} ρ_k².

        Pairs of inputs are lines from dark to light.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fieldtheory.plotting.depth_profiles import draw_profiles

        names = ("kernel", "q"), ("tangent kernel", r"\theta")
        profiles = {}
        for (name, symbol), values in zip(names, (self.kernels, self.tangent_kernels), strict=True):
            lines = values.reshape(len(values), -1)
            if self.input_kernel.ndim == 2:
                lines = values[(slice(None), *np.triu_indices(values.shape[-1]))]
            profiles[f"{name} ${symbol}$"] = lines.T
        return draw_profiles(profiles, self.places, self.remaining)

    @property
    def _kernel_dims(self) -> tuple[str, ...]:
        ndim = self.input_kernel.ndim
        return ("input", "input_") if ndim == 2 else ("batch",) * ndim

    def _dims(self, field: Field) -> tuple[str, ...]:
        return field.dims + (self._kernel_dims if field.of_inputs else ())

    def _coordinates(self) -> dict[str, Any]:
        inputs = {dim: np.arange(len(self.input_kernel)) for dim in self._kernel_dims}
        return {"place": self.places} | ({} if "batch" in inputs else inputs)

    def _arguments(self, stored: bool) -> Variables:
        variables = super()._arguments(stored)
        correction = vars(self).get(_CORRECTION)
        for name, values in correction._asdict().items() if correction else ():
            field, dims = self.table[name], self._dims(self.table[name])
            words = notes(f"first correction of the {field.long_name}", rf"\delta {field.symbol}")
            variables[f"{_CORRECTION}_{name}"] = dims[len(dims) - values.ndim :], values, words
        if stored:
            variables["places"] = ("place",), self.places, notes(*DIMENSIONS["place"])
        return variables

    @classmethod
    def _read_arguments(cls, content: dict[str, Any]) -> dict[str, Any]:
        arguments = super()._read_arguments(content)
        arguments["places"] = np.asarray(content["places"], float)
        names = [f"{_CORRECTION}_{name}" for name in FirstCorrection._fields]
        if all(name in content for name in names):
            parts = (np.asarray(content[name], float)[()] for name in names)
            return {**arguments, _CORRECTION: FirstCorrection(*parts)}
        return arguments

    def __repr__(self) -> str:
        inputs = len(self.input_kernel) if self.input_kernel.ndim else 1
        return (
            f"DepthLimit(activation={self.network.activation.name}, inputs={inputs}, "
            f"error={self.error:.0e})"
        )


@named_arguments
def depth_limit(network: DeepNetwork, K0: Any) -> DepthLimit:
    """Kernels and tangent kernels of a residual network with infinitely many layers.

    For ρ_l = λ(l/L)/√L, such as ``branch_scale="uniform"`` with λ = 1, layers become a flow in
    t = l/L,

        dq/dt = λ² [σ²_w ⟨φφ⟩_q + σ²_b],   dθ/dt = λ² [σ²_w (⟨φφ⟩_q + ⟨φ'φ'⟩_q θ) + σ²_b]

    from q_0 = θ_0 = K^(0) (SR eq. (8) for ReLU; θ is that of SR Proposition 9), and a network of
    depth L has K^(l) = q_t + e_t/L + O(1/L²), see `DepthLimit.first_correction`. For ρ_l the same
    at every depth with a finite Σ ρ_l², such as "decreasing", the limit is that of infinitely many
    layers (SR Propositions 7, 8): the first ones are summed, the others are a flow over the time
    that remains, Σ_{k>l} ρ_k², however slowly that falls (as 1/ln l for "decreasing").

    Blocks follow the flow of what their branches add, a Π⟨φφ⟩_Q(q) + c, and their tangent kernels
    that of all their weights.

    Parameters
    ----------
    network : ResidualNetwork, BlockNetwork or of another family
        With γ = 1 and a schedule: ``branch_scale`` "uniform", "decreasing", or a function of (l, L)
        that also takes large l that are no integers. Its depth does not count. A constant c in
        ρ_l = c/√L is ``lambda l, L: c / L**0.5``.
    K0 : float or array_like
        The input kernel: variances of single inputs, or a covariance matrix (P, P).

    Returns
    -------
    DepthLimit

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind, Σ ρ_l² is not bounded ("none"), γ is not 1, or
        inputs without variance stand in a matrix and there is no bias.
    ArithmeticError
        If kernels grow beyond all bounds before the end (φ = x³), or the limit was not resolved.

    Notes
    -----
    SR writes the rates for ReLU with correlations, which are 0/0 at zero correlation; averages
    over q itself are not.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> K0 = [[1.0, 0.0], [0.0, 1.0]]
    >>> net = ft.ResidualNetwork(depth=100, activation="relu", branch_scale="uniform")
    >>> limit = ft.depth_limit(net, K0)
    >>> next_order = limit.kernels[-1] + limit.first_correction.kernels[-1] / 100
    >>> bool(abs(ft.solve(net, K0).kernels[100] - next_order).max() < 1e-4)
    True
    >>> decreasing = ft.depth_limit(net.replace(branch_scale="decreasing"), K0)
    >>> [float(q[0, 1].round(4)) for q in (decreasing.at(100).kernel, decreasing.kernels[-1])]
    [1.6035, 1.9636]
    """
    deep_network(network, "depth_limit")
    trajectory, kernel = trajectory_of(network), validation.input_kernel_array("K0", K0)
    parameters, scales = network.parameters, {*network.layer_parameters} - {"branch_scale"}
    if network.batch_shape or (np.asarray(network.layer(parameters).skip) != 1).any():
        raise ValueError("network must have skip_scale=1 in all layers, and no batch axes")
    if any(np.ptp(parameters[name]) for name in scales):
        raise ValueError(
            f"network must have {', '.join(sorted(scales))} that are the same for all layers"
        )
    if kernel.ndim > 2:
        raise ValueError(f"K0 must be variances or one matrix (P, P), got shape {kernel.shape}")
    layout = PairLayout(kernel)
    (flow, readout), start = layout.flows(network), np.stack([layout.packed(kernel)] * 2)
    if (start[0, : layout.inputs] == 0).any() and (
        (kernel.ndim == 2 and flow.layer.branch.bias == 0)
        or not np.isfinite(flow.rates(start)).all()
    ):
        raise ValueError("K0 must have variances > 0 where there is no bias, or a norm, got 0.0")
    if flow.damping:
        # Behind the norm of the read-in.
        start = start / flow.size(start)
    states = trajectory.states(flow, start)
    profile, out = states.values, readout.rates(states.values[-1])
    return DepthLimit(
        network=network,
        input_kernel=kernel,
        places=trajectory.places.copy(),
        remaining=np.array([trajectory.remaining(place) for place in trajectory.places]),
        kernels=layout.unpacked(profile[:, 0]),
        tangent_kernels=layout.unpacked(profile[:, 1]),
        output_kernel=layout.unpacked(out[0]),
        output_tangent_kernel=layout.unpacked(out[1]),
        error=states.error,
        last=states.last,
    )
