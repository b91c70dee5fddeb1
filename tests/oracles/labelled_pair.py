"""Two labelled inputs of one wide hidden layer with a readout of mean-field size, on a grid.

u = A^-1 Y is the minimum of s^2 ln<exp(a (u phi)^2/(2 s^2))> + kappa u^2/2 - u Y, which is convex,
over Gaussian inputs of phi with the kernel K0; C = a <phi phi^T> of the law with that weight.
"""

import numpy as np
from scipy import optimize, special


def kernel(phi, K0, Y, noise, scale, a, reach=8.0, points=161):
    """C of the outputs, (2, 2), and the largest residual of (C + kappa) u = Y over Y."""
    x = np.linspace(-reach, reach, points)
    x = np.stack(np.meshgrid(x, x)).reshape(2, -1)
    features, prior = phi(np.linalg.cholesky(K0) @ x), -0.5 * np.sum(x**2, axis=0)

    def law(u):
        exponent = prior + a / (2 * scale**2) * (u @ features) ** 2
        height = special.logsumexp(exponent)
        C = a * (features * np.exp(exponent - height)) @ features.T
        return scale**2 * height + noise * u @ u / 2, C

    def missing(u, Y):
        return law(u)[1] @ u + noise * u - Y

    u = np.zeros(2)
    for part in np.geomspace(0.01, 1.0, 12):
        goal = part * np.asarray(Y)
        u = optimize.minimize(
            lambda u, Y: law(u)[0] - u @ Y, u, (goal,), jac=missing, method="BFGS"
        ).x
    u = optimize.root(missing, u, (goal,), tol=1e-13).x
    return law(u)[1], np.abs(missing(u, goal)).max() / np.abs(Y).max()
