"""Bounds on the error of Gaussian-process classifiers: SR section 6, Theorem 2 (Seeger 2002)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize, special

from fieldtheory import validation
from fieldtheory.inference.gaussian_process import Posterior


def bernoulli_divergence(a: float, p: float) -> float:
    """kl(a ‖ p) = a ln(a/p) + (1 − a) ln((1 − a)/(1 − p)) of two Bernoulli laws (SR section 6).

    Parameters
    ----------
    a, p : float
        Probabilities, 0 to 1.

    Returns
    -------
    float
        Infinite where p excludes what a has.

    Examples
    --------
    >>> round(bernoulli_divergence(0.1, 0.2), 6), bernoulli_divergence(0.5, 1.0)
    (0.03669, inf)
    """
    a, p = validation.within("a", a, 0, 1), validation.within("p", p, 0, 1)
    return float(special.rel_entr(a, p) + special.rel_entr(1 - a, 1 - p))


def inverse_bernoulli_divergence(a: float, divergence: float) -> float:
    """The largest p with kl(a ‖ p) <= ``divergence`` (SR section 6).

    Parameters
    ----------
    a : float
        A probability, 0 to 1.
    divergence : float
        >= 0.

    Returns
    -------
    float
        From a to 1.

    Examples
    --------
    >>> round(inverse_bernoulli_divergence(0.1, 0.03669), 4)
    0.2
    >>> inverse_bernoulli_divergence(0.0, 1.0) == 1 - math.exp(-1.0)
    True
    """
    a = validation.within("a", a, 0, 1)
    if divergence == math.inf:
        return 1.0
    bound = validation.nonnegative("divergence", divergence)
    if a == 1 or bound == 0:
        return a
    if a == 0:
        return -math.expm1(-bound)

    # In terms of ln(1 − p), as p may be 1 up to rounding: kl = −H(a) − a ln p − (1 − a) ln(1 − p).
    entropy = special.entr(a) + special.entr(1 - a)

    def excess(log_rest: float) -> float:
        return -entropy - a * math.log(-math.expm1(log_rest)) - (1 - a) * log_rest - bound

    highest = math.log1p(-a)
    lowest = -(bound + entropy) / (1 - a) - 1
    root = optimize.brentq(excess, lowest, highest, xtol=1e-15, rtol=8.9e-16)
    return max(a, -math.expm1(root))


def pac_bayes_bound(
    empirical_risk: float, divergence: float, samples: int, failure_probability: float = 0.05
) -> float:
    """Seeger's bound on the risk of a randomised classifier (SR Theorem 2).

        r <= kl⁻¹(r_S, (KL + ln(2√N/δ))/N)   with probability at least 1 − δ

    Parameters
    ----------
    empirical_risk : float
        r_S, the mean loss on the samples, from 0 to 1; see `gibbs_risk`.
    divergence : float
        KL(posterior ‖ prior) >= 0, such as `Posterior.divergence`.
    samples : int
        N >= 1.
    failure_probability : float
        δ, from 1e-300 to 1.

    Returns
    -------
    float
        The bound, at most 1.

    Examples
    --------
    >>> round(pac_bayes_bound(0.0, divergence=20.0, samples=1000), 4)
    0.0268
    """
    risk = validation.within("empirical_risk", empirical_risk, 0, 1)
    samples = validation.integer("samples", samples, 1)
    delta = validation.within("failure_probability", failure_probability, 1e-300, 1)
    if divergence != math.inf:
        divergence = validation.nonnegative("divergence", divergence)
    rate = (divergence + math.log(2 * math.sqrt(samples) / delta)) / samples
    return inverse_bernoulli_divergence(risk, rate)


def gibbs_risk(posterior: Posterior) -> float:
    """Share of training labels whose sign a function drawn from the posterior gets wrong.

        r_S = (1/P) Σ_i Φ(−y_i m_i / s_i),   m, s² the mean and variance at the training inputs

    Parameters
    ----------
    posterior : Posterior
        Of labels y = ±1, one output.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If the labels are not ±1.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from fieldtheory.inference import condition
    >>> k = ft.kernel(ft.ResidualNetwork(depth=5, activation="relu", branch_scale=0.4))
    >>> posterior = condition(k, [[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0], noise_variance=0.1)
    >>> bool(0 < gibbs_risk(posterior) < 0.5)
    True
    """
    if posterior.y.ndim != 1 or not np.isin(posterior.y, (-1.0, 1.0)).all():
        raise ValueError("gibbs_risk needs labels y of one output that are -1 or 1")
    margin = posterior.y * posterior.training_mean
    deviation = np.sqrt(posterior.training_variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(deviation > 0, special.ndtr(-margin / deviation), margin <= 0)
    return float(errors.mean())


def largest_probabilities(mean: Any, deviation: Any, nodes: int = 64) -> np.ndarray:
    """The probability of each of n independent Gaussians to be the largest.

        P_k = ∫ dz φ(z) Π_{j≠k} Φ((m_k + s z − m_j)/s)

    Parameters
    ----------
    mean : array_like, shape (R, n)
    deviation : array_like, shape (R,)
        Their common standard deviation s >= 0 in every row.
    nodes : int
        Of the Gauss-Hermite rule.

    Returns
    -------
    ndarray, shape (R, n)
        Rows that sum to 1.

    Examples
    --------
    >>> largest_probabilities([[0.0, 0.0], [1.0, 0.0]], [1.0, 0.0])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    mean, deviation = np.asarray(mean, dtype=float), np.asarray(deviation, dtype=float)
    x, w = special.roots_hermitenorm(nodes)
    scale = np.maximum(deviation, np.finfo(float).tiny)[:, None]
    differences = np.clip((mean[:, :, None] - mean[:, None, :]) / scale[:, :, None], -1e3, 1e3)
    probabilities = np.zeros(mean.shape)
    for node, weight in zip(x, w / w.sum(), strict=True):
        logs = special.log_ndtr(node + differences)
        logs[:, *np.diag_indices(mean.shape[1])] = 0.0
        probabilities += weight * np.exp(logs.sum(axis=2))
    return probabilities / probabilities.sum(axis=1, keepdims=True)
