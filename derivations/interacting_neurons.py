r"""The orders 1/N and 1/N² of the kernels, from neurons that interact through their mean.

Run it to write ``interacting_neurons.tex`` beside it, which pdflatex sets:

    python derivations/interacting_neurons.py

None of the recursions is written down: the modules of ``neurons`` enumerate which neurons are the
same and which products of cumulants are connected, and count powers of 1/N. Their result is held
against `fieldtheory.numerics.neurons` in numbers, against deep linear networks as polynomials, and
against the diagrams of one loop in symbols, each time the text is written.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sympy as sp
from neurons import checks, latex_lines, linear, loops, structure
from neurons.counting import MOST_FACTORS, next_cumulant, seen
from neurons.cumulants import Average, Cumulant, D, Moved, Seen, function
from typeset import article, equation, rows, section

import fieldtheory as ft
from fieldtheory.criticality import closure_four_point
from fieldtheory.theory.typesetting.latex import latex

TARGET = Path(__file__).with_suffix(".tex")
TITLE = r"Neurons that interact through their mean:\\ the orders $1/N$ and $1/N^{2}$"
ABSTRACT = r"""The kernels of a residual network of finite width fluctuate, and their means differ
from those of infinite width. We derive both to the second order in $1/N$ without an integral over
fields: the $N$ neurons of a layer see each other only through one number, the kernel that they
make together, and given it they are independent. Two lists of partitions, one for products that
are connected and one for sums that contain the same neuron, give all terms. At order $1/N$ they
are the propagators and the one-loop diagrams of the field theory; at $1/N^{2}$ they are two loops
for the mean, one for the variance and none for the third cumulant of a kernel, at a cost
proportional to the depth."""

_CHI = function(1), function(2)


def chain() -> list[str]:
    """The network as a Markov chain, exact at every N."""
    return [
        section("One number per layer", "chain"),
        r"A residual network of $N$ neurons and $L$ layers with random weights and one input is, "
        r"exactly and at every $N$, the chain (section II of F25~\cite{F25})",
        rows(
            r"h_{i}^{(l+1)} &= \gamma\, h_{i}^{(l)} + \sqrt{C^{(l+1)}}\, \xi_{i}, "
            r"\label{eq:chain}",
            r"C^{(l+1)} &= \frac{1}{N} \sum_{j=1}^{N} g(h_{j}^{(l)}), \qquad g(h) = a\, "
            r"\phi(h)^{2} + c, \label{eq:kernel}",
        ),
        r"with independent standard Gaussians $\xi_{i}$; $\gamma$, $a = \rho^{2} \sigma_{w}^{2}$ "
        r"and $c = \rho^{2} \sigma_{b}^{2}$ may differ from layer to layer. The weights are gone: "
        r"given the layer before, a row of $W$ times $\phi(h)$ is a Gaussian number, independent "
        r"for every neuron, and all have the variance $C^{(l+1)}$.",
        r"For $N \to \infty$ the mean in (\ref{eq:kernel}) is an average, $C^{*(l+1)} = \langle g "
        r"\rangle$ over $h \sim \mathcal{N}(0, K^{(l)})$, $K^{(l+1)} = \gamma^{2} K^{(l)} + "
        r"C^{*(l+1)}$. At finite $N$ we write",
        equation(
            r"d = C^{(l+1)} - C^{*(l+1)} = \frac{1}{N} \sum_{j} D(h_{j}^{(l)}), \qquad D = g - "
            r"\langle g \rangle, \qquad \langle D \rangle = 0.",
            "d",
        ),
        r"All averages $\langle \cdot \rangle$ are over one Gaussian neuron of infinite width. We "
        r"drop the index of the layer; a prime marks the next one.",
    ]


def conditional() -> list[str]:
    """P_j and why cumulants of different neurons are those of the y."""
    identities = [(n, j) for n in range(9) for j in range(5)]
    assert all(linear.lowering_holds(n, j) for n, j in identities)
    return [
        section("The next layer, given this one", "conditional"),
        r"Given the neurons $h_{1}, \dots, h_{N}$ of a layer, $d$ is a number, and the next signal "
        r"of neuron $i$ is $\gamma h_{i} + f$ with $f \sim \mathcal{N}(0, C^{*} + d)$. The average "
        r"of a function of it is a Taylor series in $d$,",
        equation(
            r"\mathrm{E}[\psi(h_{i}') \,|\, h] = \sum_{j \geq 0} d^{\,j}\, (P_{j} \psi)(h_{i}), "
            r"\qquad P_{j} \psi(h) = \frac{1}{j!} \Big\langle \Big( \frac{1}{2} \partial^{2} "
            r"\Big)^{j} \psi(\gamma h + f) \Big\rangle_{f \sim \mathcal{N}(0, C^{*})},",
            "P",
        ),
        r"since a derivative by the variance of a Gaussian is half the second derivative of what "
        r"is averaged (Price's theorem~\cite{Price}). $P_{0}$ is the step of one neuron at "
        r"infinite width; $P_{1}$ is what a small change of the common kernel does to it.",
        r"\paragraph{Different neurons.} Given the layer, the $\xi_{i}$ of different neurons are "
        r"independent. So the average of a product is a product of averages,",
        equation(
            r"\mathrm{E}[\psi_{1}(h_{1}') \cdots \psi_{n}(h_{n}')] = \mathrm{E}[y_{1} \cdots "
            r"y_{n}], \qquad y_{a} = \sum_{j} d^{\,j}\, P_{j} \psi_{a}(h_{a}),",
        ),
        r"for every choice of different neurons, and with moments the joint cumulants agree,",
        equation(
            r"\kappa[\psi_{1}(h_{1}'); \dots; \psi_{n}(h_{n}')] = \kappa[y_{1}; \dots; y_{n}].",
            "kappa",
        ),
        r"(In the law of total cumulance only the term without cumulants inside a layer is left.) "
        r"Equation (\ref{eq:kappa}) is the whole dynamics. The next section opens the right side.",
    ]


def sizes() -> list[str]:
    """Power counting; what the machine enumerates."""
    assert all(x == 0 for x in seen(4))
    assert MOST_FACTORS == 4
    return [
        section("Powers of 1/N", "powers"),
        r"Neurons of the first layer are independent. Later ones are not, but only because they "
        r"have seen the same $d$, and $d$ is small: a mean of $N$ numbers of zero mean. The "
        r"statement that closes is",
        equation(
            r"\kappa[\psi_{1}(h_{1}); \dots; \psi_{n}(h_{n})] = O(N^{1-n}) \qquad \text{for } n "
            r"\text{ different neurons},",
            "size",
        ),
        r"and we name the coefficients of one, two and three neurons",
        rows(
            r"\mathrm{E}[\psi(h_{1})] &= \langle \psi \rangle + \frac{1}{N} m_{1}(\psi) + "
            r"\frac{1}{N^{2}} m_{2}(\psi) + \dots,",
            r"\kappa[\psi_{1}(h_{1}); \psi_{2}(h_{2})] &= \frac{1}{N} g_{1}(\psi_{1}, \psi_{2}) + "
            r"\frac{1}{N^{2}} g_{2}(\psi_{1}, \psi_{2}) + \dots,",
            r"\kappa[\psi_{1}(h_{1}); \psi_{2}(h_{2}); \psi_{3}(h_{3})] &= \frac{1}{N^{2}} "
            r"g_{3}(\psi_{1}, \psi_{2}, \psi_{3}) + \dots,",
        ),
        r"all zero in the first layer. Cumulants with $d$ among their arguments, $d$ being a mean "
        r"over all neurons, are of the same size: $n$ quantities, whether $d$ or functions of "
        r"different neurons, have a cumulant of order $N^{1-n}$, and the mean of $d$ is of order "
        r"$1/N$. For a sum may contain the same neuron as another argument, which saves a factor "
        r"$1/N$ of the smaller cumulant, but only one of the $N$ terms of the sum does, which "
        r"costs it again. Their coefficients are, for up to three,",
        rows(
            r"\mathrm{E}[d] &= \frac{1}{N} \delta_{1} + \frac{1}{N^{2}} \delta_{2}, & \kappa[d; d] "
            r"&= \frac{1}{N} q_{1} + \frac{1}{N^{2}} q_{2}, \notag",
            r"\kappa[d; \chi(h_{1})] &= \frac{1}{N} s_{1}(\chi) + \frac{1}{N^{2}} s_{2}(\chi), & "
            r"\kappa[d; d; d] &= \frac{1}{N^{2}} t_{2}, \label{eq:names}",
            r"\kappa[d; d; \chi(h_{1})] &= \frac{1}{N^{2}} w_{2}(\chi), & \kappa[d; "
            r"\chi_{1}(h_{1}); \chi_{2}(h_{2})] &= \frac{1}{N^{2}} u_{2}(\chi_{1}, \chi_{2}) "
            r"\notag",
        ),
        r"up to higher orders. The fluctuations of the kernel are $\delta$, $q$ and $t$: they are "
        r"what we want to know in the end.",
        r"\paragraph{Products.} The $y_{a}$ are products of $d$ and functions of neurons. The "
        r"cumulant of products is the sum over all partitions of all factors that join the "
        r"products~\cite{Leonov}, each partition the product of the cumulants of its blocks: for "
        r"$y_{1} y_{2}$ with one $d$ in each,",
        equation(
            r"\kappa[d\, \chi_{1}(h_{1}); d\, \chi_{2}(h_{2})] = \kappa[d; d]\, "
            r"\mathrm{E}[\chi_{1}]\, \mathrm{E}[\chi_{2}] + \kappa[d; \chi_{2}]\, \mathrm{E}[d]\, "
            r"\mathrm{E}[\chi_{1}] + \dots,",
        ),
        r"without $\mathrm{E}[d]^{2}\, \mathrm{E}[\chi_{1}]\, \mathrm{E}[\chi_{2}]$, in which "
        r"nothing connects the two. A partition of $n$ factors into $b$ blocks has $n - b$ powers "
        r"of $1/N$, and one more for every $d$ that stands alone. Two $d$ in one block "
        r"cost one power. So at order $1/N^{2}$ there are never more than four factors $d$, no "
        r"block has more than three members, and the list of partitions is finite. It is also "
        r"what proves (\ref{eq:size}) from layer to layer: to join $n$ products with blocks of "
        r"those sizes takes at least $n - 1$ powers of $1/N$. The script enumerates all partitions "
        r"of up to seven factors.",
    ]


def contact() -> list[str]:
    """What a layer shows of its neurons, with contact terms."""
    chi, first, second = _CHI[0], seen(1, _CHI[:1]), seen(2, _CHI[:1])
    assert seen(1)[1:] == (Cumulant(1, D), Cumulant(2, D))
    assert second[:2] == (0, 0) and seen(3)[:2] == (0, 0)
    of_two = seen(1, _CHI)[2]

    def line(name: sp.Expr, formula: sp.Expr) -> str:
        return latex_lines.lines(latex_lines.term(name), structure.representatives(formula, ()), 46)

    return [
        section("What a layer shows", "contact"),
        r"The sum $d = \frac{1}{N} \sum_{j} D(h_{j})$ contains the neurons that it is compared "
        r"with. Of $\kappa[d; \chi(h_{1})]$ the $N - 1$ terms $j \neq 1$ are cumulants of "
        r"different neurons; in the term $j = 1$ functions of one neuron meet and are "
        r"multiplied,",
        equation(
            r"\kappa[d; \chi(h_{1})] = \frac{N - 1}{N}\, \kappa[D(h_{2}); \chi(h_{1})] + "
            r"\frac{1}{N} \big( \mathrm{E}[D \chi] - \mathrm{E}[D]\, \mathrm{E}[\chi] \big).",
        ),
        r"To order $1/N$ both terms count. With several $d$ the neurons of the sums may also "
        r"coincide with each other. The script goes through all cases, each with the number of "
        r"choices of neurons $(N - p)(N - p - 1) \cdots$ that it stands for, and finds",
        rows(
            *(
                rf"{line(name, formula)}, \label{{eq:{label}}}"
                for name, formula, label in (
                    (Seen(1, 1), seen(1)[1], "delta"),
                    (Seen(1, 2), seen(2)[1], "q"),
                    (Seen(1, 1, chi), first[1], "s"),
                )
            )
        ),
        r"at order $1/N$, and at order $1/N^{2}$",
        rows(
            *(
                line(name, formula).replace("\\\\ &\\quad", "\\notag \\\\ &\\quad ")
                for name, formula in (
                    (Seen(2, 1), seen(1)[2]),
                    (Seen(2, 2), seen(2)[2]),
                    (Seen(2, 3), seen(3)[2]),
                    (Seen(2, 1, chi), first[2]),
                    (Seen(2, 2, chi), second[2]),
                    (Seen(2, 1, *_CHI), of_two),
                )
            )
        ),
        r"A constant added to $\chi$ changes none of them, as it must be.",
    ]


def first_order() -> list[str]:
    """m_1' and g_1'."""
    mean, pair = next_cumulant(1)[1], next_cumulant(2)[1]
    assert next_cumulant(1)[0] == Average(Moved(0, 1)) and next_cumulant(2)[0] == 0
    return [
        section("Order 1/N", "first"),
        r"The partitions of (\ref{eq:kappa}) of order $1/N$ are few. For one neuron,",
        _sum(r"m_{1}'(\psi_{1})", mean, (), 70, "m1"),
        r"term by term: what the neuron had before; the kernel is off its mean; the kernel and the "
        r"neuron fluctuate together, because the neuron is one of those that make the kernel; the "
        r"kernel fluctuates and the average is not linear in it. For two neurons,",
        _sum(r"g_{1}'(\psi_{1}, \psi_{2})", pair, (1, 2), 70, "g1"),
        r"where $[\dots]_{S}$ stands for the sum over the different terms that one gets by "
        r"permuting the $\psi_{a}$. Again in words: correlated before; one neuron was among those "
        r"that made the kernel which the other sees; both see the same fluctuation of the kernel. "
        r"The last two are of order $1/N$ although $\xi_{1}$ and $\xi_{2}$ are independent.",
        r"Equations (\ref{eq:delta})--(\ref{eq:s}), (\ref{eq:m1}) and (\ref{eq:g1}) are closed, "
        r"and $N (\langle C \rangle - C^{*}) = \delta_{1}$, $N\, \mathrm{Var}\, C = q_{1}$ in "
        r"every layer.",
    ]


def second_order() -> list[str]:
    """m_2', g_2' and g_3'."""
    mean, pair, triple = (next_cumulant(n)[2] for n in (1, 2, 3))
    assert next_cumulant(3)[:2] == (0, 0)
    return [
        section(r"Order $1/N^{2}$", "second"),
        r"The same list one order further. One neuron sees up to four factors $d$,",
        _sum(r"m_{2}'(\psi_{1})", mean, (), 50, "m2"),
        r"Factors 2 and 3 count partitions: $3 q_{1}^{2} \langle P_{4} \psi \rangle$ are the three "
        r"pairings of $d^{4}$. Two neurons,",
        _sum(r"g_{2}'(\psi_{1}, \psi_{2})", pair, (1, 2), 51, "g2"),
        rf"{len(sp.Add.make_args(pair))} terms in all, and three neurons,",
        _sum(r"g_{3}'(\psi_{1}, \psi_{2}, \psi_{3})", triple, (1, 2, 3), 54, "g3"),
        rf"with {len(sp.Add.make_args(triple))} terms. Four neurons enter at $1/N^{{3}}$. With "
        r"(\ref{eq:names}) this is closed, and $\delta_{2}$, $q_{2}$ and $t_{2}$ are $N^{2}$ times "
        r"the terms of this order of the mean, the variance and the third cumulant of the kernel.",
    ]


