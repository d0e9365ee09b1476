"""The parts of `tests/gpu/measure` for one GPU: the yardstick recipe of one GPU, and the kernels."""

import dataclasses
import json
import re
import statistics
import sys
import time

from measuring import NO_OVERLAP, RECIPES, ROOT, WARM_UP, Case, Measure, Off, gpus_listed, with_samples

MFU, READY_SECONDS = 0.42, 45
YARDSTICK = RECIPES / "nemotron_moe_lm_20l_1g.yaml"
LEARNING, FROZEN = RECIPES / "nemotron_moe_vlm_20l_2g.yaml", RECIPES / "nemotron_moe_vlm_20l_2g_frozen.yaml"
# The recipes of the part that measures a profile, which any card with 80 GB can train.
PROFILED = ("models.nemotron_hybrid_moe_20l.moe.experts=16", "cluster.gpu=h100_sxm", *with_samples(4, 50))
IMAGES = ("cluster.gpus_per_node=1", "modules.radio_encoder.placement.ranks=1", "modules.language.placement.ranks=1",
          "modules.language.parallel.ep=1", *NO_OVERLAP, "models.nemotron_hybrid_moe_20l.moe.experts=16",
          "cluster.gpu=h100_sxm")
BLOCKS = ("modules.radio_encoder.recompute=block", "modules.language.recompute=mamba")
# How far predicted steps may be off by a profile of this card, their mean with its sign too; and by one that was scaled
# to it. Steps that differ by more than ORDER must be predicted in their order.
OFF, OFF_PROBED, ORDER = Off(median=0.015, worst=0.04, mean=0.01), Off(median=0.03, worst=0.08, mean=0.03), 0.05
# The recipe of the part that asks for equal bits, which starts three times.
SMALL = ("models.nemotron_hybrid_moe_20l.moe.experts=8", "batch.global_samples=2")


