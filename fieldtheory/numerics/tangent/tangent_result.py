"""`tangent_kernels` and the result it returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.networks.dispatch import by_network_type
from fieldtheory.networks.family import LayeredNetwork, checked_network
from fieldtheory.networks.family_checks import check_branch
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import FIELDS as OF_SOLUTION
from fieldtheory.numerics.fields import fields_of, table
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.infinite_width.scaled_theory import ScaledTheory
from fieldtheory.numerics.infinite_width.tangents import Trained
from fieldtheory.numerics.tangent.parametrizations import rates, require_split, trained
from fieldtheory.numerics.tangent.tangent_theory import TangentTheory, WithTangents
from fieldtheory.theory.tangent_kernel import checked_parametrization

_RATES = fields_of(
    r"""
    weight_rates | layer | \eta_{w}^{(l)} | learning rates of the weights | one_network of_none
    bias_rates | layer | \eta_{b}^{(l)} | learning rates of the biases | one_network of_none
    """
)
_KERNELS = ("tangent_kernels", "output_tangent_kernel", "log_tangent_kernels", "tangent_signs")
FIELDS = _RATES | {name: OF_SOLUTION[name] for name in _KERNELS}
FIELDS |= table(replace(FIELDS["tangent_kernels"], written="always", column="Theta"))


@dataclass(frozen=True, eq=False)
class TangentKernels(WithTangents):
    """The tangent kernel of a wide network of which one says what is trained, and how fast.

    Fields are computed when first asked for, with L the depth, P the number of inputs and ``...``
    the batch axes of ``branch_scale``, ``skip_scale`` and K0:

    =====================  ================================  =====================================
    field                  shape                             meaning
    =====================  ================================  =====================================
    weight_rates           (L+2,)                            of the read-in, layers and readout
    bias_rates             (L+2,)                            the same
    tangent_kernels        (..., L+2) or (..., L+2, P, P)    Θ^(l), last entry that of the output
    output_tangent_kernel  (...) or (..., P, P)              Θ^(L+1)
    log_tangent_kernels    (..., L+2) or (..., L+2, P, P)    ln|Θ^(l)|, whatever its size
    tangent_signs          (..., L+2) or (..., L+2, P, P)    the signs of Θ^(l): 1, 0 or −1
    =====================  ================================  =====================================

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

    network: LayeredNetwork
    input_kernel: np.ndarray
    weight_rates: np.ndarray
    bias_rates: np.ndarray
    parametrization: str = "ntk"
    rtol: float = DEFAULT_TOLERANCE

    def __repr__(self) -> str:
        return (
            f"TangentKernels(depth={self.network.depth}, "
            f"activation={self.network.activation.name}, inputs={self.inputs}, "
            f"parametrization={self.parametrization})"
        )

    @cached_property
    def _tangents(self) -> TangentTheory:
        field = MeanField(self.network, self.input_kernel)
        return TangentTheory(field, ScaledTheory(field), self._trained)

    @property
    def _trained(self) -> Trained | None:
        """None for what `Solution.tangent_kernels` is, to the last bit."""
        both = np.concatenate([self.weight_rates, self.bias_rates])
        if self.parametrization == "ntk" and (both == 1).all():
            return None
        return trained(self.network, self.parametrization, self.weight_rates, self.bias_rates)


@by_network_type
@named_arguments
def tangent_kernels(
    network: LayeredNetwork,
    K0: Any,
    parametrization: str = "ntk",
    weight_rates: Any = 1.0,
    bias_rates: Any = 1.0,
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
    network : LayeredNetwork
        Its ``branch_scale`` and ``skip_scale`` may have leading batch axes.
    K0 : float or array_like
        Kernel of the input, as for `solve`.
    parametrization : {"ntk", "standard"}
        What the parameters θ are, in lower or upper case. "ntk": w_ij and b_i of variance one, in
        W_ij = σ_w w_ij/√N and σ_b b_i, as in Jacot et al. and SR; then D^(l) = η_w a_l ⟨φφ⟩ +
        η_b c_l with a_l = ρ_l² σ_w² and c_l = ρ_l² σ_b², the residual kernel C^(l) at rates 1.
        "standard": the entries W_ij and b_i of the network themselves, as PyTorch trains them;
        D^(l) = ρ_l² (η_w N ⟨φφ⟩ + η_b), for the readout the same with ρ = 1, and for the read-in
        η_w x·x' + η_b.
    weight_rates, bias_rates : float or array_like, shape (L + 2,)
        η of the weights and of the biases of the read-in, the L layers and the readout, >= 0; 0 is
        what is not trained.
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

    >>> alone = ft.tangent_kernels(net, 0.5, weight_rates=[0, 0, 0, 0, 1], bias_rates=0)
    >>> bool(alone.output_tangent_kernel == ft.solve(net, 0.5).output_kernel)
    True
    """
    checked = checked_network(network)
    kernel = validation.input_kernel_array("K0", K0)
    rtol = validation.within("rtol", rtol, 1e-14, 0.1)
    parametrization = checked_parametrization(parametrization)
    if parametrization == "standard":
        check_branch(checked)
    coefficients = trained(checked, parametrization, weight_rates, bias_rates)
    own = np.diagonal(kernel, axis1=-2, axis2=-1) if kernel.ndim > 1 else kernel
    require_split(checked, coefficients, own)
    of_weights = rates("weight_rates", weight_rates, checked.depth)
    of_biases = rates("bias_rates", bias_rates, checked.depth)
    return TangentKernels(checked, kernel, of_weights, of_biases, parametrization, rtol)
