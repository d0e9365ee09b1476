#!/usr/bin/env python3
"""Packed documents of three lengths: what a step with them is predicted to take, and takes.

    packed_times.py BINARIES SOURCE FOLDER

One sample of each set is of one document, of 4, and of 16. A profile is measured with the second. FOLDER is made anew.
The last line is `verdict: PASS` (status 0) or `verdict: FAIL` (1). Times depend on what else the machine does: they are
printed, and of them only the order is judged.
"""
import argparse
import io
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tarfile

SEQUENCE = 4096  # tokens of a sample
DOCUMENTS = {"one": 1, "four": 4, "many": 16}
STEPS = 8
TEXT = b"the quick brown fox jumps over the lazy dog and runs away from it as fast as it can "
RECIPE = """\
name: {name}
extends: [{tiny}]
cluster: {{nodes: 1, gpus_per_node: 1, gpu: none{profile}}}
models: {{decoder_tiny: {{vocabulary: 260}}}}
batch: {{global_samples: 2, micro_samples: 1, sequence_length: {sequence}}}
budget:
  train_samples: {samples}
  learning_rate: {{peak: 3.0e-3, min: 3.0e-5, warmup_samples: 2, decay_samples: {samples}, style: cosine}}
data:
  kind: sources
  seed: 1234
  sources: [{{name: texts, kind: webdataset, shards: [{name}.tar]}}]
  tokenizer: bytes
  packed_documents: true
  index: {index}
"""


def write(path, documents, samples=60, seed=1):
    """A shard whose samples have so many documents, each nearly as long as its share."""
    numbers = random.Random(seed)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(documents * samples):
            share = SEQUENCE // documents
            data = (TEXT * (share // len(TEXT) + 1))[:share - numbers.randrange(2, 2 + share // 32)]
            member = tarfile.TarInfo(f"{number:06}.txt")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


class Sets:
    def __init__(self, options):
        self.plan, self.source, self.folder = options.binaries / "plan", options.source, options.folder
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, documents in DOCUMENTS.items():
            write(self.folder / f"{name}.tar", documents)

    def recipe(self, name, index, profile=""):
        path = self.folder / f"{name}_{index}.yaml"
        path.write_text(RECIPE.format(name=name, tiny=self.source / "recipes/llama_tiny.yaml", index=index,
                                      sequence=SEQUENCE, samples=2 * STEPS,
                                      profile=f", profile: {profile}" if profile else ""))
        return path

    def run(self, *words):
        done = subprocess.run([str(self.plan), *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"packed_times.py: plan {' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}"
                     f"{done.stderr}")
        return done.stdout

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    sets = Sets(parser.parse_args())
    sets.run("measure", sets.recipe("four", "index"), "--local", "-o", sets.folder / "profile.json")
    found = []
    for name in DOCUMENTS:
        whole = sets.json("show", sets.recipe(name, "no_index", "profile.json"), "time")["seconds"]
        recipe = sets.recipe(name, "index", "profile.json")
        sets.run("data", "index", recipe)
        shown = sets.json("show", recipe, "time")
        run = sets.folder / f"run_{name}"
        sets.run("launch", recipe, "--local", "--yes", "--run-dir", run)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        measured = statistics.median(line["step_seconds"] for line in lines[STEPS // 4:])
        counted, documents = shown["seconds"], shown["documents"]
        found.append((counted, measured))
        print(f"{name:4}  documents of a sample {documents['documents_of_sample']:5.2f}  of its scores "
              f"{documents['share_of_scores']:6.1%}  step: as one {1e3 * whole:7.1f} ms ({whole / measured - 1:+.0%})  "
              f"counted {1e3 * counted:7.1f} ms ({counted / measured - 1:+.0%})  run {1e3 * measured:7.1f} ms",
              flush=True)
    good = sorted(found) == sorted(found, key=lambda pair: pair[1])
    print(f"verdict: {'PASS' if good else 'FAIL'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
