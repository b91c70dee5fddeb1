"""The action of transformers, what follows from it, and its LaTeX."""

import itertools
import re

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.compiling.functions import lambdify
from fieldtheory.theory.evaluation import symbol_values
from fieldtheory.transformers.transformer_action import HeadAverage, HeadSlope, Steps
from tests.rounding import assert_same
from tests.tables import slow
from tests.test_derivations import compiled, complaints
from tests.theory.test_action import at_zero
from tests.theory.test_appendix import of_document
from tests.theory.typesetting.test_latex import typeset
from tests.theory.typesetting.test_symbols import undefined

K0 = {1: 0.7, 2: np.array([[1.0, 0.3], [0.3, 0.5]])}
MLP = {"activation": "tanh", "inner_bias_variance": 0.1, "expansion": 2.0}
BIASES = {"query_bias_variance": 0.8, "key_bias_variance": 0.6, "value_bias_variance": 0.5}
BIASES |= {"out_bias_variance": 0.2}
CASES = {
    "MLP": {"mlp": MLP},
    "parallel": {"mlp": MLP, "parallel": True, "grouped_heads": 2},
    "post-norm": {"grouped_heads": 3, "norm_position": "post"} | BIASES,
    "no mask": {
        "causal": False,
        "normalization": "layer",
        "branch_scale": [[0.7, 0.4], [0.5, 0.3]],
    },
}


def network(depth=2, **changes):
    """Other parameters than one and zero, and blocks that differ."""
    own = {"heads": 6, "head_width": 4, "width": 24, "normalization": "rms", "epsilon": 0.1}
    own |= {
        "branch_scale": (0.7, 0.4),
        "skip_scale": 0.9,
        "mlp": None,
        "query_weight_variance": 3.0,
    }
    own |= {"value_weight_variance": [1.2, 0.8][:depth], "readout_weight_variance": 1.5}
    return ft.TransformerNetwork(depth=depth, **own | changes)


def of_fields(th, letter, G):
    """The entries (l, m, p, p) of fields with a letter."""
    own = [j for j, field in enumerate(th.network_action.kernels) if field.name.startswith(letter)]
    p = th.inputs * (th.inputs + 1) // 2
    return G[np.ix_(own, own)].reshape(-1, p, len(own) // p, p).swapaxes(1, 2)


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_numbers_in_the_formulas_are_those_of_solve(case, inputs):
    """One token, and no logits."""
    net = network(**CASES[case], logit_scale=float(inputs == 1))
    th, s = ft.derive(net, inputs), ft.solve(net, K0[inputs])
    G11 = th.lambdify("G11")(net, K0[inputs])
    assert_same(of_fields(th, "C", G11), s.G11)
    if net.norm_position == "pre":
        assert_same(of_fields(th, "X", G11), s.stream_covariance)
    assert_same(of_fields(th, "C", th.lambdify("G12")(net, K0[inputs]))[:, 0], s.G12[:, 0])


def test_hessian():
    """S11 = 0, S21 lower triangular, and the law of total covariance in S22."""
    th = ft.derive(network(depth=1, causal=False), 2)
    action, H, of = th.network_action, th.hessian, th.symbols
    assert H.S11.is_zero_matrix and H.S21.is_lower
    for one, other in itertools.combinations(action.populations, 2):
        assert H.S22[list(one.fields), list(other.fields)].is_zero_matrix
    heads = action.populations[1]
    B, X = heads.law
    (j, k), mean = heads.fields[1:], lambda *F: HeadAverage(*F, B, X)
    assert H.S21[j, action.kernels.index(of.X_0_22)] == of.H * of.tau * HeadSlope(
        B[1], of.X_0_22, B, X
    )
    typed = mean(B[1], B[2]) + 2 * mean(B[1] * B[2]) / of.d
    assert sp.expand(H.S22[j, k] - of.H * of.tau**2 * typed) == 0
    # Of the whole action, which has what a head adds before values are averaged.
    kappa = heads.observables
    over = [HeadAverage(F, kappa, X) for F in (kappa[1] * kappa[2], kappa[1], kappa[2])]
    slope = action.expression.diff(action.conjugates[j]).diff(action.conjugates[k])
    assert sp.expand(at_zero(action, slope) - of.H * (over[0] - over[1] * over[2])) == 0


def drawn(net, R, samples=50_000):
    """B, E and B' of two heads with the same keys, for the same random numbers."""
    z, L = np.random.default_rng(1).standard_normal((3, samples, 2, net.d)), np.linalg.cholesky(R)
    q, k = np.sqrt(net.query_weight_variance) * (L @ z[:2]), L @ z[2]
    A = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(net.d))
    A /= A.sum(-1, keepdims=True)
    pairs = {"B": (0, 0), "E": (0, 1), "B'": (1, 1)}
    return {name: A[i] @ R @ A[j].swapaxes(-1, -2) for name, (i, j) in pairs.items()}