def modes() -> list[str]:
    """Hermite polynomials: r, B and E, and what the closure of PDLT-B drops."""
    pair, (two, four) = structure.next_pair(), structure.next_forms()
    c, variance = structure.CORRELATION, sp.Symbol("K'", positive=True)

    def lowered(n: int, j: int) -> sp.Expr:
        root = sp.sqrt(sp.factorial(n) / sp.factorial(n - 2 * j))
        return root * c ** (n - 2 * j) / (sp.factorial(j) * (2 * variance) ** j)

    values = {structure.lowering(1): lowered(2, 1), structure.lowering(2): lowered(4, 2)}
    values[structure.LOWERED] = lowered(4, 1)
    next_r = latex_lines.lines(r"r'(\psi_{2})", structure.representatives(pair, ()), 70)
    network = _network("tanh")
    by_hand = checks.closure_of_one_mode(network, 0.6, count=96)
    assert np.allclose(by_hand, closure_four_point(network, 0.6), rtol=1e-9)
    return [
        section("In Hermite polynomials", "modes"),
        r"For Gaussian signals functions are best written in Hermite polynomials. With the monic "
        r"ones of variance $K$, orthogonal under $\mathcal{N}(0, K)$,",
        equation(
            r"P_{j}\, \mathrm{He}_{n}(h; K') = \frac{n!}{j!\, (n - 2j)!\, 2^{j}}\, \gamma^{n-2j}\, "
            r"\mathrm{He}_{n-2j}(h; K), \qquad K' = \gamma^{2} K + C^{*}.",
            "lowering",
        ),
        r"So $P_{j}$ lowers the order by $2j$. Of orthonormal $h_{n} = \mathrm{He}_{n}/\sqrt{n!\, "
        r"K^{n}}$, with the correlation $c = \gamma \sqrt{K/K'}$ of the two signals, it makes",
        equation(
            r"P_{j} h_{n}' = \frac{1}{j!\, (2K')^{j}} \sqrt{\frac{n!}{(n - 2j)!}}\; c^{\,n-2j}\, "
            r"h_{n-2j}.",
            "orthonormal",
        ),
        r"In particular $\langle P_{j} \psi \rangle = \beta_{j}\, \psi_{2j}$ with $\psi_{n} = "
        r"\langle \psi h_{n} \rangle$: only one mode of a function feels a power of $d$ on "
        r"average. We need $P_{1} h_{4}' = \lambda h_{2}$ as well,",
        equation(
            r",\quad ".join(f"{latex(k)} = {latex(v)}" for k, v in values.items()) + ".",
        ),
        r"\paragraph{Two neurons.} Every term of (\ref{eq:g1}) that arises has a factor "
        r"$\psi_{1,2}$ or $\psi_{2,2}$, and $P_{0}$ keeps it, $(P_{0} \psi)_{2} = c^{2} \psi_{2}$. "
        r"Therefore $g_{1}$ is not a matrix but a vector, for all layers,",
        equation(
            r"g_{1}(\psi_{1}, \psi_{2}) &= \psi_{1,2}\, r(\psi_{2}) + \psi_{2,2}\, r(\psi_{1}), "
            rf"\\ {next_r}.",
            "r",
        ),
        r"(The last term, symmetric in both, goes half to each.) This makes order $1/N$ a "
        r"recursion of two vectors, $m_{1}$ and $r$.",
        r"\paragraph{Three neurons.} In the same way every term of (\ref{eq:g3}) has a "
        r"$\psi_{a,2}$ or a $\psi_{a,4}$,",
        equation(
            r"g_{3}(\psi_{1}, \psi_{2}, \psi_{3}) = \big[ \psi_{1,2}\, B(\psi_{2}, \psi_{3}) + "
            r"\psi_{1,4}\, E(\psi_{2}, \psi_{3}) \big]_{S},",
            "form",
        ),
        r"with two symmetric matrices. Put in on the right side of (\ref{eq:g3}), with functions "
        r"of zero mean, and sorted again (a term with two factors $\psi_{a,2}$ half to each, with "
        r"three a third),",
        _sum(r"B'(\psi_{2}, \psi_{3})", two, (2, 3), 48, "B"),
        _sum(r"E'(\psi_{2}, \psi_{3})", four, (2, 3), 40, "E"),
        r"Here $(D \chi)_{2}$ is the mode of a product. The script checks that (\ref{eq:form}) "
        r"with (\ref{eq:B}) and (\ref{eq:E}) is (\ref{eq:g3}), term by term. Only $g_{2}$ stays "
        r"a full matrix. These are the recursions of "
        r"\texttt{fieldtheory.numerics.neurons}.",
        r"\paragraph{A closure.} The four-point vertex $V/N = \mathrm{E}[h_{1}^{2} h_{2}^{2}] - "
        r"\mathrm{E}[h_{1}^{2}]\, \mathrm{E}[h_{2}^{2}]$ is one number of $r$: $h^{2} = K (1 + "
        r"\sqrt{2}\, h_{2})$ and so $V = g_{1}(h^{2}, h^{2}) = 4 K^{2} r_{2}$. Its recursion does "
        r"not close, since by (\ref{eq:q}) and (\ref{eq:s})",
        equation(
            r"s_{1}(h_{2}) = D_{2} + D_{2} r_{2} + \sum_{n} r_{n} D_{n}, \qquad q_{1} = \langle "
            r"D^{2} \rangle + 2 D_{2} \sum_{n} r_{n} D_{n}",
        ),
        r"contain all modes of $r$. PDLT-B~\cite{PDLT} (B.24)--(B.26) keep $n = 2$ of the sums, "
        r"and then (\ref{eq:r}) is a recursion for $V$ alone (the script compares the two). After "
        r"the first layer, $r = \frac{1}{2} \beta_{1}^{2} q_{1} e_{2} + \beta_{1} "
        r"P_{0}^{\mathsf{T}} D$ has modes $n \neq 2$ wherever $\gamma \neq 0$ and $\phi^{2}$ is "
        r"more than a parabola; they are of the same order in $1/N$.",
    ]


