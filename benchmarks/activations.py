"""First-call times of activations of one's own against the slowest built-in one, at depth 100.

Every time holds the derivation of the averages for that activation and their evaluation, each
activation in a process of its own: χ^out, G11, the kernels and responses of two inputs, and ρ* of
one input, where there is one.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import fieldtheory as ft

DEPTH = 100
BUILT_IN = ("erf", "tanh", "relu", "gelu", "swish", "sin")
OWN = {
    "softsign": "h/(1 + abs(h))",
    "hard tanh": "max(-1, min(1, h))",
    "ELU": "elu",
    "SELU": "selu",
    "CELU": "celu",
    "softplus": "log(1 + exp(h))",
    "mish": "h*tanh(log(1 + exp(h)))",
    "hard swish": "hard_swish",
    "ReLU6": "relu6",
    "squared ReLU": "squared_relu",
    "arctan": "atan(h)",
    "Gaussian": "exp(-h**2)",
    "|x|": "abs(h)",
    "sign": "sign(h)",
    "Heaviside": "heaviside",
    "cos": "cos(h)",
    "log cosh": "log(cosh(h))",
    "x/√(1 + x²)": "h/sqrt(1 + h**2)",
}


def times(activation: str) -> dict[str, float]:
    """Processor times of the four quantities, one after the other; NaN where there is none."""
    warnings.simplefilter("ignore")
    net = ft.ResidualNetwork(depth=DEPTH, activation=activation, branch_scale=DEPTH**-0.5)
    one, two = ft.solve(net, 0.5), ft.solve(net, [[0.5, 0.3], [0.3, 0.7]])
    tasks: dict[str, Callable[[], object]] = {
        "χ^out": lambda: one.output_response,
        "G11": lambda: one.G11,
        "pair": lambda: (two.kernels, two.output_response),
        "ρ*": lambda: ft.optimal_scaling(net, 0.02),
    }
    found = {}
    for name, task in tasks.items():
        start = time.process_time()
        try:
            task()
        except (ValueError, ArithmeticError):
            found[name] = float("nan")
        else:
            found[name] = time.process_time() - start
    return found


def _in_new_process(activation: str) -> dict[str, float]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(times, activation).result()


def main() -> None:
    quantities = ("χ^out", "G11", "pair", "ρ*")
    print(f"seconds at depth {DEPTH}".ljust(20), *(q.rjust(8) for q in quantities))
    slowest = dict.fromkeys(quantities, 0.0)
    for name in BUILT_IN:
        row = _in_new_process(name)
        slowest = {q: max(slowest[q], t if t == t else 0.0) for q, t in row.items()}
        print(name.ljust(20), *(f"{row[q]:8.2f}" for q in quantities), flush=True)
    print("ratio to the slowest of these")
    for name, text in OWN.items():
        row = _in_new_process(text)
        print(name.ljust(20), *(f"{row[q] / slowest[q]:8.1f}" for q in quantities), flush=True)


if __name__ == "__main__":
    main()
