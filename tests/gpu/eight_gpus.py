"""The parts of `tests/gpu/measure` for eight GPUs: the 8-rank recipe as it stands, and the same work for each GPU as on
one."""

import statistics

from four_gpus import EP2, TEXT, both_overlaps
from measuring import RECIPES, Case, Measure, with_samples
from two_gpus import FEW, ONE

MOCK = RECIPES / "nemotron_moe_vlm_20l_mock_8r.yaml"
EIGHT = ("cluster.gpus_per_node=8", "modules.language.placement.ranks=8", *with_samples(64, 50))
EP8 = ("modules.language.parallel.ep=8",)


class EightGpus(Measure):
    gpus = 8
    limits = {"eight_mock": 150, "eight_scaling": 350}
    cases = {
        "eight_mock": [Case("eight_mock", MOCK, with_samples(8, 20))],  # its budget is ten steps
        # As four_scaling: with ep 8 a GPU has 16 experts, with ep 2 it has 64 as on one GPU.
        "eight_scaling": [Case("eight_scaling_1", ONE, steps=FEW),
                          *both_overlaps("eight_scaling_8_ep8", TEXT, (*EIGHT, *EP8)),
                          *both_overlaps("eight_scaling_8_ep2", TEXT, (*EIGHT, *EP2))],
    }

    def eight_mock(self):
        (case,) = self.cases["eight_mock"]
        records, text = self.launch("eight_mock", case, ["--trace", f"{case.steps}"])
        if records is None:
            return
        print("\n".join(line for line in text.splitlines() if not line.startswith("step ")))
        seconds = self.seconds(records)
        tokens, mfu, _ = self.rates(case, seconds)
        print(f"step {seconds * 1e3:.1f} ms  {tokens:,.0f} tok/s/GPU  MFU {mfu:.1%}")
        losses = self.finite("eight_mock", records)
        if losses is None:
            return
        print("loss: " + " ".join(f"{loss:.3f}" for loss in losses))
        first, last = statistics.mean(losses[:3]), statistics.mean(losses[-3:])
        self.judge(last < first, f"the loss falls: {first:.4f} over 3 steps, {last:.4f} over the last 3")

    def eight_scaling(self):
        self.efficiency("eight_scaling")
