"""The command `audit`: models and intents from modules, its formats, and the exit code."""

import csv
import io
import json

import pytest

from tests.cli.test_app import call
from tests.cli.test_examples import MODELS

torch = pytest.importorskip("torch")
NAMES = [f"{layer}.{kind}" for layer in range(3) for kind in ("weight", "bias")]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models_of_test.py").write_text(
        MODELS
        + "class Wrong(torch.nn.Sequential):\n"
        + "    def __init__(self):\n"
        + "        super().__init__(*build())\n"
        + "        torch.nn.init.normal_(self[1].weight, std=0.04)\n"
        + "        torch.nn.init.constant_(self[2].weight, torch.nan)\n"
    )


def test_a_model_as_meant():
    for name in ("build", "model"):
        for intent in ("gpt2", "models_of_test:intent"):
            result = call("audit", f"models_of_test.py:{name}", "-i", intent)
            assert (result.exit_code, result.stderr) == (0, "")
            assert result.stdout.startswith("Nothing deviates: 6 tensors of 2 roles")


def test_what_deviates_is_printed_and_the_exit_code_is_1():
    result = call("audit", "models_of_test:Wrong", "--intent", "gpt2")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith(
        "2 deviations in 6 tensors of 2 roles, 7 tests. First 2.weight:"
    )


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_row_for_every_tensor(format):
    result = call("audit", "models_of_test:Wrong", "--intent", "gpt2", "--format", format)
    assert result.exit_code == 1
    read = json.loads if format == "json" else lambda text: list(csv.DictReader(io.StringIO(text)))
    rows = read(result.stdout)
    assert [row["name"] for row in rows] == NAMES
    far = [row["name"] for row in rows if row["deviates"] in (True, "True")]
    assert far == ["1.weight", "2.weight"]
    assert all(row["tested"] in ("intent", "chance") and row["meant"] for row in rows)
    assert float(rows[2]["factor"]) == pytest.approx(2, abs=0.1) and float(rows[2]["z"]) > 5
    assert not rows[4]["deviation"] and not rows[4]["z"]


def test_intents_are_shown_without_a_model():
    from fieldtheory.audits import INTENTS

    result = call("audit", "--intents")
    assert (result.exit_code, result.stderr) == (0, "")
    for name, row in INTENTS.items():
        assert f"  {name} " in result.stdout
        # Long cells are broken.
        assert row.source.split("; ")[0] in result.stdout
