"""What is refused before anything is changed: damaged checkpoints, and those of another model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from penstock.arrays import Array
from penstock.checkpoint.manifest import Saved, Written, missing
from penstock.checkpoint.progress import Copied
from penstock.errors import Error
from penstock.nn.snapshots import checksum_of
from penstock.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from penstock.callbacks import Progress


def check_whole(checkpoint: Path, name: str, written: Written, seen: Copied | None = None) -> None:
    """ValueError for a file that has not the bytes that were saved."""
    path = checkpoint / name
    remedy = "a disk or a copy has damaged it: load another checkpoint, by its number"
    try:
        size = path.stat().st_size
        if size != written.nbytes:
            raise ValueError(f"load {path}: it has {size} bytes, and {written.nbytes} were saved: {remedy}")
        if written.crc32 is None:
            return
        found = checksum_of(path, seen)
    except FileNotFoundError:
        raise missing(checkpoint, name) from None
    except OSError as problem:
        raise Error(
            f"load {path}: {os.strerror(problem.errno or 0)}: load another checkpoint, by its number",
            problem.errno or 0,
        ) from None
    if found != written.crc32:
        raise ValueError(
            f"load {path}: its bytes have the CRC-32 {found:08x}, and those that were saved "
            f"{written.crc32:08x}: {remedy}"
        )


def check_parts(checkpoint: Path, parts: list[Saved], progress: Progress | None) -> None:
    """Before anything is changed: what is restored is read twice."""
    summed = [part.written.nbytes for part in parts if part.written.crc32 is not None]
    seen = Copied("check", sum(summed), progress)
    for part in parts:
        check_whole(checkpoint, part.file, part.written, seen)


def check_fits(checkpoint: Path, state: dict[str, Any], model: nn.Module, named: dict[str, Any]) -> None:
    """ValueError for a state of another model or of other optimizers, before anything is changed."""
    theirs, mine = set(state["model"]), set(_keys_of(model))
    for keys, what in ((theirs - mine, "the model has no"), (mine - theirs, "the checkpoint has no")):
        if keys:
            raise ValueError(f"load {checkpoint}: {what} {min(keys)!r}: give the model that was saved")
    for name, tensor in model.named_parameters():
        if name in state["model"] and state["model"][name].shape != tensor.shape:
            raise ValueError(
                f"load {checkpoint}: {name} has shape {tuple(state['model'][name].shape)} there and "
                f"{tuple(tensor.shape)} in the model: give the model that was saved"
            )
    if set(state["optimizers"]) != set(named):
        raise ValueError(
            f"load {checkpoint}: it has optimizers {sorted(state['optimizers'])}, and {sorted(named)} were "
            "given: "
            "give them as they were saved"
        )
    for name, one in named.items():
        kind = type(one).__name__
        saved = state["optimizers"][name]
        if isinstance(one, Optimizer) and saved.get("optimizer") != kind:
            raise ValueError(
                f"load {checkpoint}: optimizer {name} was {saved.get('optimizer')} and is {kind}: give the "
                "optimizers that were saved"
            )


def _keys_of(model: nn.Module) -> list[str]:
    """Of its state_dict, without the flush that one takes."""
    found = []
    for prefix, one in model.named_modules(remove_duplicate=False):
        dot = f"{prefix}." if prefix else ""
        found += [f"{dot}{name}" for name, value in one._parameters.items() if value is not None]
        found += [
            f"{dot}{name}"
            for name, value in one._buffers.items()
            if value is not None and name not in one._non_persistent_buffers_set
        ]
        if type(one).get_extra_state is not nn.Module.get_extra_state:
            found.append(f"{dot}_extra_state")
    return found


def check_tables(checkpoint: Path, parts: list[Saved], tables: dict[str, Array]) -> None:
    saved = {part.table: part for part in parts if part.kept is None}
    if set(saved) != set(tables):
        odd = min(set(saved) ^ set(tables))
        raise ValueError(
            f"load {checkpoint}: table {odd!r} is {'not in the model' if odd in saved else 'not in it'}: "
            "give the "
            "model that was saved"
        )
    for name, part in saved.items():
        array = tables[name]
        if (array.shape, array.dtype.name) != (part.shape, part.dtype):
            raise ValueError(
                f"load {checkpoint}: table {name!r} was {part.dtype} {part.shape}, and {array.path} is "
                f"{array.dtype} "
                f"{array.shape}: copy {checkpoint / part.file} to a new path, and make the module over that"
            )
