"""The picture of an audit: a line for every role, orange where it deviates, and the stream."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.plotting.style import ORANGE, tints
from tests.tables import slow

torch = pytest.importorskip("torch")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(30)
        self.fc1, self.fc2 = torch.nn.Linear(30, 60), torch.nn.Linear(60, 30)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(self.norm(x))))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(Block() for _ in range(4)))


def marked(figure):
    """Layers of points in a shade of orange, of which there are two at most."""
    shades = tints(ORANGE, 1) + tints(ORANGE, 2)
    lines = [line for line in figure.axes[0].lines if line.get_color() in shades]
    return sorted({float(x) for line in lines for x in line.get_xdata()})


@pytest.mark.parametrize("value", [slow(0.5), 0.0, slow(torch.nan)])
def test_what_deviates_is_orange(model, value):
    assert not marked(ft.audit(model, intent="torch").plot())
    with torch.no_grad():
        model[2].fc2.weight.mul_(value)
    figure = ft.audit(model, intent="torch").plot()
    assert marked(figure) == [3.0]
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["*.fc1.weight", "*.fc2.weight", "*.fc2.weight"]


def test_the_stream_is_that_of_the_audit(model):
    audit = ft.audit(model)
    _, stream, share = audit.plot().axes
    measured, linear = (line.get_ydata() for line in stream.lines[::2])
    np.testing.assert_array_equal(measured, [row.behind for row in audit.blocks])
    np.testing.assert_array_equal(linear, [row.linear for row in audit.blocks])
    np.testing.assert_array_equal(share.lines[0].get_ydata(), [row.share for row in audit.blocks])


def test_biases_are_drawn_where_one_deviates(model):
    torch.nn.init.ones_(model[1].fc1.bias)
    figure = ft.audit(model, intent="torch").plot()
    assert "*.fc1.bias" in figure.axes[0].get_legend_handles_labels()[1]
    assert marked(figure) == [2.0]
