"""The devices that arrays are on, and the executors that arrays of one device share."""

from __future__ import annotations

import atexit
import functools
import os
from typing import TYPE_CHECKING, Any

from penstock.arrays import foreign

if TYPE_CHECKING:
    from penstock import _native


@functools.cache
def _executor_of(process: int, device: str, threads: int) -> _native.Executor:
    from penstock import _native

    return _native.Executor.open(device, threads)


atexit.register(_executor_of.cache_clear)


def executor_for(device: Any, threads: int = 0) -> _native.Executor:
    """The executor that all arrays of a device share in this process. device: auto, cpu, cuda (torch's
    current GPU where torch is) or cuda:1."""
    return _executor_of(os.getpid(), _chosen_device(device_name(device)), threads)


def device_name(given: Any) -> str:
    """Of a name, or a torch.device. TypeError for what is neither."""
    if isinstance(given, str):
        return given
    if type(given).__module__ != "torch" or type(given).__name__ != "device":
        raise TypeError(f"device {given!r}: give auto, cpu, cuda or cuda:1, or a torch.device")
    return "cpu" if given.type == "cpu" else str(given)


def _chosen_device(asked: str) -> str:
    from penstock import _native

    if asked == "auto" and not _native.cuda_usable()[0]:
        return "cpu"
    if asked not in ("auto", "cuda") or not foreign.has_torch():
        return asked
    import torch

    return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else asked
