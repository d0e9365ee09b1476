"""The parts of `tests/gpu/measure` that run spaces: lists of layouts of one training curve, all on the same cards.
docs/tune.md#regret says which of each list a search takes, and how far above the best that one is."""

import dataclasses
import json
import statistics
import time

from measuring import ROOT, Case, Measure, gpus_listed

STEPS, WARM_UP = 8, 3


@dataclasses.dataclass(frozen=True)
class Space:
    """A recipe of tests/gpu/spaces, and by name the overrides of each layout, of keys that `plan tune` may change."""
    name: str
    layouts: dict

    def recipe(self):
        return ROOT / "tests/gpu/spaces" / f"{self.name}.yaml"

    def cases(self):
        return {layout: Case(f"{self.name}_{layout.replace(', ', '_').replace(' ', '_')}", self.recipe(), overrides,
                             STEPS)
                for layout, overrides in self.layouts.items()}


def micro(samples):
    return (f"batch.micro_samples={samples}",)


def recompute(what, *modules):
    return tuple(f"modules.{module}.recompute={what}" for module in modules or ("language",))


def axes(module="language", **sizes):
    return tuple(f"modules.{module}.parallel.{axis}={size}" for axis, size in sizes.items())


def both(encoder, **sizes):
    return axes(encoder, tp=sizes["tp"]) + axes(**sizes)


def apart(encoder):
    """A GPU for each."""
    return tuple(f"modules.{module}.placement.{key}={value}" for module, first in ((encoder, 0), ("language", 1))
                 for key, value in (("first_rank", first), ("ranks", 1)))


def overlap(buckets):
    return ("gradients.overlap_reduce=true", "gradients.overlap_gather=true", f"gradients.buckets={buckets}")


TO_ALL, GATHER = {"ep": 2, "dispatch": "all_to_all"}, {"ep": 2, "dispatch": "all_gather"}
BESIDE = {"ep": 2, "overlap_dispatch": "true"}

ONE = [
    Space("experts_1g", {
        "2 samples": micro(2),
        "4 samples": micro(4),
        "8 samples": micro(8),
        "8 samples, elementwise": micro(8) + recompute("elementwise"),
        "8 samples, attention": micro(8) + recompute("attention")}),
    Space("dense_1g", {
        "2 samples": micro(2),
        "4 samples": micro(4),
        "8 samples": micro(8),
        "8 samples, elementwise": micro(8) + recompute("elementwise")}),
    Space("deepstack_1g", {
        "2 samples": micro(2),
        "4 samples": micro(4),
        "8 samples": micro(8),
        "8 samples, elementwise": micro(8) + recompute("elementwise", "vision_encoder", "language")}),
    Space("hybrid_images_1g", {
        "1 sample": micro(1),
        "2 samples": micro(2),
        "4 samples": micro(4),
        "4 samples, elementwise": micro(4) + recompute("elementwise", "radio_encoder", "language"),
        "1 sample, block": micro(1) + recompute("block", "radio_encoder")}),
    Space("adapters_1g", {
        "2 samples": micro(2),
        "4 samples": micro(4),
        "8 samples": micro(8),
        "4 samples, elementwise": micro(4) + recompute("elementwise"),
        "8 samples, elementwise": micro(8) + recompute("elementwise")}),
    Space("short_1g", {f"{count} samples": micro(count) for count in (8, 16, 32)}),
]

