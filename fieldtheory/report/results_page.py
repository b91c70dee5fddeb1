"""The page of the main job: what a run found, put into words, formulas and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from fieldtheory.literature.checks import Check
from fieldtheory.literature.claim import Verdict
from fieldtheory.report.document import Figure, Formula, Section, Table, Text, write_report
from fieldtheory.report.inputs import Inputs
from fieldtheory.theory.latex import latex
from fieldtheory.theory.linearised import saturation_formula

TITLES = {
    "action": "Action",
    "saddle_point": "Saddle point",
    "hessian": "Hessian",
    "propagator": "Propagators",
    "response": "Response function",
    "output_response": "Response of the output",
}
_SHOWN_DIGITS = 25


@dataclass(frozen=True)
class Numbers:
    """The numbers that a run is judged by, see `main_job.Summary`."""

    depth: int
    variance_scaling: float
    covariance_scaling: float
    pair_class: str
    largest_difference: float
    failed_checks: int


def write(
    path: Path,
    first: Numbers,
    inputs: Inputs,
    formulas: dict[str, dict[str, str]],
    scaling: Sequence[dict[str, Any]],
    propagators: dict[str, np.ndarray],
    pictures: dict[str, Path],
    simulated: tuple[int, int],
    checks: Sequence[Check],
    verdicts: Sequence[Verdict],
) -> Path:
    """Write the page of a run.

    Parameters
    ----------
    path : Path
    first : Numbers
        Shown first.
    inputs : Inputs
    formulas : dict of str to dict of str to str
        LaTeX by name, of two layers ("explicit") and of any layer ("generic").
    scaling : sequence of dict
        The rows of optimal_scaling.csv.
    propagators : dict of str to ndarray
        The arrays of propagators.npz.
    pictures : dict of str to Path
        Figures by name.
    simulated : pair of int
        Numbers of networks and inputs of ``fig2``.
    checks : sequence of Check
    verdicts : sequence of Verdict

    Returns
    -------
    Path
        Where it is.
    """
    numbers = _numbers(inputs, propagators, pictures, simulated)
    scalings = _scaling(first.depth, scaling, pictures)
    return write_report(
        path,
        "Field theory of a residual network",
        [
            Section("Network and inputs", _network(inputs, propagators)),
            Section("Theory for any layer", _generic(formulas["generic"])),
            Section("Theory of two layers", _explicit(formulas["explicit"])),
            Section("Kernels, responses, propagators", numbers),
            Section("Optimal scaling of the residual branch", scalings),
            Section("What was checked", _checks(checks)),
            Section("What the papers print", _claims(verdicts)),
        ],
        subtitle=f"{inputs.name}: {len(inputs.K0)} samples",
        highlights=[
            (
                rf"optimal scaling $\rho^*$ of a single sample, $L = {first.depth}$",
                first.variance_scaling,
            ),
            (
                rf"mean $\rho^*$ of pairs, {first.pair_class}, $L = {first.depth}$",
                first.covariance_scaling,
            ),
            (
                "largest relative difference of float64 from mpmath",
                f"{first.largest_difference:.1e}",
            ),
        ],
        footer=f"Written by fieldtheory {version('fieldtheory-networks')}. "
        "F25: K. Fischer, D. Dahmen, M. Helias, Field theory for optimal signal propagation "
        "in ResNets (2025). F23: its earlier version, Optimal signal propagation in ResNets "
        "through residual scaling (2023). PDLT-B: D. A. Roberts, S. Yaida, B. Hanin, The "
        "Principles of Deep Learning Theory (2022), appendix B. SR: S. Hayou et al., Stable "
        "ResNet (2021). PF: S. Peluchetti, S. Favaro, Infinitely deep neural networks as diffusion "
        "processes (2020).",
    )


def _network(inputs: Inputs, propagators: dict[str, np.ndarray]) -> list[Any]:
    net = inputs.network
    depths = ", ".join(map(str, propagators["depths"]))
    variances = zip(
        net.readin_variances,
        (net.weight_variance, net.bias_variance),
        net.readout_variances,
        strict=True,
    )
    names = (r"weight variance $\sigma_w^2$", r"bias variance $\sigma_b^2$")
    rows = [[name, *row] for name, row in zip(names, variances, strict=True)]
    return [
        Text(
            "A fully connected residual network with Gaussian weights, averaged over them, is a "
            "field theory in its kernels. This page has its action, saddle point and Hessian in "
            "symbols, its propagators in numbers, and the scaling of the residual branch at which "
            "the output responds most to the input. Every sample is scaled to the same length."
        ),
        Formula(
            "Network",
            r"\begin{aligned} h^{(0)} &= W_{\mathrm{in}} x + b_{\mathrm{in}} \\ "
            r"h^{(l)} &= \gamma_{l} h^{(l-1)} + \rho_{l} \left[ W^{(l)} \phi(h^{(l-1)}) + b^{(l)} "
            r"\right] \\ y &= W_{\mathrm{out}} \phi(h^{(L)}) + b_{\mathrm{out}} \end{aligned}",
            rf"Here $\gamma_l = 1$, one scaling $\rho$ for all layers, $\phi = "
            rf"\mathrm{{{net.activation.name}}}$, width $N = {net.width}$, depths $L$ = {depths}; "
            rf"samples of $d_{{\mathrm{{in}}}} = {net.input_dim}$ entries have the input kernel "
            rf"$K^{{(0)}}_{{\alpha\alpha}} = {inputs.K0[0, 0]:g}$.",
        ),
        Table("Variances", ["", "read-in", "residual layers", "readout"], rows),
    ]


def _generic(formulas: dict[str, str]) -> list[Any]:
    return [
        Text(
            r"$\left\langle \cdot \right\rangle_{\mathcal{N}(0, K)}$ is the average over signals "
            r"of covariance $K$, a semicolon makes it a connected correlator. "
            r"$\nu_m = 1$ for all layers but the input; $\nu_0 = d_{\mathrm{in}}/N$ is 1 in all "
            r"numbers below, so that responses are derivatives by the kernel of the input."
        ),
        *(Formula(TITLES[name], source) for name, source in formulas.items()),
    ]


def _explicit(formulas: dict[str, str]) -> list[Any]:
    return [
        Text(
            r"The same for $L = 2$ with $\gamma_l = 1$ and $\phi$ undetermined, obtained from the "
            r"action by differentiation."
        ),
        *(Formula(TITLES[name], source) for name, source in formulas.items()),
    ]


def _numbers(
    inputs: Inputs,
    propagators: dict[str, np.ndarray],
    pictures: dict[str, Path],
    simulated: tuple[int, int],
) -> list[Any]:
    rows = []
    for depth, rho in zip(propagators["depths"].tolist(), propagators["rho"], strict=True):
        names = ("K", "chi", "chi_out", "G11")
        K, chi, out, G11 = (propagators[f"{name}_L{depth}"] for name in names)
        fluctuation = np.sqrt(G11[-1, -1])
        rows.append([depth, rho, K[-2, 0, 0], K[-1, 0, 0], chi[-1, 0, 0], out[0, 0], fluctuation])
    columns = [
        "$L$",
        r"$\rho$",
        "$K^{(L)}$",
        r"$K^{\mathrm{out}}$",
        r"$\chi^{(L)}$",
        r"$\chi^{\mathrm{out}}$",
        r"$\sqrt{\mathcal{G}_{11}}$ of the output",
    ]
    size = len(inputs.K0)
    keys = [
        ["C_L10, K_L10", f"residual kernels, kernels: (L + 2, {size}, {size})"],
        ["eta_L10, chi_L10", f"residual response, response: (L + 1, {size}, {size})"],
        ["chi_out_L10", f"response of the output: ({size}, {size})"],
        ["G12_L10, G11_L10", "propagators of a single sample: (L + 2, L + 2)"],
        ["depths, rho, K0, labels", "depths, scaling at each of them, input kernel, classes"],
    ]
    keys = [[name.replace("L10", f"L{propagators['depths'][0]}"), text] for name, text in keys]
    return [
        _simulation(pictures["fig2"], simulated),
        Figure(
            "Kernels and response function over the layers (F25 Fig. 3)",
            pictures["fig3"],
            r"Weight variances 1.2, bias variances 0.2, $\phi = \mathrm{erf}$, as in F25; $L = 20$ "
            r"and an input of unit length, $K^{(0)} = 0.212$, which F25 does not state.",
        ),
        Table(
            "A single sample at its optimal scaling",
            columns,
            rows,
            rf"$\sqrt{{\mathcal{{G}}_{{11}}}}$ is the standard deviation of the output kernel over "
            rf"networks of width {inputs.network.width}, to order $1/N$.",
        ),
        Table("Arrays in propagators.npz", ["key", "what, shape"], keys),
    ]


def _simulation(picture: Path, simulated: tuple[int, int]) -> Figure:
    networks, inputs = simulated
    return Figure(
        "Theory and simulated networks (F25 Fig. 2)",
        picture,
        r"(a) Residual kernels $C^{(l)}$ with standard errors, (b) response $\eta^{(l)}$; curves "
        rf"are theory, dots simulations of {networks} networks, in (b) for each of {inputs} random "
        r"inputs (F25 has 1000 and 100). Weight variances 1.2, bias variances 0.2, $\rho = 1$, "
        r"$N = 500$, $\phi = \mathrm{erf}$, as in F25; $L = 20$ and inputs of unit length, which "
        r"F25 does not state.",
    )


def _scaling(depth: int, scaling: Sequence[dict[str, Any]], pictures: dict[str, Path]) -> list[Any]:
    columns = ["$L$", "pairs", "number", r"mean $\rho^*$", "min", "max", "spread", "eq. (67)"]
    columns.append("deep limit")
    rows = [[None if value == "" else value for value in row.values()] for row in scaling]
    columns_note = (
        "The spread is the standard deviation over the pairs. F25 eq. (67), with dynamic range 1, "
        "is made for single inputs; the deep limit is that of L to infinity with its correction of "
        "relative order 1/L."
    )
    formula = saturation_formula()
    return [
        Figure(
            "Response of the output against the residual scaling (F25 Fig. 4)",
            pictures["fig4"],
            r"Response of (a) a variance and (b) a covariance of the output to that of the input, "
            r"with its maxima; (c) their places against depth. Input kernel 0.05 on and 0.03 off "
            r"the diagonal.",
        ),
        Table("Optimal scaling of the samples", columns, rows, columns_note),
        Formula("Approximation F25 eq. (67)", f"{latex(formula.lhs)} = {latex(formula.rhs)}"),
        Figure(
            "Optimal scaling of all pairs of samples (as F25 Fig. 6)",
            pictures["pairs"],
            rf"(a) $\rho^*$ of every entry of the kernel at $L = {depth}$; lines separate classes. "
            r"(b) The same against the correlation of the two samples: for samples of equal length "
            r"nothing else matters, as synthetic inputs show (gray).",
        ),
    ]


def _checks(checks: Sequence[Check]) -> list[Any]:
    failed = [check for check in checks if not check.passed]
    verdict = "All pass." if not failed else f"{len(failed)} do not pass."
    groups = dict.fromkeys(check.group for check in checks)
    tables = [_check_table(group, [c for c in checks if c.group == group]) for group in groups]
    return [
        Text(
            f"{len(checks)} numbers were computed in two ways, in float64 and in mpmath, or "
            f"as two sides of an identity in mpmath. {verdict} Differences are relative. "
            f"Up to {_SHOWN_DIGITS} digits are shown, all of them are in checks.csv."
        ),
        *tables,
    ]


def _shortened(number: str) -> str:
    if len(number) <= _SHOWN_DIGITS:
        return number
    with mpmath.workdps(len(number)):
        return mpmath.nstr(mpmath.mpf(number), _SHOWN_DIGITS)


def _check_table(group: str, checks: Sequence[Check]) -> Table:
    columns = ["quantity", "float64", "mpmath", "difference", "verdict"]
    rows = [
        [c.quantity, c.float64 or None, _shortened(c.mpmath), c.difference, _verdict(c)]
        for c in checks
    ]
    if not any(c.float64 for c in checks):
        columns.pop(1)
        rows = [[quantity, *rest] for quantity, _, *rest in rows]
    return Table(group.capitalize(), columns, rows, scientific=["difference"])


def _verdict(check: Check) -> str:
    return "passes" if check.passed else f"fails (> {check.tolerance:.0e})"


def _claims(verdicts: Sequence[Verdict]) -> list[Any]:
    failed = sum(not verdict.holds for verdict in verdicts)
    columns = ["equation", "what it gives", "where", "verdict", "evidence", "note"]
    rows = [
        [
            f"{v.claim.paper} {v.claim.equation}",
            v.claim.subject,
            v.claim.region,
            v.text,
            v.evidence,
            v.claim.note or None,
        ]
        for v in verdicts
    ]
    return [
        Text(
            f"{len(verdicts)} claims of the papers were held against the derivation, in symbols or "
            f"in numbers; {failed} do not hold as they are printed. What is printed and what is "
            "derived stand in claims.csv."
        ),
        Table("Claims", columns, rows),
    ]
