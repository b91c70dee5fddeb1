"""Loading of a user's file, what is refused and how."""

import re
import sys

import numpy as np
import pytest

from fieldtheory.data import load_file
from tests.data.refusals import named, refusal

X = np.array([[0.0, 1.0, 2.0], [3.0, 5.0, 4.0], [6.0, 7.0, 9.0], [8.0, 1.0, 1.0]])


def csv_file(tmp_path, text, name="images.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def npz_file(tmp_path, **arrays):
    path = tmp_path / "images.npz"
    np.savez(path, **arrays)
    return path


class TestNpz:
    @pytest.mark.parametrize("name", ["X", "samples", "data", "images"])
    def test_named_samples(self, tmp_path, name):
        loaded = load_file(npz_file(tmp_path, weights=np.ones((2, 2)), **{name: X}))
        np.testing.assert_array_equal(loaded.samples, X)
        assert loaded.labels is None
        assert loaded.name == "images.npz"

    def test_only_array_with_two_axes(self, tmp_path):
        loaded = load_file(npz_file(tmp_path, scale=np.ones(4), pixels=X, y=[[0], [0], [1], [1]]))
        np.testing.assert_array_equal(loaded.samples, X)
        assert loaded.labels.tolist() == [0, 0, 1, 1]

    def test_images_are_flattened_and_become_float64(self, tmp_path):
        images = np.arange(36, dtype=np.uint8).reshape(3, 2, 6)
        loaded = load_file(npz_file(tmp_path, images=images))
        assert loaded.samples.dtype == np.float64
        np.testing.assert_array_equal(loaded.samples, np.arange(36.0).reshape(3, 12))

    @pytest.mark.parametrize("name", ["y", "labels", "target"])
    def test_order_of_the_file_or_of_the_classes_asked_for(self, tmp_path, name):
        path = npz_file(tmp_path, X=X, **{name: np.array([2.0, 1.0, 2.0, 1.0])})
        loaded = load_file(path)
        np.testing.assert_array_equal(loaded.samples, X)
        assert loaded.labels.tolist() == [2, 1, 2, 1]
        loaded = load_file(path, classes=(1, 2))
        np.testing.assert_array_equal(loaded.samples, X[[1, 3, 0, 2]])
        assert loaded.labels.tolist() == [1, 1, 2, 2]
        assert loaded.labels.dtype == np.int64
        # Enough samples that an unstable sort would show.
        labels = np.random.default_rng(3).integers(0, 3, 300)
        path = npz_file(tmp_path, X=np.stack([np.ones(300), np.arange(300)], 1), **{name: labels})
        order = np.concatenate([np.flatnonzero(labels == label) for label in range(3)])
        np.testing.assert_array_equal(load_file(path, classes=range(3)).samples[:, 1], order)

    def test_labels_that_are_not_integers_become_strings(self, tmp_path):
        loaded = load_file(npz_file(tmp_path, X=X, y=[0.5, 1.0, 1.0, 0.5]), classes=["0.5"])
        assert loaded.labels.tolist() == ["0.5", "0.5"]

    def test_classes_and_count(self, tmp_path):
        path = npz_file(tmp_path, X=np.arange(16.0).reshape(8, 2), y=[0, 1, 2, 0, 1, 2, 0, 2])
        loaded = load_file(path, classes=("2", 0), count=4)
        np.testing.assert_array_equal(loaded.samples[:, 0], [0, 6, 4, 10])
        assert loaded.labels.tolist() == [0, 0, 2, 2]
        assert len(load_file(path, classes=[0, 2]).samples) == 6
        np.testing.assert_array_equal(load_file(path, count=3).samples[:, 0], [0, 2, 4])

    @pytest.mark.parametrize(
        ("arrays", "words"),
        [
            ({"X": X[0]}, ["no samples", "(P, d)"]),
            ({"y": [1, 2]}, ["no samples", "(P, d)"]),
            ({"a": X, "b": X}, ["a, b", "X or samples"]),
            ({"X": X.astype(str)}, ["'X'", "real numbers"]),
            ({"X": X * 1j}, ["'X'", "real numbers"]),
            ({"X": X.astype(object)}, ["Python objects"]),
            ({"X": np.where(X == 5, np.nan, X)}, ["sample 2, entry 2", "nan", "finite"]),
            ({"X": np.where(X == 9, -np.inf, X)}, ["sample 3, entry 3", "-inf", "finite"]),
            ({"X": X[:1]}, ["at least 2"]),
            ({"X": X[:, :0]}, ["no numbers"]),
            ({"X": np.empty((0, 3, 3))}, ["at least 2"]),
            ({"X": X, "y": [0, 1, 0]}, ["labels of shape (3,)", "must be (4,)"]),
            ({"X": X, "y": X[:, 0] * 1j}, ["labels", "complex128", "integers or strings"]),
            ({"X": X, "y": np.eye(4)}, ["labels of shape (4, 4)", "must be (4,)"]),
        ],
    )
    def test_refuses(self, tmp_path, arrays, words):
        named(["images.npz", *words], load_file, npz_file(tmp_path, **arrays))

    def test_refuses_unreadable_archives(self, tmp_path):
        path = npz_file(tmp_path, X=np.arange(4000.0).reshape(40, 100))
        whole = path.read_bytes()
        for broken in (b"", b"not an archive", whole[:200], whole[:300] + b"xxxx" + whole[304:]):
            path.write_bytes(broken)
            assert "cannot be read" in refusal(load_file, path)
        np.savez_compressed(path, X=np.random.default_rng(2).normal(size=(40, 100)))
        whole = path.read_bytes()
        path.write_bytes(whole[:300] + b"\xff" * 200 + whole[500:])
        assert "cannot be read" in refusal(load_file, path)


class TestCsv:
    def test_without_header(self, tmp_path):
        loaded = load_file(csv_file(tmp_path, "0,1,2\n3,5,4\n\n6, 7 ,9e0\n8,1,1\n"))
        np.testing.assert_array_equal(loaded.samples, X)
        assert loaded.labels is None

    @pytest.mark.parametrize("name", ["label", "labels", "y", "target", "class", "Label"])
    def test_label_column(self, tmp_path, name):
        loaded = load_file(csv_file(tmp_path, f"0,{name},2\n1,8,2\n3,5,4\n"))
        np.testing.assert_array_equal(loaded.samples, [[1, 2], [3, 4]])
        assert loaded.labels.tolist() == [8, 5]

    @pytest.mark.parametrize("cell", ["?", "True", "0x10", "1_000", ""])
    def test_no_row_is_taken_for_a_header_in_silence(self, tmp_path, cell):
        path = csv_file(tmp_path, f"1,{cell},2\n3,4,5\n6,7,8\n")
        with pytest.raises(ValueError, match=rf"sample 1, entry 2: '{re.escape(cell)}' is not"):
            load_file(path)
        with pytest.raises(ValueError, match="is not a number|no name"):
            load_file(csv_file(tmp_path, f"3,4,5\n1,{cell},2\n"))

    def test_header_of_numbers_is_asked_for(self, tmp_path):
        path = csv_file(tmp_path, "0,1\n5,6\n7,8\n")
        assert len(load_file(path).samples) == 3 and len(load_file(path, header=True).samples) == 2

    @pytest.mark.parametrize(
        "text",
        ["a;b\n1,5;-2\n3;4,25\n", "1.5\t−2\n3\t4,25\n", "1.5,-2\n3,4.25\n", "1,5;−2\n3;4.25\n"],
    )
    def test_separators_and_decimal_commas(self, tmp_path, text):
        found = load_file(csv_file(tmp_path, text)).samples
        np.testing.assert_array_equal(found, [[1.5, -2], [3, 4.25]])

    def test_other_separators_are_named(self, tmp_path):
        with pytest.raises(ValueError, match="separated by commas, semicolons or tabs"):
            load_file(csv_file(tmp_path, "1 2\n3 4\n"), header=False)

    def test_large_labels_stay_apart(self, tmp_path):
        large = [2**53, 2**53 + 1, 2**63 + 5]
        text = "y,a\n" + "".join(f"{label},{i}\n" for i, label in enumerate(large))
        found = load_file(csv_file(tmp_path, text)).labels
        assert found.tolist() == [str(label) for label in large]
        found = load_file(csv_file(tmp_path, text.rsplit("\n", 2)[0])).labels
        assert found.tolist() == large[:2] and found.dtype == np.int64
        path = npz_file(tmp_path, X=X[:3], y=np.array(large, dtype=np.uint64))
        assert load_file(path).labels.tolist() == [str(label) for label in large]

    def test_text_labels_and_byte_order_mark(self, tmp_path):
        path = csv_file(tmp_path, "\ufefflabel,p\nplane,1\ndog,2\ncat,3\ndog,4\n")
        loaded = load_file(path, classes=["plane", "dog"])
        assert loaded.labels.tolist() == ["dog", "dog", "plane"]
        np.testing.assert_array_equal(loaded.samples[:, 0], [2, 4, 1])

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", ["at least 2"]),
            ("a,b\n", ["at least 2"]),
            ("1,2\n", ["at least 2"]),
            ("1,2\n3\n", ["sample 2, entry 2", "'' is not a number; fill it"]),
            ("1,2\n3,4,5\n", ["Expected 2 fields in line 2, saw 3"]),
            ("a,b\n1,2,3\n3,4,5\n", ["rows of 3 columns below a header of 2"]),
            ("a,y\n1,2\n3\n", ["sample 2 has no label"]),
            ("a,b\n1,2\n3,x\n", ["sample 2, column 'b'", "'x' is not a number", "by drop="]),
            ("1,2\n3,\n", ["sample 2, entry 2", "'' is not a number; fill it"]),
            ("a,b\n1,2\n3,nan\n", ["sample 2, column 'b' is nan", "finite"]),
            ("1,2\n3,nan\n", ["sample 2, entry 2", "finite"]),
            ("1,2\n3,1e999\n", ["sample 2, entry 2", "finite"]),
            (",a\n0,1\n1,2\n", ["column 1", "no name"]),
            ("label,class,a\n0,1,2\n0,1,2\n", ["label, class", "at most one"]),
            ("label\n0\n1\n", ["no numbers"]),
        ],
    )
    def test_refuses(self, tmp_path, text, words):
        named(["images.csv", *words], load_file, csv_file(tmp_path, text))

    TABLE = "id,mm,kind,one\nu,1000,x,3\nv,3000,y,3\nw,2000,y,3\n"

    def test_columns_by_name(self, tmp_path):
        path = csv_file(tmp_path, self.TABLE)
        loaded = load_file(path, label="kind", drop=["id"], standardise=True)
        assert (loaded.labels.tolist(), loaded.columns) == (["x", "y", "y"], ("mm", "one"))
        np.testing.assert_allclose(loaded.samples[:, 0], np.array([-1, 1, 0]) * 1.5**0.5)
        assert (loaded.samples[:, 1] == 0).all()
        assert loaded.note == "Constant over all samples: column one."
        assert load_file(npz_file(tmp_path, X=X, z=[1, 2, 1, 2]), label="z").labels.sum() == 6

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, ["sample 1, column 'id'", "label=", "drop="]),
            ({"drop": ["ids"]}, ["drop must be one of id, mm", "did you mean id?"]),
            ({"label": "knd"}, ["label must be one of id, mm", "did you mean kind?"]),
            ({"label": "kind", "header": False}, ["header=False, 'kind'"]),
        ],
    )
    def test_refuses_columns_that_are_not_there(self, tmp_path, options, words):
        named(words, load_file, csv_file(tmp_path, self.TABLE), **options)
        named(["drop is for columns", "'a'"], load_file, npz_file(tmp_path, X=X), drop=["a"])

    @pytest.mark.parametrize(
        ("scales", "options", "words"),
        [
            ((1, 100), {}, "column b is 100 %"),
            ((1, 100), {"standardise": True}, ""),
            ((1, 1), {}, "give all of them one scale: --standardise"),
            ((1, -1), {}, "give all of them one scale: --standardise"),
        ],
    )
    def test_nearly_parallel_samples_are_said(self, tmp_path, scales, options, words):
        table = np.random.default_rng(0).normal(20, 1, (9, 2)) * scales
        text = "a,b\n" + "\n".join(",".join(map(str, row)) for row in table)
        warning = load_file(csv_file(tmp_path, text), **options).warning
        assert words in warning if words else warning == ""
        assert ("--drop b" in warning) == (words[:6] == "column")

    def test_refuses_binary(self, tmp_path):
        path = tmp_path / "images.csv"
        path.write_bytes(bytes(range(256)))
        assert "cannot be read" in refusal(load_file, path)

    def test_without_pandas(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r"need pandas: pip install .*\[data\]"):
            load_file(csv_file(tmp_path, "1,2\n3,4\n"))


class TestLoadFile:
    def test_refuses_missing_file_directory_and_other_formats(self, tmp_path):
        (tmp_path / "folder.csv").mkdir()
        assert "no such file" in refusal(load_file, tmp_path / "missing.npz")
        assert "no such file" in refusal(load_file, tmp_path / "folder.csv")
        for name in ("images.png", "images", "images.npy"):
            named([name, ".npz or .csv"], load_file, tmp_path / name)

    def test_refuses_selections_the_file_does_not_hold(self, tmp_path):
        path = npz_file(tmp_path, X=X, y=["b", "a", "a", "a"])
        named(["'c'", "a, b"], load_file, path, classes=["a", "c"])
        assert "at most 2" in refusal(load_file, path, classes=["a", "b"], count=4)
        assert "at most 4" in refusal(load_file, path, count=5)
        assert "at least 2" in refusal(load_file, path, classes=["b"])
        assert "need labels" in refusal(load_file, npz_file(tmp_path, X=X), classes=["a"])
        assert "classes" in refusal(load_file, path, error=TypeError, classes="ab")
