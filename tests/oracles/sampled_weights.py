"""Posteriors of small networks by Hamiltonian Monte Carlo (NUTS) on all their weights and biases.

    h^(0) = W_in x,  h^(l) = γ h^(l-1) + ρ [W^(l) φ(h^(l-1)) + b^(l)],  y = W_out φ(h^(L)) + b_out,

the entries of W^(l), b^(l), of the readout too, of the variances w/N and b, those of W_in of 1/d.
"""

import numpy as np


def sampled(phi, X, Y, noise, net, draws, seed, chains=4, warmup=1000, batches=50):
    """Means of C^(1..L+1) and outputs, variances of outputs, their errors, divergences.

    ``X`` (Q, d), the labels ``Y`` (P,) are those of the first inputs; ``net`` has N, L, gamma, rho,
    w, b. Errors are standard errors by means over ``batches`` batches of every chain; divergences
    are a share of the draws.
    """
    # Libraries of the extra `nuts`.
    import blackjax
    import jax
    import jax.numpy as jnp

    P, N = len(Y), net["N"]
    shapes = [(N, X.shape[1]), *[(N, N + 1)] * net["L"], (1, N + 1)]
    sizes = np.cumsum([a * b for a, b in shapes])

    def affine(theta, x):
        # Coordinates are standard normal a priori; the last column has the biases.
        return theta[:, :-1] @ x * (net["w"] / N) ** 0.5 + theta[:, -1:] * net["b"] ** 0.5

    def forward(theta):
        first, *hidden, last = (
            part.reshape(shape)
            for part, shape in zip(jnp.split(theta, sizes[:-1]), shapes, strict=True)
        )
        h = first @ X.T / X.shape[1] ** 0.5
        kernels = []
        for l, layer in enumerate([*hidden, last]):
            x = phi(h)
            scale = 1.0 if l == net["L"] else net["rho"] ** 2
            kernels.append(scale * (net["w"] * x.T @ x / N + net["b"]))
            if l < net["L"]:
                h = net["gamma"] * h + net["rho"] * affine(layer, x)
        return affine(last, x)[0], jnp.stack(kernels)

    def log_density(theta):
        outputs, _ = forward(theta)
        return -0.5 * (theta @ theta) - ((outputs[:P] - Y) ** 2).sum() / (2 * noise)

    @jax.jit
    def chain(key):
        start, adapt, run = jax.random.split(key, 3)
        first = jax.random.normal(start, (sizes[-1],))
        (state, found), _ = blackjax.window_adaptation(blackjax.nuts, log_density).run(
            adapt, first, warmup
        )
        step = blackjax.nuts(log_density, **found).step

        def one(state, key):
            state, info = step(key, state)
            return state, (*forward(state.position), info.is_divergent)

        return jax.lax.scan(one, state, jax.random.split(run, draws))[1]

    found = [chain(key) for key in jax.random.split(jax.random.key(seed), chains)]
    outputs, kernels, diverged = (np.array(each, dtype=float) for each in zip(*found, strict=True))
    means, errors = {}, {}
    squares = (outputs - outputs.mean(axis=(0, 1))) ** 2
    compared = {"residual_kernels": kernels, "mean": outputs, "variance": squares}
    for name, values in compared.items():
        parts = values.reshape(chains * batches, -1, *values.shape[2:]).mean(axis=1)
        means[name] = parts.mean(axis=0)
        errors[name] = parts.std(axis=0, ddof=1) / len(parts) ** 0.5
    return means, errors, diverged.mean()
