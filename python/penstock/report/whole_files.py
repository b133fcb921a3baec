"""Files that appear whole or not at all, whatever writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import Error


@contextmanager
def written_whole(operation: str, path: Path, *others: type[Exception]) -> Iterator[Path]:
    """The name of a file beside `path`, with its ending, which takes the place of `path` after the block.

    Raises penstock.Error, which begins with `operation` and `path`, for OSError and `others` from the block;
    what was there stays then, and nothing else is left. A link stays one; a device or a pipe is what is
    written to, for nothing takes its place.
    """
    failures: tuple[type[Exception], ...] = (OSError, *others)
    target = Path(os.path.realpath(path))
    in_place = target.exists() and not target.is_file()
    beside = target if in_place else target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        if not in_place:
            beside.replace(target)
    except failures as error:
        code, reason = _cause(error)
        remedy = "make room, or choose another folder" if code else "choose another kind of file"
        raise Error(f"{operation} {path}: {reason}: {remedy}", code) from error
    finally:
        if not in_place:
            beside.unlink(missing_ok=True)


def _cause(error: BaseException) -> tuple[int, str]:
    """The system's, where the error or one before it has its number; else what the library says."""
    each: BaseException | None = error
    while each is not None:
        if isinstance(each, OSError) and each.errno:
            return each.errno, os.strerror(each.errno)
        each = each.__cause__ or each.__context__
    return 0, " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
