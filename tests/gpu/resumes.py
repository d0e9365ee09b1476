"""A run of which a rank is killed, and which goes on with another layout, beside one that never stopped: a part of
`tests/gpu/measure` for four GPUs, and one for eight."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

from measuring import RECIPES, Case, with_samples

TINY = RECIPES / "nemotron_moe_vlm_tiny.yaml"
STEPS, EVERY = 40, 10
SAME = 1e-9  # losses in fp64, as among layouts on the CPU
KILLED = 10  # the exit status of a launch of which a rank was killed (docs/failures.md)


def layout(gpus, tp):
    """Encoder and language model on all GPUs, the experts on all of them, too."""
    return (f"cluster.gpus_per_node={gpus}",
            *(f"modules.{module}.{key}" for module in ("radio_encoder", "language")
              for key in (f"placement.ranks={gpus}", f"parallel.tp={tp}")),
            f"modules.language.parallel.ep={gpus}")


def cases(name, gpus, gpu="h200_sxm"):
    """The run that never stops, the one that is killed, and the layout with which that one goes on."""
    common = (f"cluster.gpu={gpu}", "precision.params=fp64", f"checkpoint.every_steps={EVERY}",
              *with_samples(16, STEPS))
    return [Case(f"{name}_{what}", TINY, (*common, *layout(gpus, tp)), STEPS)
            for what, tp in (("whole", 1), ("killed", 1), ("other_layout", 2))]


def rank_processes(folder):
    """Of a run: the process of each rank."""
    found = {}
    for process in pathlib.Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            environment = dict(pair.split(b"=", 1) for pair in (process / "environ").read_bytes().split(b"\0")
                               if b"=" in pair)
        except (OSError, NotADirectoryError):
            continue  # another one's, or it has ended
        if os.fsencode(folder) in words and b"--plan" in words and b"RANK" in environment:
            found[int(environment[b"RANK"])] = int(process.name)
    return found


def killed_after_a_checkpoint(measure, case):
    """Starts the run, and kills its last rank when the first checkpoint is there. Returns the exit status."""
    folder = measure.out / case.name
    with open(measure.out / f"{case.name}.txt", "w+", encoding="utf-8") as log:
        left = max(1, measure.deadline - time.monotonic())
        with subprocess.Popen(["timeout", str(int(left)), *measure.command(case, folder)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout:
                log.write(line)
                if re.match(rf"checkpoint of step {EVERY}\b", line):
                    ranks = rank_processes(folder)
                    with contextlib.suppress(ProcessLookupError):  # it has just ended: the status tells
                        if ranks:
                            os.kill(ranks[max(ranks)], signal.SIGKILL)
        return process.returncode


def resume(measure, part):
    """Judges what a run lost that was killed, and the losses of all its steps."""
    whole, killed, other = measure.cases[part]
    records, _ = measure.launch(part, whole)
    if records is None:
        return
    status = killed_after_a_checkpoint(measure, killed)
    measure.judge(status == KILLED, f"{killed.name}: a rank is killed after the checkpoint of step {EVERY}, and the "
                                    f"launch ends with status {status}, expected {KILLED}")
    if status != KILLED:
        return
    folder = measure.out / killed.name
    good, _ = measure.run(part, other.name, measure.command(other, folder))
    measure.judge(good, f"{other.name}: the run goes on")
    judge_lives(measure, part, records, measure.records_of_folder(folder))


def judge_lives(measure, part, whole, lives):
    """Judges the records of a run of two lives beside those of one that never stopped."""
    second = [record["step"] for record in lives if record["life"] == 2]
    first = min(second, default=0)
    steps = [record["step"] for record in lives]
    measure.judge(first > EVERY and (first - 1) % EVERY == 0 and second == list(range(first, STEPS + 1)) and
                  set(steps) == set(range(1, STEPS + 1)),
                  f"{part}: the second life goes from step {first} to {max(second, default=0)} of {STEPS}")
    losses = {record["step"]: record["loss"] for record in whole}
    gap = max((abs(record["loss"] / losses[record["step"]] - 1) for record in lives), default=1.0)
    measure.judge(gap <= SAME, f"{part}: {len(lives)} steps of both lives, losses differ by up to {gap:.1e}, allowed "
                               f"{SAME}")
