"""Conditioning and training written as plainly as possible, in mpmath or by time steps.

Nothing here is imported from the package.
"""

import mpmath as mp
import numpy as np
from scipy import integrate


def posterior(Q, cross, own, y, noise, digits=50):
    """Mean and covariance at test inputs, log evidence, KL, by inverses of mpmath.

    Q (P, P), cross (R, P), own (R, R), y (P,); the divergence is that of two Gaussians of the
    values at the training inputs.
    """
    with mp.workdps(digits):
        size = len(y)
        Q, cross, own, y = (mp.matrix(a.tolist()) for a in (Q, cross, own, np.asarray(y)))
        shifted = Q + noise * mp.eye(size)
        inverse = shifted**-1
        mean = cross * (inverse * y)
        covariance = own - cross * inverse * cross.T
        quadratic = (y.T * inverse * y)[0]
        evidence = -(quadratic + mp.log(mp.det(shifted)) + size * mp.log(2 * mp.pi)) / 2
        seen = Q * (inverse * y)
        left = Q - Q * inverse * Q
        prior = Q**-1
        trace = sum((prior * left)[i, i] for i in range(size))
        logs = mp.log(mp.det(Q)) - mp.log(mp.det(left))
        divergence = (trace + (seen.T * prior * seen)[0] - size + logs) / 2
        array = [[float(x) for x in row] for row in covariance.tolist()]
        return np.array(mean, dtype=float).ravel(), np.array(array), evidence, divergence


def gradient_flow(tangent, tangent_cross, start, start_cross, y, time, ridge=0.0):
    """Outputs at training and test inputs after gradient flow, by time steps of their ODE.

    The parameters move by −∇ of ½ |F − y|² + ½ λ |θ − θ_0|²; with θ − θ_0 = Jᵀ v, dv/dt =
    −(F − y) − λ v and F = F_0 + Θ v.
    """

    def move(_, v):
        return -(start + tangent @ v - y) - ridge * v

    v = integrate.solve_ivp(
        move, (0, time), np.zeros(len(y)), method="DOP853", rtol=1e-12, atol=1e-13
    ).y[:, -1]
    return start + tangent @ v, start_cross + tangent_cross @ v
