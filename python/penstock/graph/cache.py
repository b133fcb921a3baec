"""The folders that were made, and are kept."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
from pathlib import Path

from penstock.errors import Error

from . import memory
from .folder import GraphFolder, open_folder
from .making import Plan
from .notices import announce


def default_cache_dir() -> Path:
    """$PENSTOCK_CACHE if it is set, else ~/.cache/penstock/graphs ($XDG_CACHE_HOME is respected)."""
    if chosen := os.environ.get("PENSTOCK_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "graphs"


def cache_folder(given: str | os.PathLike[str] | None) -> Path:
    if given is not None and not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"cache_dir {given!r}: it is no path: name a folder, or leave it out")
    if given is not None and not os.fspath(given):
        raise ValueError("cache_dir '': it has no name: name a folder, or leave it out")
    return default_cache_dir() if given is None else Path(given)


def opened_or_made(cache: Path, plan: Plan) -> GraphFolder:
    """Open what is kept, or make it.

    What is there but damaged is ours to replace: the cache holds nothing that cannot be made again.
    """
    if not plan.name:
        place, keeper = memory.keep_in(cache, plan.make)
        made = dataclasses.replace(open_folder(place), called=plan.called, labels=plan.labels, keeper=keeper)
        announce(plan.called, made)
        return made
    kept = cache / plan.name
    if kept.is_dir():
        try:
            return dataclasses.replace(open_folder(kept), called=plan.called)
        except (ValueError, Error) as error:
            if isinstance(error, Error) and error.errno != errno.ENOENT:
                raise
            shutil.rmtree(kept, ignore_errors=True)
    try:
        plan.make(str(kept))
    except ValueError:
        # Another process may have made it between our look and our start.
        if not kept.is_dir():
            raise
    made = dataclasses.replace(open_folder(kept), called=plan.called)
    announce(plan.called, made)
    return made