class OneGpu(Measure):
    gpus = 1
    limits = {"tests": 150, "step": 200, "loss": 150, "repeat": 150, "kernels": 90, "torch": 120, "profile": 570,
              "probe": 400}
    cases = {
        # The first two are measured. The others have sizes and numbers that the measurement does not have.
        "profile": [Case("profile_text", YARDSTICK, PROFILED, 12),
                    Case("profile_images", LEARNING, (*IMAGES, *BLOCKS, *with_samples(2, 50)), 12),
                    *(Case(f"profile_text_{name}", YARDSTICK, PROFILED + overrides, 12)
                      for name, overrides in (("length_6144", ("batch.sequence_length=6144", "data.text_tokens=6144")),
                                              ("experts_12", ("models.nemotron_hybrid_moe_20l.moe.experts=12",)),
                                              ("recompute", ("modules.language.recompute=full",)),
                                              ("elementwise", ("modules.language.recompute=elementwise",)),
                                              ("samples_2", ("batch.micro_samples=2",)),
                                              ("samples_8", with_samples(8, 50)))),
                    *(Case(f"profile_images_{name}", recipe, (*IMAGES, *with_samples(4, 50), *overrides), 12)
                      for name, recipe, overrides in (("samples_4", LEARNING, BLOCKS), ("frozen", FROZEN, ()),
                                                      ("elementwise", LEARNING,
                                                       ("modules.language.recompute=mamba",
                                                        "models.nemotron_hybrid_moe_20l.moe.experts=8")),
                                                      ("layers_8", LEARNING,
                                                       (*BLOCKS, "models.radio_vit_h.layers=8"))))],
        "step": [Case("step", YARDSTICK, steps=WARM_UP + 20)],
        "loss": [Case("loss", YARDSTICK, ("batch.global_samples=1", "budget.learning_rate.warmup_samples=20"), 200)],
        "repeat": [Case(name, YARDSTICK, (*SMALL, f"precision.deterministic={on}"), 12)
                   for name, on in (("fixed_1", "true"), ("fixed_2", "true"), ("free", "false"))],
    }

    def tests(self):
        good, text = self.run("tests", "kernels_test", [self.binaries / "kernels_test", "--gtest_brief=1"])
        print("\n".join(text.splitlines()[-25:]))
        self.judge(good, "kernels_test: every kernel agrees with the operation in fp64")
        good, text = self.run("tests", "language_ops_test", [self.binaries / "language_ops_test", "--gtest_brief=1",
                                                             "--gtest_filter=*Gpu*"])
        self.judge(good, "language_ops_test: the handlers agree with those of the CPU")

    def profile(self):
        cases = self.cases["profile"]
        path = self.out / "profile.json"
        words = [word for case in cases[:2] for word in (case.recipe, *case.overrides)]
        good, text = self.run("profile", "profile", [self.binaries / "plan", "measure", *words, "--device", "cuda",
                                                     "-o", path])
        print(text)
        self.judge(good, "plan measure: every part is measured")
        if not good:
            return
        profile = json.loads(path.read_text())
        for point in profile.get("skew", []):
            print(f"      {point['op']}: fullest expert {point['fullest']} times the mean, "
                  f"{point['factor']['median']:.3f} as long")
        self.judge(len(profile.get("skew", [])) > 0, "the profile says what unequal experts cost")
        self.hold_against(OFF, path, lambda case: self.launch("profile", case)[0])

    def probe(self):
        """The shipped profile, which another card of the kind made, scaled to this one. Takes the runs that the part
        `profile` left in the same --out, and makes those that are not there."""
        kind = "h200_sxm" if "H200" in gpus_listed()[0] else "h100_sxm"
        gpu = f"cluster.gpu={kind}"
        path = self.out / "probed.json"
        words = [word for case in self.cases["profile"][:2] for word in (case.recipe, *case.overrides, gpu)]
        began = time.monotonic()
        good, text = self.run("probe", "probe", [self.binaries / "plan", "measure", *words, "--probe",
                                                 RECIPES / f"profiles/{kind}.json", "--device", "cuda", "-o", path])
        print(text)
        self.judge(good, f"plan measure --probe: {time.monotonic() - began:.0f} s")
        if good:
            self.hold_against(OFF_PROBED, path, lambda case: self.left(case) or self.launch("profile", case)[0], gpu)

    def left(self, case):
        records = self.records_of(case)
        print(f"{case.name}: " + ("the run that is there" if records else "is run now"), flush=True)
        return records

    def hold_against(self, allowed, profile, records_of, *more):
        """Predicts the runs of the part `profile` by a file."""
        found = []  # (predicted, measured) seconds
        for case in self.cases["profile"]:
            records = records_of(case)
            if records is None:
                continue
            took = statistics.median(record["step_seconds"] for record in records[WARM_UP:])
            answer = self.show("time", dataclasses.replace(case, overrides=(*case.overrides, *more,
                                                                            f"cluster.profile={profile.resolve()}")))
            said, known = answer["seconds"], answer["known"]
            print(f"{case.name}: predicted {said * 1e3:.1f} ms, measured {took * 1e3:.1f} ms, "
                  f"{said / took - 1:+.1%}; " + ", ".join(f"{word} {share:.0%}" for word, share in known.items()),
                  flush=True)
            good, what = self.memory_verdicts(records, case)[0]
            self.judge(good, what)
            found.append((said, took))
        self.judge_predictions(found, allowed)
        pairs = [(a, b) for i, a in enumerate(found) for b in found[:i] if abs(a[1] / b[1] - 1) > ORDER]
        wrong = sum((a[0] - b[0]) * (a[1] - b[1]) <= 0 for a, b in pairs)
        self.judge(pairs and wrong == 0, f"{len(pairs)} pairs of steps differ by more than {ORDER:.0%}; of {wrong} the "
                                         "order is predicted wrong")

    def step(self):
        started = time.monotonic()
        (case,) = self.cases["step"]
        records, text = self.launch("step", case, ["--trace", f"{case.steps}"])
        if records is None:
            return
        print("\n".join(line for line in text.splitlines() if not line.startswith("step ")))
        times, seconds = [record["step_seconds"] for record in records[WARM_UP:]], self.seconds(records)
        tokens, mfu, _ = self.rates(case, seconds)
        print(f"step {seconds * 1e3:.1f} ms (smallest {min(times) * 1e3:.1f}, largest {max(times) * 1e3:.1f})  "
              f"{tokens:,.0f} tok/s  MFU {mfu:.1%}")
        self.judge(mfu >= MFU, f"MFU {mfu:.1%}, wanted {MFU:.0%}")
        self.idle(text)
        whole = time.monotonic() - started
        before = whole - sum(record["step_seconds"] for record in records)
        self.judge(before <= READY_SECONDS, f"{before:.1f} s of the run are not steps, wanted {READY_SECONDS}")
        self.memory(records, case)

    def loss(self):
        (case,) = self.cases["loss"]
        records, _ = self.launch("loss", case)
        if records is None:
            return
        losses = self.finite("loss", records)
        if losses is None:
            return
        print("loss: " + " ".join(f"{losses[i]:.3f}" for i in range(0, 200, 20)) + f" {losses[-1]:.3f}")
        first, last = statistics.mean(losses[:20]), statistics.mean(losses[-20:])
        self.judge(last < first, f"the loss falls: {first:.4f} over 20 steps, {last:.4f} over the last 20")

    def repeat(self):
        runs = {}
        for case in self.cases["repeat"]:
            records, _ = self.launch("repeat", case)
            if records is None:
                return
            runs[case.name] = records
        same = lambda record: {key: value for key, value in record.items()
                               if key not in ("step_seconds", "pace", "device_memory", "run_id", "life")}
        equal = [same(a) == same(b) for a, b in zip(runs["fixed_1"], runs["fixed_2"])]
        self.judge(all(equal), f"deterministic: {sum(equal)} of {len(equal)} steps have the same bits twice")
        cost = {name: statistics.median(record["step_seconds"] for record in records[3:])
                for name, records in runs.items()}
        print(f"a step of {' '.join(SMALL)}: {cost['fixed_1'] * 1e3:.1f} ms deterministic, {cost['free'] * 1e3:.1f} ms "
              f"otherwise: {cost['fixed_1'] / cost['free'] - 1:+.1%}")

    def kernels(self):
        good, text = self.run("kernels", "gpu_kernels", [self.binaries / "gpu_kernels"])
        print(text.rstrip())
        self.judge(good, "gpu_kernels ran")

    def torch(self):
        good, text = self.run("torch", "torch_layers", [sys.executable, ROOT / "tests/gpu/torch_layers.py", "--out",
                                                        self.out / "torch_layers.jsonl"])
        print(text.rstrip())
        self.judge(good, "torch_layers.py ran")
        self.compare()

    def compare(self):
        """Our kernels beside the same layers in plain PyTorch. A layer of ours is the sum of its operations."""
        kernels, layers = self.out / "gpu_kernels.txt", self.out / "torch_layers.jsonl"
        if not kernels.exists() or not layers.exists():
            print("      not compared: it takes the parts kernels and torch")
            return
        ours = {match[1].strip(): float(match[2]) for match in
                re.finditer(r"^(.{34}) +([0-9.]+) ms", kernels.read_text(), re.MULTILINE)}
        theirs = {}
        for line in layers.read_text().splitlines():
            case = json.loads(line)
            if "ms" in case:
                theirs.setdefault(case["part"], {})[f"{case['form']} {case['what']}"] = case["ms"]
        total = lambda *names: sum(ours[name] for name in names)
        both = lambda *names: total(*names, *(name + "_grad" for name in names))
        product = lambda name: total(*(f"{kind} {name}" for kind in ("linear", "linear_input_grad",
                                                                      "linear_weight_grad")))
        loss = total("cross_entropy_parts", "cross_entropy_sums", "cross_entropy_grad")
        rows = [
            ("Mamba layer", both("rms_norm", "mamba_conv", "mamba_scan", "gated_norm") + product("in_proj") +
             product("out_proj") + total("concat") + 2 * ours["add two"], "mamba", "forward+backward", 0),
            ("expert layer", both("rms_norm", "route", "permute_rows", "unpermute_rows", "experts", "squared_relu") +
             product("shared_up") + product("shared_down") + 2 * ours["add three"] + ours["add two"] +
             total("sequence_aux_loss", "routing_fingerprint"), "moe", "forward+backward", 0),
            ("attention layer", both("rms_norm", "causal_attention") + product("qkv") + product("o_proj") +
             2 * ours["add two"], "attention", "forward+backward", 0.02),
            ("attention alone", both("causal_attention"), "attention alone", "forward+backward", 0.02),
            ("head and loss", both("rms_norm") + product("lm_head") + loss, "head+loss", "forward+backward", 0),
            ("AdamW, 5e8", ours["adamw of 1e9"] / 2, "adamw 5e8", "step and bf16 copy", 0),
        ]
        print(f"{'':18}{'ours, ms':>9}  {'PyTorch, ms':>11}  the fastest form")
        for name, ms, part, what, behind in rows:
            cases = {form: time for form, time in theirs.get(part, {}).items() if form.endswith(what)}
            if not cases:
                self.judge(False, f"{name}: torch_layers.py has not timed it")
                continue
            form = min(cases, key=cases.get)
            print(f"{name:18}{ms:9.3f}  {cases[form]:11.3f}  {form}")
            self.judge(ms <= cases[form] * (1 + behind), f"{name}: {ms / cases[form] - 1:+.1%} beside PyTorch")
        kinds = {" forward": "linear", " dgrad": "linear_input_grad", " wgrad added in fp32": "linear_weight_grad"}
        dense = []
        for case, ms in theirs.get("product", {}).items():
            for ending, kind in kinds.items():
                if case.endswith(ending):
                    dense.append((ours[f"{kind} {case.split()[0]}"], ms))
        mine, others = sum(ms for ms, _ in dense), sum(ms for _, ms in dense)
        self.judge(dense and mine <= others * 1.02,
                   f"dense products, {len(dense)} of them: {mine:.3f} ms, PyTorch {others:.3f} ms")