def test_averages_over_heads_are_those_of_draws():
    """With numbers for what is a symbol, G11 is that of `solve`."""
    net = network(depth=1, causal=False, normalization=None, grouped_heads=2)
    th, R, step = ft.derive(net, 2), K0[2], 1e-3
    entries = {str(th.symbols[f"X_0_{i}{j}"]): (i - 1, j - 1) for i, j in ((1, 1), (1, 2), (2, 2))}

    def value(node, R=R):
        F, law = node.functions, drawn(net, R)
        if isinstance(node, HeadSlope):
            move = np.zeros((2, 2))
            i, j = entries[str(F[1])]
            move[i, j] = move[j, i] = step
            mean = HeadAverage(F[0], *node.args[-2:])
            return (value(mean, R + move) - value(mean, R - move)) / (2 * step)
        names = [re.fullmatch(r"(.*)\^\{\(1\)\}_\{(\d) (\d)\}", str(v)) for v in node.variables]
        places = [(name[1], int(name[2]) - 1, int(name[3]) - 1) for name in names]
        arrays = [law[letter][:, i, j] for letter, i, j in places]
        values = [lambdify(list(node.variables), f)(*arrays) for f in F]
        return values[0].mean() if len(F) == 1 else np.cov(*values)[0, 1]

    blocks = sp.ImmutableMatrix.hstack(th.hessian.S21, th.hessian.S22)
    numbers = {node: value(node) for node in blocks.atoms(HeadAverage, HeadSlope)}
    numbers |= symbol_values(Steps.of(net), R, 2)
    s = ft.solve(net, R)
    kernels = dict(zip(("C_0", "X_0", "C_1"), (R, R, s.residual_kernels[1]), strict=True))
    for name, K in kernels.items():
        for i, j in ((1, 1), (1, 2), (2, 2)):
            numbers[th.symbols[f"{name}_{i}{j}"]] = K[i - 1, j - 1]
    S21, S22 = np.hsplit(np.array(blocks.xreplace(numbers), dtype=float), 2)
    G12 = np.linalg.inv(S21)
    found = of_fields(th, "C", G12 @ S22 @ G12.T)
    assert np.abs(found - s.G11).max() < 0.01 * np.abs(s.G11).max()


@pytest.mark.parametrize(
    "case, inputs, column",
    [("MLP", 2, 246), ("post-norm", 2, 345), slow("parallel", 2, 246), slow("no mask", 1, 345)],
)
def test_documents_compile_and_list_their_symbols(case, inputs, column, tmp_path):
    options = {"rotary": 100.0, "query_key_norm": True} if case == "parallel" else {}
    th = ft.derive(network(**CASES[case] | options), inputs)
    text = th.document(width=column)
    tex = tmp_path / "source" / "transformers.tex"
    tex.parent.mkdir()
    tex.write_text(text, encoding="utf-8")
    assert complaints(compiled(tex, tmp_path)) == []
    assert not re.search("<<|[?]>", text)
    used, known = of_document(text)
    assert used - known <= {"d", "B", r"\big", r"\Big", r"\to"} and known <= used
    displays = {quantity: th.latex(quantity) for quantity in th._table}
    listed = re.sub(r"\\text\{.*?\}", "", th.latex("symbols"))
    found = {q: undefined(text, listed) - {"w", "b"} for q, text in displays.items()}
    assert not any(found.values()), found
    assert typeset(tmp_path, displays) == {}


def test_rows_of_both_kinds_of_steps():
    th = ft.derive(network(**CASES["MLP"]))
    rows = th.latex("saddle_point").split("\n")
    (attention,), (mlp,) = (
        [row for row in rows if f"l \\text{{ {of}}})" in row and row[0] == "C"]
        for of in ("odd", "even")
    )
    assert (
        r"\tau_{l} \left\langle B^{(l)}_{\alpha \beta} \right\rangle_{\mathrm{head}}" in attention
    )
    assert r"a_{l} \left\langle \phi(u^{(l)}_{\alpha}) \phi(u^{(l)}_{\beta})" in mlp
    action = th.latex("action")
    assert r"\sum_{l \text{ odd}} H \ln" in action and r"\sum_{l \text{ even}} M \ln" in action
    assert str(th) == "TransformerDerivation(TransformerNetwork, depth 2, 2 inputs, φ tanh)"


REFUSED = {
    "lambdify needs averages over heads in closed form": lambda th, net: th.lambdify("G11"),
    "diagrams is not there for a TransformerNetwork": lambda th, net: th.diagrams(),
    "tangent_kernel is not there for a Trans": lambda th, net: th.latex("tangent_kernel"),
    "misprints is not there": lambda th, net: th.document(misprints=False),
    "did you mean hessian": lambda th, net: th.latex("hesian"),
    "inputs must be tokens of 2 sequences, got 3": lambda th, net: ft.derive(
        net.replace(sequences=2), 3
    ),
    "network must have the action": lambda th, net: ft.derive(net, 1).lambdify("S21")(
        net.replace(normalization=None), 1.0
    ),
    "network must be a TransformerNetwork, got a Block": lambda th, net: ft.derive(net, 1).lambdify(
        "S21"
    )(ft.BlockNetwork(depth=2), 1.0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    net = network()
    with pytest.raises((TypeError, ValueError), match=message):
        REFUSED[message](ft.derive(net), net)