def diagrams() -> list[str]:
    """Order 1/N unrolled: vertices and propagators."""
    assert not any(loops.difference(3))
    value = loops.unrolled()
    variance, shift = (sp.expand(value(1, Seen, orders, ())) for orders in ((1, 2), (1, 1)))

    def line(left: str, formula: sp.Expr) -> str:
        return latex_lines.lines(left, sorted(sp.Add.make_args(formula), key=str), 90)

    return [
        section("Loops", "loops"),
        r"In the field theory of the kernels (\texttt{finite\_width.tex}), $\langle C \rangle$ and "
        r"its cumulants are sums of diagrams; a cumulant of $E$ kernels with $\ell$ loops is of "
        r"order $N^{-(E - 1 + \ell)}$. "
        r"So at order $1/N$ we have found one loop for the mean ($E = 1$) and, for the covariance "
        r"($E = 2$), tree level: this is why $G_{11}$, although an effect of finite width, is "
        r"found by solving linear equations. At $1/N^{2}$ it is two loops, one loop, and tree "
        r"level for the third cumulant. In our language trees are the partitions that spend $n - "
        r"1$ powers of $1/N$, the fewest that join $n$ products: (\ref{eq:g1}) and (\ref{eq:g3}) "
        r"have no others. A loop is a power spent beyond that: two $d$ seen by one neuron, as in "
        r"$q \langle P_{2} \psi \rangle$, or a neuron that meets itself in the sum, as in "
        r"$s(P_{1} \psi)$.",
        r"To see the diagrams, unroll the recursion. What remains are averages of $P_{j}$ of $D$ "
        r"of later layers, alone or times $D$ of an earlier layer. By Price's theorem $P_{j}$ on "
        r"the way into layer $m$ is $\frac{1}{j!} (\partial/\partial C^{(m)})^{j}$. So they are "
        r"derivatives of $\langle g_{k} \rangle$ and of $\langle g_{k}; g_{k'} \rangle$ by "
        r"kernels, which are the derivatives of the action, and with $\bar{S} = S/N$",
        equation(
            r"\bar{S}_{2 1 \cdots 1}^{k\, m \cdots n} = \frac{\partial^{\,p} \langle g_{k} "
            r"\rangle}{\partial C^{(m)} \cdots \partial C^{(n)}}, \qquad \bar{S}_{2 2 1 \cdots "
            r"1}^{k\, k'\, m \cdots n} = \frac{\partial^{\,p} \langle g_{k}; g_{k'} "
            r"\rangle}{\partial C^{(m)} \cdots \partial C^{(n)}}",
        ),
        r"the recursion gives for the second kernel",
        rows(
            line(r"N\, \mathrm{Var}\, C^{(2)}", variance) + ",",
            line(r"N \big( \langle C^{(2)} \rangle - C^{*(2)} \big)", shift) + ".",
        ),
        r"The first is $\Delta_{12} \bar{S}_{22} \Delta_{21}$, noise carried on by the response "
        r"$\Delta_{12} = N G_{12} = (1 - \bar{S}_{21})^{-1}$; the second has the two diagrams of "
        r"one loop, closed by a full line $G_{11}$ or by a response $G_{12}$. In general",
        rows(
            r"G_{11} &= G_{12}\, S_{22}\, G_{12}^{\mathsf{T}}, \label{eq:G11}",
            r"\langle C^{(l)} \rangle - C^{*(l)} &= \sum_{m} G_{12}^{l m} \Big[ \frac{1}{2} "
            r"\sum_{k j} S_{2 1 1}^{m k j}\, G_{11}^{k j} + \sum_{k j} S_{2 2 1}^{m k j}\, "
            r"G_{12}^{j k} \Big], \label{eq:loop}",
            r"\frac{1}{N} V^{(l)} &= \sum_{k m} A_{l k}^{2} A_{l m}^{2}\, G_{11}^{k m} + 2 \sum_{k "
            r"m} A_{l k}^{2}\, G_{12}^{k m} \langle g_{m}; (h^{(l)})^{2} \rangle, \label{eq:V}",
        ),
        r"with $A_{l k}^{2} = \partial \langle (h^{(l)})^{2} \rangle/\partial C^{(k)}$. The first "
        r"term of (\ref{eq:V}) is the variance of the common kernel; in the second a neuron has "
        r"been among those that made it. With every vertex a symbol of its own, the script finds "
        r"(\ref{eq:G11})--(\ref{eq:V}) from (\ref{eq:m1}) and (\ref{eq:g1}) for four kernels, "
        r"exactly. A third diagram with the vertices $\langle g \rangle''$ and a closed "
        r"chain of responses does not arise: no neuron sees a later layer.",
    ]


