"""`penstock gnn train`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from penstock.cli import gnn
from penstock.cli.gnn import gnn_group, train_command

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")
from gnn_papers import draw_papers, odd_split
from gnn_training_run import send
from penstock.gnn.training import Options, entry

TIMEOUT = 60  # seconds, of a process


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_papers(tmp_path_factory)


def command(*arguments: str) -> tuple[str, Any]:
    """What `penstock gnn train` prints on stdout, and the sentence that it ends with."""
    shown = CliRunner().invoke(gnn_group, ["train", *arguments], standalone_mode=False)
    if isinstance(shown.exception, click.ClickException):
        return shown.stdout, shown.exception.format_message()
    return shown.stdout, None if shown.exception is None else str(shown.exception)


OF_COMMAND = ["--device", "cpu", "--fanout", "4,3", "--hidden", "16", "--batch", "64", "--epochs", "2"]


def test_the_command_prints_an_epoch_a_line(papers: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    shown, problem = command(str(papers), *OF_COMMAND, "--trace", str(trace))
    assert problem is None
    assert "accuracy" in shown
    assert "test: accuracy 0." in shown
    assert "of sampling and gathering ran behind the training" in " ".join(shown.split())
    assert json.loads(trace.read_text())["traceEvents"]


def test_the_table_has_all_digits_in_80_columns(papers: Path) -> None:
    given = ["--task", "links", "--placement", "tiered", "--below", "storage", "--cache", "64KiB"]
    shown, problem = command(str(papers), *OF_COMMAND, "--epochs", "1", *given)
    assert problem is None
    assert re.search(r"epoch +loss +auc +mrr +time +waiting +sampling +gather +host +storage *\n", shown)
    assert re.search(r"\n +1( +\d\.\d{4}){3}( +\S+ [mu]?s){4}( +\S+ [KM]?i?B){2} *\n", shown)


def test_the_command_prints_json(papers: Path) -> None:
    shown, problem = command(str(papers), *OF_COMMAND, "--json", "--evaluate-every", "0", "--model", "gat")
    found = json.loads(shown)
    assert problem is None
    assert [epoch["valid"] is None for epoch in found["epochs"]] == [True, False]
    assert found["options"]["heads"] == 4
    assert found["test"]["accuracy"] > 0


def test_the_command_draws_a_dataset_once(tmp_path: Path) -> None:
    place = str(tmp_path / "drawn")
    named = ["papers100M", "--folder", place]
    arguments = [*named, "--nodes", "3000", *OF_COMMAND, "--epochs", "1", "--json"]
    first, problem = command(*arguments)
    assert problem is None
    again, problem = command(*arguments)
    assert problem is None
    assert json.loads(again)["epochs"][0]["loss"] == json.loads(first)["epochs"][0]["loss"]
    assert "another shape or size" in command(*named, "--nodes", "9")[1]


def test_the_command_draws_relations(tmp_path: Path) -> None:
    place = str(tmp_path / "drawn")
    arguments = ["papers100M", "--folder", place, "--nodes", "2000", *OF_COMMAND, "--epochs", "1", "--json"]
    shown, problem = command(*arguments, "--model", "rgcn", "--relations", "3")
    assert problem is None
    assert len(json.loads((Path(place) / "dataset.json").read_text())["edge_types"]) == 3
    assert json.loads(shown)["parameters"] > 0
    assert "another shape or size" in command(*arguments)[1]


def test_the_command_prints_how_to_resume(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "model.pt")
    send(signal.SIGINT, 0, 1, monkeypatch)
    arguments = ["train", str(papers), *OF_COMMAND, "--checkpoint", file]
    shown = CliRunner().invoke(gnn_group, arguments)
    assert f"stopped in epoch 1 after step 2, saved to {file}: the same command with --resume" in shown.stderr
    monkeypatch.undo()
    shown = CliRunner().invoke(gnn_group, [*arguments, "--resume"])
    assert "resumed in epoch 1 after step 2" in shown.stdout


def test_a_training_that_is_over_is_not_resumed(papers: Path, tmp_path: Path) -> None:
    arguments = [str(papers), *OF_COMMAND, "--checkpoint", str(tmp_path / "model.pt"), "--resume"]
    assert "nothing was left" not in command(*arguments)[0]
    shown, problem = command(*arguments, "--epochs", "1")
    assert problem is None
    assert "nothing was left to do: the checkpoint has 2 epochs, and --epochs is 1" in " ".join(shown.split())
    assert "resumed in" not in shown


def test_a_dataset_without_relations_is_named_to_rgcn(papers: Path) -> None:
    for model, says in (("rgcn", True), ("sage", False)):
        shown = CliRunner().invoke(gnn_group, ["train", str(papers), *OF_COMMAND, "--model", model])
        assert shown.exit_code == 0
        assert (f"--model rgcn: {papers} has no edge types: there is one relation" in shown.stderr) == says


def test_options_of_the_command_are_those_of_the_call() -> None:
    given = train_command.make_context("train", ["papers"]).params
    of_call = {each.name: each.default for each in fields(Options) if each.name not in ("dataset", "shuffle")}
    assert {name: given[name] for name in of_call} == of_call


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--fanout", "4,0"], "fanout 4,0: 0 neighbours: each hop needs 1 at least, or -1 for all"),
        (["--fanout", "4,x"], "'4,x': write the neighbours of each hop as 15,10,5"),
        (["--fanout", "4,3", "--layers", "3"], "layers 3: fanout 4,3 has 2 hops"),
        (["--batch", "0"], "batch 0: it must be 1 or more"),
        (["--epochs", "0"], "epochs 0: it must be 1 or more"),
        (["--lr", "-1"], "lr -1.0: give a number above 0"),
        (["--dropout", "1"], "dropout 1.0: give a share from 0 below 1"),
        (["--heads", "2"], "heads 2: model sage has none"),
        (["--model", "gat", "--hidden", "30"], "hidden 30: it is no multiple of 4 heads"),
        (["--model", "mlp"], "'mlp' is not one of"),
        (["--fanout", "4", "--batch-norm"], "batch_norm: a model of one layer has no hidden values"),
        (["--resume"], "resume: there is no checkpoint: name its file, too"),
        (["--checkpoint-every", "5"], "checkpoint_every 5: there is no checkpoint"),
        (["--checkpoint", "PAPERS/missing/model.pt"], "there is no folder PAPERS/missing: make it"),
        (["--checkpoint", "PAPERS"], "'PAPERS': it is a folder: name a file"),
        (["--device", "tpu"], "device 'tpu': give auto, cpu, cuda or cuda:N"),
        (["--device", "cuda:99"], "device cuda:99: torch finds"),
        (["--cache", "1MiB"], "placement host has no cache"),
        (["--nodes", "9"], "--nodes is for a dataset that is drawn"),
        (["--relations", "2"], "--relations is for a dataset that is drawn"),
        (["--trace", "PAPERS/features.npy"], "it is the input"),
        (["--trace", "PAPERS/missing/t.json"], "there is no folder PAPERS/missing: make it"),
    ],
)
def test_bad_options_are_one_sentence(arguments: list[str], sentence: str, papers: Path) -> None:
    given = [argument.replace("PAPERS", str(papers)) for argument in arguments]
    problem = command(str(papers), *given)[1]
    assert sentence.replace("PAPERS", str(papers)) in problem
    assert "\n" not in problem


def test_bad_datasets_are_one_sentence(tmp_path: Path) -> None:
    assert "there is no dataset.json in it" in command(str(tmp_path))[1]
    assert "papers100M is drawn: give --nodes and --folder" in command("papers100M")[1]


def test_other_checkpoints_are_refused(papers: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    given = [*OF_COMMAND, "--epochs", "1", "--checkpoint", str(file)]
    assert command(str(papers), *given)[1] is None
    assert "there is one: resume it, delete it" in command(str(papers), *given)[1]
    assert "model was sage and is gcn" in command(str(papers), *given, "--resume", "--model", "gcn")[1]
    assert "fanout was 4,3 and is 5" in command(str(papers), *given, "--resume", "--fanout", "5")[1]
    other = str(odd_split(papers, tmp_path))
    assert "another dataset: the dataset's train was 300 and is 129" in command(other, *given, "--resume")[1]
    file.write_bytes(b"nothing")
    assert "it is no checkpoint of a training, or damaged" in command(str(papers), *given, "--resume")[1]


def test_labels_outside_the_classes_are_refused(papers: Path, tmp_path: Path) -> None:
    folder = odd_split(papers, tmp_path)
    labels = np.load(folder / "labels.npy")
    labels[np.load(folder / "valid.npy")[0]] = -1
    np.save(folder / "labels.npy", labels)
    assert "of valid has the label -1, and there are 4 classes" in command(str(folder), *OF_COMMAND)[1]


def test_a_folder_that_is_not_new_is_refused_before_nodes_are_scored(
    papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.tiering.score", lambda *_, **__: pytest.fail("it was scored"))
    shown = CliRunner().invoke(gnn_group, ["reorder", str(papers), str(papers)])
    assert str(shown.exception) == f"reorder to {papers}: it exists and is not empty: name a new folder"


def test_a_fanout_is_of_scores_that_sample(papers: Path, tmp_path: Path) -> None:
    def reorder(name: str, *given: str) -> Any:
        return CliRunner().invoke(gnn_group, ["reorder", str(papers), str(tmp_path / name), *given])

    refused = str(reorder("a", "--score", "degree", "--fanout", "3").exception)
    assert refused == "score: fanout (3,): method degree samples nothing: leave it out, or choose frequency"
    for name, given in (("b", ["--fanout", "15,10,5"]), ("c", []), ("d", ["--fanout", "1"])):
        assert reorder(name, "--score", "frequency", "--device", "cpu", *given).exit_code == 0
    orders = [np.load(tmp_path / name / "order.npy").tolist() for name in "bcd"]
    assert orders[0] == orders[1] != orders[2]


def test_a_missing_package_is_named(papers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "find_spec", lambda name: None)
    assert "torch_geometric is not installed: pip install 'penstock[pyg]'" in command(str(papers))[1]
    monkeypatch.setattr(gnn, "find_spec", lambda name: None)
    assert "torch is not installed: pip install 'penstock[pyg]'" in command(str(papers))[1]


def test_the_command_loads_no_torch_before_it_runs() -> None:
    code = "import sys, penstock.cli.gnn; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=TIMEOUT).returncode == 0


def test_the_command_loads_no_torch_before_it_refuses(papers: Path, tmp_path: Path) -> None:
    folder = odd_split(papers, tmp_path)
    np.save(folder / "train.npy", np.zeros(0, np.int64))
    (tmp_path / "there.pt").touch()
    refused: list[list[Any]] = [
        ["nowhere"],
        [folder],
        ["papers100M"],
        [papers, "--fanout", "4,0"],
        [papers, "--device", "tpu"],
        [papers, "--cache", "1MiB"],
        [papers, "--checkpoint", tmp_path / "there.pt"],
        [papers, "--embeddings", tmp_path / "there.pt"],
        [papers, "--trace", papers / "features.npy"],
    ]
    code = f"""
import sys
from penstock.cli.main import main
for given in {[[str(each) for each in given] for given in refused]!r}:
    assert main(["gnn", "train", *given]) == 2, given
    assert not {{"torch", "torch_geometric"}} & set(sys.modules), given
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("\n") == len(refused)
