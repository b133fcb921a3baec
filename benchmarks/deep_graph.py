"""Makes a graph folder that a search goes through in very many levels: a grid, long and narrow.

    python benchmarks/deep_graph.py FOLDER [--width 256] [--length 8192]

A vertex has four neighbours at most, and a search from a corner has width + length - 1 levels. It stands in
for graphs of the web, which are deep and have short lists.
"""

from __future__ import annotations

import argparse

import numpy as np
from penstock import graph as graphs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--length", type=int, default=8192)
    options = parser.parse_args()
    vertex = np.arange(options.width * options.length, dtype=np.int32).reshape(options.length, options.width)
    ends = np.concatenate([vertex[:, :-1].ravel(), vertex[:-1].ravel()])
    others = np.concatenate([vertex[:, 1:].ravel(), vertex[1:].ravel()])
    made = graphs.write_folder(options.folder, vertex.size, ends, others, directed=False, symmetrise=True)
    print(f"{made.path}: {made.vertices} vertices, {made.edges} edges")


if __name__ == "__main__":
    main()
