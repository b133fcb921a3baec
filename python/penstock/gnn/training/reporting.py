"""What is shown while a training runs."""

from __future__ import annotations

import logging
import time
from typing import Any

from penstock.callbacks import Progress

INTERVAL = 0.25
"""Seconds between lines: to read a loss waits for the GPU."""
_LOGGER = logging.getLogger("penstock")


class Reporter:
    """Lines of loss, accuracy and batches a second, means since the line before. Without `progress`, none."""

    def __init__(self, progress: Progress | None, epochs: int) -> None:
        self._progress = progress
        self._epochs = epochs
        self._epoch = self._steps = 0
        self._restart()

    def begin(self, epoch: int, steps: int) -> None:
        self._epoch, self._steps = epoch, steps
        self._restart()

    def step(self, done: int, answer: Any) -> None:
        """
        Args:
            done: Steps of the epoch.
            answer: An `objectives.Answer`.
        """
        if self._progress is None:
            return
        self._answers.append((answer.loss.detach(), answer.right, answer.count))
        seconds = time.perf_counter() - self._since
        if seconds < INTERVAL and done < self._steps:
            return
        losses, rights, counts = zip(*self._answers, strict=True)
        loss = float(sum(losses)) / len(losses)
        accuracy = int(sum(rights)) / max(sum(counts), 1)
        line = f"epoch {self._epoch + 1}/{self._epochs}: loss {loss:.4f}, accuracy {accuracy:.1%}, "
        self._restart()
        self._progress(f"{line}{len(losses) / max(seconds, 1e-9):.1f} batches/s", done, self._steps)

    def evaluating(self, split: str) -> None:
        if self._progress is not None:
            self._progress(f"epoch {self._epoch + 1}/{self._epochs}: measuring on the {split} set", 0, 0)

    def note(self, sentence: str) -> None:
        _LOGGER.info(sentence)

    def _restart(self) -> None:
        self._answers: list[tuple[Any, Any, int]] = []
        self._since = time.perf_counter()
