"""Options of trainings, which are checked before torch is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from broken_inputs import check_sentence
from penstock.gnn.training import Options
from penstock.gnn.training.places import check_places


def options(**given: Any) -> Options:
    return Options(**given)


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:1"])
def test_a_device_of_torch_is_kept_by_its_name(name: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    assert Options(device=torch.device(name)) == Options(device=name)
    assert Options(device=torch.device(name)).as_dict()["device"] == name
    with pytest.raises(ValueError, match="device 'meta': give auto, cpu, cuda or cuda:N"):
        Options(device=torch.device("meta"))


@pytest.mark.parametrize("name", ["checkpoint", "embeddings"])
def test_a_name_that_is_too_long_is_one_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / ("x" * 300)
    with pytest.raises(
        OSError, match=f"^{name} .*/x+: its name is longer than a file system takes"
    ) as caught:
        check_places(options(**{name: path}))
    check_sentence(caught.value, str(path), name)


def test_places_that_are_taken_are_named(tmp_path: Path) -> None:
    taken = tmp_path / "two\nlines"
    taken.touch()
    for name in ("checkpoint", "embeddings"):
        with pytest.raises(ValueError, match=r"^(checkpoint|embeddings) '.*two\\nlines': there is "):
            check_places(options(**{name: taken}))
