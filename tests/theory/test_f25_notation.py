"""The equations of F25 are recognised in its notation, line by line."""

import re

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import GaussianAverage
from fieldtheory.theory.f25_notation import F25
from tests.theory.test_latex import typeset
from tests.theory.test_symbols import undefined

# Number: quantity, inputs, what the paper prints, and (printed, what holds) where that differs.
_WEIGHT = r"\begin{cases}\rho^{2}&k\leq L\\1&k=L+1\end{cases}"
_WEIGHT_HOLDS = (
    r"\begin{cases}\rho^{2}\sigma_{w}^{2}&k\leq L\\\sigma_{w,\mathrm{out}}^{2}&k=L+1\end{cases}"
)
_SQUARE = (
    r"\begin{cases}\rho^{4}&k,l\neq L+1,\\\rho^{2}&k\neq l=L+1\vee l\neq k=L+1,\\1&\text{else}"
    r"\end{cases}"
)
_SQUARE_HOLDS = (
    r"\begin{cases}\rho^{4}\sigma_{w}^{4}&k,l\neq L+1\\\rho^{2}\sigma_{w,\mathrm{out}}^{2}"
    r"\sigma_{w}^{2}&k\neq l=L+1\vee l\neq k=L+1\\\sigma_{w,\mathrm{out}}^{4}&\mathrm{else}"
    r"\end{cases}"
)
PRINTED = {
    20: (
        "action",
        1,
        r"p(y|x)=\int\mathrm{d}\tilde{y}\left\langle\exp\left(\tilde{y}^{\mathsf{T}}y+\frac{1}{2}"
        r"C^{(L+1)}\tilde{y}^{\mathsf{T}}\tilde{y}\right)\right\rangle_{C,\tilde{C}}",
        [],
    ),
    21: (
        "action",
        1,
        r"\mathcal{S}(C,\tilde{C})\coloneqq-N\sum_{l=1}^{L+1}\nu_{l}\,C^{(l)}\,\tilde{C}^{(l)}"
        r"+N\mathcal{W}(\tilde{C}|C)",
        [(r"\sum_{l=1}", r"\sum_{l=0}")],
    ),
    22: (
        "action",
        1,
        r"\mathcal{W}(\tilde{C}|C)\coloneqq\ln\prod_{l=1}^{L}\int\mathrm{d}h^{(l)}\int\mathrm{d}"
        r"\tilde{h}^{(l)}\,\exp\left(\tilde{h}^{(l)}\left[h^{(l)}-h^{(l-1)}\right]+\frac{1}{2}C^{(l)}"
        r"\left[\tilde{h}^{(l)}\right]^{2}\right)"
        r"\qquad\times\exp\left(\tilde{C}^{(l)}\,\Big[\rho^{2}\sigma_{w}^{2}\,\phi^{(l-1)}"
        r"\phi^{(l-1)}+\rho^{2}\sigma_{b}^{2}\Big]\right)"
        r"\qquad\times\exp\left(\tilde{C}^{(L+1)}\,\bigg[\sigma_{w,\,\text{out}}^{2}\,\phi^{(L)}"
        r"\phi^{(L)}+\sigma_{b,\,\text{out}}^{2}\bigg]\right)"
        r"\qquad\times\int\mathrm{d}h^{(0)}\int\mathrm{d}\tilde{h}^{(0)}\exp\left(\tilde{h}^{(0)}"
        r"h^{(0)}+\frac{1}{2}C^{(0)}\left[\tilde{h}^{(0)}\right]^{2}+\tilde{C}^{(0)}\,\Bigg["
        r"\frac{\sigma_{w,\,\text{in}}^{2}}{N}x{}^{\mathsf{T}}x+\nu_{0}\,\sigma_{b,\,\text{in}}^{2}"
        r"\Bigg]\right)",
        [],
    ),
    26: (
        "saddle_point",
        1,
        r"\tilde{C}_{*}^{(l)}=\begin{cases}\frac{1}{2}\bigg\langle\bigg[\tilde{h}^{(l)}\bigg]^{2}"
        r"\bigg\rangle_{p}=0&l=0,\dots,L,\\\frac{1}{2}\langle\tilde{y}^{2}\rangle_{p}=0&l=L+1,"
        r"\end{cases}",
        [],
    ),
    38: (
        "hessian",
        1,
        r"\frac{\partial^{2}}{\partial C^{(l)}\partial C^{(k)}}\mathcal{S}=\frac{1}{4}\big\langle"
        r"\tilde{h}^{(l)}\tilde{h}^{(l)},\tilde{h}^{(k)}\tilde{h}^{(k)}\big\rangle_{p}^{c}=0",
        [(r"\frac{1}{4}", r"\frac{N}{4}")],
    ),
    39: (
        "hessian",
        1,
        r"\frac{\partial^{2}}{\partial\tilde{C}^{(l)}\partial\tilde{C}^{(k)}}\mathcal{S}="
        r"N\sigma_{w}^{4}\,1_{l>0}1_{k>0}\,\langle\phi^{(l-1)}\phi^{(l-1)},\phi^{(k-1)}\phi^{(k-1)}"
        r"\rangle_{p}^{c}\times" + _SQUARE,
        [(r"N\sigma_{w}^{4}", "N"), (_SQUARE, _SQUARE_HOLDS)],
    ),
    40: (
        "hessian",
        1,
        r"\langle z^{(l)}z^{(l)},z^{(k)}z^{(k)}\rangle_{p}^{c}=\langle z^{(l)}z^{(l)}z^{(k)}z^{(k)}"
        r"\rangle_{p}-\langle z^{(l)}z^{(l)}\rangle_{p}\,\langle z^{(k)}z^{(k)}\rangle_{p}",
        [],
    ),
    41: (
        "hessian",
        1,
        r"\frac{\partial^{2}}{\partial C^{(l)}\partial\tilde{C}^{(k)}}\mathcal{S}=-N\nu_{l}"
        r"\delta_{kl}+N\,1_{k>0}\,\sigma_{w}^{2}\langle\left[\phi^{\prime,(k-1)}\right]^{2}+"
        r"\phi^{\prime\prime,(k-1)}\phi^{(k-1)}\rangle_{\mathcal{N}(0,K^{(k-1)})}\,1_{k>l}\times"
        + _WEIGHT,
        [(r"1_{k>0}\sigma_{w}^{2}", "1_{k>0}"), (_WEIGHT, _WEIGHT_HOLDS)],
    ),
    42: (
        "hessian",
        1,
        r"\partial_{A}\langle\phi^{2}(h)\rangle_{h\sim\mathcal{N}(0,A)}=\langle\partial_{h}^{2}"
        r"\phi^{2}(h)\rangle_{h\sim\mathcal{N}(0,A)}",
        [(r"=\langle", r"=\frac{1}{2}\langle")],
    ),
    98: (
        "action",
        2,
        r"\mathcal{S}(C,\tilde{C})\coloneqq-N\sum_{l=0}^{L+1}\nu_{l}\,C_{\alpha\beta}^{(l)}\,"
        r"\tilde{C}_{\alpha\beta}^{(l)}+N\mathcal{W}(\tilde{C}|C)",
        [],
    ),
    109: (
        "kernels",
        2,
        r"K_{\alpha\beta}^{(l)}=\begin{cases}\frac{\sigma_{w,\,\text{in}}^{2}}{d_{\text{in}}}"
        r"(XX^{\mathsf{T}})_{\alpha\beta}+\sigma_{b,\,\text{in}}^{2}&l=0,\\K_{\alpha\beta}^{(l-1)}+"
        r"C_{\alpha\beta,*}^{(l-1)}&1\leq l\leq L,\\\sigma_{w,\,\text{out}}^{2}\,\langle"
        r"\phi_{\alpha}^{(L)}\,\phi_{\beta}^{(L)}\rangle_{\mathcal{N}(0,K^{(L)})}+"
        r"\sigma_{b,\,\text{out}}^{2}&l=L+1.\end{cases}",
        [(r"+C_{\alpha\beta,*}^{(l-1)}", r"+C_{\alpha\beta,*}^{(l)}")],
    ),
    110: (
        "hessian",
        2,
        r"p(Y|X)\simeq\int\mathcal{D}\delta C\,\int\mathcal{D}\delta\tilde{C}\,\exp\Big("
        r"\frac{1}{2}(\delta C,\delta\tilde{C})^{\mathsf{T}}\mathcal{S}^{(2)}\,"
        r"(\delta C,\delta\tilde{C})\Big)=\int\mathcal{D}\delta C\,\int\mathcal{D}\delta\tilde{C}\,"
        r"\exp\Big(-\frac{1}{2}(\delta C,\delta\tilde{C})^{\mathsf{T}}\mathcal{G}^{-1}\,"
        r"(\delta C,\delta\tilde{C})\Big)",
        [],
    ),
    111: (
        "propagator",
        2,
        r"\mathcal{G}\coloneqq-(\mathcal{S}^{(2)})^{-1}\eqqcolon\begin{pmatrix}\langle\delta C\,"
        r"\delta C\rangle&\langle\delta C\,\delta\tilde{C}\rangle\\\langle\delta\tilde{C}\,\delta C"
        r"\rangle&\langle\delta\tilde{C}\,\delta\tilde{C}\rangle\end{pmatrix}",
        [],
    ),
    112: (
        "hessian",
        2,
        r"\frac{\partial^{2}}{\partial C_{\alpha\beta}^{(l)}\partial C_{\gamma\beta}^{(k)}}"
        r"\mathcal{S}\rvert_{(C_{*},\tilde{C}_{*})}=\frac{1}{4}\bigg\langle"
        r"\tilde{h}_{\alpha}^{(l)}\tilde{h}_{\beta}^{(l)},\tilde{h}_{\gamma}^{(k)}"
        r"\tilde{h}_{\delta}^{(k)}\bigg\rangle_{p}^{c}=0",
        [(r"C_{\gamma\beta}", r"C_{\gamma\delta}"), (r"\frac{1}{4}", r"\frac{N}{4}")],
    ),
    # Its first term, with δ_L0, vanishes: a connected correlator with a constant.
    113: (
        "hessian",
        2,
        r"\frac{\partial^{2}}{\partial\tilde{C}_{\alpha\beta}^{(l)}\partial"
        r"\tilde{C}_{\gamma\delta}^{(k)}}\mathcal{S}\rvert_{(C_{*},\tilde{C}_{*})}="
        r"N\sigma_{w}^{4}\,1_{l>0}1_{k>0}\,\langle\phi_{\alpha}^{(l-1)}\phi_{\beta}^{(l-1)},"
        r"\phi_{\gamma}^{(k-1)}\phi_{\delta}^{(k-1)}\rangle_{p}^{c}\times" + _SQUARE,
        [(r"N\sigma_{w}^{4}", "N"), (_SQUARE, _SQUARE_HOLDS)],
    ),
    114: (
        "hessian",
        2,
        r"\langle z_{\alpha}z_{\beta},z_{\gamma}z_{\delta}\rangle_{p}^{c}=\langle z_{\alpha}"
        r"z_{\beta}z_{\gamma}z_{\delta}\rangle_{p}-\langle z_{\alpha}z_{\beta}\rangle_{p}\,\langle "
        r"z_{\gamma}z_{\delta}\rangle_{p}",
        [],
    ),
    # It holds for one pair alone; what a variance does to a covariance is an equation of its own.
    115: (
        "hessian",
        2,
        r"\frac{\partial^{2}}{\partial C_{\alpha\beta}^{(l)}\partial\tilde{C}_{\gamma\delta}^{(k)}}"
        r"\mathcal{S}\rvert_{(C_{*},\tilde{C}_{*})}=-N\nu_{l}\delta_{kl}+N\,"
        r"\delta_{(\alpha\beta),(\gamma\delta)}\,1_{k>0}\,\sigma_{w}^{2}\langle"
        r"\left[\phi_{\alpha}^{(k-1)}\right]^{\prime}\left[\phi_{\beta}^{(k-1)}\right]^{\prime}+"
        r"\delta_{\alpha\beta}\left[\phi_{\alpha}^{(k-1)}\right]^{\prime\prime}"
        r"\left[\phi_{\beta}^{(k-1)}\right]\rangle_{\mathcal{N}(0,K^{(k-1)})}\,1_{k>l}\times"
        + _WEIGHT,
        [
            (r"\partial\tilde{C}_{\gamma\delta}", r"\partial\tilde{C}_{\alpha\beta}"),
            (r"\delta_{(\alpha\beta),(\gamma\delta)}", ""),
            (r"1_{k>0}\sigma_{w}^{2}", "1_{k>0}"),
            (_WEIGHT, _WEIGHT_HOLDS),
        ],
    ),
    116: (
        "hessian",
        2,
        r"\partial_{K_{\alpha\beta}}\langle\phi(h_{\gamma})\phi(h_{\delta})\rangle_{h\sim"
        r"\mathcal{N}(0,K)}=\langle\partial_{h_{\alpha}}\partial_{h_{\beta}}\phi(h_{\gamma})"
        r"\phi(h_{\delta})\rangle_{h\sim\mathcal{N}(0,K)}",
        [(r"=\langle", r"=(1-\frac{1}{2}\delta_{\alpha\beta})\langle")],
    ),
}


