"""Opens damaged files of one format, in a process of its own: a crash is one of it alone.

damage_files.py FORMAT SEED COUNT FOLDER
"""

from __future__ import annotations

import random
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from broken_inputs import MAKERS, check_sentence, damaged
from penstock.arrays import foreign

MAX_FILE = 64 << 20  # of copies: headers may say that there are terabytes of zeros


def answer(path: Path, options: dict[str, Any]) -> str:
    """What opening it came to: "read", or the sentence. AssertionError for an error of another form."""
    try:
        penstock.plan(path, device="cpu", **options)
        with penstock.open(path, device="cpu", placement="host", **options) as array:
            assert np.size(array) == np.asarray(array[:]).size
    except AssertionError:
        raise
    except Exception as problem:
        check_sentence(problem, str(path))
        return str(problem)
    return "read"


def main(name: str, seed: int, count: int, folder: Path) -> None:
    foreign.has_torch = lambda: False
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    path, options = MAKERS[name][1](folder)
    assert answer(path, options) == "read"
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    whole = {file: file.read_bytes() for file in files}
    refused = 0
    for k in range(seed, seed + count):
        chance = random.Random(k)
        file = chance.choice(files)
        file.write_bytes(damaged(whole[file], chance))
        print(k, flush=True)
        refused += answer(path, options) != "read"
        file.write_bytes(whole[file])
    print("refused", refused)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
