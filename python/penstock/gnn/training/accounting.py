"""What a loader counted."""

from __future__ import annotations

from typing import Any

from penstock.gnn.training.results import Account


def account_of(loader: Any) -> Account:
    """Since the loader was made: seconds of sampling and gathering, and bytes by tier where it has them.

    The training itself measures how long it waits.
    """
    stats = loader.stats()
    counted = {str(tier): int(count) for tier, count in stats.get("bytes", {}).items()}
    return Account(sampling=float(stats["sampling"]), gather=float(stats["gather"]), bytes=counted)
