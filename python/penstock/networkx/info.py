"""What NetworkX asks of every backend when it is imported: names alone, nothing of Penstock is loaded."""

from __future__ import annotations

from typing import Any

VALID_PATH = "Of several shortest paths another one may be found than NetworkX finds."
WEIGHTS = "Weights are integers from 0 to 2^31 - 1, or floats of 0 or more that float32 holds exactly."
FUNCTIONS: dict[str, str] = {
    "ancestors": "",
    "connected_components": "",
    "descendants": "",
    "dijkstra_path": f"{WEIGHTS} {VALID_PATH}",
    "dijkstra_path_length": WEIGHTS,
    "has_path": "",
    "is_connected": "",
    "is_weakly_connected": "",
    "node_connected_component": "",
    "number_connected_components": "",
    "number_weakly_connected_components": "",
    "pagerank": f"{WEIGHTS} Values for nodes are of 0 or more, alpha below 1.",
    "single_source_dijkstra": f"{WEIGHTS} {VALID_PATH}",
    "single_source_dijkstra_path": f"{WEIGHTS} {VALID_PATH}",
    "single_source_dijkstra_path_length": WEIGHTS,
    "single_source_shortest_path_length": "",
    "single_target_shortest_path_length": "",
    "weakly_connected_components": "",
}
CONFIG: dict[str, Any] = {"placement": "host", "executor": "auto", "cache": None}
"""Options of `penstock.bfs` that all functions take: `nx.config.backends.penstock.placement = "storage"`."""


def get_info() -> dict[str, Any]:
    """The entry point `networkx.backend_info`.

    Returns:
        Names, functions and the configuration with its defaults, as NetworkX documents them.
    """
    return {
        "backend_name": "penstock",
        "project": "penstock",
        "package": "penstock",
        "short_summary": "Graphs whose edges stay where they are: a file, host memory, an NVMe drive, a GPU.",
        "default_config": dict(CONFIG),
        "functions": {name: {"additional_docs": notes} for name, notes in FUNCTIONS.items()},
    }
