"""The validated read on a CPU is loads and compares: no locked instruction, no fence."""

from __future__ import annotations

import platform
import re
import shutil

import pytest
from machine_code import HERE, includes, output_of

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86-64 code"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed: binutils"),
]

# xchg with memory locks without saying so.
LOCKED = re.compile(r"\s(?:lock\s.*|mfence.*|xchg\s.*\(.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Disassembly of each function."""
    target = tmp_path_factory.mktemp("host") / "hit_path.o"
    source = str(HERE / "hit_path.cpp")
    output_of(["g++", "-std=c++20", "-O2", *includes(), "-c", source, "-o", str(target)])
    listing = output_of(["objdump", "-dr", "--no-show-raw-insn", str(target)])
    parts = re.split(r"^[0-9a-f]+ <(\S+)>:$|^Disassembly of section.*$", listing, flags=re.MULTILINE)
    return {name: body for name, body in zip(parts[1::2], parts[2::2], strict=True) if name}


def test_a_hit_locks_nothing(code: dict[str, str]) -> None:
    assert not LOCKED.findall(code["read_view"])
    # A function of the same section by its name, another one by a relocation.
    target = r"\s(?:call|jmp)\s+\S+ <([^>+]+).*(?:\n\s*[0-9a-f]+: R_X86_64_\w+\s+(\S+))?"
    calls = {elsewhere or name for name, elsewhere in re.findall(target, code["read_view"])} - {"read_view"}
    assert len(calls) == 1  # all but an undisturbed hit
    assert "read_together" in calls.pop()


def test_planted_locked_instruction_is_found(code: dict[str, str]) -> None:
    assert len(LOCKED.findall(code["planted_atomic"])) == 1
