"""What the parts of `tests/gpu/measure` share: programs under a time limit, runs and their records, verdicts."""

import json
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEAK = 989.4e12  # dense bf16 FLOP/s of an H200, which MFU refers to (docs/flops.md)
IDLE = 0.02
TENSORS, DEVICE = 0.03, 0.05  # how far memory may be above the plan
CONTEXT = 720 << 20  # what the plan reserves for libraries, which the allocator does not count (docs/memory.md)
WARM_UP = 5


class Measure:
    recipe = None  # of the parts that do not name another one

    def __init__(self, binaries, out):
        self.binaries, self.out, self.failed = binaries, out, []
        out.mkdir(parents=True, exist_ok=True)

    def judge(self, good, what):
        print(f"{'PASS' if good else 'FAIL'}  {what}", flush=True)
        if not good:
            self.failed.append(what)

    def run(self, part, name, command):
        """Runs a program in what is left of the part's time. Returns (good, output), and keeps the output in a file."""
        log = self.out / f"{name}.txt"
        with open(log, "w", encoding="utf-8") as file:
            left = max(1, self.deadline - time.monotonic())
            try:
                status = subprocess.run(["timeout", str(int(left)), *map(str, command)], stdout=file,
                                        stderr=subprocess.STDOUT, check=False).returncode
            except OSError as error:
                file.write(str(error))
                status = 127
        text = log.read_text(encoding="utf-8", errors="replace")
        if status != 0:
            print(f"      {part}: {name} ended with status {status}:\n" + "\n".join(text.splitlines()[-15:]))
        return status == 0, text

    def launch(self, part, name, overrides, steps, options=(), recipe=None):
        """Trains and returns the records of metrics.jsonl, or None; and the output."""
        folder = self.out / name
        good, text = self.run(part, name, [self.binaries / "plan", "launch", recipe or self.recipe, *overrides,
                                           "--local", "--device", "cuda", "--steps", steps, "--run-dir", folder,
                                           *options])
        metrics = folder / "metrics.jsonl"
        records = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
        if not good or len(records) != steps:
            self.judge(False, f"{name}: {len(records)} of {steps} steps")
            return None, text
        return records, text

    def show(self, subject, overrides=(), recipe=None):
        return json.loads(subprocess.run([self.binaries / "plan", "show", recipe or self.recipe, subject, *overrides,
                                          "--json"], capture_output=True, check=True).stdout)

    def idle(self, text):
        """Judges the line of the traced step that says how long the device had nothing to do."""
        idle = re.search(r"^device idle .* ([0-9.]+)%$", text, re.MULTILINE)
        self.judge(idle and float(idle[1]) / 100 <= IDLE,
                   f"the GPU is idle for {idle and idle[1]} % of a step, allowed {IDLE:.0%}")

    def memory(self, records, overrides=(), recipe=None):
        """Judges the memory of the fullest GPU, which is the one that metrics.jsonl has."""
        planned = max((role["bytes"] for role in self.show("memory", overrides, recipe)["roles"]),
                      key=lambda parts: sum(parts.values()))
        total = sum(planned.values())
        last, second = records[-1]["device_memory"], records[1]["device_memory"]
        print("planned, GB: " + ", ".join(f"{key} {value / 1e9:.2f}" for key, value in planned.items()) +
              f", in all {total / 1e9:.2f}")
        print("measured, GB: " + ", ".join(f"{key} {value / 1e9:.2f}" for key, value in last.items()))
        libraries = last["used"] - last["reserved_peak"]
        print(f"context and libraries {libraries / 1e9:.2f} GB; held by the allocator but in no tensor at the peak "
              f"{(last['reserved_peak'] - last['tensors_peak']) / 1e9:.2f} GB")
        tensors = last["tensors_peak"] / (total - CONTEXT) - 1
        self.judge(abs(tensors) <= TENSORS, f"tensors at their peak are {tensors:+.1%} of the plan's")
        device = last["used"] / total - 1
        self.judge(device <= DEVICE, f"the device has {device:+.1%} of the plan's in use")
        self.judge(last["reserved_peak"] == second["reserved_peak"], "nothing taken from the driver after step 2")
