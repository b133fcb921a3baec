"""Files of a folder, opened and read by the executor's threads.

What `penstock grep` does:

    found = penstock.fs.grep("printf", "src")
    for match in found.matches:
        print(f"{match.path}:{match.line}:{match.text}")
"""

from __future__ import annotations

from penstock.fs.search import GrepResult, Match, grep

__all__ = ["GrepResult", "Match", "grep"]
