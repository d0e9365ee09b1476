"""Photos as people have them, from files to a trained toy: prepared, indexed, trained on one rank and on from there on
two. 12 megapixels, panoramas, scans, turned by EXIF, grey, tiny, thin, damaged: none of a size is refused.

usage: photos_test.py SOURCE BUILD [COUNT]
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

COUNT = int(sys.argv.pop(3)) if len(sys.argv) > 3 and sys.argv[3].isdigit() else 60
sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tests/data/prepare_data"))
from packages import BUILD, TOY, prepare  # noqa: E402 (fetches what prepare needs)
from cases import Case  # noqa: E402

COLORS = ("red", "green", "blue", "yellow")
RECIPE = """name: photos
cluster: {{nodes: 1, gpus_per_node: {ranks}, gpu: none}}
models:
  encoder:
    {{kind: radio_vit, layers: 2, hidden: 32, heads: 4, ffn: 64, patch: 4, class_tokens: 2, max_image: 32,
     positions: interpolate, projector: {{hidden: 64}}}}
  text:
    kind: hybrid_lm
    pattern: "M*E"
    hidden: 64
    vocabulary: 512
    attention: {{heads: 4, head_dim: 16, kv_groups: 2}}
    mamba: {{heads: 8, head_dim: 8, groups: 2, state: 16, conv: 4, chunk: 16}}
    moe: {{experts: 4, top_k: 2, ffn: 48, shared_ffn: 64, scale: 2.5, aux_loss: 1.0e-4, bias_rate: 1.0e-3}}
modules:
  encoder: {{model: encoder, placement: {{first_rank: 0, ranks: {ranks}}}}}
  language: {{model: text, placement: {{first_rank: 0, ranks: {ranks}}}}}
bridges: [{{from: encoder, to: language}}]
batch: {{global_samples: 8, micro_samples: 1, sequence_length: 96}}
budget:
  train_samples: {samples}
  learning_rate: {{peak: 1.0e-2, min: 1.0e-3, warmup_samples: 8, decay_samples: {samples}, style: cosine}}
  weight_decay: {{start: 0.0, end: 0.0}}
precision: {{params: fp64}}
checkpoint: {{every_steps: {steps}, keep_last: 2}}
data:
  kind: sources
  seed: 7
  sources: [{{name: photos, kind: webdataset, shards: ["ids/*.tar"]}}]
  tokenizer: ids
  orientation: exif
  resize: bicubic
  grid: round_half_even
  min_patches: 4
  {patches}
  {damaged}
