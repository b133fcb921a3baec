"""Options of trainings, which are checked before torch is imported."""

from __future__ import annotations

from typing import Any

import pytest
from penstock.gnn.training import Options


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:1"])
def test_a_device_of_torch_is_kept_by_its_name(name: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    assert Options(device=torch.device(name)) == Options(device=name)
    assert Options(device=torch.device(name)).as_dict()["device"] == name
    with pytest.raises(ValueError, match="device 'meta': give auto, cpu, cuda or cuda:N"):
        Options(device=torch.device("meta"))
