"""Networks whose limit is a diffusion: what draws cost at PF's size, L = D = 500 and two inputs.

Seconds of processor time for 10,000 draws (PF section 4.1). Explicit weights in plain NumPy, the
definition in a few lines, take as long for every draw, so a few are drawn and the time is scaled;
BLAS is kept to one thread by OMP_NUM_THREADS=1. All methods but "gram" are scaled as well, from
1000 draws; ``python benchmarks/diffusions.py 10000`` draws all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_simulation import simulate_diffusion

DRAWS = 10_000
INPUTS = (0.0, 1.0)
EXPLICIT_DRAWS = 3


def explicit_weights(network: DiffusionNetwork, draws: int) -> np.ndarray:
    """The outputs of tanh networks with every weight and bias drawn."""
    rng = np.random.default_rng(0)
    D, L, step = network.width, network.depth, network.step
    outputs = np.empty((draws, len(INPUTS)))
    for n in range(draws):
        x = np.tile(INPUTS, (D, 1))
        for _ in range(L):
            W = rng.standard_normal((D, D)) * np.sqrt(network.weight_variance * step / D)
            b = rng.standard_normal((D, 1)) * np.sqrt(network.bias_variance * step)
            x = x + np.tanh(W @ x + b)
        outputs[n] = x[0]
    return outputs


def seconds(task: Callable[[], object]) -> float:
    """Of processor time."""
    start = time.process_time()
    task()
    return time.process_time() - start


def main() -> None:
    """Print the seconds of every method and their ratios to explicit weights."""
    drawn = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    network = DiffusionNetwork(depth=500, width=500)
    small = network.replace(depth=2)
    for method in ("kernel", "sde", "gram"):
        simulate_diffusion(small, INPUTS, samples=20, method=method)
    explicit_weights(small, 1)
    explicit = seconds(lambda: explicit_weights(network, EXPLICIT_DRAWS)) * DRAWS / EXPLICIT_DRAWS
    print(f"{DRAWS} draws at L = D = 500, {len(INPUTS)} inputs: seconds, explicit weights over it")
    print(f"  explicit weights {explicit:8.0f}")
    for method in ("kernel", "sde", "gram"):
        count = DRAWS if method == "gram" else drawn

        def task(method: str = method, count: int = count) -> object:
            return simulate_diffusion(network, INPUTS, samples=count, method=method)

        taken = seconds(task) * DRAWS / count
        print(f"  {method:16s} {taken:8.1f} {explicit / taken:8.0f}")


if __name__ == "__main__":
    main()
