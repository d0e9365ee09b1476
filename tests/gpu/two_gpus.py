"""The parts of `tests/gpu/measure` for two GPUs: the whole vision-language model, 12.3 billion parameters."""

import dataclasses
import statistics

from measuring import BUCKETS, DISPATCH, NO_OVERLAP, RECIPES, ROOT, TENSORS, WARM_UP, Case, Measure, Off, with_samples

TEXT = RECIPES / "nemotron_moe_vlm_20l_2g_text_only.yaml"
FROZEN = RECIPES / "nemotron_moe_vlm_20l_2g_frozen.yaml"
LEARNING = RECIPES / "nemotron_moe_vlm_20l_2g.yaml"
ONE = RECIPES / "nemotron_moe_lm_20l_1g.yaml"  # the same work for each GPU as TEXT
ICONS = RECIPES / "icons_2g.yaml"
STEPS, FEW = 50, 15  # of a case by itself, and of one of many
TRACE_COST = 0.02
LOSSES = 2e-3

# Small models for ten losses. The learning rate warms up: at its peak from the first step on, the loss falls by a third
# in one step, and rounding moves how far.
AGREE = ("models.nemotron_hybrid_moe_20l.moe.experts=32", *with_samples(4, STEPS),
         "budget.learning_rate.warmup_samples=40")
APART = ("modules.radio_encoder.placement.ranks=1", "modules.language.placement.first_rank=1",
         "modules.language.placement.ranks=1", "modules.language.parallel.ep=1", *DISPATCH[False],
         "lints.PW0704=off")  # a rank each: the language model waits for the encoder
LAYOUTS = ("models.nemotron_hybrid_moe_20l.moe.experts=16", "cluster.gpus_per_node=2",
           "modules.language.placement.ranks=2", "batch.global_samples=4", "budget.learning_rate.warmup_samples=100")


BLOCKS = ("modules.radio_encoder.recompute=block", "modules.language.recompute=mamba")

# What the part `profile_2g` measures, and those steps that `held_out` predicts with it. Of the held out ones only the
# first two have the model and the layout that were measured, with other numbers of microbatches.
# Decoders are there for their operations: of the ones held out none is of their kind.
BOTH = ("cluster.gpus_per_node=2", "modules.language.placement.ranks=2")
PROFILED = [Case("profiled_text", TEXT, with_samples(8, STEPS)),
            Case("profiled_images", LEARNING, ("models.nemotron_hybrid_moe_20l.moe.experts=32",
                                               *BLOCKS, *with_samples(4, STEPS))),
            Case("profiled_decoder", RECIPES / "qwen3_1_7b_1g.yaml", (*BOTH, *with_samples(4, STEPS))),
            Case("profiled_qwen3_vl", RECIPES / "qwen3_vl_2b_1g_deepstack.yaml",
                 (*BOTH, "modules.vision_encoder.placement.ranks=2", *with_samples(16, STEPS))),
            Case("profiled_gated_experts", ROOT / "tests/gpu/spaces/experts_2g.yaml",
                 ("modules.language.parallel.ep=2", "batch.micro_samples=4", *with_samples(16, STEPS)))]
HELD_OUT = {
    "text_8": (TEXT, 16, ()),
    "text_16": (TEXT, 32, ()),
    "text_experts_64": (TEXT, 16, ("models.nemotron_hybrid_moe_20l.moe.experts=64",)),
    "text_length_4096": (TEXT, 16, ("batch.sequence_length=4096", "data.text_tokens=4096")),
    "text_samples_2": (TEXT, 16, ("batch.micro_samples=2", "models.nemotron_hybrid_moe_20l.moe.experts=32")),
    "text_recompute": (TEXT, 8, ("modules.language.recompute=full",)),
    "text_apart_experts": (TEXT, 8, ("models.nemotron_hybrid_moe_20l.moe.experts=32", "modules.language.parallel.ep=1",
                                     *DISPATCH[False])),
    "frozen_8": (FROZEN, 16, ()),
    "frozen_4": (FROZEN, 8, ()),
    "learning_4": (LEARNING, 8, BLOCKS),
    "learning_8_layers": (LEARNING, 8, (*BLOCKS, "models.radio_vit_h.layers=8")),
    "learning_elementwise": (LEARNING, 16, ()),
}
OFF = Off(median=0.015, worst=0.04, mean=0.01)  # how far predicted steps may be off
STEP, PART, SMALL_PART = 0.10, 0.20, 0.05  # the same of traced steps and their parts; parts below a share of the step
EVEN = 1.1  # times the mean number of rows, that the fullest expert ranks may have while a run is young
TRACED = "11-15"


