"""The parts of `tests/gpu/measure` for eight GPUs: the 8-rank recipe as it stands, the 20-layer model, and the same
work for each GPU as on fewer."""

import statistics

import resumes
from four_gpus import EP2, IMAGES, TEXT, both_overlaps
from measuring import OVERLAP, RECIPES, Case, Measure, with_samples
from two_gpus import FEW, ONE
from two_gpus import TEXT as TEXT_OF_TWO

MOCK = RECIPES / "nemotron_moe_vlm_20l_mock_8r.yaml"
STEPS = 40
EIGHT = ("cluster.gpus_per_node=8", "modules.language.placement.ranks=8", *with_samples(64, 50))
EIGHT_IMAGES = (*EIGHT, "modules.radio_encoder.placement.ranks=8")
EP8 = ("modules.language.parallel.ep=8",)
# What is wanted: of peak FLOPs on text and with an encoder that learns; how far a prediction by data sheets may be off;
# how fast a GPU is beside one alone.
TEXT_MFU, IMAGES_MFU, PREDICTION, EFFICIENCY = 0.42, 0.38, 0.03, 0.90


def experts(count):
    return (f"models.nemotron_hybrid_moe_20l.moe.experts={count}",)


class EightGpus(Measure):
    gpus = 8
    limits = {"eight_mock": 150, "eight_text_64": 200, "eight_text_128": 200, "eight_images_64": 250,
              "eight_images_128": 250, "eight_scaling": 450, "eight_resume": 120}
    tensors = 0.01
    cases = {
        "eight_mock": [Case("eight_mock", MOCK, with_samples(8, 20))],  # its budget is ten steps
        **{f"eight_{name}_{count}": [Case(f"eight_{name}_{count}", recipe, (*words, *EP8, *experts(count)), STEPS)]
           for name, recipe, words in (("text", TEXT, EIGHT), ("images", IMAGES, EIGHT_IMAGES)) for count in (64, 128)},
        # As four_scaling: with ep 8 a GPU has 16 experts, with ep 2 it has 64 as on one GPU.
        "eight_scaling": [Case("eight_scaling_1", ONE, steps=FEW), Case("eight_scaling_2", TEXT_OF_TWO, OVERLAP, FEW),
                          Case("eight_scaling_4_ep4", TEXT, OVERLAP, FEW),
                          Case("eight_scaling_4_ep2", TEXT, (*EP2, *OVERLAP), FEW),
                          *both_overlaps("eight_scaling_8_ep8", TEXT, (*EIGHT, *EP8)),
                          *both_overlaps("eight_scaling_8_ep2", TEXT, (*EIGHT, *EP2))],
        "eight_resume": resumes.cases("eight_resume", 8),
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

    def eight_text_64(self):
        self.predicted_yardstick("eight_text_64", TEXT_MFU)

    def eight_text_128(self):
        self.predicted_yardstick("eight_text_128", TEXT_MFU)

    def eight_images_64(self):
        self.predicted_yardstick("eight_images_64", IMAGES_MFU)

    def eight_images_128(self):
        self.predicted_yardstick("eight_images_128", IMAGES_MFU)

    def predicted_yardstick(self, part, wanted):
        (case,) = self.cases[part]
        said = self.show("time", case)["seconds"]
        print(f"{part}: a step is predicted to take {said * 1e3:.1f} ms", flush=True)
        self.yardstick(part, wanted)
        records = self.records_of(case)
        if records is None:
            return
        off = said / self.seconds(records) - 1
        self.judge(abs(off) <= PREDICTION, f"{part}: the prediction is off by {off:+.1%}, allowed {PREDICTION:.0%}")

    def eight_scaling(self):
        seconds, one = self.efficiency("eight_scaling"), "eight_scaling_1"
        for gpus in (2, 4, 8):
            of = {name: seconds[one] / time for name, time in seconds.items()
                  if one in seconds and name.startswith(f"eight_scaling_{gpus}")}
            best = max(of, key=of.get, default=None)
            self.judge(best is not None and of[best] >= EFFICIENCY,
                       f"{gpus} GPUs: " + (f"{of[best]:.1%} of one alone in {best}" if best else "none has run") +
                       f", wanted {EFFICIENCY:.0%}")

    def eight_resume(self):
        resumes.resume(self, "eight_resume")
