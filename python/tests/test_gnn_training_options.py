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


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"placement": "bogus"},
            "placement 'bogus': there is no such placement; choose one of auto, hbm, host",
        ),
        ({"placement": "bogus", "hot": 0.1}, "placement 'bogus': there is no such placement"),
        ({"placement": "tiered", "below": "pinned"}, "below 'pinned': there is no such below; choose one of"),
        ({"graph_placement": "tiered"}, "graph_placement 'tiered': there is no such graph_placement"),
        ({"placement": "storage", "cache": "much"}, "cache 'much'"),
        ({"sms": 4, "device": "cpu"}, "sms 4: a CPU has no multiprocessors: leave it out"),
        (
            {"sms": 4, "sm_partition": True, "device": "cpu"},
            "sms 4: a CPU has no multiprocessors: leave it out",
        ),
        ({"sm_partition": True, "device": "cpu"}, "sm_partition: a CPU has no multiprocessors: leave it out"),
        ({"sm_partition": True, "device": "cuda"}, "sm_partition: there are no sms: give how many"),
    ],
)
def test_what_cannot_be_is_refused_when_options_are_made(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        options(**given)
