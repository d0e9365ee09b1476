"""Opens the event files of a run with TensorBoard's own reader, and compares each scalar with metrics.jsonl.

usage: tensorboard_test.py SOURCE BUILD
The run has two lives, and the second does steps of the first one again. Exit status 77: TensorBoard cannot be fetched.
"""
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
fetched = subprocess.run([SOURCE / "third_party/fetch_python", sys.executable, BUILD / "python"]).returncode
if fetched != 0:
    sys.exit(fetched)
sys.path.insert(0, str(BUILD / "python"))
from tensorboard.backend.event_processing import event_accumulator  # noqa: E402 (fetched above)


def launch(run_dir, *words):
    command = [BUILD / "bin/plan", "launch", SOURCE / "recipes/nemotron_moe_vlm_tiny.yaml",
               "modules.language.placement.first_rank=1", "checkpoint.every_steps=4", "--local", "--yes",
               "--run-dir", run_dir]
    subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL)


def read(folder):
    everything = event_accumulator.EventAccumulator(str(folder), size_guidance={event_accumulator.SCALARS: 0})
    everything.Reload()
    return {tag: [(event.step, event.value) for event in everything.Scalars(tag)]
            for tag in everything.Tags()["scalars"]}


def single(value):
    """As event files have it: in single precision."""
    return struct.unpack("f", struct.pack("f", value))[0]


def expected(records):
    curves = {}

    def add(tag, step, value):
        if value is not None:
            curves.setdefault(tag, []).append((step, single(value)))

    before = 0
    for record in records:
        samples = record["consumed_samples"]
        for axis, at in (("", record["step"]), (" vs samples", samples)):
            add("lm loss" + axis, at, record["loss"])
            add("learning-rate" + axis, at, record["learning_rate"])
            add("batch-size" + axis, at, samples - before)
            add("grad-norm" + axis, at, record["grad_norm"])
        before = samples
        step, pace = record["step"], record["pace"]
        for module, norm in record["module_grad_norms"].items():
            add("grad-norm/" + module, step, norm)
        for bridge, square in record["bridge_mean_square"].items():
            add("bridge-mean-square/" + bridge, step, square)
        add("iteration-time", step, record["step_seconds"])
        add("data-wait", step, pace["data_wait_seconds"])
        add("throughput", step, pace["teraflops_per_rank"])
        add("tokens-per-second-per-gpu", step, pace["tokens_per_second_per_rank"])
        add("mfu", step, pace["mfu"])
        add("skipped-iterations", step, float(record["skipped"]))
        add("seq_load_balancing_loss", step, record["aux_loss"])
    return curves


def check(run, steps):
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == list(range(1, steps + 1)), records
    wanted, found = expected(records), read(run / "tensorboard")
    assert set(found) == set(wanted), (sorted(found), sorted(wanted))
    assert {"lm loss", "lm loss vs samples", "throughput", "seq_load_balancing_loss"} <= set(found)
    for tag, points in wanted.items():
        assert found[tag] == points, (tag, found[tag], points)
    assert all(math.isfinite(value) and value > 0 for _, value in found["throughput"])


with tempfile.TemporaryDirectory(prefix="planwright_tensorboard_") as folder:
    run = pathlib.Path(folder) / "run"
    launch(run, "--steps", "7")  # with checkpoints of steps 4 and 7
    check(run, 7)
    again = (run / "metrics.jsonl").read_text().splitlines()[4:]
    shutil.rmtree(run / "checkpoints/step-00000007.life-1")
    launch(run, "--steps", "12")
    lives = sorted(path.name for path in (run / "tensorboard").iterdir())
    assert len(lives) == 2 and all(name.startswith("events.out.tfevents.000000000") for name in lives), lives
    assert (run / "lives/2/dropped.jsonl").read_text().splitlines() == again, "steps 5 to 7 are done again"
    check(run, 12)