def bare(text):
    """A formula without spaces and sizes of brackets, derivatives of φ^(l) in one form."""
    text = text.replace(r"\text{", r"\mathrm{").replace(r"\coloneqq", "=")
    text = text.replace(r"\eqqcolon", "=").replace(r"\rvert_{(C_{*},\tilde{C}_{*})}", "")
    text = re.sub(r"\\\\\n&(\\quad)?|&(?=[=\\]?simeq|=)", "", text)
    text = re.sub(r"\\(left|right|[bB]ig+[lr]?)(?![a-z])|\\q?quad|\\,|\{\}", "", text)
    # [φ_α^(k)]′ is φ_α^{′,(k)}.
    primed = r"\[(\\phi_\{\\\w+\})\^\{(\(.*?\))\}\]\^\{((?:\\prime)+)\}"
    text = re.sub(primed, r"\1^{\3,\2}", text)
    text = re.sub(r"\[(\\phi_\{\\\w+\}\^\{\([^]]*\)\})\](?!\^)", r"\1", text)
    text = re.sub(r"\s", "", text)
    return re.sub(r"[,.](?=\\\\|\\end)", "", text)


@pytest.mark.parametrize("number", PRINTED)
def test_equations_of_the_paper_are_recognised(number):
    quantity, inputs, printed, holds = PRINTED[number]
    expected = bare(printed)
    for wrong, right in holds:
        assert bare(wrong) in expected
        expected = expected.replace(bare(wrong), bare(right))
    text = ft.derive(3, inputs).latex(quantity, notation="F25")
    assert expected in bare(text)
    named = ft.derive(3, inputs, activation="tanh").latex(quantity, notation="F25")
    assert expected in bare(named)
    assert (r"\phi(h) &= \tanh(h)" in named or r"\phi(h) = \tanh(h)" in named) == (r"\phi" in text)


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("column", [246, 345])
def test_it_fits_and_every_symbol_is_defined(inputs, column, tmp_path):
    th = ft.derive(2, inputs)
    found = {
        f"{q} {numbered}": th.latex(q, notation="F25", width=column, numbered=numbered)
        for q in F25
        for numbered in (True, False)
    }
    assert typeset(tmp_path, found, column=column) == {}
    listed = re.sub(r"\\text\{.*?\}", "", th.latex("symbols", notation="F25"))
    assert {q: undefined(text, listed) for q, text in found.items() if "False" in q} == {
        q: set() for q in found if "False" in q
    }


