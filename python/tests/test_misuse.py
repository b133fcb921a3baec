"""Calls made by mistake, drawn at random, on the CPU and on a GPU where there is one."""

from __future__ import annotations

import os

import pytest
from places import DEVICES

pytest.importorskip("torch", reason="torch is not installed")

CALLS = int(os.environ.get("PENSTOCK_MISUSE_CALLS", "4000"))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_mistaken_call_gives_numpys_result_or_one_sentence(seed: int, device: str) -> None:
    from misuse import run

    outcomes = run(CALLS // 2, seed, device)
    assert sum(outcomes.values()) == CALLS // 2
    assert min(outcomes[kind] for kind in ("done", "ValueError", "TypeError", "IndexError")) > CALLS // 200
