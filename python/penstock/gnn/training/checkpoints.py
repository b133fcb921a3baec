"""What a training goes on from: a file, or with tables that train a folder of `penstock.checkpoint`.

A checkpoint is replaced whole: a process that is killed leaves the one before. It holds tensors, numbers and
text alone, and reading it runs no code of it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from penstock import checkpoint
from penstock.errors import Error
from penstock.nn.generations import write_whole

if TYPE_CHECKING:
    from penstock.gnn.training.embeddings import Embeddings

FORMAT = 1
_KEYS = ("options", "source", "processes", "model", "optimizer", "epoch", "step", "epochs", "losses", "ranks")


def save(path: Path, content: dict[str, Any], embeddings: Embeddings | None) -> None:
    """Replaces the checkpoint; returns when it is on the drive.

    Raises:
        penstock.Error: It cannot be written; the one before is still there.
    """
    content = {"format": FORMAT, **content}
    try:
        if embeddings is not None:
            checkpoint.save(path, **embeddings.saved(), extra=content, keep=1)
            return
        buffer = io.BytesIO()
        torch.save(content, buffer)
        write_whole(path, buffer.getvalue())
    except OSError as problem:
        if problem.strerror is None:  # it is a sentence already
            raise
        raise Error(
            f"write checkpoint {path}: {problem.strerror}: make room, or choose another folder",
            problem.errno or 0,
        ) from problem


def load(path: Path) -> dict[str, Any]:
    """All of it but the tables, which `restore` restores.

    Raises:
        ValueError: It is none of ours, or damaged.
    """
    try:
        content = (
            checkpoint.read_extra(path)
            if path.is_dir()
            else torch.load(path, map_location="cpu", weights_only=True)
        )
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


def restore(path: Path, embeddings: Embeddings) -> None:
    """Gives the tables the numbers that they had.

    Raises:
        ValueError: Tables of another shape, or a damaged checkpoint; nothing is changed then.
    """
    checkpoint.load(path, **embeddings.saved())


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
