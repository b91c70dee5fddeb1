"""What the tests of the simulation share: z-scores, a two-sample test, exact linear networks."""

from dataclasses import fields

import numpy as np
from scipy import stats

import fieldtheory as ft
from tests.examples import oracle
from tests.oracles import exact, recursion


def mistaken(wrong, network, K0):
    """The theory of a wrong network that passes for that of another, which `compare` takes."""
    solution = ft.solve(wrong, K0)
    names = "four_point", "kernel_shift", "kernel_variance", "output_response", "response"
    for name in (*names, "residual_response", "kernels"):
        getattr(solution, name)
    object.__setattr__(solution, "network", network)
    return solution


def assert_same(first, second):
    """Equality of all fields of two results, also of what they consist of."""
    assert type(first) is type(second)
    for field in fields(first):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if isinstance(a, np.ndarray | np.floating):
            np.testing.assert_array_equal(a, b)
        elif isinstance(a, dict):
            assert a.keys() == b.keys()
            for key, values in a.items():
                np.testing.assert_array_equal(values, b[key])
        else:
            assert a is b or (a == b and type(a) is type(b)), field.name


def z_scores(result, name, expected, rounding=1e-14):
    """Deviations of a field from ``expected`` in standard errors, where it fluctuates.

    An entry without error must be equal to the expected one up to rounding.
    """
    value, error = (np.asarray(getattr(result, n)) for n in (name, f"{name}_error"))
    expected = np.broadcast_to(expected, value.shape)
    # A constant computed in every network has rounding for its fluctuation.
    still = error <= rounding * np.abs(value)
    np.testing.assert_allclose(value[still], expected[still], rtol=100 * rounding, atol=1e-30)
    return (value - expected)[~still] / error[~still]


def z_between(first, second, name):
    """Deviations of a field of two independent ensembles in standard errors."""
    error = np.hypot(getattr(first, f"{name}_error"), getattr(second, f"{name}_error"))
    moves = error > 0
    return (getattr(first, name) - getattr(second, name))[moves] / error[moves]


def p_value(first, second, directions=40, seed=0):
    """The smallest p-value of Kolmogorov-Smirnov tests on projections, times their number.

    Projections of the joint distribution of all entries of C (samples, ...), centred and scaled
    by both samples together: on the coordinates and on random directions.
    """
    x, y = (np.reshape(draws, (len(draws), -1)) for draws in (first, second))
    both = np.concatenate([x, y])
    centre, scale = both.mean(axis=0), both.std(axis=0)
    moves = scale > 1e-12 * np.abs(centre)
    x, y = ((draws - centre)[:, moves] / scale[moves] for draws in (x, y))
    size = x.shape[1]
    random = np.random.default_rng(seed).standard_normal((size, directions))
    projections = np.concatenate([np.eye(size), random], axis=1)
    tests = [stats.ks_2samp(x @ p, y @ p).pvalue for p in projections.T]
    return min(1.0, len(tests) * min(tests))


def linear_statistics(net, K0):
    """The exact fields of an ensemble of φ = id and one input at finite width."""
    return linear_statistics_of(oracle(net), K0, net.width)


def linear_statistics_of(known, K0, N):
    """The same for the parameters of the oracles and width N."""
    mean, covariance = exact.linear_moments(known, K0, N)
    skips = np.array(recursion.skip_matrix(known)) ** 2
    A = np.eye(len(mean))
    A[:-1, :-1] = skips
    kernel_covariance = A @ covariance @ A.T
    return {
        "mean": mean,
        "covariance": covariance,
        "kernel_mean": A @ mean,
        "kernel_covariance": kernel_covariance,
        "kernel_variance": np.diag(kernel_covariance)[:-1],
        "four_point": _linear_four_point(known, mean, covariance, K0, N),
        "output_kurtosis": 3 * covariance[-1, -1] / mean[-1] ** 2,
    }


def _linear_four_point(known, mean, covariance, K0, N):
    """N Cov(h_i², h_j²) from Var q of q = Σ h_i² / N and from ⟨h_i⁴⟩, both exact."""
    a, c = recursion.weight_terms(known), recursion.bias_terms(known)
    q = [(mean[l + 1] - c[l + 1]) / a[l + 1] for l in range(len(a) - 1)]
    variance = [covariance[l + 1, l + 1] / a[l + 1] ** 2 for l in range(len(a) - 1)]
    fourth = [3 * K0**2]
    for l in range(1, len(q)):
        gamma = known.gamma[l - 1]
        mixed = a[l] * (variance[l - 1] + q[l - 1] ** 2) + c[l] * q[l - 1]
        square = covariance[l, l] + mean[l] ** 2
        fourth.append(gamma**4 * fourth[-1] + 6 * gamma**2 * mixed + 3 * square)
    own = np.array(fourth) - np.array(q) ** 2
    return N * (N * np.array(variance) - own) / (N - 1)


def linear_second_moments(a, K0, N):
    """⟨C_αβ C_γδ⟩ of every layer for φ = id, γ = 0 without biases (products of Wishart matrices).

    a (L+2,) are the a_l; given C^(l-1), C^(l) is a_l times a Wishart matrix of N degrees of
    freedom over N.
    """
    moments = [np.einsum("ab,cd->abcd", K0, K0)]
    for weight in a[1:]:
        M = moments[-1]
        swapped = M.transpose(0, 2, 1, 3) + M.transpose(0, 2, 3, 1)
        moments.append(weight**2 * (M + swapped / N))
    return moments
