"""The price list of docs/developers/house.md: its features, and about their lines."""

import pytest

from tests import prices


def test_the_price_list_is_that_of_the_files():
    """To a tenth or fifty lines, so that only a change of size has to be written."""
    text = prices.PAGE.read_text(encoding="utf-8")
    printed = text[text.index(prices.HEAD) :].splitlines()
    for old, new in zip(printed, prices.table(), strict=False):
        was, now = ([cell.strip() for cell in row.split("|")[1:-1]] for row in (old, new))
        assert (was[0], was[3]) == (now[0], now[3])
        if was[1].isdigit():
            sizes = [[int(cell) for cell in cells[1:3]] for cells in (was, now)]
            assert sizes[0] == pytest.approx(sizes[1], rel=0.1, abs=50)
