"""The Hessian of the action at the saddle point."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from fieldtheory.theory.action import Action
from fieldtheory.theory.typesetting.latex import Typeset


@dataclass(frozen=True, repr=False)
class Hessian(Typeset):
    """The four blocks of S^(2) at C̃ = 0, as functions of the kernels (F25 eq. (37)).

    Rows and columns run over the fields, ordered by layer, then by entry. Index 1 stands for C
    and 2 for C̃. At the saddle point the kernels take their values C*.
    """

    S11: sp.ImmutableMatrix
    S12: sp.ImmutableMatrix
    S21: sp.ImmutableMatrix
    S22: sp.ImmutableMatrix


def hessian(action: Action) -> Hessian:
    """Differentiate the action twice at the saddle point.

    For one input (F25 eqs. (38), (39), (41), with σ²_w,out for the readout row)

        S11 = 0
        S21[k,l] = N (−ν_k δ_kl + a_k ⟨φ'² + φφ''⟩_{K^(k-1)} A²_{k-1,l} 1_{l<k})
        S22[k,l] = N a_k a_l ⟨φ²(h^(k-1)) ; φ²(h^(l-1))⟩

    comes out of the differentiation; none of it is assumed.
    """
    C, size = action.kernels, len(action.kernels)
    rows = [action.derivative((k,)) for k in range(size)]
    normalisation = action.derivative(())

    def fluctuation(k: int, l: int) -> sp.Expr:
        return action.derivative((k, l)) if k <= l else sp.S.Zero

    S11 = sp.ImmutableMatrix(size, size, lambda k, l: normalisation.diff(C[k], C[l]))
    S21 = sp.ImmutableMatrix(size, size, lambda k, l: rows[k].diff(C[l]))
    upper = sp.Matrix(size, size, fluctuation)
    S22 = sp.ImmutableMatrix(size, size, lambda k, l: upper[min(k, l), max(k, l)])
    return Hessian(S11, S21.T, S21, S22)
