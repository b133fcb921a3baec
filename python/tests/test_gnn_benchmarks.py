"""Benchmarks of graph neural networks run, small, on what this machine has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmark_lines import FOLDER, lines_from

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="PyG is not installed")

MIXED = ("uniform", "zipf", "interleaved", "busy", "small-cache")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not here")


def lines_of(name: str, folder: Path, *options: str) -> dict[str, dict[str, Any]]:
    """The result lines of a benchmark by id."""
    return {line["id"]: line for line in lines_from(name, folder, *options)}


def test_pipelines_train_on_the_batches_of_variants_and_of_a_process(tmp_path: Path) -> None:
    small = ("--nodes", "4000", "--folder", str(tmp_path), "--repeats", "1")
    found = lines_of("gnn_pipelines.py", tmp_path, "--only", "epochs,process,partition", *small)
    for figure in "variants.epoch.optimised.1gpu", "variants.epoch.cpu.1gpu", "sms.process.host":
        assert found[figure]["verified"]


def test_pipelines_train_by_width_on_as_many_nodes_as_fit(tmp_path: Path) -> None:
    small = (
        "--nodes",
        "3000",
        "--gib",
        "0.004",
        "--batch",
        "32",
        "--folder",
        str(tmp_path),
        "--repeats",
        "1",
    )
    found = lines_of("gnn_pipelines.py", tmp_path, "--only", "widths", "--widths", "128,4096,315", *small)
    for width, nodes in (128, 3000), (4096, 262), (315, 3000):
        line = found[f"variants.width.optimised.{width}.1gpu"]
        assert (line["width"], line["nodes"], line["of_nodes"]) == (width, nodes, 2_449_029)
        assert line["verified"]
        assert line["loss"] == pytest.approx(found[f"variants.width.cpu.{width}.1gpu"]["loss"], rel=0.01)


def test_peers_gather_beside_the_clean_case(tmp_path: Path) -> None:
    small = ("--rows", "4000", "--list", "1000", "--nodes", "2000")
    found = lines_of("peer_rows.py", tmp_path, "--only", "gathers,mixed,sample", *small)
    mixed = [found[f"peers.mixed.storage.{each}"] for each in MIXED]
    assert all(line["verified"] and line["peers"] > 0 for line in mixed)
    assert [line["over_uniform"] for line in mixed[1:]] == [
        pytest.approx(line["value"] / mixed[0]["value"]) for line in mixed[1:]
    ]
    assert {"peers.gather.far.uniform", "peers.copy.zipf", "peers.sample.both"} <= found.keys()
