"""What the parts of `tests/gpu/measure` share: the cases that they run, programs under a time limit, runs and their
records, verdicts."""

import dataclasses
import json
import pathlib
import re
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes"
PEAK = 989.4e12  # dense bf16 FLOP/s of an H200, which MFU refers to (docs/flops.md)
IDLE = 0.02
TENSORS, DEVICE = 0.03, 0.05  # how far memory may be above the plan
# The plan of a run has room for the most uneven rows of experts. With even ones it would hold at least this plan's.
EVEN_ROWS = "models.nemotron_hybrid_moe_20l.moe.imbalance=1"
GAPS = 0.005  # of the device, that the allocator may take where row counts, and so tensors, have grown
WARM_UP = 5


# The shared expert beside the dispatch, and gradients and parameters beside the layers: off and on.
DISPATCH = tuple((f"modules.language.parallel.overlap_dispatch={word}",) for word in ("false", "true"))
BUCKETS = tuple((f"gradients.overlap_reduce={word}", f"gradients.overlap_gather={word}", f"gradients.buckets={buckets}")
                for word, buckets in (("false", 1), ("true", 8)))
NO_OVERLAP, OVERLAP = (DISPATCH[on] + BUCKETS[on] for on in (False, True))


@dataclasses.dataclass(frozen=True)
class Case:
    """A run that a part makes. measures_test.py plans every case of every part, without a GPU."""
    name: str  # of its row and of its folder
    recipe: pathlib.Path
    overrides: tuple = ()
    steps: int = 20


@dataclasses.dataclass(frozen=True)
class Off:
    """How far predicted seconds may be from measured ones, as shares: the median and the largest distance, and the mean
    with its sign."""
    median: float
    worst: float
    mean: float


def with_samples(samples, steps):
    """The overrides for so many steps of so many samples: all numbers that count samples."""
    return (f"batch.global_samples={samples}", f"budget.train_samples={steps * samples}",
            f"budget.learning_rate.decay_samples={steps * samples}")


