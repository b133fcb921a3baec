"""Checkpoints of runs that are killed at any moment: they are whole or not there, and a run that goes on from
them ends where one of torch ends that was never interrupted."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import penstock
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.checkpoint  # noqa: E402
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402
from checkpoint_run import STEPS, Run, by_torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch's own tables


TRAIN = """
import sys, torch, penstock.checkpoint
sys.path.insert(0, sys.argv[1])
import checkpoint_run as here
from pathlib import Path
folder, kind = Path(sys.argv[2]), sys.argv[3]
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
run = here.Run(folder, kind)
first = 0
if penstock.checkpoint.numbers(folder / "saved"):
    first = penstock.checkpoint.load(folder / "saved", **run.all)
else:
    penstock.checkpoint.save(folder / "saved", **run.all, extra=0)
print("begun", first, flush=True)
for k in range(first, here.STEPS):
    run.train(range(k, k + 1))
    if k % 3 == 2:
        penstock.checkpoint.save(folder / "saved", **run.all, extra=k + 1, keep=2)
run.close()
print("done", flush=True)
"""


@pytest.mark.parametrize("kind", ["SparseAdam"])
def test_killed_runs_go_on_and_end_where_torch_ends(tmp_path: Path, kind: str) -> None:
    """SIGKILL at moments that a seed draws, until a run is over; the table is that of torch alone."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    draw, kills, begun = random.Random(seed), 0, []
    Run(tmp_path, kind).close()  # draws the table
    drawn = torch.from_numpy(np.load(tmp_path / "t.npy"))
    while True:
        with subprocess.Popen(
            [sys.executable, "-c", TRAIN, Path(__file__).parent, tmp_path, kind],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            line = process.stdout.readline()
            if not line:
                pytest.fail(process.stderr.read())
            begun.append(int(line.split()[1]))
            if kills < 4:
                time.sleep(draw.uniform(0, 0.25))
                process.send_signal(signal.SIGKILL)
            out, errors = process.communicate()
        if process.returncode == 0:
            assert out == "done\n"
            break
        assert process.returncode == -signal.SIGKILL, errors
        kills += 1
    assert begun == sorted(begun), "no run begins before a checkpoint that another began from"
    expected = by_torch(drawn, kind, STEPS)
    torch.testing.assert_close(torch.from_numpy(np.load(tmp_path / "t.npy")), expected, rtol=1e-5, atol=1e-6)
    assert len(penstock.checkpoint.numbers(tmp_path / "saved")) == 2


FORKED = """
import os, signal, sys, torch, penstock.checkpoint
sys.path.insert(0, sys.argv[1])
import checkpoint_run as here
from pathlib import Path
folder, kind = Path(sys.argv[2]), sys.argv[3]
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
left = 0

def killing(call):
    def made(*args, **keywords):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*args, **keywords)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return made

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def one_more_step():
    for name in ("fsync", "rename", "replace", "link", "unlink", "copy_file_range", "pwrite"):
        setattr(os, name, killing(getattr(os, name)))
    run = here.Run(folder, kind)
    first = penstock.checkpoint.load(folder / "saved", **run.all)
    run.train(range(first, first + 1))
    penstock.checkpoint.save(folder / "saved", **run.all, extra=first + 1, keep=2)
    run.close()

def begin():
    run = here.Run(folder, kind)
    torch.save(run.numbers()[0], folder / "drawn.pt")
    penstock.checkpoint.save(folder / "saved", **run.all, extra=0)
    run.close()

def check():
    run = here.Run(folder, kind)
    steps = penstock.checkpoint.load(folder / "saved", **run.all)
    expected = here.by_torch(torch.load(folder / "drawn.pt"), kind, steps)
    torch.testing.assert_close(run.numbers()[0], expected, rtol=1e-5, atol=1e-6)
    run.close()

assert in_child(begin) == 0
for calls in range(1, 400):
    left = calls
    outcome = in_child(one_more_step)
    left = 0
    if calls % 4 == 1:
        assert in_child(check) == 0, calls
    if outcome == 0:
        break
    assert outcome == -signal.SIGKILL, (calls, outcome)
assert in_child(check) == 0
print("kills", calls - 1)
"""


@pytest.mark.parametrize("kind", ["SparseAdam", "Adagrad"])
def test_a_kill_before_and_after_each_system_call_loses_nothing(tmp_path: Path, kind: str) -> None:
    """A step from the newest checkpoint to the next, killed at one call more each time: loading, training and
    saving; what is there afterwards is what torch has after as many steps."""
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, Path(__file__).parent, tmp_path, kind], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[-1]) > 20
