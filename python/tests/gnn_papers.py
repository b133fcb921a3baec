"""A small dataset for trainings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.gnn import data


def draw_papers(folders: pytest.TempPathFactory) -> Path:
    """600 nodes with 4 communities; features alone classify about half of them."""
    folder = folders.mktemp("gnn") / "papers"
    data.generate(
        folder,
        nodes=600,
        average_degree=8,
        width=16,
        classes=4,
        splits=(0.5, 0.1, 0.4),
        homophily=0.9,
        accuracy=0.5,
    )
    return folder


def odd_split(papers: Path, folder: Path) -> Path:
    """129 seeds: a share of 65 has a batch more than one of 64 would have."""
    return with_seeds(papers, folder / "odd", train=129)


def with_seeds(papers: Path, folder: Path, **counts: int) -> Path:
    """The same dataset with fewer seeds in its splits."""
    folder.mkdir()
    for file in papers.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    for split, count in counts.items():
        np.save(folder / f"{split}.npy", np.load(papers / f"{split}.npy")[:count])
    return folder
