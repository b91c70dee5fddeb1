"""The action about infinite width: saddle point and second derivatives, F25 eqs. (23)-(42)."""

from __future__ import annotations

import sympy as sp
from printed_equations import require
from typeset import equation, in_order, rows, section, spread

import fieldtheory as ft
from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.generic import k, l
from fieldtheory.theory.latex import latex
from resnet import DEPTH
from resnet.slopes import names_of_slopes, short

_h = sp.Symbol("h", real=True)
_K = sp.Symbol("K", positive=True)


def saddle_point() -> list[str]:
    """dS = 0, F25 eqs. (23)-(30)."""
    theory = ft.derive(DEPTH)
    assert theory.network_action.derivative(()) == 0
    assert set(theory.saddle_point.conjugates.values()) == {sp.S.Zero}
    average = generic.residual_kernel(l) - generic.Bias(l)
    kernel = in_order(generic.residual_kernel(l), average, generic.Bias(l))
    return [
        section("Infinite width: the saddle point", "saddle"),
        r"$S$ is proportional to $N$, so that for $N \to \infty$ the integrals over the fields are "
        r"those at the stationary point of $S$, F25~(23), (24).",
        r"\paragraph{Stationary in $C$.} At $\tilde{C} = 0$ the average in (\ref{eq:action}) is "
        r"$\langle 1 \rangle = 1$ for every covariance, so $S(C, 0) = 0$ for all $C$. Hence "
        r"$\partial S / \partial C = 0$ at",
        equation(r"\tilde{C}^{(l)}_{*} = 0,", "conjugates"),
        r"F25~(26). It is the normalisation of the probability that does this, and it will be used "
        "once more below.",
        r"\paragraph{Stationary in $\tilde{C}$.} The logarithm generates cumulants; its first "
        r"derivative at $\tilde{C} = 0$ is $\langle g_{l} \rangle$. So $\nu_{l} C^{(l)} = \langle "
        r"g_{l} \rangle$, and $\nu_{0}$ cancels: $C_{*}^{(0)} = C^{(0)}_{\mathrm{data}}$ and",
        equation(f"C^{{(l)}}_{{*}} = {kernel}, \\qquad l = 1, \\dots, L + 1,", "nngp"),
        rf"with $K^{{(l)}} = {latex(generic.kernel(l))}$ (F25 (25), (29), (30), there for "
        r"$\gamma = 1$; F25~(109) prints $K^{(l)} = K^{(l-1)} + C^{(l-1)}$ for "
        r"$K^{(l)} = \gamma_{l}^{2} K^{(l-1)} + C^{(l)}$). These are the kernels of the network "
        "of infinite width, a Gaussian process: a recursion from layer to layer. Explicitly, for "
        rf"$L = {DEPTH}$, $\gamma = 1$ and one $\rho$,",
        rows(
            *(
                f"{latex(C)}_{{*}} &= {latex(value)}"
                for C, value in list(theory.saddle_point.kernels.items())[1:]
            )
        ),
    ]


def hessian() -> list[str]:
    """The second derivatives, F25 eqs. (37)-(42)."""
    for number in ("(39)", "(41)", "(42)"):
        require(number, holds=False)
    density = sp.exp(-(_h**2) / (2 * _K)) / sp.sqrt(2 * sp.pi * _K)
    assert sp.simplify(density.diff(_K) - density.diff(_h, 2) / 2) == 0
    moment = GaussianAverage(sym.phi(_h) ** 2, _h, _K)
    mixed = short(generic.mixed_block(k, l), k - 1)
    later = mixed.xreplace({generic.Earlier(l, k): sp.S.One, sp.KroneckerDelta(k, l): sp.S.Zero})
    theory = ft.derive(DEPTH)
    names = names_of_slopes(theory)
    S21 = theory.hessian.S21.applyfunc(lambda entry: entry.xreplace(names) / sym.WIDTH)
    source = generic.source_block(k, l) / sym.WIDTH
    return [
        section("Finite width: the second derivatives", "hessian"),
        r"To lowest order in $1/N$ the fields fluctuate like Gaussians about the saddle point, "
        r"with "
        r"the second derivatives of $S$ there, F25~(37): $S_{11}$ by two kernels, $S_{22}$ by two "
        r"conjugates, and $S_{21} = S_{12}^{\mathsf{T}}$, with rows for the conjugates and columns "
        r"for the kernels. Two rules give them all.",
        r"\paragraph{Normalisation.} $S(C, 0) = 0$ for all $C$, therefore",
        equation(r"S_{11} = 0.", "S11"),
        r"F25~(38) writes it as a correlator of $\tilde{h}$, which vanishes.",
        r"\paragraph{Price's theorem \cite{Price}.} The kernels enter the average through its "
        r"covariance. A Gaussian density obeys $\partial_{K} \mathcal{N} = \frac{1}{2} "
        r"\partial_{h}^{2} \mathcal{N}$ (the equation of heat conduction). Integrating by parts "
        r"twice moves the derivatives to the integrand,",
        equation(
            rf"\frac{{\partial}}{{\partial K}} {latex(moment)} = {latex(moment.diff(_K))}.",
            "price",
        ),
        r"The factor $\frac{1}{2} \partial_{h}^{2} \phi^{2} = \phi'^{2} + \phi \phi''$ has no 2 in "
        r"it. F25~(42) misses the $\frac{1}{2}$ of Price's theorem, which its (137) has; F25~(116) "
        r"is off by the same factor for a variance. We write",
        equation(
            rf"M'_{{l}} = {latex(generic.susceptibility(l))}.",
            "slope",
        ),
        r"\paragraph{One kernel, one conjugate.} The derivative of $\langle g_{k} \rangle$ by "
        r"$C^{(l)}$ goes through $K^{(k-1)}$, which contains $C^{(l)}$ if $l < k$, with the weight "
        r"$A_{k-1, l}^{2}$:",
        rows(
            rf"S_{{21}}^{{k l}} &= {latex(later)}, \qquad l < k, \label{{eq:S21}}",
            r"S_{21}^{k k} &= -N \nu_{k}, \qquad S_{21}^{k l} = 0 \quad (l > k).",
        ),
        r"In F25~(41) the readout row, $k = L + 1$, has $\sigma_{w}^{2}$ where "
        r"$\sigma_{w,\mathrm{out}}^{2}$ is meant; likewise in (39), (49), (113), (115) and (126). "
        rf"For $L = {DEPTH}$, $\gamma = 1$ and one $\rho$,",
        equation(rf"S_{{21}} = N {spread(latex(S21))}.", "S21matrix"),
        "A lower triangular matrix: a layer acts on those behind it.",
        r"\paragraph{Two conjugates.} The logarithm gives the connected correlator,",
        equation(rf"S_{{22}}^{{k l}} = N {latex(source)}, \qquad k, l \geq 1,", "S22"),
        r"with $\langle A \,;\, B \rangle = \langle A B \rangle - \langle A \rangle \langle B "
        r"\rangle$ over the signals of both layers jointly, F25~(39). Row and column of the input "
        r"vanish, since $g_{0}$ does not "
        "fluctuate. For a feed-forward network the signals of different layers are independent and "
        r"$S_{22}$ is diagonal. Skip connections correlate them: this is where a residual network "
        "differs.",
    ]
