"""Kernels of infinitely wide networks as functions of inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from fieldtheory import validation
from fieldtheory.inference.kernel_blocks import lazy, lazy_diagonal, require_same_columns, to_zarr
from fieldtheory.inference.parameter_derivatives import parameter_derivative
from fieldtheory.networks.family import DeepNetwork, single_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import input_rows
from fieldtheory.numerics.pair_maps.pair_map import PairMaps
from fieldtheory.numerics.pair_maps.pair_recursions import OutputRecursion, TangentRecursion
from fieldtheory.plotting.layers import draw_curve
from fieldtheory.plotting.tables import table_html

# Quantities of pairs of inputs, and which of them are of a hidden layer.
QUANTITIES = ("output_kernel", "output_response", "tangent_kernel", "kernel", "response")
_HIDDEN = ("kernel", "response")
# Rows whose products are taken at once.
_ROWS = 512


@dataclass(frozen=True)
class KernelFunction:
    """A kernel of a network as a function of inputs, see `kernel`.

    ``k(X)`` is the matrix (P, P) of inputs X (P, d) in rows, ``k(X, Z)`` the block (P, Q) of them
    and others, ``k.diagonal(X)`` what single inputs have (P,). Nothing else is computed. Results
    are right to 1e-12 of the values of identical inputs.

    Parameters
    ----------
    network : DeepNetwork
    quantity : str
    layer : int or None
        Of a hidden layer, l of K^(l) and χ^(l).

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=20, branch_scale="uniform")
    >>> X, Z = np.eye(3), np.ones((2, 3))
    >>> k = ft.kernel(net)
    >>> k(X).shape, k(X, Z).shape, k.diagonal(X).shape
    ((3, 3), (3, 2), (3,))
    >>> bool(np.allclose(k(X), ft.solve(net, ft.input_kernel(X, net)).output_kernel, rtol=1e-13))
    True
    """

    network: DeepNetwork
    quantity: str = "output_kernel"
    layer: int | None = None

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """The kernel of all pairs of inputs.

        Parameters
        ----------
        X : array_like or dask array, shape (P, d)
            Inputs in rows.
        Z : array_like or dask array, shape (Q, d), optional
            Others. Without them the matrix of X, symmetric, of which one half is computed.

        Returns
        -------
        ndarray or dask array, shape (P, P) or (P, Q)
            Of dask arrays a lazy one, whose blocks belong to the chunks of the rows of both. For
            responses, k(X) has those of variances on the diagonal, and k(X, Z) those of
            covariances everywhere.

        Raises
        ------
        ValueError, TypeError
            If X or Z is not two-dimensional or not finite, or they differ in their columns.
        OverflowError
            If a kernel exceeds float64.
        """
        if _is_dask(X) or _is_dask(Z):
            return lazy(self, X, Z)
        inputs = input_rows("X", X)
        if Z is None:
            return self._finite(self._symmetric(inputs))
        others = input_rows("Z", Z)
        require_same_columns(inputs, others)
        return self._finite(self._rectangular(inputs, others))

    def diagonal(self, X: Any) -> Any:
        """The diagonal of ``k(X)``.

        Parameters
        ----------
        X : array_like or dask array, shape (P, d)

        Returns
        -------
        ndarray or dask array, shape (P,)
            Of a dask array a lazy one, whose blocks belong to the chunks of its rows.
        """
        if _is_dask(X):
            return lazy_diagonal(self, X)
        return self._maps.single(self._variances(input_rows("X", X)))[1][0]

    def derivative(self, name: str, X: Any, Z: Any = None) -> Any:
        """The derivative of ``k(X, Z)`` by an argument of the network, to about 1e-9 of its size.

        By differences of the sixth order, see `parameter_derivatives`.

        Parameters
        ----------
        name : str
            "weight_variance" and "bias_variance" (σ_w² and σ_b²; the variances of read-in and
            readout move with them where they are left out), "weight_deviation" and
            "bias_deviation" (σ_w and σ_b, likewise), "branch_scale" or
            "skip_scale" (ρ and γ; if layers differ, the sum of the derivatives by those of all
            layers), or a variance or deviation of the read-in or the readout.
        X, Z : array_like or dask array
            As for ``k(X, Z)``.

        Returns
        -------
        ndarray or dask array, shape (P, P) or (P, Q)

        Raises
        ------
        TypeError, ValueError
            If the network has no such argument, or the derivative does not exist: for φ with kinks
            that of a response or tangent kernel of parallel inputs that the argument turns against
            each other, such as x and 2x by a bias variance of zero. Identical inputs have one.

        Examples
        --------
        >>> import fieldtheory as ft
        >>> net, X = ft.ResidualNetwork(depth=5, weight_variance=1.5), np.eye(2)
        >>> found = ft.kernel(net).derivative("weight_variance", X)
        >>> more, less = (ft.kernel(net.replace(weight_variance=1.5 + h)) for h in (1e-4, -1e-4))
        >>> bool(np.allclose(found, (more(X) - less(X)) / 2e-4, rtol=1e-7))
        True
        """
        return parameter_derivative(
            self.network,
            name,
            lambda network: replace(self, network=network)(X, Z),
            lambda network: replace(self, network=network).diagonal(np.asarray(X[:1])),
        )

    def to_zarr(
        self, path: Any, X: Any, Z: Any = None, chunks: int = 2048, progress: bool = False
    ) -> Any:
        """``k(X, Z)`` as a zarr array on disk, computed block by block; needs zarr.

        No more than a few blocks are in memory. After an interruption the same call goes on where
        it ended. On one core of 2.5 GHz 1e9 pairs of inputs of 784 dimensions take 90 to 160 s for
        one norm and 170 s for different norms: 60,000 inputs, 1.8e9 pairs and 29 GB, are 3 to
        5 min, with 1 GB of memory at most.

        Parameters
        ----------
        path : str or Path
            A folder that zarr makes, in a folder that exists, or one of an earlier call.
        X, Z : array_like, shape (P, d) and (Q, d)
            Anything with a shape whose rows are sliced, such as NumPy, memory-mapped, dask, HDF5
            and zarr arrays; rows are read when a block needs them.
        chunks : int
            Rows and columns of a block, which is a chunk of the zarr array.
        progress : bool
            Show a progress bar on stderr.

        Returns
        -------
        zarr.Array, shape (P, P) or (P, Q)

        Raises
        ------
        ValueError
            If an argument is not allowed, or ``path`` holds something else: another network,
            quantity, chunks or inputs.
        ImportError
            If zarr is missing.

        Examples
        --------
        >>> import tempfile
        >>> import fieldtheory as ft
        >>> k, X = ft.kernel(ft.ResidualNetwork(depth=5)), np.eye(3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = k.to_zarr(f"{folder}/kernel.zarr", X, chunks=2)
        ...     bool(np.allclose(found[:], k(X), rtol=1e-14))
        True
        """
        return to_zarr(self, path, X, Z, validation.integer("chunks", chunks, 1), progress)

    def plot(self) -> Any:
        """The quantity of two inputs with |x|² = d against the cosine of their angle.

        Returns
        -------
        matplotlib.figure.Figure
        """
        correlations = np.cos(np.linspace(np.pi, 0.0, 181))
        turned = np.stack([correlations, np.sqrt(1 - correlations**2)], axis=1)
        # In two dimensions; single inputs have a response of their own, which is not drawn.
        values = self(np.sqrt(2) * turned[-1:], np.sqrt(2) * turned)[0]
        names = r"$x \cdot x' \,/\, |x|\,|x'|$", self._title.split(",")[0]
        return draw_curve(correlations, values, names, self._title)

    def _repr_html_(self) -> str:
        network = self.network
        row = {"quantity": self._title, "activation": network.activation.name}
        return table_html([row | {"depth": network.depth}], "kernel of an infinitely wide network")

    @property
    def _title(self) -> str:
        said = self.quantity.replace("_", " ")
        said += "" if self.layer is None else f", layer {self.layer}"
        return said

    @property
    def _maps(self) -> PairMaps:
        return _maps_of(self.network, self.quantity, self.layer)

    def _symmetric(self, X: np.ndarray) -> np.ndarray:
        K0 = self._variances(X)
        own, (diagonal, *_) = self._maps.single(K0)
        weight, bias = _readin(self.network)
        values = np.full((len(X), len(X)), bias)
        # The entries above the diagonal, in place.
        to_upper: Any = {"c": values.T, "beta": 1.0, "trans": 1, "lower": 1, "overwrite_c": 1}
        dsyrk(weight / X.shape[1], np.ascontiguousarray(X).T, **to_upper)
        for index in _identical(X):
            values[np.ix_(index, index)] = K0[index[0]]
        self._maps.fill(values[None], values, own)
        np.fill_diagonal(values, diagonal)
        return values

    def _rectangular(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        K0 = self._variances(X)
        values = np.empty((len(X), len(Z)))
        self._covariances(X, Z, values)
        for index in _identical(np.concatenate([X, Z])):
            rows, columns = index[index < len(X)], index[index >= len(X)] - len(X)
            if len(rows):
                values[np.ix_(rows, columns)] = K0[rows[0]]
        own = (self._maps.single(K)[0] for K in (K0, self._variances(Z)))
        self._maps.fill(values[None], values, *own)
        return values

    def _variances(self, X: np.ndarray) -> np.ndarray:
        weight, bias = _readin(self.network)
        with np.errstate(over="ignore"):
            K0 = weight * np.einsum("ij,ij->i", X, X) / X.shape[1] + bias
        if not np.isfinite(K0).all():
            raise OverflowError(
                "X, Z must have K0 = σ²_w,in |x|²/d + σ²_b,in within the range of float64, got "
                f"max |x_j| = {np.abs(X).max():.3g}"
            )
        return K0

    def _covariances(self, X: np.ndarray, Z: np.ndarray, out: np.ndarray) -> None:
        """K^(0) = σ²_w,in/d X Zᵀ + σ²_b,in (F25 eqs. (16), (101))."""
        weight, bias = _readin(self.network)
        for start in range(0, len(X), _ROWS):
            part = out[start : start + _ROWS]
            np.matmul(X[start : start + _ROWS] * (weight / X.shape[1]), Z.T, out=part)
            if bias:
                part += bias

    def _finite(self, values: np.ndarray) -> np.ndarray:
        if not np.isfinite(values).all():
            raise OverflowError(
                f"the {self.quantity.replace('_', ' ')} exceeds the range of float64; reduce "
                "depth, branch_scale, skip_scale or weight_variance"
            )
        return values


@named_arguments
def kernel(
    network: DeepNetwork, quantity: str = "output_kernel", layer: int | None = None
) -> KernelFunction:
    """A kernel of an infinitely wide network as a function of inputs.

    Pairs of inputs close on themselves (theory of several inputs: F25 eqs. (108), (128)), so that
    blocks of a kernel are computed on their own, by interpolation over the correlations and norms
    of the inputs (`numerics.pair_maps.pair_map`). What is interpolated is kept for the next block.

    Parameters
    ----------
    network : DeepNetwork
        Without batch axes.
    quantity : {"output_kernel", "output_response", "tangent_kernel", "kernel", "response"}
        K^(L+1), χ^out, Θ^(L+1) with all weights and biases trained, and K^(l) or χ^(l) of a hidden
        layer, as the fields of `Solution`. "nngp", "chi_out" and "ntk" are the first three.
    layer : int, optional
        l of "kernel" and "response", from 1 to L.

    Returns
    -------
    KernelFunction

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> k = ft.kernel(ft.ResidualNetwork(depth=5, activation="relu"), "tangent_kernel")
    >>> k([[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]).shape
    (2, 1)
    """
    single_network(network, DeepNetwork, function="kernel")
    quantity = validation.quantity("quantity", quantity, QUANTITIES)
    if quantity in _HIDDEN:
        if layer is None:
            raise ValueError(f"layer must be given for quantity {quantity!r}: 1 to {network.depth}")
        layer = validation.integer("layer", layer, 1)
        if layer > network.depth:
            raise ValueError(f"layer must be at most depth={network.depth}, got {layer}")
    elif layer is not None:
        raise ValueError(f"layer is for quantities {', '.join(_HIDDEN)}, got {quantity!r}")
    return KernelFunction(network, quantity, layer)


@lru_cache(maxsize=16)
def _maps_of(network: DeepNetwork, quantity: str, layer: int | None) -> PairMaps:
    """Shared by all functions of one kernel, also those that are sent to another process."""
    last = network.depth + 1 if layer is None else layer
    if quantity == "tangent_kernel":
        return PairMaps(TangentRecursion(network))
    return PairMaps(OutputRecursion(network, (int("response" in quantity),), last))


def _readin(network: DeepNetwork) -> tuple[float, float]:
    parameters = network.parameters
    return parameters["readin_weight_variance"], parameters["readin_bias_variance"]


def _identical(X: np.ndarray) -> list[np.ndarray]:
    """The indices of inputs that are identical, those of each kind."""
    kinds: dict[bytes, list[int]] = {}
    for index, row in enumerate(np.ascontiguousarray(X + 0.0)):
        kinds.setdefault(row.tobytes(), []).append(index)
    return [np.array(members) for members in kinds.values() if len(members) > 1]


def _is_dask(inputs: Any) -> bool:
    # Labelled arrays of xarray have a graph that may be None.
    return getattr(inputs, "__dask_graph__", lambda: None)() is not None
