"""The hit path as machine code: loads past L1 in the order of the protocol, and no read-modify-write.

Device functions are compiled separately (-rdc=true), so a cold function is a call and not part of its caller.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from machine_code import Function, functions_of, missing_for_cuda, nvcc

MISSING = missing_for_cuda()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

# `direct`: R1, R2, R4; a load and the invalidation of L1 behind it are an acquire. `set_associative`:
# four loads see the set, and the entry that they find is R1.
VALIDATED = ["strong load", "invalidate", "strong load", "invalidate", "strong load"]
VALIDATED_IN_A_SET = ["strong load"] * 4 + VALIDATED
# Of the ways of a set away from the line's home: what is found is loaded again.
HINTS = 4
# From a line reference, which has the entry already.
REVALIDATED = VALIDATED[2:]
KERNELS = ("read_view", "read_view_u32", "read_resident", "read_validated")

Functions = dict[str, Function]


@pytest.fixture(scope="module", params=["sm_80", "sm_90"])
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def functions(arch: str, tmp_path_factory: pytest.TempPathFactory) -> Functions:
    cubin = tmp_path_factory.mktemp(arch) / "hit_path.cubin"
    nvcc(cubin, arch, "-rdc=true", "-cubin")
    return functions_of(cubin)


@pytest.mark.parametrize("name", ["read_view", "read_view_u32"])
def test_an_array_read_validates_inline_without_read_modify_write(functions: Functions, name: str) -> None:
    kernel = functions[name]
    assert kernel.has_path(VALIDATED)
    assert kernel.has_path(VALIDATED_IN_A_SET)
    assert kernel.count("rmw") == 0
    # Both directories share R2 and R4.
    assert kernel.count("strong load") == 3 + 5
    # Cold: everything but an undisturbed hit is behind this one call.
    assert kernel.count("call") == 1
    # Lanes that wait for these would be let go.
    assert not [i for i in kernel.instructions if i.mnemonic.startswith("YIELD")]


def test_a_token_costs_on_a_hit_what_a_read_costs(functions: Functions, arch: str) -> None:
    kernel = functions["read_async"]
    assert kernel.has_path(VALIDATED)
    assert kernel.has_path(VALIDATED_IN_A_SET)
    assert kernel.count("rmw") == 0
    # To ask, and to wait; before sm_90 lanes that have parted vote by a call, too.
    assert kernel.count("call") == 2 + (arch == "sm_80")


@pytest.mark.parametrize("name", ["read_view", "read_view_u32", "read_async"])
def test_the_lanes_of_a_read_miss_as_one_group(functions: Functions, name: str) -> None:
    """Lanes with and without a hit meet; then, with no branch between, their mask is taken and they vote."""
    assert functions[name].meets_before_it_calls()


@pytest.mark.parametrize("name", ["read_view", "read_view_u32"])
def test_a_frame_is_read_past_l1_only(functions: Functions, name: str) -> None:
    kernel = functions[name]
    assert kernel.count("constant load") == 0
    # The index, the element of a resident array, and hints.
    assert kernel.count("plain load") == 2 + HINTS


def test_a_line_reference_on_its_line_validates_without_read_modify_write(functions: Functions) -> None:
    assert functions["read_ref"].has_path(REVALIDATED)
    assert functions["read_ref"].count("constant load") == 0


def test_a_whole_line_waits_for_none_of_the_stores_of_its_multiprocessor(
    functions: Functions, arch: str
) -> None:
    # A fence that only acquires empties L1; before sm_90 there are whole ones alone.
    kernel = functions["read_line"]
    one_way = arch != "sm_80"
    assert (kernel.count("fence") == 0) == one_way
    order = ["invalidate"] if one_way else ["fence", "invalidate"]
    first = ["strong load", "invalidate"]
    assert kernel.has_path([*first, *["strong load"] * 8, *order, "strong load"])
    assert kernel.count("rmw") == 0


def test_a_copied_line_is_published_behind_a_fence(functions: Functions) -> None:
    # One behind the claim, one before the addition that publishes: what all lanes stored comes first.
    kernel = functions["copy_line"]
    order = [i.kind for i in kernel.instructions if i.kind in ("fence", "rmw")]
    assert order[:3] == ["fence", "fence", "rmw"]


@pytest.mark.parametrize("way", ["take_completion", "progress", "drain"])
def test_a_command_ends_behind_a_fence(functions: Functions, way: str) -> None:
    # Of the probe's sink an end is a MAX. What this thread has loaded before that (a completion, bytes of a
    # bounce buffer, which its group stored) and taken by a read-modify-write is told with it.
    names = [name for name in functions if way in name and ("ending_sink" in name or name == way)]
    assert names
    for name in names:
        assert not functions[name].reaches("strong load", "MAX", without="fence"), name
        assert not functions[name].reaches("rmw", "MAX", without="fence"), name


def test_a_pinned_line_is_read_by_one_load_past_l1(functions: Functions) -> None:
    load = functions["read_pinned"]
    assert load.has_path(["strong load"])
    assert load.count("strong load") == 1
    assert [load.count(kind) for kind in ("rmw", "fence", "invalidate", "call", "constant load")] == [0] * 5


def test_a_resident_array_is_one_plain_load(functions: Functions) -> None:
    kernel = functions["read_resident"]
    assert kernel.count("plain load") + kernel.count("constant load") == 1
    assert [kernel.count(kind) for kind in ("strong load", "rmw", "fence", "call")] == [0, 0, 0, 0]


def test_a_resident_array_needs_no_call_or_fence_in_a_view_of_either_kind(functions: Functions) -> None:
    assert functions["read_view"].has_path([])


def test_try_read_is_three_loads_in_order_in_ptx(tmp_path: Path) -> None:
    target = tmp_path / "hit_path.ptx"
    nvcc(target, "sm_90", "-ptx")
    body = target.read_text().split(".entry read_validated(")[1].split("\n}\n")[0]
    every = re.findall(r"^\s*((?:ld|fence|atom|red|membar)\.(?!param)[\w.]+)", body, re.MULTILINE)
    steps = [step for step in every if not step.startswith("ld.weak")]
    assert len(every) == len(steps) + HINTS
    acquire, relaxed = "ld.acquire.gpu.global.b64", "ld.relaxed.gpu.global.b64"
    scan = ["ld.relaxed.gpu.global.v2.b64"] * 4
    # Either directory's branch may stand first.
    first = [[*scan, acquire, acquire], [acquire, *scan, acquire]]
    assert steps in [[*r1, acquire, relaxed] for r1 in first]


def test_kernels_fit_their_registers(arch: str, tmp_path: Path, measured: list[str]) -> None:
    # As users compile: one program, where a kernel needs the registers of all that it calls.
    said = nvcc(tmp_path / "hit_path.cubin", arch, "-cubin", "-Xptxas=-v")
    for name in KERNELS:
        entry = said.split(f"Compiling entry function '{name}'")[1].split("Compiling entry function")[0]
        registers = re.search(r"Used (\d+) registers", entry)
        own = entry.split("Function properties for ")[1]
        stack = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", own)
        assert registers
        assert stack
        measured.append(f"{arch} {name}: {registers.group(1)} registers, {stack.group(1)} bytes of stack")
        assert int(registers.group(1)) <= 255
        assert (stack.group(2), stack.group(3)) == ("0", "0"), f"{name} spills"


def test_a_hit_needs_few_registers_where_cold_functions_come_compiled(
    arch: str, tmp_path: Path, measured: list[str]
) -> None:
    said = nvcc(tmp_path / "hit_path.cubin", arch, "-rdc=true", "-cubin", "-Xptxas=-v")
    for name in ("read_view", "read_view_u32"):
        entry = said.split(f"Compiling entry function '{name}'")[1]
        registers = re.search(r"Used (\d+) registers", entry)
        assert registers
        measured.append(f"{arch} {name} with -rdc=true: {registers.group(1)} registers")
        assert int(registers.group(1)) <= 32


def test_planted_parting_of_lanes_is_found(functions: Functions) -> None:
    assert not functions["planted_parting"].meets_before_it_calls()


def test_planted_read_modify_write_is_found(functions: Functions) -> None:
    assert functions["planted_atomic"].count("rmw") == 1
    assert not functions["planted_atomic"].has_path(VALIDATED)


def test_planted_constant_load_is_found(functions: Functions) -> None:
    assert functions["planted_nc"].count("constant load") == 1
    assert not functions["planted_nc"].has_path(VALIDATED)


def test_planted_plain_load_is_found(functions: Functions) -> None:
    assert functions["planted_plain"].count("plain load") == 1 + HINTS
    assert not functions["planted_plain"].has_path(VALIDATED)


def test_planted_loss_of_the_order_is_found(functions: Functions) -> None:
    assert not functions["planted_no_order"].has_path(VALIDATED)


def test_planted_whole_fence_is_found(functions: Functions) -> None:
    assert functions["planted_whole_fence"].count("fence") == 1
