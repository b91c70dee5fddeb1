"""The symbols of a derivation by plain names, for work with its expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable

import sympy as sp

from fieldtheory import validation
from fieldtheory.plotting.tables import table_html


class Symbols(dict[str, sp.Symbol]):
    r"""Symbols by names: Greek letters spelled out, layers and inputs after underscores.

    They are attributes and items: ``symbols.sigma_w``, ``symbols["C_0"]``, ``symbols.Ctilde_1`` for
    C̃^(1), ``symbols.C_1_12`` for C^(1) of inputs 1 and 2.

    Parameters
    ----------
    symbols : iterable of sympy.Symbol

    Raises
    ------
    AttributeError, KeyError
        For a name that is not among them.

    Examples
    --------
    >>> found = Symbols([sp.Symbol("\\sigma_{w}"), sp.Symbol("\\tilde{C}^{(0)}_{1 2}")])
    >>> list(found), found.sigma_w
    (['Ctilde_0_12', 'sigma_w'], \sigma_{w})
    """

    def __init__(self, symbols: Iterable[sp.Symbol]) -> None:
        named = {plain_name(symbol): symbol for symbol in symbols}
        super().__init__(sorted(named.items(), key=lambda item: _layers_last(item[0])))

    def __getattr__(self, name: str) -> sp.Symbol:
        """The symbol of a name."""
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[validation.choice("symbol", name, tuple(self))]
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        """The names, for completion."""
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"Symbols({', '.join(self)})"

    def _repr_html_(self) -> str:
        rows = [{"name": name, "symbol": f"${s.name}$"} for name, s in self.items()]
        return table_html(rows, "symbols by name") if rows else "<p>no symbols</p>"


def plain_name(symbol: sp.Symbol) -> str:
    r"""A name for a symbol by which Python can call it.

    Examples
    --------
    >>> [plain_name(sp.Symbol(s)) for s in (r"\rho_{1}", r"C^{(0)}_{\mathrm{data}, 1 2}", "N")]
    ['rho_1', 'C_0_data_12', 'N']
    """
    text = re.sub(r"\\tilde\{(\w+)\}", r"\1tilde", symbol.name)
    text = re.sub(r"\\mathrm|\\", "", text)
    text = re.sub(r"(?<=\d) (?=\d)", "", text)
    return re.sub(r"[\W_]+", "_", text.replace("'", "prime")).strip("_")


def _layers_last(name: str) -> tuple[tuple[int, str], ...]:
    """Numbers in names are ordered as such."""
    return tuple((int(s), "") if s.isdigit() else (-1, s) for s in re.split(r"(\d+)", name))
