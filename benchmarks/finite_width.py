"""Orders 1/N and 1/N² of one input: processor time on one thread, in units of the saddle point."""

import time
from collections.abc import Callable

import fieldtheory as ft

DEPTHS = (100, 200, 400)
SETTING = {"activation": "tanh", "branch_scale": 0.05, "weight_variance": 2.0, "bias_variance": 0.0}
K0 = 2.0


def shortest(work: Callable[[ft.Solution], object], depth: int, repeats: int = 3) -> float:
    """Seconds for a field of a new solution whose saddle point is known."""
    net = ft.ResidualNetwork(depth=depth, width=500, **SETTING)
    found = []
    for _ in range(1 + repeats):
        s = ft.solve(net, K0, order=2)
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


if __name__ == "__main__":
    main()
