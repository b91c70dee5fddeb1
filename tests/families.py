"""Every quantity of every family of networks: a number, or one sentence why there is none.

python -m tests.families      writes the table into docs/theory/families.md
"""

import re
import warnings
from pathlib import Path

import numpy as np

import fieldtheory as ft
from fieldtheory.criticality.susceptibility import component_kernels, susceptibilities
from fieldtheory.inference.spectra import power_coefficients
from fieldtheory.inference.trained_ensemble import train
from fieldtheory.sklearn import NetworkGPRegressor

PAGE = Path(__file__).parents[1] / "docs" / "theory" / "families.md"
# What is no reason.
NUMBER = re.compile(r"✓|-?\d[\d.e+-]*")
HEAD = "| quantity | residual | feed-forward | blocks | transformers | diffusions |"

PAIR = np.array([[0.6, 0.2], [0.2, 0.5]])
X, Y = np.array([[1.0, 0.2], [-0.3, 1.0], [0.5, -0.8]]), np.array([0.5, -0.2, 0.1])
STARTS = [1.0, 0.5]  # inputs of diffusions, copied to all neurons

COMMON = {"depth": 3, "input_dim": 2}
FAMILIES = {
    "residual": ft.ResidualNetwork(
        activation="erf", width=100, branch_scale=0.5, skip_scale=0.9, **COMMON
    ),
    "feed-forward": ft.FeedForwardNetwork(
        activation="tanh", width=100, weight_variance=1.5, **COMMON
    ),
    "blocks": ft.BlockNetwork(
        activation="gelu", width=64, epsilon=0.1, branch_scale=0.5, skip_scale=0.9, **COMMON
    ),
    "transformers": ft.TransformerNetwork(
        depth=3, heads=8, width=64, epsilon=0.1, branch_scale=0.5, skip_scale=0.9
    ),
    "diffusions": ft.DiffusionNetwork(depth=20, width=100),
}


def _solved(field, several=False, **options):
    def value(net):
        separate = isinstance(net, ft.DiffusionNetwork)
        K0 = STARTS if separate else PAIR if several else 0.6
        return getattr(ft.solve(net, K0, **({} if separate else options)), field)

    return value


def _latex(quantity):
    return lambda net: len(ft.derive(net).latex(quantity)) > 0


def _of_diffusions(layered, diffusion):
    return lambda net: (diffusion if isinstance(net, ft.DiffusionNetwork) else layered)(net)


def _simulated(field):
    def value(net):
        inputs = STARTS if isinstance(net, ft.DiffusionNetwork) else 0.6
        return getattr(ft.simulate(net, inputs, samples=20, seed=1), field)

    return value


def _saved(net):
    """Whether a file gives the same back."""
    import tempfile

    s = ft.solve(net, STARTS if isinstance(net, ft.DiffusionNetwork) else 0.6)
    with tempfile.TemporaryDirectory() as folder:
        s.save(f"{folder}/solution.npz")
        return ft.load(f"{folder}/solution.npz").network == net


def _torch(net):
    from fieldtheory.training import torch_module

    return torch_module(net, inputs=2) is not None


def _deep(net):
    """The network with ρ = 1/√L and γ = 1, where that can be said."""
    if isinstance(net, ft.FeedForwardNetwork | ft.DiffusionNetwork | ft.TransformerNetwork):
        return net
    return net.replace(branch_scale="uniform", skip_scale=1.0)


def _swept(net):
    name = "weight_variance" if isinstance(net, ft.FeedForwardNetwork) else "branch_scale"
    found = ft.sweep(net, 0.6, over={name: [0.8, 0.9]}, of="output_kernel")
    return found.to_xarray().output_kernel


