"""The picture of an audit: a line for every role, rings around what deviates, the stream."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.plotting.style import ORANGE

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


def rings(figure):
    lines = [line for line in figure.axes[0].lines if line.get_color() == ORANGE]
    return sorted({float(x) for line in lines for x in line.get_xdata()})


@pytest.mark.parametrize("value", [0.5, 0.0, torch.nan])
def test_rings_are_around_what_deviates(model, value):
    assert not rings(ft.audit(model, intent="torch").plot())
    with torch.no_grad():
        model[2].fc2.weight.mul_(value)
    figure = ft.audit(model, intent="torch").plot()
    assert rings(figure) == [3.0]
    assert figure.axes[0].get_legend_handles_labels()[1] == ["*.fc2.weight", "*.fc1.weight"]


def test_the_stream_is_that_of_the_audit(model):
    audit = ft.audit(model)
    _, stream, share = audit.plot().axes
    measured, linear = (line.get_ydata() for line in stream.lines)
    np.testing.assert_array_equal(measured, [row.behind for row in audit.blocks])
    np.testing.assert_array_equal(linear, [row.linear for row in audit.blocks])
    np.testing.assert_array_equal(share.lines[0].get_ydata(), [row.share for row in audit.blocks])


def test_biases_are_drawn_where_one_deviates(model):
    torch.nn.init.ones_(model[1].fc1.bias)
    figure = ft.audit(model, intent="torch").plot()
    assert "*.fc1.bias" in figure.axes[0].get_legend_handles_labels()[1]
    assert rings(figure) == [2.0]
