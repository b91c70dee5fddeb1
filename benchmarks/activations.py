"""First-call times of activations of one's own against the slowest built-in one, at depth 100.

Every time holds the derivation of the averages for that activation and their evaluation, each
activation in a process of its own: χ^out, G11, the kernels and responses of two inputs, ρ* of one
input, and G11 of two inputs. What is not there says why below the table: responses without a
maximum, kernels beyond float64, or more seconds than the limit.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import fieldtheory as ft

# Seconds of processor time after which a task is given up.
DEPTH, LIMIT = 100, 120.0
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
    "x²": "square",
    "x³": "cubic",
    "log cosh": "log(cosh(h))",
    "x/√(1 + x²)": "h/sqrt(1 + h**2)",
}


def times(activation: str) -> tuple[dict[str, float], dict[str, str]]:
    """Processor times of the quantities, one after the other, and why there are no others."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGVTALRM, _give_up)
    net = ft.ResidualNetwork(depth=DEPTH, activation=activation, branch_scale=DEPTH**-0.5)
    one, two = ft.solve(net, 0.5), ft.solve(net, [[0.5, 0.3], [0.3, 0.7]])
    tasks: dict[str, Callable[[], object]] = {
        "χ^out": lambda: one.output_response,
        "G11": lambda: one.G11,
        "pair": lambda: (two.kernels, two.output_response),
        "ρ*": lambda: ft.optimal_scaling(net, 0.02),
        "G11 of 2": lambda: two.G11,
    }
    found, missing = {}, {}
    for name, task in tasks.items():
        start = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
        try:
            task()
        except (ValueError, ArithmeticError, TimeoutError) as error:
            missing[name] = str(error)
        else:
            found[name] = time.process_time() - start
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    return found, missing


def _give_up(*_: object) -> None:
    raise TimeoutError(f"more than {LIMIT:.0f} s")


def _in_new_process(activation: str) -> tuple[dict[str, float], dict[str, str]]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(times, activation).result()


def main() -> None:
    quantities = ("χ^out", "G11", "pair", "ρ*", "G11 of 2")
    print(f"seconds at depth {DEPTH}".ljust(20), *(q.rjust(8) for q in quantities))
    slowest = dict.fromkeys(quantities, 0.0)
    reasons = []
    for names, digits in (({name: name for name in BUILT_IN}, 2), (OWN, 1)):
        if names is OWN:
            print("ratio to the slowest of these")
        unit = dict.fromkeys(quantities, 1.0) if names is not OWN else dict(slowest)
        for name, text in names.items():
            found, missing = _in_new_process(text)
            if names is not OWN:
                slowest = {q: max(slowest[q], found.get(q, 0.0)) for q in quantities}
            shown = {q: f"{found[q] / unit[q]:8.{digits}f}" for q in found}
            print(name.ljust(20), *(shown.get(q, "-".rjust(8)) for q in quantities), flush=True)
            reasons += [f"{name}, {q}: {reason}" for q, reason in missing.items()]
    print("without a number:", *reasons, sep="\n  ")


if __name__ == "__main__":
    main()
