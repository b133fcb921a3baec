"""Options that are declared once: checked, completed, and shown."""

from __future__ import annotations

import doctest
import inspect
from typing import Annotated, Any, Literal, SupportsIndex, TypedDict

import click
import numpy as np
import pytest
from click.testing import CliRunner
from penstock import options
from penstock.arrays import opening, planning
from penstock.arrays.spec import ArrayOptions
from penstock.cli.declared_options import option_of
from penstock.collages.collage import CollageOptions
from penstock.columns.table_options import TableOptions
from penstock.fs.folder import MountOptions
from penstock.fs.search import GrepOptions
from penstock.graph.options import GraphOptions, ResolveOptions
from penstock.lsh.index import IndexOptions
from penstock.lsh.within import WithinOptions
from penstock.options import CacheOptions, Choice, Count, Option, Size, Switch, Text, checked, defaults_of
from penstock.regular import run


class Cooking(TypedDict, total=False):
    minutes: Annotated[SupportsIndex, Count(10, least=1)]
    pot: Annotated[Literal["small", "large"], Choice("small", "size of a pot")]
    spoon: Annotated[str, Choice("wood", names=("wood", "steel"))]
    lid: Annotated[bool, Switch()]
    water: Annotated[SupportsIndex | str | None, Size(unless="1KiB")]
    broth: Annotated[SupportsIndex | str | None, Size(least=1)]
    dish: Annotated[str, Text("soup")]
    guests: Annotated[Any, Option()]


WHOLE: dict[str, Any] = {
    "minutes": 10, "pot": "small", "spoon": "wood", "lid": False, "water": 1024, "broth": None,
    "dish": "soup", "guests": None,
}  # fmt: skip


def test_the_documented_example_holds() -> None:
    assert doctest.testmod(options).failed == 0


def test_what_is_not_given_has_its_default() -> None:
    assert checked(Cooking, {}) == WHOLE
    given = {"minutes": np.int32(3), "pot": "large", "lid": np.bool_(True), "water": "2KiB", "guests": [1]}
    found = checked(Cooking, given)
    assert found == {**WHOLE, "minutes": 3, "pot": "large", "lid": True, "water": 2048, "guests": [1]}
    assert (type(found["minutes"]), type(found["lid"])) == (int, bool)


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        ({"mintues": 3}, TypeError, "mintues: there is no such option; there are broth, dish, guests, lid, "),
        ({"minutes": 0}, ValueError, "minutes 0: it must be 1 or more"),
        ({"minutes": 1 << 31}, ValueError, "minutes 2147483648: it must be 2147483647 or less"),
        ({"minutes": True}, TypeError, "minutes True: it is no whole number"),
        ({"minutes": 2.5}, TypeError, "minutes 2.5: it is no whole number"),
        ({"pot": "huge"}, ValueError, "size of a pot 'huge': there is no such size of a pot; choose one of"),
        ({"pot": ["small"]}, TypeError, "pot \\['small'\\]: it is no text: give a name"),
        ({"spoon": "tin"}, ValueError, "spoon 'tin': there is no such spoon; choose one of wood, steel"),
        ({"lid": 1}, TypeError, "lid 1: give True or False"),
        ({"lid": "no"}, TypeError, "lid 'no': give True or False"),
        ({"water": "1 cup"}, ValueError, "water '1 cup': write it as 16MiB"),
        ({"broth": 0}, ValueError, "broth 0: it must be 1 or more"),
        ({"broth": "0KiB"}, ValueError, "broth 0KiB: it must be 1 or more"),
        ({"dish": None}, TypeError, "dish None: it is no text: give a name"),
    ],
)
def test_what_is_refused(given: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=f"^{sentence}"):
        checked(Cooking, given)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (opening.open, ArrayOptions),
        (planning.plan, ArrayOptions),
        (run.reduce, run.RunOptions),
        (run.vectoradd, run.RunOptions),
    ],
)
def test_signatures_show_each_option_with_its_default(function: Any, kind: type) -> None:
    shown = inspect.signature(function).parameters
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in shown.values())
    for name, default in defaults_of(kind).items():
        assert shown[name].default == default, name


@pytest.mark.parametrize(
    "kind",
    [CacheOptions, CollageOptions, GrepOptions, IndexOptions, MountOptions, TableOptions, WithinOptions],
)
@pytest.mark.parametrize("name", ["cache", "line"])
def test_a_cache_and_its_lines_have_bytes(kind: type, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} 0: it must be 1 or more"):
        checked(kind, {name: 0})


def test_arrays_and_graphs_have_the_options_of_a_cache() -> None:
    for kind in (ArrayOptions, GraphOptions, run.RunOptions):
        assert set(CacheOptions.__annotations__) < set(kind.__annotations__)
    assert set(ResolveOptions.__annotations__) - {"simple", "weighted"} < set(GraphOptions.__annotations__)


def test_commands_have_the_defaults_of_calls() -> None:
    taken: dict[str, Any] = {}

    @click.command
    def cook(**given: Any) -> None:
        taken.update(given)

    for name in Cooking.__annotations__:
        if name != "guests":
            cook = option_of(Cooking, name, "Said of it.")(cook)
    assert CliRunner().invoke(cook, []).exit_code == 0
    assert checked(Cooking, taken) == WHOLE
    given = ["--minutes", "3", "--pot", "large", "--lid", "--water", "4KiB"]
    assert CliRunner().invoke(cook, given).exit_code == 0
    assert checked(Cooking, taken) == {**WHOLE, "minutes": 3, "pot": "large", "lid": True, "water": 4096}
    help_text = CliRunner().invoke(cook, ["--help"]).output
    for shown in ("[default: 10]", "[small|large]", "[default: 1KiB]", "[default: soup]"):
        assert shown in help_text
