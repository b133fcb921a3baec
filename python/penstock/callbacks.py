"""What long work calls while it runs."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done ("prepare", "level 3", "verify"; of arrays "copy"), how much of it is done,
how much there is."""


def preparing(progress: Progress | None) -> Callable[[int, int], None] | None:
    """Of a whole run's progress, that of finding or making its graph."""
    if progress is None:
        return None
    return lambda done, total: progress("prepare", done, total)
