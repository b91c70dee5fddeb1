"""The residual scaling with the largest response of networks that learned labels, to order 1/N.

With ln χ_Y^out(ρ) = ln χ^out(ρ) + ε(ρ)/N, where ε is what labels add, the maximum moves from ρ*
of the prior to

    ρ* − (1/N) ε'(ρ*)/(ln χ^out)''(ρ*).

Both are interpolated in ln ρ at Chebyshev nodes around ρ*, ε of paths with the same random numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory import validation
from fieldtheory.inference.gaussian_process import Regression
from fieldtheory.inference.learned_response import labelled_inputs
from fieldtheory.montecarlo.sampling.gain_covariances import response_batches
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.symmetric_matrices import packed, unpacked

# Paths of a neuron, nodes at least and for each unit of ln ρ, and how far they go beyond ρ*.
_SAMPLES, _FEWEST, _DENSITY, _BEYOND = 1 << 15, 6, 6, 0.25


def scaling_after_labels(
    network: LayeredNetwork, K0: np.ndarray, labels: Any, noise_variance: Any, best: np.ndarray
) -> np.ndarray:
    """ρ* after labels from ``best``, ρ* of the prior, (Q, Q), which stays where it is 0 or NaN."""
    labels = labelled_inputs(network, K0, labels, "labels")[1]
    noise = validation.positive("noise_variance", noise_variance)
    entries = packed(best).copy()
    chosen = np.flatnonzero(entries > 0)
    chosen = chosen[np.argsort(entries[chosen])]
    # Entries with ρ* far apart have nodes of their own: sampling is noisier at large ρ.
    gaps = np.flatnonzero(np.diff(np.log(entries[chosen])) > 2 * _BEYOND)
    for group in np.split(chosen, gaps + 1) if len(chosen) else ():
        at = np.log(entries[group])
        low, high = at[0] - _BEYOND, at[-1] + _BEYOND
        count = max(_FEWEST, int(np.ceil(_DENSITY * (high - low))))
        nodes, rows = chebyshev.chebpts1(count), []
        for x in (low + high + (high - low) * nodes) / 2:
            prior = solve(network.replace(branch_scale=float(np.exp(x))), K0)
            law = Regression.from_labels(prior.residual_kernels[-1], labels, noise)
            _, kernels, shares = response_batches(prior, law.weights, _SAMPLES, 0)
            chi = packed(prior.output_response)
            rows.append([np.log(np.abs(chi)), np.tensordot(shares, kernels[:, -1], 1) / chi])
        heights, changes = np.moveaxis(np.array(rows), 1, 0)[..., group]
        series = np.linalg.inv(chebyshev.chebvander(nodes, count - 1))
        places = (2 * at - low - high) / (high - low)
        slope, curvature = (
            chebyshev.chebval(places, chebyshev.chebder(series @ values, order), tensor=False)
            for values, order in ((changes, 1), (heights, 2))
        )
        entries[group] *= 1 - (high - low) / 2 * slope / curvature / network.width
    return unpacked(entries, True)
