"""Files that a training goes on from.

A checkpoint is replaced whole: a process that is killed leaves the one before. It holds tensors, numbers and
text alone, and reading it runs no code of it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch

from penstock.errors import Error
from penstock.nn.generations import write_whole

FORMAT = 1
_KEYS = ("options", "source", "processes", "model", "optimizer", "epoch", "step", "epochs", "losses", "ranks")


def check_place(path: Path, resume: bool) -> None:
    """What can be known of a checkpoint before anything is trained.

    Args:
        resume: Whether the one that is there is to be gone on from.

    Raises:
        ValueError: There is no folder for it, or one in its place; or a file that is not to be resumed.
    """
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint {path}: there is no folder {path.parent}: make it, or name another")
    if path.is_dir():
        raise ValueError(f"checkpoint {path}: it is a folder: name a file in it")
    if path.exists() and not resume:
        raise ValueError(f"checkpoint {path}: there is one: resume it, delete it, or name another file")


def save(path: Path, content: dict[str, Any]) -> None:
    """Replaces the checkpoint; returns when it is on the drive.

    Raises:
        penstock.Error: It cannot be written; the one before is still there.
    """
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **content}, buffer)
    try:
        write_whole(path, buffer.getvalue())
    except OSError as problem:
        raise Error(
            f"write checkpoint {path}: {problem.strerror}: make room, or choose another folder",
            problem.errno or 0,
        ) from problem


def load(path: Path) -> dict[str, Any]:
    """
    Raises:
        ValueError: The file is none of ours, or damaged.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception:  # what torch raises for bytes that are no checkpoint depends on the bytes
        content = None
    if not isinstance(content, dict) or any(key not in content for key in ("format", *_KEYS)):
        raise ValueError(f"resume {path}: it is no checkpoint of a training, or damaged: name another file")
    if content["format"] != FORMAT:
        raise ValueError(
            f"resume {path}: format {content['format']}, and this version reads {FORMAT}: train anew"
        )
    return content


def check(path: Path, content: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compares what a checkpoint was made of with what is to be trained.

    Args:
        content: Of the checkpoint.
        expected: "options", "source" and "processes", as `save` gets them.

    Raises:
        ValueError: They differ; the sentence has the first difference.
    """
    for what, of in (("options", ""), ("source", "the dataset's ")):
        for name, value in expected[what].items():
            if (saved := content[what].get(name)) != value:
                raise ValueError(
                    f"resume {path}: it is of another {'training' if what == 'options' else 'dataset'}: "
                    f"{of}{name} was {_text(saved)} and is {_text(value)}: give the same, or another "
                    "checkpoint"
                )
    if (processes := content["processes"]) != expected["processes"]:
        raise ValueError(
            f"resume {path}: {processes} processes made it and {expected['processes']} are to go on: start "
            "as many"
        )


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