lints: {{PW0605: off}}
"""


class Photos(Case):
    def plan(self, *words, status=0):
        done = subprocess.run([BUILD / "bin/plan", *map(str, words)], cwd=self.at, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def recipe(self, name="recipe.yaml", ranks=1, patches="max_patches: 64", damaged="damaged: error", steps=3):
        self.write(name, RECIPE.format(ranks=ranks, patches=patches, damaged=damaged, samples=8 * self.steps,
                                       steps=steps))
        return name

    def photos(self):
        """Makes them, and a JSON as that of LLaVA that names them, with two that are no pictures."""
        subprocess.run([BUILD / "bin/make_photos", self.at / "photos", str(COUNT)], check=True)
        self.made = json.loads((self.at / "photos/photos.json").read_text())
        self.steps = COUNT // 12
        self.write("photos/page.jpg", "<!DOCTYPE html><html>404</html>")
        records = [{"id": photo["file"], "image": photo["file"], "conversations": [
            {"from": "human", "value": "<image>\nWhat is it?"},
            {"from": "gpt", "value": f"It is {COLORS[photo['color']]}."}]} for photo in self.made]
        for wrong in ("page.jpg", "gone.jpg"):
            records.insert(5, {**records[0], "image": wrong})
        self.write("photos.json", records)
        done = prepare("--tokenizer", TOY, "--template", TOY / "chatml.jinja", "--images", "photos", "--refused",
                       "skip", "-o", "ids", "photos.json", cwd=self.at)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("refused, images: 2 documents (refused.jsonl)", done.stdout)

    def losses(self, run):
        return [json.loads(line)["loss"] for line in (self.at / run / "metrics.jsonl").read_text().splitlines()]

    def test_from_files_to_a_trained_model(self):
        self.photos()
        # What cannot be meant is told before anything is read, and mended.
        said = self.plan("validate", self.recipe(patches=""), status=1)
        self.assertIn("max_patches is 256 by default, but the encoder has 8 x 8 = 64 positions", said)
        self.plan("validate", "--fix", "recipe.yaml")
        self.assertIn("max_patches: 64", (self.at / "recipe.yaml").read_text())

        # Damage: files that were cut off are named by every index, the others by one that decodes.
        cut, inside = ([photo["file"] for photo in self.made if photo["damage"] == damage] for damage in
                       ("cut", "inside"))
        said = self.plan("data", "index", self.recipe(), status=1)
        named = set(re.findall(r"photos/(\d+\.\w+): ", said))
        self.assertLessEqual(named, set(cut))
        self.assertEqual(len(named), min(len(cut), 20))
        said = self.plan("data", "index", self.recipe(), "--decode", status=1)
        named = set(re.findall(r"photos/(\d+\.\w+): ", said))
        self.assertLessEqual(named, {*cut, *inside})
        self.assertEqual(len(named), min(len(cut) + len(inside), 20))
        self.assertIn("`data.damaged: skip`", said)

        # All others are taken, whatever their size, and what becomes of them is counted.
        skip = f"damaged: skip\n  most_damaged: {len(cut) + len(inside)}"
        self.recipe(damaged=skip)
        told = subprocess.run([BUILD / "bin/plan", "data", "index", "recipe.yaml", "--json"], cwd=self.at,
                              stdout=subprocess.PIPE, check=True).stdout
        said = json.loads(told)["sources"][0]
        damaged = len(cut) + len(inside)   # their documents are padding in their place
        self.assertEqual((said["documents"], said["images"], said["damaged"], said["padding"]),
                         (COUNT, COUNT, damaged, damaged))
        self.assertEqual(said["damaged_causes"], {"a damaged image": damaged})
        self.assertEqual(said["turned"], sum(photo["orientation"] != 1 for photo in self.made))
        self.assertEqual((said["images_smaller"], said["images_larger"]), (COUNT - self.tiny(self.made), 0))
        largest = said["largest_image"]
        self.assertEqual((largest["width"], largest["height"]), (8000, 2000))
        self.assertRegex(largest["name"], r"photos/\d{4}\.jpg$")

        # What a checkpoint takes on disk is said before there is one.
        said = re.search(r"it takes ([\d.]+) (kB|MB) on disk; ", self.plan("show", "recipe.yaml", "time"))
        on_disk = float(said[1]) * {"kB": 1e3, "MB": 1e6}[said[2]]

        # One rank, then two, from the checkpoint: as if the run had never stopped.
        self.plan("launch", "recipe.yaml", "--local", "--yes", "--run-dir", "run", "--steps", 3)
        self.recipe("two.yaml", ranks=2, damaged=skip)
        self.plan("launch", "two.yaml", "--local", "--yes", "--run-dir", "run")
        newest = max((self.at / "run/checkpoints").glob("step-*"))
        tensors = sum(file.stat().st_size for file in newest.glob("*.safetensors"))
        self.assertLess(abs(tensors - on_disk), 0.1 * tensors)   # beside them there are headers
        losses = self.losses("run")
        self.assertEqual(len(losses), self.steps)
        self.assertLess(losses[-1], 0.7 * losses[0], losses)
        if COUNT > 60:   # in soak
            self.plan("launch", "two.yaml", "--local", "--yes", "--run-dir", "other")
            for one, other in zip(losses, self.losses("other")):
                self.assertAlmostEqual(one, other, delta=1e-9)

    @staticmethod
    def tiny(photos):
        """Those whose patches are fewer than max_patches as they are."""
        return sum(-(-photo["width"] // 4) * -(-photo["height"] // 4) <= 64 for photo in photos)


if __name__ == "__main__":
    unittest.main()