TWO = [
    Space("dense_2g", {
        "dp 2, 4 samples": micro(4),
        "dp 2, 4 samples, overlap": micro(4) + overlap(8),
        "dp 2, 2 samples, overlap": micro(2) + overlap(8),
        "tp 2, 8 samples": axes(tp=2) + micro(8),
        "cp 2, 8 samples": axes(cp=2) + micro(8),
        "pp 2, 1 sample": axes(pp=2, stage_layers="[9,3]")}),
    Space("experts_2g", {
        "ep 1, 4 samples, overlap": micro(4) + overlap(4),
        "ep 2, 4 samples, all_gather": axes(**GATHER) + micro(4),
        "ep 2, 8 samples, all_gather": axes(**GATHER) + micro(8),
        "ep 2, 8 samples, all_to_all": axes(**TO_ALL) + micro(8),
        "tp 2, ep 2, 8 samples": axes(tp=2, ep=2) + micro(8),
        "pp 2, 2 samples": axes(pp=2, stage_layers="[7,1]") + micro(2)}),
    Space("long_2g", {
        "dp 2": (),
        "dp 2, overlap": overlap(4),
        "dp 2, elementwise": recompute("elementwise"),
        "cp 2, 2 samples": axes(cp=2) + micro(2),
        "tp 2, 2 samples": axes(tp=2) + micro(2)}),
    Space("hybrid_2g", {
        "ep 1, overlap": overlap(4),
        "ep 2, all_to_all": axes(**TO_ALL) + overlap(4),
        "ep 2, all_gather": axes(**GATHER) + overlap(4),
        "ep 2, of dispatch": axes(**BESIDE),
        "ep 2, of both": axes(**BESIDE) + overlap(4),
        "tp 2, ep 2, 2 samples": axes(tp=2, ep=2) + micro(2)}),
    Space("hybrid_images_2g", {
        "ep 1, overlap": overlap(4),
        "ep 2": axes(ep=2),
        "ep 2, 2 samples": axes(ep=2) + micro(2),
        "tp 2, ep 2, 2 samples": both("radio_encoder", tp=2, ep=2) + micro(2),
        "encoder apart": apart("radio_encoder")}),
    Space("deepstack_2g", {
        "dp 2, 2 samples, overlap": micro(2) + overlap(4),
        "dp 2, 4 samples": micro(4),
        "dp 2, 8 samples": micro(8),
        "dp 2, 8 samples, elementwise": micro(8) + recompute("elementwise", "vision_encoder", "language"),
        "encoder apart": apart("vision_encoder")}),
]


def cases_of(spaces):
    return [case for space in spaces for case in space.cases().values()]


class Spaces(Measure):
    """Each layout is launched once, for so few steps that starting takes most of it. `PART.json` in the folder of
    logs has all runs that are done."""

    lists = {}  # of each part: its spaces
    chosen, minutes = (), None  # names of spaces; after how many minutes no run begins

    def run_spaces(self, part):
        begun, left, rows, gpus = time.monotonic(), [], [], gpus_listed()
        for space in self.lists[part]:
            if space.name not in self.chosen:
                continue
            print(f"{space.name:46} measured, ms  data sheet, ms  planned, GB    used", flush=True)
            for layout, case in space.cases().items():
                if self.minutes is not None and time.monotonic() - begun > 60 * self.minutes:
                    left.append(f"{space.name}, {layout}")
                    continue
                row = self.row(part, space, layout, case)
                if row:
                    rows.append(row)
                    (self.out / f"{part}.json").write_text(json.dumps({"gpus": gpus, "runs": rows}, indent=1) + "\n")
            self.compare([row for row in rows if row["space"] == space.name], len(space.layouts))
        if left:
            self.judge(False, f"{part}: no time was left for {'; '.join(left)}")

    def row(self, part, space, layout, case):
        records, _ = self.launch(part, case)
        if records is None:
            return None
        steps = [record["step_seconds"] * 1e3 for record in records]
        measured, predicted = statistics.median(steps[WARM_UP:]), self.show("time", case)["seconds"] * 1e3
        planned, used = self.fullest(case)
        print(f"  {layout:44} {measured:12.1f} {predicted:15.1f} {planned / 1e9:12.2f} {used / 1e9:7.2f}  "
              f"{' '.join(case.overrides)}", flush=True)
        return {"space": space.name, "recipe": str(case.recipe.relative_to(ROOT)), "layout": layout,
                "overrides": case.overrides, "measured_ms": measured, "data_sheet_ms": predicted, "steps_ms": steps,
                "planned_bytes": planned, "used_bytes": used}

    def compare(self, rows, layouts):
        """The fastest by data sheets beside the fastest, where all have run."""
        if len(rows) < layouts:
            return
        chosen, best = (min(rows, key=lambda row: row[key]) for key in ("data_sheet_ms", "measured_ms"))
        print(f"  fastest by data sheets: {chosen['layout']}, {chosen['measured_ms'] / best['measured_ms'] - 1:+.1%} "
              f"beside {best['layout']}", flush=True)


class SpacesOneGpu(Spaces):
    gpus = 1
    limits = {"spaces": 590}
    lists = {"spaces": ONE}
    cases = {"spaces": cases_of(ONE)}

    def spaces(self):
        self.run_spaces("spaces")


class SpacesTwoGpus(Spaces):
    gpus = 2
    limits = {"spaces_2g": 590}
    lists = {"spaces_2g": TWO}
    cases = {"spaces_2g": cases_of(TWO)}

    def spaces_2g(self):
        self.run_spaces("spaces_2g")
