"""What all loaders take."""

from __future__ import annotations

from typing import Annotated, Any, SupportsIndex, TypedDict

from penstock.options import Count, Option, Switch

_OF_SAMPLER = ("replace", "disjoint", "temporal", "seed")


class LoaderOptions(TypedDict, total=False):
    """See NeighborLoader."""

    shuffle: Annotated[bool, Switch(True)]
    seed: Annotated[int, Option(0)]
    device: Annotated[Any, Option("auto")]
    replace: Annotated[bool, Switch()]
    disjoint: Annotated[bool, Switch()]
    temporal: Annotated[str, Option("uniform")]
    prefetch: Annotated[SupportsIndex, Count(2, least=1)]
    drop_last: Annotated[bool, Switch()]
    sms: Annotated[SupportsIndex, Count()]
    sm_partition: Annotated[bool, Switch()]


def of_sampler(options: dict[str, Any]) -> dict[str, Any]:
    """What a sampler takes of them, and checks."""
    return {name: options[name] for name in _OF_SAMPLER}
