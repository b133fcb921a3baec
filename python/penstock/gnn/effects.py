"""When options of loaders and of trainings have an effect; nothing here imports torch."""

from __future__ import annotations

from penstock.effects import Effect, Settings


def _on_gpu(given: Settings) -> bool:
    return bool(given["device"] != "cpu")


_OF_GPU = "a CPU has no multiprocessors: leave it out"
MULTIPROCESSORS = (
    Effect("sms", _on_gpu, _OF_GPU, 0),
    Effect("sm_partition", _on_gpu, _OF_GPU, False),
    Effect(
        "sm_partition",
        lambda given: given["sms"] > 0,
        "there are no sms: give how many multiprocessors it has",
        False,
    ),
)
