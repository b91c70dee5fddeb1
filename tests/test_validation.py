"""Kernels on both sides of the tolerance with which they must be positive semidefinite."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory import validation
from fieldtheory.sklearn import NetworkGPRegressor
from fieldtheory.validation import input_kernel_array
from tests.rounding import assert_same


def with_smallest(eigenvalue, size, seed=0):
    """A matrix of random eigenvectors whose eigenvalues but one lie between 1 and 2."""
    generator = np.random.default_rng(seed)
    vectors, _ = np.linalg.qr(generator.normal(size=(size, size)))
    values = np.linspace(1, 2, size)
    values[0] = eigenvalue
    matrix = (vectors * values) @ vectors.T
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("size", [2, 40])
@pytest.mark.parametrize("part", [0.0, 0.4, 0.6, 0.9, 1.1, 1.5, 1e3])
def test_eigenvalues_below_the_tolerance_are_named(size, part, scale):
    kernel = with_smallest(0.0, size)
    eigenvalue = -part * 1e-10 * np.abs(kernel).max()
    kernel = scale * with_smallest(eigenvalue, size)
    if part < 1:
        np.testing.assert_array_equal(input_kernel_array("K0", kernel), kernel)
        return
    with pytest.raises(ValueError, match="K0 must be positive semidefinite, got eigenvalue") as e:
        input_kernel_array("K0", kernel)
    assert float(str(e.value).split()[-1]) == pytest.approx(scale * eigenvalue, rel=1e-3)


def test_one_member_of_a_batch_decides():
    good = with_smallest(0.0, 5)
    batch = np.stack([good, with_smallest(-5e-11 * np.abs(good).max(), 5)])
    np.testing.assert_array_equal(input_kernel_array("K0", batch), batch)
    with pytest.raises(ValueError, match="got eigenvalue -1e-09"):
        input_kernel_array("K0", np.stack([good, with_smallest(-1e-9, 5)]))


@pytest.mark.parametrize("rank", [1, 3])
def test_parallel_inputs_need_no_eigenvalues(rank, monkeypatch):
    X = np.random.default_rng(1).normal(size=(60, rank))
    monkeypatch.setattr(validation.np.linalg, "eigvalsh", None)
    kernel = X @ X.T
    np.testing.assert_array_equal(input_kernel_array("K0", kernel), kernel)


def test_a_vanishing_kernel_passes():
    zeros = np.zeros((3, 3))
    found = input_kernel_array("K0", -zeros)
    np.testing.assert_array_equal(found, zeros)
    assert not np.signbit(found).any()


@pytest.mark.parametrize("difference", [1e-13, 1e-9])
def test_kernels_that_are_asymmetric_by_rounding_are_symmetrised(difference):
    kernel = np.array([[1.0, 0.5], [0.5 + difference, 1.0]])
    found = input_kernel_array("K0", kernel)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found[0, 1] - 0.5, difference / 2, rtol=1e-3)
    kernel[1, 0] = 0.5 + 1e-7
    with pytest.raises(ValueError, match="K0 must be symmetric"):
        input_kernel_array("K0", kernel)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rounding_of_float32_is_no_asymmetry(kind):
    X = np.random.default_rng(2).normal(size=(4, 300)).astype(np.float32)
    kernel = (X @ X.T).astype(kind)
    kernel[1, 0] = np.nextafter(kernel[1, 0], np.float32(9e9), dtype=np.float32)
    assert (kernel != kernel.T).any()
    found = input_kernel_array("K0", kernel)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, kernel, rtol=1e-5)


def test_the_given_array_is_left_alone():
    kernel = np.eye(3)
    input_kernel_array("K0", kernel)[0, 0] = 5.0
    np.testing.assert_array_equal(kernel, np.eye(3))


@pytest.mark.parametrize(
    "data",
    [
        np.ones((3, 4)),
        np.random.default_rng(0).normal(size=(3, 3)),
        [0.3, -0.2, 0.1],
        np.ones((2, 3, 4)),
    ],
    ids=["rows", "square", "vector", "images"],
)
def test_data_in_place_of_a_kernel_names_the_function_that_makes_one(data):
    net = ft.ResidualNetwork(depth=2)
    for call in (ft.solve, ft.simulate, ft.optimal_scaling):
        with pytest.raises(ValueError, match=r"the kernel of data X \(P, d\) is ft.input_kernel"):
            call(net, data)


def test_a_single_variance_below_zero_is_no_data():
    with pytest.raises(ValueError, match=r"^K0 must be a variance >= 0, got -1.0$"):
        input_kernel_array("K0", -1)


def test_inputs_of_the_kernel():
    net = ft.ResidualNetwork(depth=2)
    with pytest.raises(ValueError, match=r"X must have shape .*: one input x is \[x\]$"):
        ft.input_kernel([1.0, 2.0], net)
    with pytest.raises(TypeError, match=r"^network must be a ResidualNetwork[^\n]*…$") as caught:
        ft.solve(np.ones((40, 40)), net)
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize("value", [0, 1e-15, 0.2, float("nan"), -1e-8])
def test_numbers_within_bounds(value):
    assert validation.within("rtol", 1e-8, 1e-14, 0.1) == 1e-8
    with pytest.raises(ValueError, match="rtol must be a number from 1e-14 to 0.1, got"):
        validation.within("rtol", value, 1e-14, 0.1)
    with pytest.raises(TypeError, match="rtol must be a number from 1e-14 to 0.1, got 'x'"):
        validation.within("rtol", "x", 1e-14, 0.1)


NET = ft.ResidualNetwork(depth=1, width=20, input_dim=2)
# Results of data X, labels Y and a kernel K that are tensors.
OF_TENSORS = {
    "input_kernel": lambda X, Y, K: ft.input_kernel(X, NET),
    "a list of rows": lambda X, Y, K: ft.input_kernel([X[0], X[1]], NET),
    "solve": lambda X, Y, K: ft.solve(NET, K).kernels,
    "one variance": lambda X, Y, K: ft.solve(NET, K[0, 0]).kernels,
    "digits": lambda X, Y, K: [float(k) for k in ft.solve(NET, K[0, 0], digits=20).kernels],
    "simulate": lambda X, Y, K: ft.simulate(NET, X=X, samples=20).mean,
    "posterior": lambda X, Y, K: ft.posterior(NET, K, Y, 0.1).mean,
    "kernel": lambda X, Y, K: ft.kernel(NET)(X),
    "diffusion": lambda X, Y, K: ft.solve(ft.DiffusionNetwork(depth=2), Y).mean,
    "sklearn": lambda X, Y, K: NetworkGPRegressor(NET).fit(X, Y).predict(X),
}


@pytest.mark.parametrize("name", OF_TENSORS)
def test_tensors_that_require_grad_are_taken_as_arrays(name):
    torch = pytest.importorskip("torch")
    X, Y = np.array([[1.0, 0.25], [-0.5, 0.75]]), np.array([1.0, -1.0])
    arrays = (X, Y, ft.input_kernel(X, NET))
    tensors = (torch.tensor(a, requires_grad=True) for a in arrays)
    assert_same(OF_TENSORS[name](*tensors), OF_TENSORS[name](*arrays))


def test_tensors_of_other_kinds():
    torch = pytest.importorskip("torch")
    for kind in (torch.bfloat16, torch.float16, torch.float32, torch.int32):
        found = validation.finite_array("X", [torch.ones(2, dtype=kind), (1, 2)])
        assert found.dtype == float and found.tolist() == [[1, 1], [1, 2]]
    with pytest.raises(TypeError, match="X must be a real number or an array of them, got tensor"):
        validation.finite_array("X", torch.tensor([1j]))
