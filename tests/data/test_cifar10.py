"""CIFAR-10 from a small folder of the same form, and what is refused of it."""

import os
import pickle

import numpy as np
import pytest

from fieldtheory.data import load_cifar10
from tests.data.batches import write, write_batches
from tests.data.refusals import named, refusal


@pytest.fixture
def folder(tmp_path):
    return write_batches(tmp_path)[0]


def test_first_samples_of_each_class_over_all_batches(tmp_path):
    folder, images = write_batches(tmp_path)
    found = load_cifar10(folder, count=8)
    assert found.samples.shape == (8, 3072)
    assert found.samples.dtype == np.float64
    np.testing.assert_array_equal(found.samples, images[[1, 3, 4, 5, 0, 8, 12, 13]])
    assert found.labels.tolist() == ["airplane"] * 4 + ["dog"] * 4
    assert found.name == "airplane, dog (CIFAR-10, 32x32 pixels)"


def test_other_classes(folder):
    found = load_cifar10(str(folder), classes=("deer", "bird", "cat"), count=6)
    assert found.labels.tolist() == ["bird", "bird", "cat", "cat", "deer", "deer"]
    assert found.samples[:, 0].tolist() == [7, 16, 2, 18, 9, 10]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"classes": ("dog", "ship")}, ["classes", "'ship'", "airplane, automobile"]),
        ({"count": 12}, ["count", "at most 10", "airplane has 5", "12"]),
        ({"count": 3}, ["count", "multiple of 2"]),
    ],
)
def test_refuses_what_the_set_does_not_hold(folder, arguments, words):
    named(words, load_cifar10, folder, **arguments)


def test_refuses_missing_folder_and_files(folder):
    assert "there is no such folder" in refusal(load_cifar10, folder / "other")
    for name in ("data_batch_4", "batches.meta"):
        (folder / name).rename(folder / "kept")
        named([name, "there is no such file"], load_cifar10, folder)
        (folder / "kept").rename(folder / name)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file cannot be read"),
        (b"text", "the file cannot be read"),
        (b"\x80\x02}", "the file cannot be read"),
        (b"\x80\x02(lp1\n", "the file cannot be read"),
        ([1, 2], "must hold a dict, got list"),
        ({"labels": [0]}, "no array data"),
        ({"data": np.zeros((1, 3072)), "labels": [0]}, "no array data"),
        ({"data": np.zeros((2, 5), np.uint8), "labels": [0, 0]}, "5 numbers, must be 3072"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [0]}, "2 integers below 6"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [0, 6]}, "2 integers below 6"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [0, [1]]}, "2 integers below 6"),
        ({"data": np.zeros((2, 3072), np.uint8)}, "2 integers below 6"),
    ],
)
def test_refuses_batches_of_another_form(folder, content, words):
    if isinstance(content, bytes):
        (folder / "data_batch_2").write_bytes(content)
    else:
        write(folder / "data_batch_2", content)
    named(["data_batch_2", words], load_cifar10, folder, count=2)


@pytest.mark.parametrize("names", [None, "dog", [1, 2]])
def test_refuses_names_that_are_none(folder, names):
    write(folder / "batches.meta", {"label_names": names})
    assert "no list label_names" in refusal(load_cifar10, folder)


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_runs_no_code_of_the_files(folder, tmp_path):
    (folder / "data_batch_3").write_bytes(pickle.dumps({"data": Harmful(tmp_path / "made")}))
    named(["data_batch_3", "mkdir is neither an array nor builtin"], load_cifar10, folder)
    assert not (tmp_path / "made").exists()
