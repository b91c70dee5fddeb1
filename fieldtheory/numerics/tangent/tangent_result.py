"""`tangent_kernels` and the result it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork, deep_network
from fieldtheory.networks.family_checks import check_branch
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import FIELDS as OF_SOLUTION
from fieldtheory.numerics.fields import fields_of, table
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.result import field
from fieldtheory.numerics.tangent.parametrizations import checked_rates, require_split, trained
from fieldtheory.numerics.tangent.tangent_theory import TangentTheory, WithTangents
from fieldtheory.theory.tangent_kernel import checked_parametrization

FIELDS = fields_of(
    r"""
    rates | trained layer | \eta_k^{(l)} | learning rates | one_network of_none
    parts | trained layer | \Theta^{(L+1)}_{k, l}
        | parts of kinds of parameters and of layers in the tangent kernel of the output
    """
)
_KERNELS = ("tangent_kernels", "output_tangent_kernel", "log_tangent_kernels", "tangent_signs")
FIELDS |= {name: OF_SOLUTION[name] for name in _KERNELS}
FIELDS |= table(replace(FIELDS["tangent_kernels"], written="always", column="Theta"))


@dataclass(frozen=True, eq=False)
class TangentKernels(WithTangents):
    """The tangent kernel of a wide network of which one says what is trained, and how fast.

    Fields are computed when first asked for, with L the depth, P the number of inputs and ``...``
    the batch axes of ``branch_scale``, ``skip_scale`` and K0:

    =====================  ================================  =====================================
    field                  shape                             meaning
    =====================  ================================  =====================================
    rates                  (kinds, L+2)                      of the kinds in ``network.trained``
    tangent_kernels        (..., L+2) or (..., L+2, P, P)    Θ^(l), last entry that of the output
    output_tangent_kernel  (...) or (..., P, P)              Θ^(L+1)
    log_tangent_kernels    (..., L+2) or (..., L+2, P, P)    ln|Θ^(l)|, whatever its size
    tangent_signs          (..., L+2) or (..., L+2, P, P)    the signs of Θ^(l): 1, 0 or −1
    parts                  (..., kinds, L+2) + () or (P, P)  what adds up to output_tangent_kernel
    =====================  ================================  =====================================

    ``parts`` is what each kind of parameters in each layer, read-in first and readout last, adds.
    ``output_tangent_kernel`` alone takes memory for a few matrices (P, P) and is fast for many
    inputs: see `pair_map`.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, activation="relu")
    >>> found = ft.tangent_kernels(net, [[0.5, 0.1], [0.1, 0.5]])
    >>> found.tangent_kernels.shape, found.output_tangent_kernel.shape, found.rows()[0]["Theta"]
    ((4, 2, 2), (2, 2), 0.5)
    """

    table = FIELDS
    settings: ClassVar = {"parametrization": str, "rtol": float}

    network: DeepNetwork
    input_kernel: np.ndarray
    rates: np.ndarray
    parametrization: str = "ntk"
    rtol: float = DEFAULT_TOLERANCE

    def __repr__(self) -> str:
        return (
            f"TangentKernels(depth={self.network.depth}, "
            f"activation={self.network.activation.name}, inputs={self.inputs}, "
            f"parametrization={self.parametrization})"
        )

    @field
    def parts(self) -> np.ndarray:
        """What each kind and layer adds to Θ^(L+1)."""
        kinds = np.eye(len(self.rates))[..., None]
        alone = [trained(self.network, self.parametrization, self.rates * kind) for kind in kinds]
        return self._tangents.parts(alone)

    @cached_property
    def _tangents(self) -> TangentTheory:
        coefficients = trained(self.network, self.parametrization, self.rates)
        whole = checked_rates(self.network, None)
        usual = self.parametrization == "ntk" and np.array_equal(self.rates, whole)
        field = MeanField(self.network, self.input_kernel)
        return TangentTheory(field, None if usual else coefficients)

    def _coordinates(self) -> dict[str, Any]:
        return super()._coordinates() | {"trained": list(self.network.trained)}


@named_arguments
def tangent_kernels(
    network: DeepNetwork,
    K0: Any,
    rates: Mapping[str, Any] | None = None,
    parametrization: str = "ntk",
    rtol: float = DEFAULT_TOLERANCE,
) -> TangentKernels:
    """The neural tangent kernel of every layer, for a parametrisation and learning rates.

        Θ_αβ^(l) = Σ_θ η_θ ∂h_iα^(l)/∂θ ∂h_iβ^(l)/∂θ,    h^(L+1) = y

    over all weights and biases θ up to layer l, whose learning rates are η_θ: under gradient flow
    dθ/dt = −η_θ ∂E/∂θ of a wide network, outputs move by dy_α/dt = −Σ_β Θ_αβ^(L+1) ∂E/∂y_β. For
    N → ∞ it does not depend on the draw of the weights, and (SR eq. (9), whose λ_{l,L} should be
    λ_{l+1,L}; Jacot et al., arXiv:1806.07572, theorem 1)

        Θ^(0) = D^(0),   Θ^(l) = (γ_l² + a_l ⟨φ'_α φ'_β⟩) Θ^(l-1) + D^(l)

    Parameters
    ----------
    network : ResidualNetwork, FeedForwardNetwork, BlockNetwork or of a family like them
        Its ``branch_scale`` and ``skip_scale`` may have leading batch axes.
    K0 : float or array_like
        Kernel of the input, as for `solve`.
    parametrization : {"ntk", "standard"}
        What the parameters θ are, in lower or upper case. "ntk": w_ij and b_i of variance one, in
        W_ij = σ_w w_ij/√N and σ_b b_i, as in Jacot et al. and SR; then D^(l) = η_w a_l ⟨φφ⟩ +
        η_b c_l with a_l = ρ_l² σ_w² and c_l = ρ_l² σ_b², the residual kernel C^(l) at rates 1.
        "standard": the entries W_ij and b_i of the network themselves, as PyTorch trains them;
        D^(l) = ρ_l² (η_w N ⟨φφ⟩ + η_b), for the readout the same with ρ = 1, and for the read-in
        η_w x·x' + η_b. Weights between the stream and hidden units of blocks add
        η a_l (∂⟨aa⟩/∂Q) (Q − σ²_b), the covariance Q of the units' signals without the biases.
    rates : mapping of str to float or array_like, shape (L,), optional
        η >= 0 of kinds of parameters, 0 for what is not trained and 1 where they are left out. A
        residual network has "readin_weight", "readin_bias", "weight", "bias", "readout_weight" and
        "readout_bias"; a `BlockNetwork` has ``inner_``, ``gate_`` and ``outer_`` ones in place of
        the middle two. ``network.trained`` names them. Those of layers may have one for each.
    rtol : float
        As for `solve`.

    Returns
    -------
    TangentKernels

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind; if weights and biases of the read-in count
        differently and variances K0 are smaller than σ²_b,in. From a field, if φ has jumps or
        slopes so steep that ⟨φ'²⟩ is infinite.
    OverflowError
        From a field that exceeds float64.

    Notes
    -----
    Assumptions and approximations: the leading order for N → ∞ of every D^(l). Weights of the
    "standard" parametrisation have an extra factor N, and what is left out of them is of the order
    of what biases add.

    x·x' is d_in (K0 − σ²_b,in)/σ²_w,in, d_in the ``input_dim`` of the network; it is needed where
    weights and biases of the read-in count differently, that is for "standard", and for "ntk" if
    their rates differ.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=3, activation="relu", branch_scale=0.5, bias_variance=0.0)
    >>> round(float(ft.tangent_kernels(net, 0.5).output_tangent_kernel), 6)
    1.161966

    What the readout alone learns is the kernel of its features:

    >>> alone = dict.fromkeys(net.trained, 0.0) | {"readout_weight": 1.0}
    >>> learned = ft.tangent_kernels(net, 0.5, alone).output_tangent_kernel
    >>> bool(np.isclose(learned, ft.solve(net, 0.5).output_kernel))
    True
    """
    checked = deep_network(network, "tangent_kernels")
    kernel = validation.input_kernel_array("K0", K0)
    rtol = validation.within("rtol", rtol, 1e-14, 0.1)
    parametrization = checked_parametrization(parametrization)
    if parametrization == "standard" and isinstance(checked, LayeredNetwork):
        check_branch(checked)
    values = checked_rates(checked, rates)
    own = np.diagonal(kernel, axis1=-2, axis2=-1) if kernel.ndim > 1 else kernel
    require_split(checked, trained(checked, parametrization, values), own)
    return TangentKernels(checked, kernel, values, parametrization, rtol)
