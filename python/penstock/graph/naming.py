"""Errors about a graph call it what the user does, not the folder in the cache that it became."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from penstock.errors import Error

if TYPE_CHECKING:
    from penstock.graph.folder import GraphFolder


@contextmanager
def called_by_its_name(graph: GraphFolder) -> Iterator[None]:
    """What ValueErrors and penstock.Errors in this block say of the graph's folder, they say of its name."""
    path = str(graph.path)
    try:
        yield
    except (ValueError, Error) as error:
        if graph.called and graph.called != path and path in str(error):
            error.args = (str(error).replace(path, graph.called), *error.args[1:])
        raise


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
