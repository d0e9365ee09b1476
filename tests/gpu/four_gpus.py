"""The parts of `tests/gpu/measure` for four GPUs: the whole vision-language model, with the work of each GPU as on two
GPUs."""

import resumes
from measuring import NO_OVERLAP, OVERLAP, RECIPES, Case, Measure, with_samples
from two_gpus import FEW, ONE, STEPS
from two_gpus import TEXT as TEXT_OF_TWO

TEXT = RECIPES / "nemotron_moe_vlm_20l_4g_text_only.yaml"
IMAGES = RECIPES / "nemotron_moe_vlm_20l_4g.yaml"

# All layouts have the same 32 samples a step, so the others have 16 microbatches on two lanes.
TP2 = ("modules.language.parallel.tp=2",)
TP2_IMAGES = (*TP2, "modules.radio_encoder.parallel.tp=2")  # four encoder lanes would share two samples: two idle
APART = ("modules.radio_encoder.placement.ranks=2", "modules.language.placement.first_rank=2",
         "modules.language.placement.ranks=2", "modules.language.parallel.ep=2",
         "models.nemotron_hybrid_moe_20l.moe.experts=64")
EP2 = ("modules.language.parallel.ep=2",)  # the 64 experts of each GPU on two, and their gradients over two GPUs


def both_kinds(name, recipe, overrides=()):
    return [Case(f"{name}_{kind}", recipe, (*overrides, *NO_OVERLAP, f"modules.language.parallel.dispatch={kind}"), FEW)
            for kind in ("all_to_all", "all_gather")]


def both_overlaps(name, recipe, overrides=()):
    return [Case(name, recipe, (*overrides, *NO_OVERLAP), FEW),
            Case(f"{name}_overlap", recipe, (*overrides, *OVERLAP), FEW)]


class FourGpus(Measure):
    gpus = 4
    limits = {"four_text": 200, "four_images": 300, "four_dispatch": 300, "four_tp2": 300, "four_apart": 250,
              "four_microbatches": 320, "four_scaling": 450, "four_resume": 120}
    cases = {
        "four_text": [Case("four_text", TEXT, steps=STEPS)],
        "four_images": [Case("four_images", IMAGES, steps=STEPS)],
        # Every layout with both kinds of dispatch, with images and without, at one number of samples ...
        "four_dispatch": [*both_kinds("four_text", TEXT), *both_kinds("four_images", IMAGES)],
        "four_tp2": [*both_kinds("four_tp2_text", TEXT, TP2), *both_kinds("four_tp2_images", IMAGES, TP2_IMAGES)],
        "four_apart": both_kinds("four_apart_images", IMAGES, APART),
        # ... and the main layout with 4 and 16 microbatches: what a step costs beside its microbatches does not depend
        # on how tokens reach experts.
        "four_microbatches": [Case(f"four_{name}_{count}", recipe, with_samples(4 * count, FEW), FEW)
                              for name, recipe in (("text", TEXT), ("images", IMAGES)) for count in (4, 16)],
        # On each GPU 8 microbatches of one sample, and 6 experts for each token, so equal FLOPs. With ep 4 a GPU has 32
        # experts, with ep 2 it has 64 as on fewer GPUs.
        "four_scaling": [Case("four_scaling_1", ONE, steps=FEW), *both_overlaps("four_scaling_2", TEXT_OF_TWO),
                         *both_overlaps("four_scaling_4_ep4", TEXT), *both_overlaps("four_scaling_4_ep2", TEXT, EP2)],
        "four_resume": resumes.cases("four_resume", 4),
    }

    def four_text(self):
        self.yardstick("four_text")

    def four_images(self):
        self.yardstick("four_images")

    def four_dispatch(self):
        self.table("four_dispatch")

    def four_tp2(self):
        self.table("four_tp2")

    def four_apart(self):
        self.table("four_apart")

    def four_microbatches(self):
        self.table("four_microbatches")

    def four_scaling(self):
        self.efficiency("four_scaling")

    def four_resume(self):
        resumes.resume(self, "four_resume")
