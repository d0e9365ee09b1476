"""The parts of `tests/gpu/measure` for decoders: models of the sizes of Qwen3-1.7B and of Qwen3-VL-2B beside
transformers and beside their prediction, adapters on the first, and a layer of experts beside its plain form."""

import dataclasses
import json
import re
import statistics
import sys

from measuring import RECIPES, ROOT, WARM_UP, Case, Measure

QWEN3 = RECIPES / "qwen3_1_7b_1g.yaml"
QWEN3_VL, QWEN3_VL_DEEPSTACK = RECIPES / "qwen3_vl_2b_1g.yaml", RECIPES / "qwen3_vl_2b_1g_deepstack.yaml"
# Rank 16 on every product of a layer, as most published recipes have it.
ADAPTERS = ("modules.language.train.backbone=frozen",
            "modules.language.adapter={rank: 16, alpha: 32, targets: [q_proj, k_proj, v_proj, o_proj, gate_proj, "
            "up_proj, down_proj]}")
MFU, AHEAD, AGREE, SAME, FAR, PLAIN = 0.47, 1.15, 3, 2e-3, 0.03, 2
FAR_WITH_ADAPTERS = 0.05
MFU_VL, AHEAD_VL, FAR_VL, THEIRS = 0.40, 1.2, 0.05, 180
TAPS = "5,11,17"    # layers of the published encoder whose features the language model adds