class TwoGpus(Measure):
    gpus = 2
    limits = {"text_8": 200, "text_16": 280, "frozen": 240, "learning": 300, "dispatch": 150, "overlap": 200,
              "trace": 300, "scaling": 150, "agree": 250, "layouts": 200, "icons": 250,
              "traced": 300, "profile_2g": 570, "held_out": 560}
    cases = {
        "text_8": [Case("text_8", TEXT, steps=STEPS)],
        "text_16": [Case("text_16", TEXT, with_samples(32, STEPS), STEPS)],
        "frozen": [Case("frozen", FROZEN, steps=STEPS)],
        "learning": [Case("learning", LEARNING, steps=STEPS)],
        "dispatch": [Case(f"dispatch_{kind}", TEXT, (*NO_OVERLAP, f"modules.language.parallel.dispatch={kind}"), FEW)
                     for kind in ("all_to_all", "all_gather")],
        "overlap": [Case(f"overlap_{name}", TEXT, DISPATCH[dispatch] + BUCKETS[buckets], FEW)
                    for name, dispatch, buckets in (("none", False, False), ("dispatch", True, False),
                                                    ("buckets", False, True), ("dispatch_buckets", True, True))],
        "trace": [Case(f"trace_{kind}_{pair}", TEXT, with_samples(8, STEPS), WARM_UP + 10)
                  for pair in range(3) for kind in ("plain", "traced")],
        "scaling": [Case("scaling_one", ONE), Case("scaling_two", TEXT)],
        "agree": [Case("agree_dp2_ep2", LEARNING, AGREE, 10),
                  Case("agree_tp2_ep2", LEARNING, (*AGREE, "modules.language.parallel.tp=2",
                                                   "modules.radio_encoder.parallel.tp=2"), 10),
                  Case("agree_apart", LEARNING, (*AGREE, *APART), 10)],
        "layouts": [Case("dp2", ONE, LAYOUTS, 10),
                    *(Case(name, ONE, (*LAYOUTS, "modules.language.parallel.tp=2"), 10)
                      for name in ("tp2_replayed", "tp2_free"))],
        "icons": [Case("icons", ICONS, steps=100)],
        "traced": [Case(f"traced_{name}", recipe, with_samples(16, STEPS), 16)
                   for name, recipe in (("text", TEXT), ("frozen", FROZEN), ("learning", LEARNING))],
        "profile_2g": PROFILED,
        "held_out": [Case(f"held_out_{name}", recipe, (*with_samples(samples, STEPS), *overrides), 12)
                     for name, (recipe, samples, overrides) in HELD_OUT.items()],
    }

    def text_8(self):
        self.yardstick("text_8", wanted=0.40, aim=0.42)

    def text_16(self):
        self.yardstick("text_16", wanted=0.41, aim=0.43)

    def frozen(self):
        self.yardstick("frozen", wanted=0.38, aim=0.41)

    def learning(self):
        self.yardstick("learning")

    def dispatch(self):
        self.table("dispatch")

    def overlap(self):
        self.table("overlap")

    def trace(self):
        """What --trace costs: three pairs of runs, one after the other, of ten steps after those that warm up."""
        costs, cases = [], self.cases["trace"]
        for plain, traced in zip(cases[::2], cases[1::2]):
            seconds = []
            for case, options in ((plain, ()), (traced, ("--trace", f"{WARM_UP + 1}-{WARM_UP + 10}"))):
                records, _ = self.launch("trace", case, options)
                if records is None:
                    return
                seconds.append(statistics.mean(record["step_seconds"] for record in records[WARM_UP:]))
            costs.append(seconds[1] / seconds[0] - 1)
            print(f"ten steps: {seconds[0] * 1e4:.1f} ms, traced {seconds[1] * 1e4:.1f} ms")
        self.judge(statistics.median(costs) < TRACE_COST, f"--trace costs {statistics.median(costs):+.2%} of a step "
                   f"(three pairs: {', '.join(f'{cost:+.2%}' for cost in sorted(costs))}), allowed {TRACE_COST:.0%}")

    def scaling(self):
        """The same work for each GPU: 64 experts and 8 microbatches, on one GPU and on two."""
        self.efficiency("scaling")

    def agree(self):
        """Ten losses over three layouts of the vision-language model, with the same expert choices."""
        self.same_losses("agree")

    def layouts(self):
        """Ten losses of the language model over two layouts, also with each layout's own expert choices."""
        self.same_losses("layouts", free=("tp2_free",))

    def same_losses(self, part, free=()):
        """Judges ten losses of every case of a part beside those of the first one, whose expert choices they take. The
        cases in `free` choose by themselves, and are only printed."""
        choices, first = self.out / f"choices_{part}", None
        for case in self.cases[part]:
            options = ["--replay-routing" if first else "--record-routing", choices]
            records, _ = self.launch(part, case, () if case.name in free else options)
            if records is None:
                return
            losses = [record["loss"] for record in records]
            if first is None:
                first = losses
                print(f"loss of {case.name}: " + " ".join(f"{loss:.4f}" for loss in losses))
                continue
            gap = max(abs(a - b) / a for a, b in zip(first, losses))
            if case.name in free:
                print(f"{case.name}: the losses differ by up to {gap:.2e}")
            else:
                self.judge(gap <= LOSSES, f"{case.name}: the losses differ by up to {gap:.2e}, allowed {LOSSES}")

    def icons(self):
        (case,) = self.cases["icons"]
        records, _ = self.launch("icons", case)
        if records is None:
            return
        losses = self.finite("icons", records)
        if losses is None:
            return
        print("loss: " + " ".join(f"{loss:.3f}" for loss in losses[::10]) + f" {losses[-1]:.3f}")
        first, last = statistics.mean(losses[:10]), statistics.mean(losses[-10:])
        self.judge(last < 0.8 * first, f"icons at real width: the loss falls from {first:.3f} to {last:.3f}")

    def changed(self, case, *overrides):
        return dataclasses.replace(case, overrides=(*case.overrides, *overrides))

    def profile_here(self):
        """The profile that `profile_2g` has measured in this folder, as overrides. Says which one predicts."""
        path = self.out / "profile.json"
        print(f"predictions are by {path}" if path.exists() else
              "predictions are by data sheets: the part profile_2g did not run before, with the same --out")
        return (f"cluster.profile={path}",) if path.exists() else ()

    def profile_2g(self):
        """`plan measure` on two GPUs. With the same --out it goes on where its limit ended it."""
        words = [word for case in PROFILED for word in (case.recipe, *case.overrides)]
        good, text = self.run("profile_2g", "profile", [self.binaries / "plan", "measure", *words, "--device", "cuda",
                                                        "-o", self.out / "profile.json"])
        print(text)
        self.judge(good, "plan measure: every part is measured")

    def traced(self):
        """Steps of the three twins that are traced and record their choices of experts: predicted beside measured."""
        profile = self.profile_here()
        for case in self.cases["traced"]:
            case = self.changed(case, *profile)
            records, text = self.launch("traced", case, ["--trace", TRACED, "--record-routing",
                                                         self.out / f"choices_{case.name}"])
            if records is None:
                continue
            print("\n".join(line for line in text.splitlines() if not line.startswith("step ")))
            role = self.outcome(case)["profile"]["roles"][0]
            rows = [(part["name"], part["device_ms"], part.get("predicted_ms", 0)) for part in role["parts"]]
            rows.append(("all communication", role["communication_ms"], role.get("predicted_communication_ms", 0)))
            self.close(case.name, "a step", role["step_ms"], role["predicted_step_ms"], STEP)
            for name, measured, predicted in rows:
                if measured >= SMALL_PART * role["step_ms"]:
                    self.close(case.name, name, measured, predicted, PART)

    def close(self, case, what, measured, predicted, allowed):
        off = predicted / measured - 1
        self.judge(abs(off) <= allowed, f"{case}: {what} predicted {predicted:.1f} ms, measured {measured:.1f} ms, "
                                        f"{off:+.1%}, allowed {allowed:.0%}")

    def memory_of(self, case, used):
        """Judges tensors beside the plan with EVEN times the mean number of rows, as the plan of the run has room for
        the most uneven rows, and the device beside the plan of the run."""
        planned = self.planned(self.changed(case, f"models.nemotron_hybrid_moe_20l.moe.imbalance={EVEN}"))
        off = used["tensors_peak"] / (sum(planned.values()) - planned["workspace"]) - 1
        self.judge(abs(off) <= TENSORS, f"{case.name}: tensors at their peak are {off:+.1%} of the plan's with {EVEN} "
                                        "times the mean number of rows")
        whole = used["used"] / sum(self.planned(case).values()) - 1
        self.judge(whole <= 0, f"{case.name}: the device has {whole:+.1%} of the plan's in use")

    def held_out(self):
        """Steps and memory of runs that were not measured, beside the prediction by the profile."""
        found, profile = [], self.profile_here()
        for case in self.cases["held_out"]:
            records, _ = self.launch("held_out", case)
            if records is None:
                continue
            took = statistics.median(record["step_seconds"] for record in records[WARM_UP:])
            answer = self.show("time", self.changed(case, *profile))
            found.append((answer["seconds"], took))
            print(f"{case.name}: predicted {answer['seconds'] * 1e3:.1f} ms, measured {took * 1e3:.1f} ms, "
                  f"{answer['seconds'] / took - 1:+.1%}; " +
                  ", ".join(f"{word} {share:.0%}" for word, share in answer["known"].items()), flush=True)
            self.memory_of(case, records[-1]["device_memory"])
        self.judge_predictions(found, OFF)
