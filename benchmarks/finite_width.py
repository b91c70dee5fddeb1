"""Orders 1/N and 1/N² of one input: processor time on one thread, in units of the saddle point.

Wide signals, of the default network and of large K0, and kinks in seconds.
"""

import time
from collections.abc import Callable

import fieldtheory as ft

DEPTHS = (100, 200, 400)
SETTING = {"activation": "tanh", "branch_scale": 0.05, "weight_variance": 2.0, "bias_variance": 0.0}
K0 = 2.0
# Activation, ρ and K0.
OTHERS = ("tanh", 1.0, 1.0), ("tanh", 0.05, 100.0), ("tanh", 0.05, 1e3), ("relu", 0.05, 1.0)


def shortest(
    work: Callable[[ft.Solution], object],
    depth: int,
    repeats: int = 3,
    variance: float = K0,
    **setting: object,
) -> float:
    """Seconds for a field of a new solution whose saddle point is known."""
    net = ft.ResidualNetwork(depth=depth, width=500, **(setting or SETTING))
    found = []
    for _ in range(1 + repeats):
        s = ft.solve(net, variance, order=2)
        _ = s.kernels
        start = time.process_time()
        work(s)
        found.append(time.process_time() - start)
    return min(found[1:])


def main() -> None:
    for depth in DEPTHS:
        saddle = shortest(lambda s: ft.solve(s.network, K0).kernels, depth)
        first = shortest(lambda s: s.mean_shift, depth)
        second = shortest(lambda s: s.variance_2, depth)
        print(
            f"tanh, L = {depth}: saddle point {1e3 * saddle:.1f} ms; "
            f"1/N {1e3 * first:.0f} ms ({first / saddle:.1f} times); "
            f"1/N and 1/N² {1e3 * second:.0f} ms ({second / saddle:.0f} times)"
        )
    for name, scale, variance in OTHERS:
        options = {"variance": variance, "activation": name, "branch_scale": scale}
        first = shortest(lambda s: s.mean_shift, DEPTHS[-1], 1, **options)
        second = shortest(lambda s: s.variance_2, DEPTHS[-1], 1, **options)
        print(
            f"{name}, ρ = {scale:g}, K0 = {variance:g}, L = {DEPTHS[-1]}: "
            f"1/N {first:.2f} s; 1/N and 1/N² {second:.1f} s"
        )


if __name__ == "__main__":
    main()
