"""What torch's embedding_bag believes and must not: offsets, weights and rows of bags, each refused in a
sentence before memory that is not ours is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.nn  # noqa: E402

F = torch.nn.functional
ROWS, WIDTH = 10, 4
MODES = ["sum", "mean", "max"]


@pytest.fixture(params=["float32", "float64", "float16", "bfloat16"])
def array(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    drawn = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(1))
    return penstock.from_tensor(drawn.to(getattr(torch, request.param)), "host", device="cpu")


def calls(array: Any, mode: str, last: bool = False) -> list[Any]:
    """The module that is trained, the frozen one, the function, and the compiled module."""
    made = [
        penstock.nn.EmbeddingBag.from_pretrained(array, freeze=freeze, mode=mode, include_last_offset=last)
        for freeze in (False, True)
    ]

    def function(rows: Any, offsets: Any, weights: Any = None) -> Any:
        return F.embedding_bag(
            rows, array, offsets, mode=mode, include_last_offset=last, per_sample_weights=weights
        )

    return [*made, function]


def numbers(*given: int) -> Any:
    return torch.tensor(given, dtype=torch.int64)


WRONG: dict[str, tuple[bool, Any, type[Exception], str]] = {
    "none": (False, None, ValueError, "need offsets"),
    "empty": (False, numbers(), ValueError, "there are no offsets, and 3 rows"),
    "late": (False, numbers(1, 2), ValueError, "the offsets begin at 1: the first bag begins at 0"),
    "negative": (False, numbers(-1, 2), ValueError, "the offsets begin at -1"),
    "negative later": (False, numbers(0, -5), ValueError, "the offsets decrease"),
    "decreasing": (False, numbers(0, 2, 1), ValueError, "the offsets decrease"),
    "beyond": (False, numbers(0, 4), ValueError, "go beyond the end of the 3 rows"),
    "far beyond": (False, numbers(0, 1 << 60), ValueError, "go beyond the end of the 3 rows"),
    "beyond between": (False, numbers(0, 10**9, 3), ValueError, "the offsets decrease"),
    "floats": (
        False,
        torch.tensor([0.0, 1.0]),
        TypeError,
        "offsets of torch.float32: give a tensor of int64",
    ),
    "booleans": (False, torch.tensor([False]), TypeError, "offsets of torch.bool"),
    "two dimensions": (False, numbers(0, 1)[None], ValueError, "offsets of 2 dimensions: give one"),
    "no dimensions": (False, torch.tensor(0), ValueError, "offsets of 0 dimensions: give one"),
    "a list": (False, [0, 1], TypeError, "offsets of list"),
    "meta": (False, numbers(0, 1).to("meta"), ValueError, "offsets on meta: give them on cpu"),
    "no end": (True, numbers(), ValueError, "there are no offsets"),
    "end alone": (True, numbers(0), ValueError, "the offsets end at 0 of 3 rows"),
    "end early": (True, numbers(0, 1, 2), ValueError, "the offsets end at 2 of 3 rows"),
    "end late": (True, numbers(0, 1, 4), ValueError, "go beyond the end of the 3 rows"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WRONG)
def test_offsets_that_torch_must_not_believe_are_refused(array: Any, mode: str, name: str) -> None:
    last, offsets, error, match = WRONG[name]
    for call in calls(array, mode, last):
        with pytest.raises(error, match=match) as caught:
            call(numbers(1, 5, 9), offsets)
        assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore")  # torch's compilers have words of their own for each machine
@pytest.mark.parametrize("name", ["empty", "late", "decreasing", "far beyond", "end early"])
def test_compiled_functions_refuse_them_when_they_run(tmp_path: Path, name: str) -> None:
    last, offsets, error, match = WRONG[name]
    np.save(tmp_path / "t.npy", np.ones((ROWS, WIDTH), np.float32))
    array = penstock.open(tmp_path / "t.npy", device="cpu", placement="storage", writable=True)
    torch._dynamo.reset()
    for call in calls(array, "sum", last):
        compiled = torch.compile(lambda rows, at, call=call: call(rows, at) * 2, backend="aot_eager")
        with pytest.raises(error, match=match):
            compiled(numbers(1, 5, 9), offsets)
        right = numbers(0, 1, 3)
        assert torch.equal(compiled(numbers(1, 5, 9), right), call(numbers(1, 5, 9), right) * 2)
        rows = numbers(1, 5, 9)
        assert torch.equal(torch.vmap(lambda row, t=array: t[row])(rows), array[rows])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("last", [False, True])
def test_right_offsets_give_what_torch_gives(array: Any, mode: str, last: bool) -> None:
    weight = array.tensor().clone()
    kept = [([1, 5, 9], [0, 0, 2, 3]), ([], [0, 0]), ([3], [0, 1]), ([1, 5], [0, 0, 2]), ([4], [0, 0, 1])]
    for rows, offsets in kept:
        for kind in (torch.int32, torch.int64):
            given = numbers(*rows).to(kind), numbers(*offsets).to(kind)
            both = [each.long() for each in given]
            expected = F.embedding_bag(both[0], weight, both[1], mode=mode, include_last_offset=last)
            for call in calls(array, mode, last):
                assert torch.equal(call(*given), expected)
    if not last:
        for call in calls(array, mode):
            assert call(numbers(), numbers()).shape == (0, WIDTH), "no bags of no rows"
            even = numbers(1, 5, 9, 9).reshape(2, 2)
            assert torch.equal(call(even, None), F.embedding_bag(even, weight, mode=mode))


def test_weights_of_samples_are_of_the_shape_and_type_of_rows(array: Any) -> None:
    kind = array.tensor().dtype
    other = torch.float64 if kind != torch.float64 else torch.float32
    rows = numbers(1, 5, 9, 9).reshape(2, 2)
    for call in calls(array, "sum"):
        for wrong in (torch.ones(4), torch.ones(4, 1), torch.ones(2, 2, 1), torch.ones(2), torch.ones(())):
            with pytest.raises(ValueError, match=r"per_sample_weights of shape .*: give one for each row"):
                call(rows, None, wrong.to(kind))
        with pytest.raises(TypeError, match=f"per_sample_weights of {other}: the table holds {kind}"):
            call(rows, None, torch.ones(2, 2, dtype=other))
        with pytest.raises(TypeError, match="per_sample_weights of type list: give a tensor"):
            call(rows, None, [[1, 1], [1, 1]])
        with pytest.raises(ValueError, match="per_sample_weights on meta"):
            call(rows, None, torch.ones(2, 2, dtype=kind, device="meta"))
        weights = torch.rand(2, 2).to(kind)
        expected = F.embedding_bag(rows, array.tensor().clone(), mode="sum", per_sample_weights=weights)
        assert torch.equal(call(rows, None, weights), expected)
    for call in calls(array, "mean"):
        with pytest.raises(ValueError, match="per_sample_weights with mode 'mean': they are for mode 'sum'"):
            call(rows, None, torch.ones(2, 2, dtype=kind))


def test_rows_that_are_none_are_refused(array: Any) -> None:
    for call in calls(array, "sum"):
        for wrong in ([1, 2], np.arange(3), torch.ones(3), torch.ones(3, dtype=torch.bool)):
            with pytest.raises(TypeError, match=r"input of .*: give a tensor of int64 or int32"):
                call(wrong, numbers(0))
        with pytest.raises(ValueError, match="rows of 3 dimensions: give one or two"):
            call(numbers(1)[None, None], None)
        with pytest.raises(ValueError, match="leave out offsets"):
            call(numbers(1, 2)[None], numbers(0))
        with pytest.raises(ValueError, match="has no numbers here"):
            call(numbers(1, 2).to("meta"), numbers(0))
    with pytest.raises(ValueError, match="mode 'median': choose sum, mean or max"):
        F.embedding_bag(numbers(1), array, numbers(0), mode="median")
    whole = penstock.from_tensor(torch.arange(12).reshape(4, 3), device="cpu")
    with pytest.raises(TypeError, match=r"the table holds torch\.int64: bags are of floating-point numbers"):
        F.embedding_bag(numbers(1), whole, numbers(0))