class Decoders(Measure):
    gpus = 1
    limits = {"qwen3": 560, "adapters": 240, "gated_experts": 60, "qwen3_vl": 270, "qwen3_vl_deepstack": 270}
    cases = {"qwen3": [Case("qwen3", QWEN3, (), 15)],
             "adapters": [Case("adapters", QWEN3, ADAPTERS, 15), Case("adapters_none", QWEN3, (), 15)],
             # 5 steps to warm up, 20 that are measured, and one that is traced.
             "qwen3_vl": [Case("qwen3_vl", QWEN3_VL, (), 26)],
             "qwen3_vl_deepstack": [Case("qwen3_vl_deepstack", QWEN3_VL_DEEPSTACK, (), 26)]}
    tensors = 0.01

    def even_rows(self, case):
        return case    # there are no experts

    def transformers(self):
        """The lines of a run of transformers, eager and compiled. Both start from the weights that the first one
        makes, and so do we."""
        found = {}
        (case,) = self.cases["qwen3"]
        for name, options in (("eager", []), ("compiled", ["--compiled"])):
            path = self.out / f"transformers_{name}.jsonl"
            good, text = self.run("qwen3", f"transformers_{name}", [
                sys.executable, ROOT / "tests/gpu/peers/transformers_lm.py", self.out / "qwen3_weights", "--steps",
                case.steps, "--out", path, *options])
            lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
            if not good or len(lines) != case.steps + 1:
                self.judge(False, f"transformers, {name}: {len(lines)} lines")
                continue
            found[name] = lines
            last = lines[-1]
            print(f"transformers {last['transformers']}, {name}: step {last['ms']:.1f} ms (smallest "
                  f"{last['least']:.1f}, largest {last['most']:.1f}), tensors {last['allocated_gb']:.1f} GB",
                  flush=True)
        return found

    def predicted(self, part, case, sizes):
        """Seconds of a step by a profile that `plan measure` makes now: of the recipe and its other sizes, or of the
        compiled plan, which has none and takes a third of the time."""
        path, what = self.out / f"{part}_profile.json", [case.recipe, *case.overrides]
        if not sizes:
            compiled = self.out / f"{part}_plan.json"
            self.run(part, f"{part}_compile", [self.binaries / "plan", "compile", *what, "-o", compiled])
            what = [compiled]
        good, text = self.run(part, f"{part}_profile", [self.binaries / "plan", "measure", *what, "--device", "cuda",
                                                        "-o", path])
        print("\n".join(text.splitlines()[-3:]))
        if not good:
            self.judge(False, "plan measure failed")
            return None
        profiled = dataclasses.replace(case, overrides=(*case.overrides, f"cluster.profile={path.resolve()}"))
        answer = self.show("time", profiled)
        print("known: " + ", ".join(f"{word} {share:.0%}" for word, share in answer["known"].items()))
        return answer["seconds"]

    def trained(self, part, case, options, label):
        """Trains a case, prints its speed and judges its losses, idle time and memory. Returns its records, seconds of
        a step and MFU, and the steps that count; or None."""
        records, text = self.launch(part, case, [*options, "--trace", f"{case.steps}"])
        if records is None:
            return None
        print("\n".join(line for line in text.splitlines() if not line.startswith("step ")))
        times, seconds = [record["step_seconds"] for record in records[WARM_UP:-1]], self.seconds(records)
        tokens, mfu, _ = self.rates(case, seconds)
        print(f"{label}: step {seconds * 1e3:.1f} ms (smallest {min(times) * 1e3:.1f}, largest "
              f"{max(times) * 1e3:.1f}), {tokens:,.0f} tok/s, MFU {mfu:.1%}")
        self.finite(part, records)
        self.idle(text)
        self.memory(records, case)
        return records, seconds, mfu, times

    def beside_prediction(self, part, case, times, far, sizes=True):
        took, said = statistics.median(times), self.predicted(part, case, sizes)
        if said:
            self.judge(abs(said / took - 1) <= far, f"predicted {said * 1e3:.1f} ms, measured {took * 1e3:.1f} ms: "
                                                    f"{said / took - 1:+.1%}, allowed {far:.0%}")

    def ahead(self, name, lines, records, wanted):
        """By the steps that both have counted: with images no two steps have the same work."""
        theirs = [line["ms"] for line in lines[:-1]][WARM_UP:]
        ours = [1e3 * record["step_seconds"] for record in records[WARM_UP:WARM_UP + len(theirs)]]
        ratio = statistics.mean(theirs) / statistics.mean(ours)
        self.judge(len(ours) == len(theirs) and ratio >= wanted,
                   f"{ratio:.3f} times as fast as transformers, {name}: {statistics.mean(ours):.1f} and "
                   f"{statistics.mean(theirs):.1f} ms in steps {WARM_UP + 1} to {WARM_UP + len(theirs)}, wanted "
                   f"{wanted}")

    def same_losses(self, name, lines, records):
        pairs = [(record["loss"], line["loss"]) for record, line in zip(records[:AGREE], lines)]
        print("losses, ours and theirs: " + ", ".join(f"{ours:.4f} {other:.4f}" for ours, other in pairs))
        print(f"gradient norms of the first step, ours and theirs: {records[0]['grad_norm']:.4f} "
              f"{lines[0]['grad_norm']:.4f}")
        far = max(abs(ours / other - 1) for ours, other in pairs)
        self.judge(far <= SAME, f"the first {AGREE} losses differ by at most {far:.1e} from those of transformers, "
                                f"{name}, allowed {SAME:.0e}")

    def qwen3(self):
        (case,) = self.cases["qwen3"]
        theirs = self.transformers()
        ran = self.trained("qwen3", case, [f"initialize.from={self.out / 'qwen3_weights'}"] if theirs else [],
                           "Planwright")
        if ran is None:
            return
        records, _, mfu, times = ran
        self.judge(mfu >= MFU, f"MFU {mfu:.1%}, wanted {MFU:.0%}")
        for name, lines in theirs.items():
            self.ahead(name, lines, records, AHEAD)
            self.same_losses(name, lines, records)
        self.beside_prediction("qwen3", case, times, FAR)

    def adapters(self):
        """The model with adapters on frozen weights: memory, the prediction, and what a step costs beside one that
        trains all weights."""
        case, plain = self.cases["adapters"]
        ran = self.trained("adapters", case, [], "adapters")
        if ran is None:
            return
        records, _, _, times = ran
        self.judge(all(record["grad_norm"] > 0 for record in records), "every step has gradients of the adapters")
        self.beside_prediction("adapters", case, times, FAR_WITH_ADAPTERS)
        records, _ = self.launch("adapters", plain)
        if records:
            print(f"all weights: step {self.seconds(records) * 1e3:.1f} ms, memory "
                  f"{self.fullest(plain)[1] / 1e9:.1f} GB; with adapters {self.fullest(case)[1] / 1e9:.1f} GB")

    def qwen3_vl(self):
        self.beside_transformers_vl("qwen3_vl", "")

    def qwen3_vl_deepstack(self):
        self.beside_transformers_vl("qwen3_vl_deepstack", TAPS)

    def beside_transformers_vl(self, part, taps):
        """Images and text, from the weights that transformers makes: MFU, memory, the prediction, and the fastest of
        the settings of transformers."""
        (case,) = self.cases[part]
        weights, out = self.out / f"{part}_weights", self.out / f"{part}_transformers"
        out.mkdir(exist_ok=True)
        for path in out.glob("*.jsonl"):
            path.unlink()
        # What helps least, or not at all, comes last and may be cut off.
        self.run(part, f"{part}_transformers", [
            "timeout", THEIRS, sys.executable, ROOT / "tests/gpu/peers/transformers_vlm.py", weights, "--taps", taps,
            "--out", out])
        theirs = {}
        for path in sorted(out.glob("*.jsonl")):
            lines, name = [json.loads(line) for line in path.read_text().splitlines()], path.stem
            last = lines[-1] if lines else {}
            if "ms" in last:
                theirs[name] = lines
                print(f"transformers {last['transformers']}, {name}: step {last['ms']:.1f} ms (smallest "
                      f"{last['least']:.1f}, largest {last['most']:.1f}), tensors {last['allocated_gb']:.1f} GB")
            else:
                print(f"transformers, {name}: {last.get('failed', 'no end')}")
        self.judge(theirs, f"transformers has run with {len(theirs)} settings")
        ran = self.trained(part, case, [f"initialize.from={weights}"] if theirs else [], "Planwright")
        if ran is None:
            return
        records, _, mfu, times = ran
        self.judge(mfu >= MFU_VL, f"MFU {mfu:.1%}, wanted {MFU_VL:.0%}")
        if theirs:
            best = min(theirs, key=lambda name: theirs[name][-1]["ms"])
            self.ahead(best, theirs[best], records, AHEAD_VL)
            for name, lines in theirs.items():
                self.same_losses(name, lines, records)
        self.beside_prediction(part, case, times, FAR_VL, sizes=False)

    def gated_experts(self):
        """The layer of experts of Qwen3-30B-A3B, 8,192 tokens, forward and backward."""
        good, text = self.run("gated_experts", "gated_experts", [self.binaries / "gpu_kernels", "gated_experts"])
        print(text.rstrip())
        ms = {match[1].strip(): float(match[2]) for match in
              re.finditer(r"^(.{34}) +([0-9.]+) ms", text, re.MULTILINE)}
        both = {form: ms.get("gated_experts" + form, 0) + ms.get("gated_experts_grad" + form, 0)
                for form in ("", ", plain")}
        self.judge(good and both[""] > 0 and both[", plain"] / both[""] >= PLAIN,
                   f"gated experts: {both['']:.2f} ms, in the plain form {both[', plain']:.2f} ms")
