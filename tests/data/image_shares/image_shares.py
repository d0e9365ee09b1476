#!/usr/bin/env python3
"""Sets with 2, 30 and 90 % image tokens: what plans know of their images, beside the samples of the run.

    image_shares.py BINARIES SOURCE FOLDER             the images of a step, predicted and counted: within 2 %
    image_shares.py BINARIES SOURCE FOLDER --times     also the time of a step, predicted with and without the index
                                                       from a profile that is measured first, and run

FOLDER is made anew. The last line is `verdict: PASS` (status 0) or `verdict: FAIL` (1). Times depend on what else the
machine does: they are printed, and of them only the order is judged.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import shares

SETS = {"few": 0.02, "some": 0.30, "most": 0.90}
STEPS = 40  # that are timed
RECIPE = """\
name: {name}
extends: [{tiny}]
cluster: {{nodes: 1, gpus_per_node: 2, gpu: none{profile}}}
models:
  radio_vit_tiny: {{layers: 6, hidden: 128, heads: 4, ffn: 512}}
  hybrid_moe_tiny: {{vocabulary: 260}}
modules:
  radio_encoder: {{model: radio_vit_tiny, placement: {{first_rank: 0, ranks: 2}}, parallel: {{dp: 2}}}}
  language: {{model: hybrid_moe_tiny, placement: {{first_rank: 0, ranks: 2}}, parallel: {{dp: 2, ep: 2}}}}
batch: {{global_samples: 8, micro_samples: 1, sequence_length: {length}}}
budget:
  train_samples: {samples}
  learning_rate: {{peak: 3.0e-3, min: 3.0e-5, warmup_samples: 16, decay_samples: {samples}}}
data:
  kind: sources
  seed: 1234
  sources: [{{name: shapes, kind: webdataset, shards: [{name}.tar]}}]
  tokenizer: bytes
  min_patches: 4
  max_patches: 64
  index: {index}
lints: {{PW0613: off}}
"""


class Sets:
    def __init__(self, options):
        self.plan, self.source, self.folder = options.binaries / "plan", options.source, options.folder
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, share in SETS.items():
            shares.write(self.folder / f"{name}.tar", share, 400)

    def recipe(self, name, index, profile="", steps=STEPS):
        path = self.folder / f"{name}_{index}.yaml"
        path.write_text(RECIPE.format(name=name, tiny=self.source / "recipes/nemotron_moe_vlm_tiny.yaml", index=index,
                                      length=shares.SEQUENCE, samples=8 * steps,
                                      profile=f", profile: {profile}" if profile else ""))
        return path

    def run(self, *words):
        done = subprocess.run([str(self.plan), *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"image_shares.py: plan {' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}"
                     f"{done.stderr}")
        return done.stdout

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))


def counts(sets, name):
    """The images of a step: as a plan without an index has them, as one with it, and of the samples of an epoch."""
    recipe = sets.recipe(name, "index")
    before = sets.json("show", recipe, "time")["images"][0]
    sets.run("data", "index", recipe)
    after = sets.json("show", recipe, "time")["images"][0]
    samples = sets.json("data", "stats", recipe)["sources"][0]["samples"]
    steps = samples / 8
    stats = sets.json("data", "stats", sets.recipe(name, "index", steps=samples), "--samples", samples)
    read = stats["read"][0]
    largest = stats["histograms"]["sample_images"]["largest"]
    good = (not before["known"] and after["known"] and
            abs(after["images_per_step"] * steps / read["images"] - 1) <= 0.02 and
            after["max_images_of_sample"] >= largest)
    tokens = read["image_tokens"] / (read["samples"] * shares.SEQUENCE)
    print(f"{name:5} image tokens {tokens:6.1%}  images a step: full {before['images_per_step']:7.1f}  "
          f"counted {after['images_per_step']:7.2f}  of the run {read['images'] / steps:7.2f}  "
          f"largest sample {after['max_images_of_sample']}, of the run {largest}  {'good' if good else 'WRONG'}",
          flush=True)
    return good


def times(sets):
    """Steps without and with the index, and run. Returns whether the order is right."""
    sets.run("measure", sets.recipe("some", "index"), "--local", "-o", sets.folder / "profile.json")
    found = []
    for name in SETS:
        full = sets.json("show", sets.recipe(name, "no_index", "profile.json"), "time")["seconds"]
        recipe = sets.recipe(name, "index", "profile.json")
        counted = sets.json("show", recipe, "time")["seconds"]
        run = sets.folder / f"run_{name}"
        sets.run("launch", recipe, "--local", "--yes", "--run-dir", run)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        measured = statistics.median(line["step_seconds"] for line in lines[STEPS // 4:])
        found.append((counted, measured))
        print(f"{name:5} step: full {1e3 * full:7.1f} ms ({full / measured - 1:+.0%})  counted {1e3 * counted:7.1f} ms "
              f"({counted / measured - 1:+.0%})  run {1e3 * measured:7.1f} ms", flush=True)
    return sorted(found) == sorted(found, key=lambda pair: pair[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    sets = Sets(options)
    good = all([counts(sets, name) for name in SETS])
    if options.times:
        good = times(sets) and good
    print(f"verdict: {'PASS' if good else 'FAIL'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