def gpus_listed():
    """A line for each GPU of this machine; none without nvidia-smi."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return []
    return [line for line in listed.splitlines() if line.startswith("GPU ")]


class Measure:
    gpus = None  # that every part needs
    limits = {}  # seconds of each part
    cases = {}  # of each part that launches runs; the first one is what the others are compared with
    tensors = TENSORS
    devices = ("--device", "cuda")  # of `plan launch`

    def __init__(self, binaries, out):
        self.binaries, self.out, self.failed = binaries, out, []
        self.known = {}  # by recipe and overrides: the records, and the case whose folder has the run
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

    def measure(self, part):
        """Runs a part if this machine has the GPUs that it needs."""
        found = len(gpus_listed())
        if found < self.gpus:
            self.judge(False, f"{part} needs {self.gpus} GPUs, and this machine has {found}")
            return
        self.deadline = time.monotonic() + self.limits[part]
        getattr(self, part)()

    def launch(self, part, case, options=()):
        """Trains a case of the part. Returns the records of metrics.jsonl, or None; and the output."""
        planned = {known.name for known in self.cases[part]}
        assert case.name in planned, f"{case.name} is no case of {part}: nobody has planned it"
        folder = self.out / case.name
        good, text = self.run(part, case.name, [*self.command(case, folder), *options])
        records = self.records_of_folder(folder)
        if not good or len(records) != case.steps:
            self.judge(False, f"{case.name}: {len(records)} of {case.steps} steps")
            return None, text
        return records, text

    def command(self, case, folder):
        return [str(word) for word in (self.binaries / "plan", "launch", case.recipe, *case.overrides, "--local",
                                       *self.devices, "--steps", case.steps, "--run-dir", folder)]

    @staticmethod
    def records_of_folder(folder):
        metrics = folder / "metrics.jsonl"
        return [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []

    def records_of(self, case):
        """The records of a run that this folder has; None: it has none, or not of all steps."""
        records = self.records_of_folder(self.out / case.name)
        return records if len(records) == case.steps else None

    def judge_predictions(self, found, allowed):
        """`found`: predicted and measured seconds of each step."""
        off = [said / took - 1 for said, took in found] or [1.0]
        median, worst, mean = statistics.median(map(abs, off)), max(map(abs, off)), statistics.mean(off)
        self.judge(median <= allowed.median and worst <= allowed.worst and abs(mean) <= allowed.mean,
                   f"{len(found)} steps: median error {median:.1%}, worst {worst:.1%}, mean {mean:+.1%}; allowed "
                   f"{allowed.median:.1%}, {allowed.worst:.0%} and {allowed.mean:.0%}")

    def show(self, subject, case):
        return json.loads(subprocess.run([self.binaries / "plan", "show", case.recipe, subject, *case.overrides,
                                          "--json"], capture_output=True, check=True).stdout)

    def seconds(self, records):
        """Of a step: the mean after those that warm up, without the last one, which may be traced."""
        return statistics.mean(record["step_seconds"] for record in records[WARM_UP:-1])

    def rates(self, case, seconds):
        """Tokens of the language model per second on each GPU, MFU, and on how many GPUs."""
        modules, gpus = self.show("model", case)["modules"], self.show("ranks", case)["world_size"]
        language = modules["language"]
        tokens = language["flops_per_step"] / language["flops_per_sample"] * language["tokens_per_sample"]
        flops = sum(module["flops_per_step"] for module in modules.values())
        return tokens / seconds / gpus, flops / seconds / (gpus * PEAK), gpus

    def finite(self, name, records):
        """Judges that every step counted. Returns the losses, or None."""
        losses = [record["loss"] for record in records]
        good = all(loss is not None for loss in losses) and not any(record["skipped"] for record in records)
        self.judge(good, f"{name}: {len(records)} steps with a finite loss, none skipped")
        return losses if good else None

    def yardstick(self, part, wanted=None, aim=None):
        """The one case of a part, with all that is known of its speed and memory; the last step is traced. MFU below
        `wanted` fails, `aim` is only printed."""
        (case,) = self.cases[part]
        records, text = self.launch(part, case, ["--trace", f"{case.steps}"])
        if records is None:
            return
        print("\n".join(line for line in text.splitlines() if not line.startswith("step ")))
        times, seconds = [record["step_seconds"] for record in records[WARM_UP:-1]], self.seconds(records)
        self.known[case.recipe, case.overrides] = records, case
        tokens, mfu, _ = self.rates(case, seconds)
        print(f"step {seconds * 1e3:.1f} ms (smallest {min(times) * 1e3:.1f}, largest {max(times) * 1e3:.1f})  "
              f"{tokens:,.0f} tok/s/GPU  MFU {mfu:.1%}" + (f"  (aim {aim:.0%})" if aim else ""))
        if wanted:
            self.judge(mfu >= wanted, f"{part}: MFU {mfu:.1%}, wanted {wanted:.0%}")
        self.finite(part, records)
        self.idle(text)
        self.memory(records, case)
        print(json.dumps({"memory of the run": self.outcome(case)["memory"]}))

    def table(self, part):
        """A row for each case of a part, beside the first case; of memory, what is planned and used, and what is wrong
        with it. A case that fails has no row, and one that a part before has run is not run again. Returns the seconds
        of a step by name."""
        seconds, first = {}, self.cases[part][0].name
        print(f"{part:28} GPUs  step, ms  beside  tok/s/GPU    MFU  planned, GB    used")
        for case in self.cases[part]:
            if (case.recipe, case.overrides) not in self.known:
                records, _ = self.launch(part, case)
                if records is None:
                    continue
                self.known[case.recipe, case.overrides] = records, case
            records, ran = self.known[case.recipe, case.overrides]
            seconds[case.name] = self.seconds(records)
            tokens, mfu, gpus = self.rates(case, seconds[case.name])
            beside = f"{seconds[case.name] / seconds[first] - 1:+.1%}" if first in seconds else "-"
            planned, used = self.fullest(ran)
            print(f"{case.name:28} {gpus:4} {seconds[case.name] * 1e3:9.1f} {beside:>7} {tokens:10,.0f} {mfu:6.1%} "
                  f"{planned / 1e9:12.2f} {used / 1e9:7.2f}", flush=True)
            for good, what in self.memory_verdicts(records, ran):
                if not good:
                    self.judge(good, what)
        return seconds

    def efficiency(self, part):
        """The cases of a part do the same work on each GPU, the first one on the fewest GPUs. Returns what table
        does."""
        seconds, first = self.table(part), self.cases[part][0].name
        if first in seconds:
            print("efficiency: " + ", ".join(f"{name} {seconds[first] / time:.1%}" for name, time in seconds.items()))
        return seconds

    def outcome(self, case):
        return json.loads((self.out / case.name / "outcome.json").read_text())

    def idle(self, text):
        """Judges the line of the traced step that says how long the device had nothing to do."""
        idle = re.search(r"^device idle .* ([0-9.]+)%$", text, re.MULTILINE)
        self.judge(idle and float(idle[1]) / 100 <= IDLE,
                   f"the GPU is idle for {idle and idle[1]} % of a step, allowed {IDLE:.0%}")

    def planned(self, case):
        """The parts of the memory of the fullest GPU, which is the one that metrics.jsonl has."""
        return max((role["bytes"] for role in self.show("memory", case)["roles"]),
                   key=lambda parts: sum(parts.values()))

    def fullest(self, case):
        """Of the role that is planned to be the fullest: what is planned and what was in use, in bytes."""
        total = max((role["bytes"][-1] for role in self.outcome(case)["memory"]), key=lambda row: row["planned"])
        return total["planned"], total["measured"]

    def even_rows(self, case):
        """The case with as many rows for each expert as for every other."""
        return dataclasses.replace(case, overrides=(*case.overrides, EVEN_ROWS))

    def memory_verdicts(self, records, case):
        """Memory beside the plan, as pairs of whether it is good, and what."""
        least = {role["role"]: role["total"] for role in self.show("memory", self.even_rows(case))["roles"]}
        verdicts = []
        for role in self.outcome(case)["memory"]:
            rows = {row["name"]: row for row in role["bytes"]}
            total, libraries = rows["in all"], rows["context and libraries"]
            # The allocator does not count what CUDA and NCCL take.
            held = rows.get("held by the allocator beside tensors", {"measured": 0})["measured"]
            tensors = total["measured"] - libraries["measured"] - held
            above = tensors / (total["planned"] - libraries["planned"]) - 1
            below = tensors / (least[role["role"]] - libraries["planned"]) - 1
            device = total["measured"] / total["planned"] - 1
            name = f"{case.name}, {role['role']}"
            verdicts += [(above <= self.tensors and below >= -self.tensors,
                          f"{name}: tensors at their peak are {above:+.1%} of the plan's, and {below:+.1%} of those of "
                          "even rows"),
                         (device <= DEVICE, f"{name}: the device has {device:+.1%} of the plan's in use")]
        last, second = records[-1]["device_memory"], records[1]["device_memory"]
        grown, needed = (last[key] - second[key] for key in ("reserved_peak", "tensors_peak"))
        return [*verdicts, (grown <= (needed + GAPS * self.fullest(case)[0] if needed else 0),
                            f"{case.name}: {grown / 1e9:.2f} GB taken from the driver after step 2, for tensors that "
                            f"grew by {needed / 1e9:.2f} GB")]

    def memory(self, records, case):
        """Prints and judges the memory of a run."""
        planned, last = self.planned(case), records[-1]["device_memory"]
        print("planned, GB: " + ", ".join(f"{key} {value / 1e9:.2f}" for key, value in planned.items()) +
              f", in all {sum(planned.values()) / 1e9:.2f}")
        print("measured, GB: " + ", ".join(f"{key} {value / 1e9:.2f}" for key, value in last.items()))
        libraries = last["used"] - last["reserved_peak"]
        print(f"context and libraries {libraries / 1e9:.2f} GB; held by the allocator but in no tensor at the peak "
              f"{(last['reserved_peak'] - last['tensors_peak']) / 1e9:.2f} GB")
        for good, what in self.memory_verdicts(records, case):
            self.judge(good, what)