# Rows of kernels of diffusions under the names that their results have.
QUANTITIES = {
    # N → ∞
    "kernels": _of_diffusions(_solved("kernels"), _solved("covariance")),
    "residual_kernels": _solved("residual_kernels"),
    "kernels of two inputs": _of_diffusions(_solved("kernels", True), _solved("gram")),
    "shares": _solved("shares"),
    "decorrelation": lambda net: _solved("decorrelation", True)(net)[:, 0, 1],
    "log_kernels": _solved("log_kernels"),
    "response": _solved("response"),
    "residual_response": _solved("residual_response"),
    "full_response": _solved("full_response", True),
    "G12": _solved("G12"),
    "log_response": _solved("log_response"),
    "kernels to 30 digits": _solved("kernels", digits=30),
    "responses to 30 digits": _solved("response", digits=30),
    "proven kernels": _solved("kernels", digits=15, proven=True),
    "tangent_kernels": _solved("tangent_kernels"),
    "tangent_kernels of some parameters": lambda net: (
        ft.tangent_kernels(net, 0.6, {"readout_weight": 0}).tangent_kernels
    ),
    "tangent_kernels, standard": lambda net: (
        ft.tangent_kernels(net, 0.6, parametrization="standard").tangent_kernels
    ),
    "parts": lambda net: ft.tangent_kernels(net, 0.6).parts,
    "kernel of data": lambda net: ft.kernel(net)(X),
    "tangent kernel of data": lambda net: ft.kernel(net, "tangent_kernel")(X),
    "kernel of a hidden layer of data": lambda net: ft.kernel(net, "kernel", layer=2)(X),
    "gradient of the kernel of data": lambda net: (
        ft.kernel(net).derivative("bias_variance", X)
        if not isinstance(net, ft.BlockNetwork)
        else ft.kernel(net).derivative("inner_bias_variance", X)
    ),
    "spectrum": lambda net: ft.spectrum(net, 3, count=3).eigenvalues[0],
    "power_coefficients": lambda net: power_coefficients(net, 3, count=4),
    "Gaussian process": lambda net: (
        NetworkGPRegressor(net, noise_variance=0.1).fit(X, Y).predict(X)
    ),
    "ensemble of trained networks": lambda net: train(
        ft.kernel(net), ft.kernel(net, "tangent_kernel"), X, Y, time=2.0
    ).mean(X),
    "optimal_scaling": lambda net: ft.optimal_scaling(net, PAIR)[0, 1],
    "depth_limit": lambda net: ft.depth_limit(_deep(net), 0.6).output_kernel,
    "susceptibilities": lambda net: susceptibilities(net, 0.6),
    "component_kernels": lambda net: component_kernels(net, [0.6, 0.1, 0.1]),
    "critical_block": ft.critical_block,
    # 1/N
    "G11": _solved("G11"),
    "G11 of two inputs": _solved("G11", True),
    "G11_error": _solved("G11_error", True),
    "kernel_variance": _of_diffusions(_solved("kernel_variance"), _simulated("gram_variance")),
    "stream_variance": _solved("stream_variance"),
    "stream_covariance": _solved("stream_covariance"),
    "mean_shift": _solved("mean_shift"),
    "mean_shift of two inputs": _solved("mean_shift", True),
    "mean_shift_error": _solved("mean_shift_error", True),
    "kernel_shift": _solved("kernel_shift"),
    "response_shift": _solved("response_shift"),
    "response_shift_error": _solved("response_shift_error", True),
    "four_point": _solved("four_point"),
    "four_point_error": _solved("four_point_error", True),
    "output_kurtosis": _of_diffusions(_solved("output_kurtosis"), _simulated("kurtosis")),
    "covariance_with": lambda net: (
        ft.covariance_with(
            ft.solve(net, STARTS if isinstance(net, ft.DiffusionNetwork) else PAIR), np.eye(2)
        ).values
    ),
    "data_variability": lambda net: ft.data_variability(net, [0.5, 0.6, 0.8]).mean_correction,
    "required_width": lambda net: ft.required_width(net, 0.6, 0.1),
    # 1/N²
    "mean_shift_2": _solved("mean_shift_2", order=2),
    "kernel_shift_2": _solved("kernel_shift_2", order=2),
    "variance_2": _solved("variance_2", order=2),
    "third_cumulant": _solved("third_cumulant", order=2),
    "four_point_2": _solved("four_point_2", order=2),
    "order_ratio": _solved("order_ratio", order=2),
    "resummed_variance": _solved("resummed_variance", order=2),
    # labels
    "posterior": lambda net: ft.posterior(net, PAIR, Y[:2], noise_variance=0.1).kernels,
    "response after labels": lambda net: (
        ft.posterior(net, PAIR, Y[:2], noise_variance=0.1).response_shift
    ),
    "tilted_posterior": lambda net: (
        ft.tilted_posterior(net, PAIR, Y[:2], noise_variance=0.1, seed=1).kernels
    ),
    # networks drawn
    "simulate": _of_diffusions(_simulated("mean"), _simulated("covariance")),
    "simulate, with all weights": lambda net: (
        ft.simulate(net, 0.6, samples=20, method="weights").mean
        if not isinstance(net, ft.DiffusionNetwork)
        else ft.simulate(net, STARTS, samples=20).mean
    ),
    "simulate_response": lambda net: ft.simulate_response(net, 0.6, samples=20).response,
    "compare": lambda net: (
        ft.compare(
            ft.solve(net, STARTS if isinstance(net, ft.DiffusionNetwork) else 0.6),
            ft.simulate(net, STARTS if isinstance(net, ft.DiffusionNetwork) else 0.6, samples=400),
        )
        is not None
    ),
    "sweep": _swept,
    # formulas, files, torch
    "LaTeX of its law": _of_diffusions(_latex("action"), _latex("diffusion")),
    "LaTeX of the Hessian": _of_diffusions(_latex("hessian"), lambda net: ft.derive(net).hessian),
    "diagrams": lambda net: len(ft.derive(net).diagrams()),
    "files": _saved,
    "torch_module": _torch,
}


def entry(quantity, net):
    """The last number of a quantity in five digits, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = QUANTITIES[quantity](net)
    except (AttributeError, TypeError, ValueError) as error:
        match = re.search(r"(?:because|: )\s*(.*)", str(error))
        if type(net).__name__ not in str(error) or not (match or quantity in net.without):
            raise
        return match.group(1) if match else net.without[quantity]
    if isinstance(value, bool):
        assert value
        return "✓"
    number = float(np.ravel(np.asarray(value, dtype=object))[-1])
    assert np.isfinite(number), (quantity, net)
    return f"{number:.5g}"


def table():
    """The rows of the table and the numbered reasons below it, as text."""
    rows, reasons = [HEAD, "|" + "---|" * (1 + len(FAMILIES))], []
    for quantity in QUANTITIES:
        cells = [entry(quantity, net) for net in FAMILIES.values()]
        for n, cell in enumerate(cells):
            if not NUMBER.fullmatch(cell):
                if cell not in reasons:
                    reasons.append(cell)
                cells[n] = f"({reasons.index(cell) + 1})"
        rows.append("| " + " | ".join([quantity, *cells]) + " |")
    return [*rows, "", *(f"{n}. {reason}" for n, reason in enumerate(reasons, 1))]


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(HEAD)
    PAGE.write_text(text[:start] + "\n".join(table()) + "\n", encoding="utf-8")
