"""What can be known of a training's files before torch is imported, which takes seconds."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.arrays.messages import naming, shown_path
from penstock.gnn.training.options import Options


def exists(checkpoint: Path) -> bool:
    """A folder may have none yet."""
    if not checkpoint.is_dir():
        return checkpoint.exists()
    from penstock.checkpoint import numbers

    return bool(numbers(checkpoint))


def check_places(options: Options) -> None:
    """What a training writes, before anything is trained.

    Raises:
        ValueError: There is no folder for the checkpoint, or what is in its place is of the other kind; there
            is one that is not to be resumed, or a table of no checkpoint to be resumed.
        OSError: A name that the file system does not take, or a folder that may not be searched.
    """
    checkpoint, tables = options.checkpoint_path, options.embeddings is not None
    if checkpoint is not None:
        with naming("checkpoint", str(checkpoint)):
            _check_checkpoint(checkpoint, options.resume, tables)
    goes_on = options.resume and checkpoint is not None and exists(checkpoint)
    if options.embeddings is None:
        return
    path = os.fspath(options.embeddings)
    with naming("embeddings", path):
        if Path(path).exists() and not goes_on:
            raise ValueError(
                f"embeddings {shown_path(path)}: there is such a file, of no checkpoint to be "
                "resumed: delete it, or name another"
            )


def _check_checkpoint(path: Path, resume: bool, tables: bool) -> None:
    name = shown_path(str(path))
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint {name}: there is no folder {path.parent}: make it, or name another")
    if path.is_dir() and not tables:
        what = (
            "of a training with embeddings: give them, too" if exists(path) else "a folder: name a file in it"
        )
        raise ValueError(f"checkpoint {name}: it is {what}")
    if path.is_file() and tables:
        raise ValueError(f"checkpoint {name}: it is a file, and embeddings need a folder: name another")
    if exists(path) and not resume:
        raise ValueError(f"checkpoint {name}: there is one: resume it, delete it, or name another file")
