"""Bad input of kernels, posteriors and spectra: the argument is named, and what is allowed."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.inference import (
    bernoulli_divergence,
    condition,
    inverse_bernoulli_divergence,
    pac_bayes_bound,
    power_coefficients,
    train,
)

NET = ft.ResidualNetwork(depth=4, activation="erf", width=100)
RELU = NET.replace(activation="relu")
# Kernels of 2000 of these layers exceed float64.
GROWING = ft.ResidualNetwork(depth=2000, weight_variance=100.0, skip_scale=1.3)
BLOCK = ft.BlockNetwork(depth=1, width=20)
TWO = {"X": [[1.0], [2.0]], "y": [1.0, 2.0]}
LABELLED = {"K0": np.eye(3), "Y": [1.0], "noise_variance": 0.1}
SAMPLES = np.arange(30.0).reshape(5, 6)


def kernel(X=((1.0,),), Z=None, **changes):
    return ft.kernel(**{"network": NET} | changes)(X, Z)


def derivative(name):
    return ft.kernel(NET).derivative(name, [[1.0]])


def bound(samples=10, **changes):
    return pac_bayes_bound(0.1, 1.0, samples, **changes)


def process(**changes):
    return condition(ft.kernel(RELU), **TWO | {"noise_variance": 0.1} | changes)


def trained(**changes):
    return train(ft.kernel(NET), ft.kernel(NET, "tangent_kernel"), **TWO | changes)


def spectrum(**changes):
    return ft.spectrum(**{"network": RELU} | changes)


def posterior(**changes):
    return ft.posterior(**{"network": NET} | LABELLED | changes)


def response_of_posterior(network):
    return posterior(network=network, K0=np.eye(2)).response


def tilted(**changes):
    return ft.tilted_posterior(**{"network": NET} | LABELLED | changes)


def scaling_after_labels(**changes):
    given = {"K0": np.eye(2) / 20, "labels": [1.0], "noise_variance": 0.1}
    return ft.optimal_scaling(NET, **given | changes)


REFUSED = [
    (kernel, {"quantity": "kernels"}, ValueError, "quantity must be .* did you mean kernel"),
    (kernel, {"quantity": "kernel"}, ValueError, "layer must be given for quantity 'kernel': 1"),
    (kernel, {"quantity": "kernel", "layer": 5}, ValueError, "layer must be at most depth=4"),
    (kernel, {"layer": 2}, ValueError, "layer is for .* kernel, response, got 'output_kernel'"),
    (kernel, {"network": 3}, TypeError, "network must be a ResidualNetwork"),
    (kernel, {"quantities": "kernel"}, TypeError, "unknown argument 'quantities'"),
    (
        kernel,
        {"network": NET.replace(branch_scale=[[0.1], [0.2]])},
        ValueError,
        "network must be one, without batch axes",
    ),
    (kernel, {"X": [1.0, 2.0]}, ValueError, r"X must have .* got shape \(2,\): one input x is \[x"),
    (kernel, {"X": [[1.0, np.nan]]}, ValueError, "X must be finite, got nan"),
    (kernel, {"X": [[1.0, 2.0]], "Z": [[1.0]]}, ValueError, "Z .* columns as X, got 1 and 2"),
    (kernel, {"X": [[1.0, 2.0]], "Z": [1.0, 2.0]}, ValueError, r"Z must have shape \(P, d\)"),
    (kernel, {"network": GROWING}, OverflowError, "exceeds the range of float64"),
    *(
        (kernel, {"network": net} | inputs, OverflowError, r"got max \|x_j\| = 1e\+160")
        for net in (RELU, NET.replace(activation="tanh"))
        for inputs in ({"X": [[1e160], [1.0]]}, {"Z": [[1e160]]})
    ),
    (process, {"X": [1.0, 2.0]}, ValueError, r"X must have shape \(P, d\)"),
    (process, {"y": [1.0]}, ValueError, r"y must have shape \(2,\)"),
    (process, {"y": [1.0, np.nan]}, ValueError, "y must be finite"),
    (process, {"y": ["a", "b"]}, TypeError, "y must be a real number"),
    (process, {"noise_variance": -1.0}, ValueError, "noise_variance must be a finite real .* >= 0"),
    (process, {"jitter": "auto"}, TypeError, "jitter must be"),
    # Noise that is lost in rounding is none.
    *(
        (process, {"X": [[1.0]] * 2, "noise_variance": noise}, ValueError, "singular .*jitter")
        for noise in (0.0, 1e-17)
    ),
    (process, {"noise": 1.0}, TypeError, "unknown .* 'noise': did you mean noise_variance"),
    (trained, {"time": -1.0}, ValueError, "time must be"),
    (trained, {"ridge": np.nan}, ValueError, "ridge must be"),
    (trained, {"X": [[1.0]] * 2}, ValueError, "tangent kernel of the 2 inputs is singular"),
    (trained, {"y": [1.0]}, ValueError, "y must have shape"),
    (spectrum, {"dimension": 1}, ValueError, "dimension must be an integer >= 2"),
    (spectrum, {"norm": 0.0}, ValueError, "norm must be"),
    (spectrum, {"count": 0}, ValueError, "count must be"),
    (spectrum, {"quantity": "kernel_of_output"}, ValueError, "quantity must be one of"),
    (spectrum, {"network": 3}, TypeError, "network must be"),
    (spectrum, {"degrees": 3}, TypeError, "unknown argument 'degrees'"),
    (posterior, {"Y": [1.0] * 4}, ValueError, r"Y must have shape .* 1 <= P <= 3, .* got \(4,\)"),
    (posterior, {"Y": [[[1.0]]]}, ValueError, r"Y must have shape \(P,\) or \(P, d\)"),
    (posterior, {"Y": [np.nan]}, ValueError, "Y must be finite"),
    (posterior, {"noise_variance": 0.0}, ValueError, "noise_variance must be"),
    (posterior, {"noise_variance": -1.0}, ValueError, "noise_variance must be"),
    (posterior, {"order": 2}, ValueError, "order must be 0 or 1, the highest power of 1/N, got 2"),
    (posterior, {"samples": 10}, ValueError, "samples must be an integer >= 320, got 10"),
    (posterior, {"seed": -1}, ValueError, "seed must be an integer >= 0"),
    (posterior, {"K0": 0.3}, ValueError, r"K0 must be a matrix \(Q, Q\), got shape \(\)"),
    (posterior, {"X": SAMPLES}, ValueError, "K0 or X must be given, got both"),
    (posterior, {"K0": None}, ValueError, "K0 or X must be given, got neither"),
    (
        posterior,
        {"K0": None, "X": SAMPLES, "X_test": SAMPLES[:, :2]},
        ValueError,
        r"X and X_test must have shapes .* \(5, 2\)",
    ),
    (
        posterior,
        {"K0": None, "X": SAMPLES[:3]},
        ValueError,
        "one label for each of the 3 rows of X, got 1; .* are X_test",
    ),
    (posterior, {"network": NET.replace(branch_scale=[[0.1]])}, ValueError, "without batch axes"),
    (posterior, {"network": BLOCK.replace(skip_scale=[[0.1]])}, ValueError, "without batch axes"),
    (
        posterior,
        {"network": NET.replace(depth=100), "K0": np.eye(60), "exact": True},
        ValueError,
        "G11 of 60 inputs needs about .* GB of memory",
    ),
    (
        posterior,
        {"samples": 400, "exact": True},
        ValueError,
        "samples must be left out with exact=True, got 400",
    ),
    (
        response_of_posterior,
        {"network": NET.replace(activation="sign")},
        (TypeError, ValueError),
        "need φ without jumps that vanishes at its kinks, got sign",
    ),
    (tilted, {"K0": [[1.0, 2.0], [2.0, 1.0]]}, ValueError, "positive semidefinite"),
    (tilted, {"Y": [1.0] * 4}, ValueError, r"Y must have shape .*got \(4,\)"),
    (tilted, {"noise_variance": 0.0}, ValueError, "noise_variance must be"),
    (tilted, {"samples": 100}, ValueError, "samples must be"),
    (tilted, {"seed": -1}, ValueError, "seed must be"),
    (tilted, {"readout_scale": 0.0}, ValueError, "readout_scale must be"),
    (tilted, {"network": NET.replace(activation="sign")}, ValueError, "must not jump"),
    (scaling_after_labels, {"method": "deep_limit"}, ValueError, "labels must be left .*_limit'"),
    (scaling_after_labels, {"noise_variance": -1.0}, ValueError, "noise_variance must be"),
    (scaling_after_labels, {"K0": 0.05}, ValueError, r"K0 must be a matrix \(Q, Q\)"),
    (derivative, {"name": "rho"}, TypeError, "unknown argument 'rho': did you mean branch_scale"),
    (derivative, {"name": [[1.0]]}, TypeError, r"name must be the name of .* got \[\[1.0\]\]"),
    (derivative, {"name": "branch_scale_deviation"}, TypeError, "scale_deviation"),
    (bernoulli_divergence, {"a": 1.5, "p": 0.5}, ValueError, "a must be a number from 0 to 1"),
    (
        inverse_bernoulli_divergence,
        {"a": 0.1, "divergence": -1.0},
        ValueError,
        "divergence must be",
    ),
    (bound, {"samples": 0}, ValueError, "samples must be an integer >= 1"),
    (bound, {"failure_probability": 0.0}, ValueError, "failure_probability must be"),
    (power_coefficients, {"network": RELU, "count": 61}, ValueError, "count must be .* 1 to 60"),
]


@pytest.mark.parametrize(("call", "changes", "error", "words"), REFUSED)
def test_bad_input(call, changes, error, words):
    with pytest.raises(error, match=words):
        call(**changes)
