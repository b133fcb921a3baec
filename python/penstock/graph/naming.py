"""Errors about a graph call it what the user does, not the folder in the cache that it became."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from penstock.errors import Error

if TYPE_CHECKING:
    from penstock.graph.folder import GraphFolder

_EDGE = re.compile(r"(?<=, )(\d+) -> (\d+)(?=, is )")


@contextmanager
def called_by_its_name(graph: GraphFolder) -> Iterator[None]:
    """What ValueErrors and penstock.Errors in this block say of the graph's folder, they say of its name."""
    path = str(graph.path)
    try:
        yield
    except (ValueError, Error) as error:
        if graph.called and graph.called != path and path in str(error):
            error.args = (_renamed(str(error), graph, path), *error.args[1:])
        raise


def _renamed(sentence: str, graph: GraphFolder, path: str) -> str:
    """Without the files of a folder in the cache; edges by the names of their ends."""
    if f"{path}/weights.npy" in sentence and graph.has_names:
        with suppress(ValueError, Error):  # what cannot be read stays a number
            ids = graph.ids or ()
            sentence = _EDGE.sub(lambda ends: f"{ids[int(ends[1])]} -> {ids[int(ends[2])]}", sentence)
    return sentence.replace(f"{path}/weights.npy", path).replace(path, graph.called)


class _NamedCalls:
    """The compiled part, whose errors are changed so."""

    def __init__(self, native: ModuleType, graph: GraphFolder) -> None:
        self.native = native
        self.graph = graph

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self.native, name)

        def call(*positional: Any, **named: Any) -> Any:
            with called_by_its_name(self.graph):
                return function(*positional, **named)

        return call


def named_calls(native: ModuleType, graph: GraphFolder) -> ModuleType:
    return cast(ModuleType, _NamedCalls(native, graph))