def exact_networks() -> list[str]:
    """Deep linear networks at every N; the code."""
    derived = linear.derived(3)
    assert derived == linear.exact(3)
    for name in ("tanh", "gelu"):
        assert checks.difference_from_the_code(_network(name), 0.6) < 1e-9
    _, first, _, second, third = map(linear.without_bias, derived[1])
    return [
        section("Checks", "checks"),
        r"\paragraph{Linear networks.} For $\phi(h) = h$ the chain closes on $q = |h|^{2}/N$ at "
        r"every $N$: given $q$, $N q'/C$ with $C = a q + c$ has a noncentral $\chi^{2}$ law of $N$ "
        r"degrees of freedom, and its cumulants are",
        equation(
            r"\kappa_{n}(q' \,|\, q) = \frac{2^{n-1} (n - 1)!}{N^{n-1}} \big( C^{n} + n "
            r"\gamma^{2} q\, C^{n-1} \big), \quad \kappa_{n}(q^{(0)}) = \frac{2^{n-1} (n - "
            r"1)!}{N^{n-1}} (K^{(0)})^{n}.",
        ),
        r"They are polynomials in $q$, so that three moments of $q$ obey a closed recursion. The "
        r"script expands it in $1/N$, and runs the derived recursion with polynomials for the "
        r"functions: for three layers, with $K^{(0)}$, $a$, $c$, $\gamma$ as symbols, mean, "
        r"variance and third cumulant of all four kernels agree to order $1/N^{2}$. For instance, "
        r"without bias and with $K^{(0)} = 1$,",
        rows(
            rf"\mathrm{{Var}}\, C^{{(2)}} &= \frac{{1}}{{N}}\, {latex(first)} + "
            rf"\frac{{1}}{{N^{{2}}}}\, {latex(second)} + \dots,",
            rf"\kappa_{{3}}(C^{{(2)}}) &= \frac{{1}}{{N^{{2}}}}\, {latex(third)} + \dots,",
        ),
        r"while $\langle C \rangle = C^{*}$ to all orders, the mean being linear in $q$.",
        r"\paragraph{The code.} \texttt{fieldtheory} runs the recursion with vectors and matrices "
        r"in the form of section~\ref{sec:modes}, written for speed. The script evaluates the "
        r"formulas of sections \ref{sec:contact}, \ref{sec:first} and \ref{sec:second} as they "
        r"stand, without that form, from averages of $P_{j}$ and powers of $D$ alone. For three "
        r"layers of $\tanh$ and GELU with different scales the two agree in $\delta_{1}$, "
        r"$q_{1}$, $\delta_{2}$, $q_{2}$, $t_{2}$ and $g_{2}(h_{2}, h_{2})$ to nine digits.",
    ]


def _sum(left: str, formula: sp.Expr, functions: tuple[int, ...], width: int, label: str) -> str:
    """An equation for a sum that is symmetric in the functions, one of each kind of terms."""
    terms = structure.representatives(formula, functions)
    text = latex_lines.lines(left, terms, width, "S" if len(functions) > 1 else "")
    return equation(text if r"\\" in text else text.replace("&", ""), label)


def _network(activation: str) -> ft.ResidualNetwork:
    scales = {"branch_scale": [0.8, 0.9, 1.1], "skip_scale": [0.7, 1.0, 0.9]}
    return ft.ResidualNetwork(depth=3, activation=activation, **scales)


def document() -> str:
    """The whole text as a LaTeX document."""
    parts = [
        chain(),
        conditional(),
        sizes(),
        contact(),
        first_order(),
        second_order(),
        modes(),
        diagrams(),
        exact_networks(),
    ]
    return article(TITLE, ABSTRACT, parts, ["F25", "PDLT", "Price", "Leonov"])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
