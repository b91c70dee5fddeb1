"""How formulas are written: LaTeX, lines that fit a column, symbols and their meanings."""
