"""What is said of a conversion: which columns were taken as what, and how many rows.

It goes to the logger "penstock.graph" (INFO); the command line program prints it on stderr.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .folder import GraphFolder

LOGGER = logging.getLogger("penstock.graph")


def announce(called: str, made: GraphFolder) -> None:
    if made.reading:
        LOGGER.info("read %s: %s", called, made.reading)