def test_price_theorem_holds_as_written():
    """The factors of (42) and (116), for φ = h² and h⁴ of one signal and two."""
    h, g = sp.symbols("h g", real=True)
    A, B, C = sp.symbols("A B C", positive=True)
    one = GaussianAverage(h**4, h, A).doit()
    assert sp.expand(one.diff(A) - GaussianAverage(sp.diff(h**4, h, 2), h, A).doit() / 2) == 0
    K = [[A, C], [C, B]]
    for by, slope, factor in ((A, sp.diff(h**2 * g**4, h, 2), 2), (C, 8 * h * g**3, 1)):
        two = GaussianAverage(h**2 * g**4, (h, g), K).doit()
        assert sp.expand(two.diff(by) - GaussianAverage(slope, (h, g), K).doit() / factor) == 0


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        ({"skip_scale": 0}, {}, "notation 'F25' is that of a ResidualNetwork"),
        ({}, {"layers": "explicit"}, "is for symbolic layers"),
        ({}, {"notation": "F23"}, "notation must be one of F25, got 'F23'"),
    ],
)
def test_what_the_paper_does_not_write_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        ft.derive(1, **arguments).latex("hessian", **({"notation": "F25"} | options))
    with pytest.raises(ValueError, match="quantity must be one of action"):
        ft.derive(1).latex("tangent_kernel", notation="F25")
