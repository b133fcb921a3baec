"""How far a checkpoint is saved, compared or restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.callbacks import Progress


class Copied:
    """Adds up what is copied, for a progress callback."""

    def __init__(self, what: str, total: int, progress: Progress | None) -> None:
        self._what, self._total, self._done, self._progress = what, total, 0, progress

    def __call__(self, nbytes: int) -> None:
        self._done = min(self._done + nbytes, self._total)
        if self._progress is not None:
            self._progress(self._what, self._done, self._total)
