"""The parts of `tests/gpu/measure` for two GPUs: the whole vision-language model, 12.3 billion parameters."""

import json
import statistics
import subprocess

from measuring import PEAK, ROOT, WARM_UP, Measure

RECIPES = ROOT / "recipes"
TEXT = RECIPES / "nemotron_moe_vlm_20l_2g_text_only.yaml"
FROZEN = RECIPES / "nemotron_moe_vlm_20l_2g_frozen.yaml"
LEARNING = RECIPES / "nemotron_moe_vlm_20l_2g.yaml"
ONE = RECIPES / "nemotron_moe_lm_20l_1g.yaml"  # the same work for each GPU as TEXT
ICONS = RECIPES / "icons_2g.yaml"
STEPS = 50
TRACE_COST = 0.02
LOSSES = 2e-3


def with_samples(overrides, samples):
    """The overrides for steps of so many samples: all numbers that count samples."""
    return [*overrides, f"batch.global_samples={samples}", f"budget.train_samples={STEPS * samples}",
            f"budget.learning_rate.decay_samples={STEPS * samples}"]


class TwoGpus(Measure):
    recipe = TEXT
    limits = {"text_8": 200, "text_16": 280, "frozen": 240, "learning": 300, "dispatch": 150, "overlap": 200,
              "trace": 300, "scaling": 150, "agree": 250, "icons": 250}

    def gpus(self):
        found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout.count("GPU ")
        if found < 2:
            self.judge(False, f"this machine has {found} GPU, and two are needed")
        return found >= 2

    def seconds(self, records):
        """Of a step: the mean after those that warm up, without the last one, which may be traced."""
        return statistics.mean(record["step_seconds"] for record in records[WARM_UP:-1])

    def yardstick(self, part, recipe, overrides=(), wanted=None, aim=None):
        if not self.gpus():
            return
        records, text = self.launch(part, part, overrides, STEPS, ["--trace", f"{STEPS}"], recipe)
        if records is None:
            return
        print("\n".join(line for line in text.splitlines() if not line.startswith("step ")))
        times = [record["step_seconds"] for record in records[WARM_UP:-1]]
        modules = self.show("model", overrides, recipe)["modules"]
        language = modules["language"]
        seconds, flops = self.seconds(records), sum(module["flops_per_step"] for module in modules.values())
        tokens = language["flops_per_step"] / language["flops_per_sample"] * language["tokens_per_sample"]
        mfu = flops / seconds / (2 * PEAK)
        print(f"step {seconds * 1e3:.1f} ms (smallest {min(times) * 1e3:.1f}, largest {max(times) * 1e3:.1f})  "
              f"{tokens / seconds / 2:,.0f} tok/s/GPU  MFU {mfu:.1%}" + (f"  (aim {aim:.0%})" if aim else ""))
        if wanted:
            self.judge(mfu >= wanted, f"{part}: MFU {mfu:.1%}, wanted {wanted:.0%}")
        finite = all(record["loss"] is not None for record in records)
        self.judge(finite and not any(record["skipped"] for record in records), f"{part}: {STEPS} steps, none skipped")
        self.idle(text)
        self.memory(records, overrides, recipe)
        print(json.dumps({"memory of the run": json.loads((self.out / part / "outcome.json").read_text())["memory"]}))

    def text_8(self):
        self.yardstick("text_8", TEXT, wanted=0.40, aim=0.42)

    def text_16(self):
        self.yardstick("text_16", TEXT, with_samples([], 32), wanted=0.41, aim=0.43)

    def frozen(self):
        self.yardstick("frozen", FROZEN, wanted=0.38, aim=0.41)

    def learning(self):
        self.yardstick("learning", LEARNING)

    def compare(self, part, cases, steps=20):
        """Prints the step of each case of overrides, of the text twin, beside the first one."""
        if not self.gpus():
            return
        first = None
        for name, overrides in cases.items():
            records, _ = self.launch(part, f"{part}_{name}", overrides, steps)
            if records is None:
                return
            seconds = self.seconds(records)
            first = first or seconds
            print(f"{name:24} {seconds * 1e3:8.1f} ms  {seconds / first - 1:+.1%}")

    def dispatch(self):
        self.compare("dispatch", {kind: [f"modules.language.parallel.dispatch={kind}"]
                                  for kind in ("all_to_all", "all_gather")})

    def overlap(self):
        self.compare("overlap", {
            "none": [], "reduce": ["gradients.overlap_reduce=true", "gradients.buckets=8"],
            "reduce_gather": ["gradients.overlap_reduce=true", "gradients.overlap_gather=true", "gradients.buckets=8"]})

    def trace(self):
        """What --trace costs: three pairs of runs, one after the other, of ten steps after those that warm up."""
        if not self.gpus():
            return
        short, costs = with_samples([], 8), []
        for pair in range(3):
            seconds = {}
            for name, options in (("plain", ()), ("traced", ("--trace", f"{WARM_UP + 1}-{WARM_UP + 10}"))):
                records, _ = self.launch("trace", f"trace_{name}_{pair}", short, WARM_UP + 10, options)
                if records is None:
                    return
                seconds[name] = statistics.mean(record["step_seconds"] for record in records[WARM_UP:])
            costs.append(seconds["traced"] / seconds["plain"] - 1)
            print(f"ten steps: {seconds['plain'] * 1e4:.1f} ms, traced {seconds['traced'] * 1e4:.1f} ms")
        self.judge(statistics.median(costs) < TRACE_COST, f"--trace costs {statistics.median(costs):+.2%} of a step "
                   f"(three pairs: {', '.join(f'{cost:+.2%}' for cost in sorted(costs))}), allowed {TRACE_COST:.0%}")

    def scaling(self):
        """The same work for each GPU: 64 experts and 8 microbatches, on one GPU and on two."""
        if not self.gpus():
            return
        seconds = {}
        for name, recipe in (("one", ONE), ("two", TEXT)):
            records, _ = self.launch("scaling", f"scaling_{name}", [], 20, (), recipe)
            if records is None:
                return
            seconds[name] = self.seconds(records)
        print(f"one GPU {seconds['one'] * 1e3:.1f} ms, two {seconds['two'] * 1e3:.1f} ms: efficiency "
              f"{seconds['one'] / seconds['two']:.1%}")

    def agree(self):
        """Ten losses over three layouts of two GPUs, with the same expert choices. The learning rate warms up: at its
        peak from the first step on, the loss falls by a third in one step, and rounding moves how far."""
        if not self.gpus():
            return
        small = ["models.nemotron_hybrid_moe_20l.moe.experts=32", *with_samples([], 4),
                 "budget.learning_rate.warmup_samples=40"]
        apart = ["modules.radio_encoder.placement.ranks=1", "modules.language.placement.first_rank=1",
                 "modules.language.placement.ranks=1", "modules.language.parallel.ep=1"]
        choices, losses = self.out / "choices", {}
        for name, overrides, options in (
                ("dp2_ep2", [], ["--record-routing", choices]),
                ("tp2_ep2", ["modules.language.parallel.tp=2", "modules.radio_encoder.parallel.tp=2"],
                 ["--replay-routing", choices]),
                ("apart", apart, ["--replay-routing", choices])):
            records, _ = self.launch("agree", name, [*small, *overrides], 10, options, LEARNING)
            if records is None:
                return
            losses[name] = [record["loss"] for record in records]
        print("loss of dp2 ep2: " + " ".join(f"{loss:.4f}" for loss in losses["dp2_ep2"]))
        for name in ("tp2_ep2", "apart"):
            gap = max(abs(a - b) / a for a, b in zip(losses["dp2_ep2"], losses[name]))
            self.judge(gap <= LOSSES, f"{name}: the losses differ by up to {gap:.2e}, allowed {LOSSES}")

    def icons(self):
        if not self.gpus():
            return
        records, _ = self.launch("icons", "icons", [], 100, (), ICONS)
        if records is None:
            return
        losses = [record["loss"] for record in records]
        finite = all(loss is not None for loss in losses)
        print("loss: " + " ".join(f"{loss:.3f}" for loss in losses[::10]) + f" {losses[-1]:.3f}")
        first, last = statistics.mean(losses[:10]), statistics.mean(losses[-10:])
        self.judge(finite and last < 0.8 * first, f"icons at real width: the loss falls from {first:.3f} to {last:.3f}")
