"""docs/from_photos.md, run: every command of the page in turn, in a folder with what it begins with, and what the page
shows of it is what it prints. And the mistakes that people make with the same folders.

usage: from_photos_test.py SOURCE BUILD
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path[:0] = [str(SOURCE / "tests/pages"), str(SOURCE / "tests/data/prepare_data"), str(SOURCE / "tests/first")]
import packages  # noqa: E402  fetches those of `./dev prepare`, or skips the test

import blocks  # noqa: E402
import compare  # noqa: E402
import toy_folders  # noqa: E402

PAGE = "docs/from_photos.md"
ENVIRONMENT = dict(os.environ, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}", LC_ALL="C.UTF-8", TZ="UTC")
ENVIRONMENT.pop("COLUMNS", None)
INIT = "plan init --weights nano --encoder radio --data shards --gpus 2 --candidates 3 cluster.gpu=none"


class FromPhotos(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.at = pathlib.Path(cls.holder.name).resolve() / "toy"
        cls.at.mkdir()
        toy_folders.write_all(SOURCE, cls.at, packages.ENVIRONMENT)
        prepared = cls.shell("./dev prepare --tokenizer nano -o shards captions.jsonl", cls.at)
        assert prepared.returncode == 0, prepared.stdout

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    @staticmethod
    def shell(command, at):
        return subprocess.run(["sh", "-c", command], cwd=at, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def refused(self, command, status, *texts, at=None):
        result = self.shell(command, at or self.at)
        self.assertEqual(result.returncode, status, result.stdout)
        for text in texts:
            self.assertIn(text, result.stdout)

    def copied(self, name, to):
        shutil.copytree(self.at / name, self.at / to)
        self.addCleanup(shutil.rmtree, self.at / to)
        return self.at / to

    def test_the_page(self):
        with tempfile.TemporaryDirectory() as holder:
            at = pathlib.Path(holder).resolve()
            toy_folders.write_all(SOURCE, at, packages.ENVIRONMENT)
            ran = []
            for shown in blocks.commands(PAGE, (SOURCE / PAGE).read_text()):
                result = self.shell(shown.command, at)
                self.assertEqual(result.returncode, 0, f"{shown.place()}: {shown.command}\n{result.stdout}")
                difference = compare.difference(shown.output, result.stdout.splitlines(), shown.command)
                self.assertEqual(difference, "", f"{shown.place()}: {shown.command}")
                ran.append(shown.command)
            for word in ("prepare", "init", "validate", "launch", "export", "import"):
                self.assertTrue(any(f" {word} " in command for command in ran), word)
            losses = [json.loads(line)["loss"] for line in (at / "run/metrics.jsonl").read_text().splitlines()
                      if "loss" in json.loads(line)]
            self.assertLess(losses[-1], losses[0], losses)

    def test_what_the_index_counts(self):
        with tempfile.TemporaryDirectory() as holder:
            at = pathlib.Path(holder).resolve()
            for name in ("nano", "radio", "shards", "photos"):
                (at / name).symlink_to(self.at / name)
            # Samples of two tokens of text and the rest for images: as full as they may be, there would be many more.
            init = (f"{INIT} --evaluation shards lints.PW0615=off precision.params=fp32 batch.sequence_length=64 "
                    "-o mine.yaml --replace")
            before = self.shell(init, at)
            self.assertEqual(before.returncode, 0, before.stdout)
            self.assertRegex(before.stdout, r"an epoch of the data is about \d+ samples of 64 tokens, if every image")
            self.assertIn("samples: all", (at / "mine.yaml").read_text())
            said = self.shell("plan show mine.yaml time", at).stdout
            self.assertIn("Samples count as full of images", said)
            self.assertEqual(self.shell("plan data index mine.yaml", at).returncode, 0)
            stats = json.loads(self.shell("plan data stats mine.yaml --json", at).stdout)
            samples = stats["sources"][0]["samples"]
            after = self.shell(init, at)
            self.assertEqual(after.returncode, 0, after.stdout)
            self.assertIn(f"an epoch of the data is {samples} samples of 64 tokens, as its index counts", after.stdout)
            self.assertNotIn("count as full", self.shell("plan show mine.yaml time", at).stdout)
            # The index is beside the recipe, wherever that is.
            (at / "recipes").mkdir()
            init = init.replace("-o mine.yaml", "-o recipes/mine.yaml")
            before = self.shell(init, at)
            self.assertEqual(before.returncode, 0, before.stdout)
            self.assertIn(f"has counted them in {at}/recipes/data_index, the same command with", before.stdout)
            self.assertEqual(self.shell("plan data index recipes/mine.yaml", at).returncode, 0)
            after = self.shell(init, at)
            self.assertEqual(after.returncode, 0, after.stdout)
            self.assertIn(f"an epoch of the data is {samples} samples of 64 tokens, as its index counts", after.stdout)

    def test_what_follows_from_overrides(self):
        init = f"{INIT} precision.params=fp32 data.max_patches=4"
        longer = self.shell(f"{init} budget.train_samples=4000", self.at)
        self.assertEqual(longer.returncode, 0, longer.stdout)
        self.assertIn("train_samples: 4000\n", longer.stdout)
        self.assertRegex(longer.stdout, r"decay_samples: 4000\b")
        self.assertRegex(longer.stdout, r"warmup_samples: 120\b")
        self.assertIn("the encoder is frozen: modules.radio_encoder.train.backbone=trained trains it", longer.stdout)
        everything = self.shell(f"{init} modules.radio_encoder.train.backbone=trained", self.at)
        self.assertEqual(everything.returncode, 0, everything.stdout)
        self.assertNotIn("frozen", everything.stdout)
        projector = self.shell(f"{init} modules.language.train.backbone=frozen", self.at)
        self.assertEqual(projector.returncode, 0, projector.stdout)
        self.assertRegex(projector.stdout, r"peak: 1\.0e-3\b")
        self.assertIn("the encoder and the language model are frozen, and the projector alone is trained",
                      projector.stdout)
        # A pixel shuffle of 2 x 2 patches is the default: 4 x 4 x 32 there, and 4 x 32 without.
        narrow = self.shell(f"{init} models.radio.pixel_shuffle=1", self.at)
        self.assertEqual(narrow.returncode, 0, narrow.stdout)
        self.assertRegex(narrow.stdout, r"hidden: 128 +# first recipe of radio_vit: 4 \* pixel_shuffle")
        self.assertIn("the projector, 128 wide inside,", narrow.stdout)

    def test_images_are_made_as_their_encoder_wants_them(self):
        with tempfile.TemporaryDirectory() as holder:
            at = pathlib.Path(holder).resolve()
            for name in ("nano", "shards", "photos"):
                (at / name).symlink_to(self.at / name)
            toy_folders.write_folder(SOURCE / "tests/exchange/transformers", "qwen3_vl_deepstack", at / "qwen",
                                     toy_folders.VOCABULARY)
            for name in ("tokenizer.json", "tokenizer_config.json"):
                shutil.copy(self.at / "nano" / name, at / "qwen")
            config = json.loads((at / "qwen/config.json").read_text())
            config["image_token_id"] = json.loads((at / "shards/prepared.json").read_text())["ids"]["image"]
            (at / "qwen/config.json").write_text(json.dumps(config))
            init = ("plan init --weights qwen --data shards --gpus 1 --candidates 3 cluster.gpu=none "
                    "precision.params=fp32 data.max_patches=64 -o mine.yaml")
            made = self.shell(init, at)
            self.assertEqual(made.returncode, 0, made.stdout)
            recipe = (at / "mine.yaml").read_text()
            self.assertRegex(recipe, r"resize: bicubic_8bit\b")
            self.assertRegex(recipe, r"grid: smart_resize\b")
            # The published processor makes no image smaller than 65,536 pixels; this recipe asks for fewer at most.
            self.assertRegex(recipe, r"min_patches: 64\b")
            self.assertIn("images of less than 64 patches become larger, where 7,281 are usual", made.stdout)
            ran = self.shell("plan launch mine.yaml --local --yes --steps 2 --run-dir run", at)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            # Of few positions most are of the largest image, which is chosen so that a text fits beside it.
            config["text_config"]["max_position_embeddings"] = 512
            (at / "qwen/config.json").write_text(json.dumps(config))
            made = self.shell(init.replace(" data.max_patches=64", "") + " --replace", at)
            self.assertEqual(made.returncode, 0, made.stdout)
            recipe = (at / "mine.yaml").read_text()
            self.assertRegex(recipe, r"sequence_length: 512\b")
            self.assertRegex(recipe, r"max_patches: 1636\b")
            self.assertIn('pattern: "VVDVD"', recipe)
            config["vision_config"]["deepstack_visual_indexes"] = [2, 1]
            (at / "qwen/config.json").write_text(json.dumps(config))
            self.refused(f"{init} --replace", 1, "vision_config.deepstack_visual_indexes = [2,1] cannot be expressed",
                         "only numbers that ascend", at=at)

    def test_squares_for_siglip(self):
        with tempfile.TemporaryDirectory() as holder:
            at = pathlib.Path(holder).resolve()
            for name in ("nano", "shards", "photos"):
                (at / name).symlink_to(self.at / name)
            toys = SOURCE / "tests/exchange/transformers"
            toy_folders.write_folder(toys, "llava", at / "llava", toy_folders.VOCABULARY)
            toy_folders.write_folder(toys, "siglip", at / "siglip")
            for name in ("tokenizer.json", "tokenizer_config.json"):
                shutil.copy(self.at / "nano" / name, at / "llava")
            config = json.loads((at / "llava/config.json").read_text())
            config["image_token_index"] = json.loads((at / "shards/prepared.json").read_text())["ids"]["image"]
            (at / "llava/config.json").write_text(json.dumps(config))
            for number, folders in enumerate(("--weights llava", "--weights nano --encoder siglip")):
                made = self.shell(f"plan init {folders} --data shards --gpus 1 --candidates 3 cluster.gpu=none "
                                  f"precision.params=fp32 -o mine{number}.yaml", at)
                self.assertEqual(made.returncode, 0, made.stdout)
                recipe = (at / f"mine{number}.yaml").read_text()
                self.assertRegex(recipe, r"resize: bicubic_8bit\b")
                self.assertRegex(recipe, r"grid: square\b")
                self.assertRegex(recipe, r"final_norm: none\b")
                self.assertNotIn("post_layernorm", recipe)
                self.assertIn("siglip_encoder", recipe)
                self.assertNotIn("radio_encoder", recipe)
                self.assertNotIn("max_patches", recipe)
                ran = self.shell(f"plan launch mine{number}.yaml --local --yes --steps 2 --run-dir run{number}", at)
                self.assertEqual(ran.returncode, 0, ran.stdout)
            indexed = self.shell("plan data index mine0.yaml", at)
            self.assertEqual(indexed.returncode, 0, indexed.stdout)
            self.assertIn("more pixels than a square of max_image", indexed.stdout)
            self.assertRegex(self.shell("plan show mine0.yaml data", at).stdout, r"bicubic_8bit, grid square")
            # The data and the folder disagree on how images are cut.
            self.refused("plan validate mine0.yaml data.grid=ceil", 1, "positions for 4 x 4 patches alone", at=at)
            del config["vision_feature_layer"]
            (at / "llava/config.json").write_text(json.dumps(config))
            self.refused("plan init --weights llava --data shards --gpus 1 -o other.yaml", 1,
                         "vision_feature_layer is missing, and is then -2", at=at)

    def test_what_overrides_say_of_the_layout_stays(self):
        init = f"{INIT} precision.params=fp32 data.max_patches=4"
        kept = self.shell(f"{init} modules.language.parallel.tp=2 modules.radio_encoder.parallel.tp=2", self.at)
        self.assertEqual(kept.returncode, 0, kept.stdout)
        self.assertEqual(len(re.findall(r"\btp: 2\b", kept.stdout)), 2, kept.stdout)
        self.refused(f"{init} modules.language.parallel.tp=3", 1, "tp")

    def test_a_stage_that_extends_another(self):
        with tempfile.TemporaryDirectory() as holder:
            at = pathlib.Path(holder).resolve()
            for name in ("nano", "radio", "shards", "photos"):
                (at / name).symlink_to(self.at / name)
            first = self.shell(f"{INIT} precision.params=fp32 data.max_patches=4 modules.language.train.backbone=frozen"
                               " -o stage1.yaml", at)
            self.assertEqual(first.returncode, 0, first.stdout)
            second = "extends: stage1.yaml\nmodules: {language: {train: {backbone: trained}}}\ninitialize: {from: run1"
            (at / "stage2.yaml").write_text(second + "}\n")
            refused = self.shell("plan validate stage2.yaml", at)
            self.assertEqual(refused.returncode, 1, refused.stdout)
            self.assertIn("`initialize.sources: []` beside `from` drops those of the recipe that is extended",
                          refused.stdout)
            ran = self.shell("plan launch stage1.yaml --local --steps 2 --run-dir run1", at)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            (at / "stage2.yaml").write_text(second + ", sources: []}\n")
            ran = self.shell("plan launch stage2.yaml --local --steps 2 --run-dir run2", at)
            self.assertEqual(ran.returncode, 0, ran.stdout)

    def test_weights_of_large_sources(self):
        """The sum of weights has a limit, which tokens of real data are beyond."""
        for name, tokens in (("large", 7_654_321_098), ("larger", 22_345_678_901)):
            prepared = json.loads((self.copied("shards", name) / "prepared.json").read_text())
            for shard in prepared["shards"]:
                shard["tokens"] = tokens
            (self.at / name / "prepared.json").write_text(json.dumps(prepared))
        done = self.shell(f"{INIT.replace('--data shards', '--data large,larger')} precision.params=fp32 "
                          "data.max_patches=4", self.at)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("name: larger, kind: webdataset, weight: 74486", done.stdout)

    def test_folders_that_are_others(self):
        init = "plan init --gpus 2 cluster.gpu=none --data shards"
        self.refused(f"{init} --weights radio", 1, "radio is an encoder (radio) without a language model")
        self.refused(f"{init} --weights nano --encoder nano", 1,
                     "nano is a language model (nemotron_h) and no encoder: name a folder of model_type radio")
        self.refused(f"{init} --weights nano --encoder none", 2, "none")
        self.refused(f"{init} --weights nano", 1, "its documents have 16 images, and nano has no encoder")
        self.refused(f"{init} --weights nano --model qwen3_8b", 2, "--model and --weights both say the model")
        self.refused("plan init --gpus 2 --weights nano", 2, "--data is not given")
        self.refused("plan init --gpus 2 --model qwen3_8b --data shards", 2, "`--data` is for --weights")
        toy_folders.write_folder(SOURCE / "tests/exchange/transformers", "omni", self.at / "omni")
        self.addCleanup(shutil.rmtree, self.at / "omni")
        self.refused(f"{init} --weights omni --encoder radio", 1, "omni has an encoder of its own (radio): leave")
        self.refused(f"{init} --weights omni", 1, "its image token is 3, and that of omni 255",
                     "its ids need a vocabulary of 364, and omni has 256", "models.nemotron_h.vocabulary=364")

    def test_shards_that_are_none(self):
        init = "plan init --weights nano --encoder radio --gpus 2 cluster.gpu=none --data"
        how = "./dev prepare --tokenizer nano -o shards"
        self.refused(f"{init} photos", 2, "photos is a folder of pictures, and pictures alone are no documents",
                     '{"images":["photos/', f"{how} captions.jsonl`")
        self.refused(f"{init} .", 2, ". is a folder of pictures", '{"images":["photos/')
        self.refused(f"{init} radio", 2, "radio has no prepared.json", f"{how} radio`")
        self.refused(f"{init} shards --evaluation heldout", 2, "option `--evaluation`: heldout is not there",
                     f"{how.removesuffix('shards')}heldout INPUT`")
        self.refused(f"{init} shards --evaluation held_out.jsonl", 2, "held_out.jsonl is no tar file",
                     f"{how.removesuffix('shards')}held_out held_out.jsonl`")
        self.refused(f"{init} captions.jsonl", 2, "captions.jsonl is no tar file", f"{how} captions.jsonl`")
        self.refused(f"{init} none", 2, "none is not there")
        self.refused(f"{init} none/*.tar", 2, "none/*.tar")
        self.refused(f"{init} shards,shards/x.tar", 2, "there is no file shards/x.tar")
        bare = self.copied("shards", "bare")
        (bare / "prepared.json").unlink()
        self.refused(f"{init} 'bare/*.tar'", 2, "there is no prepared.json beside bare/shards-000000.tar")

    def test_names_of_folders(self):
        """A folder may have any name, and a source may not."""
        for name, source in (("my shards", "my_shards"), ("dätä", "d_t_"), (".hidden", "_hidden"),
                             ("s" * 70, "s" * 60)):
            self.copied("shards", name)
            done = self.shell(f"{INIT} --evaluation '{name}' precision.params=fp32 data.max_patches=4"
                              .replace("--data shards", f"--data '{name}'"), self.at)
            self.assertEqual(done.returncode, 0, done.stdout)
            names = re.findall(r"\{name: \"?([^,\"]+)\"?, kind: webdataset", done.stdout)
            self.assertEqual(names, [source] * 2, done.stdout)
        self.copied("shards", "data [1]{2}")
        self.refused("plan init --weights nano --encoder radio --gpus 2 --data 'data [1]{2}'", 2,
                     r"data [1]{2} has one of * ? [ { } \ in its name", "rename the folder, or give a link to it")

    def test_messages_of_a_package_name_its_program(self):
        with tempfile.TemporaryDirectory() as holder:
            shutil.copy(BUILD / "bin/plan", holder)
            (pathlib.Path(holder) / "prepare").write_text("")
            self.refused(f"{holder}/plan init --weights nano --gpus 2 --data none", 2,
                         "made first: `prepare --tokenizer nano -o none INPUT`")

    def test_lines_of_folders_of_classes(self):
        lines = [block for _, block in blocks.raw_blocks((SOURCE / PAGE).read_text()) if block[0].startswith("import ")]
        self.assertEqual(len(lines), 1)
        with tempfile.TemporaryDirectory() as holder:
            at = pathlib.Path(holder)
            for name in ("red/0000.png", "blue/0002.png"):
                (at / "classes" / name).parent.mkdir(parents=True)
                shutil.copy(self.at / "photos" / pathlib.Path(name).name, at / "classes" / name)
            (at / "lines.py").write_text("\n".join(lines[0]))
            done = self.shell("python3 lines.py", at)
            self.assertEqual([json.loads(line) for line in done.stdout.splitlines()],
                             [dict(toy_folders.caption("", color), images=[f"classes/{color}/{name}"])
                              for color, name in (("blue", "0002.png"), ("red", "0000.png"))])

    def test_damage_is_told_each_time(self):
        with tempfile.TemporaryDirectory() as holder:
            at = pathlib.Path(holder).resolve()
            for name in ("nano", "radio"):
                (at / name).symlink_to(self.at / name)
            for name in ("shards", "photos"):
                shutil.copytree(self.at / name, at / name)
            photo = at / "photos/0004.png"
            photo.write_bytes(photo.read_bytes()[:-40])
            init = self.shell(f"{INIT} precision.params=fp32 -o mine.yaml", at)
            self.assertEqual(init.returncode, 0, init.stdout)
            said = ("shards: 1 of 16 documents is damaged (1 with a damaged image): padding in its place "
                    "(data.damaged: skip); the list is ")
            self.assertNotIn(said, self.shell("plan validate mine.yaml", at).stdout)
            self.assertIn(said, self.shell("plan data index mine.yaml", at).stdout)
            self.assertIn(f"note: {said}", self.shell("plan validate mine.yaml", at).stdout)
            listed = next((at / "data_index").glob("*.left_out.txt"))
            self.assertIn(listed.name, self.shell("plan validate mine.yaml", at).stdout)
            self.assertIn("photos/0004.png", listed.read_text())
            for number in (1, 2):
                ran = self.shell(f"plan launch mine.yaml --local --yes --steps 1 --run-dir run{number}", at)
                self.assertIn(f"index of the data: {said}", ran.stdout)

    def test_what_an_export_keeps(self):
        """Of config.json of the folder, what no run says."""
        with tempfile.TemporaryDirectory() as holder:
            at = pathlib.Path(holder).resolve()
            for name in ("radio", "shards", "photos"):
                (at / name).symlink_to(self.at / name)
            shutil.copytree(self.at / "nano", at / "nano")
            config = json.loads((at / "nano/config.json").read_text())
            config.update(max_position_embeddings=4096, bos_token_id=1)
            (at / "nano/config.json").write_text(json.dumps(config))
            init = self.shell(f"{INIT} precision.params=fp32 data.max_patches=4 -o mine.yaml", at)
            self.assertEqual(init.returncode, 0, init.stdout)
            self.shell("plan launch mine.yaml --local --yes --steps 1 --run-dir run", at)
            kept = self.shell("plan export run -o home", at)
            self.assertEqual(kept.returncode, 0, kept.stdout)
            for key, value in (("max_position_embeddings", 4096), ("bos_token_id", 1)):
                self.assertIn(f"copied: {key} {value} of {at}/nano/config.json", kept.stdout)
                self.assertEqual(json.loads((at / "home/config.json").read_text())["text_config"][key], value)
            self.refused("plan export run -o like --like nano", 1, "its config.json has no encoder, which the run has: "
                         "`--module language` exports the other part alone", at=at)
            shutil.rmtree(at / "nano")
            made = self.shell("plan export run -o alone", at)
            self.assertIn("made up: max_position_embeddings: the length of the samples", made.stdout)
            self.assertIn("made up: bos_token_id null", made.stdout)

    def test_shards_of_another_tokenizer(self):
        other = self.copied("nano", "other")
        with open(other / "tokenizer.json", "a", encoding="utf-8") as file:
            file.write("\n")
        digest = json.loads((self.at / "shards/prepared.json").read_text())["tokenizer"]["sha256"]
        init = INIT.replace("nano", "other")
        self.refused(init, 1, "prepare the data again with --tokenizer other", f"data.tokenizer_digest={digest}")
        self.refused(f"{init} precision.params=fp32 data.tokenizer_digest={digest}", 0, "tokenizer_digest: ", digest)

    def test_shards_without_an_image_token(self):
        blind = self.copied("shards", "blind")
        prepared = json.loads((blind / "prepared.json").read_text())
        prepared["ids"]["image"] = None
        (blind / "prepared.json").write_text(json.dumps(prepared))
        self.refused(INIT.replace("shards", "blind"), 1, "prepare the data again with --image-token")


if __name__ == "__main__":
    unittest.main()
