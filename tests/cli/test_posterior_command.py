"""The command `posterior`: its numbers, labels of files, refusals."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory import data as images
from tests.cli.test_app import output, rows
from tests.rounding import assert_same

SHORT = ("posterior", "-L", 3, "--width", 100, "--branch-scale", 0.5, "--count", 10)


def by_name(table):
    return {row["quantity"]: row for row in table}


def test_numbers_are_those_of_the_function(tmp_path):
    path = tmp_path / "found.npz"
    found = by_name(rows(*SHORT, "--classes", "0,3", "--response", "--save", path))
    samples = images.load_digits(classes=(0, 3), count=10)
    targets = np.where(samples.labels == 3, 1.0, -1.0)
    order = np.random.default_rng(0).permutation(10)
    kernel = images.scaled_kernel(samples.samples, 0.05)[np.ix_(order, order)]
    net = ft.ResidualNetwork(depth=3, width=100, branch_scale=0.5)
    expected = ft.posterior(net, kernel, targets[order][:8], 0.1)
    evidence = found["log evidence per label"]
    assert evidence["infinite"] == pytest.approx(expected.log_evidence_nngp / 8)
    assert evidence["width N"] == pytest.approx(expected.log_evidence / 8)
    assert evidence["error"] == pytest.approx(expected.log_evidence_error / 8)
    squares = ((expected.mean[8:] - targets[order][8:]) ** 2).mean()
    assert found["squared error of held out"]["width N"] == pytest.approx(squares)
    assert found["share of wrong classes"]["width N"] in (0, 0.5, 1)
    assert found["expansion ratio"]["width N"] == pytest.approx(float(expected.expansion_ratio))
    assert 0 < found["kernel learned, output"]["width N"] < 0.1
    assert_same(ft.load(path).mean, expected.mean)
    response = found["response of the output"]
    prior = ft.solve(net, kernel).output_response[8:, 8:].mean()
    learned = expected.output_response_shift[8:, 8:].mean()
    assert response["width N"] == pytest.approx(prior + learned)
    assert response["infinite"] == pytest.approx(prior, rel=1e-12) != response["width N"]


def test_labels_of_files_and_several_classes(tmp_path):
    data = images.load_digits(classes=(0, 3), count=6)
    np.savez(tmp_path / "mine.npz", X=data.samples)
    for name, shape in (("one.csv", (6,)), ("two.csv", (6, 2))):
        np.savetxt(tmp_path / name, np.random.default_rng(0).normal(size=shape), delimiter=",")
        typed = "--data", tmp_path / "mine.npz", "--labels", tmp_path / name, "--test", 0
        table = by_name(rows("posterior", "-L", 2, *typed))
        assert "squared error of held out" not in table
    three = by_name(rows(*SHORT, "--classes", "0,3,7", "--count", 9, "--order", 0))
    assert three["kernel learned, output"]["width N"] == 0
    text = output(*SHORT, "--classes", "0,3")
    assert "log evidence per label" in text and "8 of them with labels" in text
