"""Each format of input becomes the shards that the contract says, read here by tarfile alone; and whole runs."""
import array
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest

from packages import COMMAND, ENVIRONMENT, FIXTURES, TOY, prepare

JPG, PNG = b"\xff\xd8\xff\xe0" + b"j" * 20, b"\x89PNG\r\n\x1a\n" + b"p" * 20
WEBP = b"RIFF\x20\0\0\0WEBPVP8 " + b"w" * 20


def read(folder):
    """Documents of a prepared folder: {name of document: {ending: bytes}} in order, and prepared.json."""
    about = json.loads((folder / "prepared.json").read_text())
    documents = {}
    for shard in about["shards"]:
        with tarfile.open(folder / shard["file"], "r:") as tar:
            for member in tar:
                key, _, ending = member.name.partition(".")
                documents.setdefault(key, {})[ending] = tar.extractfile(member).read()
        assert (folder / shard["file"]).stat().st_size == shard["bytes"]
    assert sum(shard["documents"] for shard in about["shards"]) == about["documents"] == len(documents)
    assert sum(len(parts["tok"]) // 4 for parts in documents.values()) == about["tokens"]
    return documents, about


def text_of(folder, document):
    names = [piece.encode("latin-1") for piece in json.loads((folder / "pieces.json").read_text())]
    return b"".join(names[token] for token in array.array("I", document["tok"])).decode()


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.at = pathlib.Path(self._folder.name)

    def write(self, name, value):
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else
                         (value if isinstance(value, str) else json.dumps(value)).encode())
        return path

    def lines(self, name, values):
        return self.write(name, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))

    def tar(self, name, members):
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for member, data in members:
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return path

    def prepared(self, *words, out="out"):
        """Runs in the folder of the test, so that paths are relative."""
        result = prepare("--tokenizer", TOY, "--template", TOY / "chatml.jinja", "-o", out, "--jobs", "1", *words,
                         cwd=self.at)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.said = result.stdout
        return read(self.at / out)

    def texts(self, documents, out="out"):
        return [text_of(self.at / out, parts) for parts in documents.values()]


QUESTION = [{"from": "human", "value": "<image>\nWhat is it?"}, {"from": "gpt", "value": "A wave."}]
RENDERED = ("<|im_start|>user\n<image>\nWhat is it?<|im_end|>\n<|im_start|>assistant\nA wave.<|im_end|>\n")


class Formats(Case):
    def test_jsonl(self):
        self.write("more/a.jpg", JPG)
        self.write("more/b.png", PNG)
        absolute = str(self.write("far.webp", WEBP))
        self.lines("more/data.jsonl", [
            {"messages": [{"role": "user", "content": [
                {"type": "image", "image": "a.jpg"}, {"type": "text", "text": "?"},
                {"type": "image", "image": absolute}]},
                {"role": "assistant", "content": "!"}], "id": 7},
            {"text": "see <image>", "images": ["b.png"]}, {"text": "naïve"}])
        documents, about = self.prepared("more/data.jsonl")
        self.assertEqual(list(documents), ["000000000", "000000001", "000000002"])
        self.assertEqual(self.texts(documents), [
            "<|im_start|>user\n<image>?<image><|im_end|>\n<|im_start|>assistant\n!<|im_end|>\n", "see <image></s>",
            "naïve</s>"])
        first, second, third = documents.values()
        self.assertEqual(json.loads(first["images"]), [{"file": "../more/a.jpg"}, {"file": absolute}])
        self.assertEqual(json.loads(second["images"]), [{"file": "../more/b.png"}])
        self.assertEqual((sorted(second), sorted(third)), (["images", "tok"], ["tok"]))
        self.assertEqual(len(first["mask"]) * 4, len(first["tok"]))
        self.assertEqual(about["ids"], {"image": 3, "pad": 0, "end": 2})
        self.assertEqual(about["tokenizer"], {"name": "tokenizer.json", "sha256": hashlib.sha256(
            (TOY / "tokenizer.json").read_bytes()).hexdigest()})
        self.assertEqual(about["template"], {"sha256": hashlib.sha256(
            (TOY / "chatml.jinja").read_bytes()).hexdigest()})
        self.assertEqual((about["format"], about["version"], about["images"]), ("planwright_prepared", 1, 3))
        self.assertEqual(about["learnt"], sum(first["mask"]) + (len(second["tok"]) + len(third["tok"])) // 4)
        self.assertIn("nothing was made of: id (1 document)", self.said)
        self.assertIn("more/data.jsonl:1: ", self.said)
        self.assertIn("⟦!<|im_end|>\n⟧", self.said)

    def test_llava(self):
        self.write("pictures/00/a.jpg", JPG)
        self.write("llava.json", [{"id": "x", "image": "00/a.jpg", "conversations": QUESTION}])
        documents, _ = self.prepared("llava.json", "--images", "pictures")
        self.assertEqual(self.texts(documents), [RENDERED])
        self.assertEqual(json.loads(documents["000000000"]["images"]), [{"file": "../pictures/00/a.jpg"}])

    def test_jsonl_with_media(self):
        self.tar("set/media/shard_000.tar", [("a.jpg", JPG), ("b/c.png", PNG)])
        self.tar("set/media/shard_001.tar", [("d.jpg", JPG)])
        self.lines("set/set.jsonl", [
            {"messages": [{"role": "user", "content": [
                {"type": "image", "image": name, "metadata": {"width": 1}}, {"type": "text", "text": "?"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "!"}]}]}
            for name in ("d.jpg", "b/c.png", "c.png")])
        documents, _ = self.prepared("set")
        self.assertEqual([json.loads(parts["images"])[0] for parts in documents.values()], [
            {"shard": "../set/media/shard_001.tar", "member": "d.jpg"},
            {"shard": "../set/media/shard_000.tar", "member": "b/c.png"},
            {"shard": "../set/media/shard_000.tar", "member": "b/c.png"}])
        self.assertIn("jsonl_media (it has a JSONL file and a folder media)", self.said)
        shutil.rmtree(self.at / "out")
        self.assertEqual(self.prepared("set/set.jsonl")[0], documents)

    def parquet(self, name, columns):
        import pyarrow
        import pyarrow.parquet
        pyarrow.parquet.write_table(pyarrow.table(columns), self.at / name, row_group_size=2)

    def test_parquet_with_messages(self):
        self.parquet("chats.parquet", {
            "messages": [[{"role": "user", "content": "<image><image>?"}, {"role": "assistant", "content": "1"}],
                         [{"role": "user", "content": "<image>?"}, {"role": "assistant", "content": "2"}],
                         [{"role": "user", "content": "?"}, {"role": "assistant", "content": "3"}]],
            "images": [[{"bytes": JPG, "path": "x.jpg"}, {"bytes": PNG, "path": None}],
                       [{"bytes": WEBP, "path": None}], []]})
        documents, about = self.prepared("chats.parquet")
        self.assertEqual([sorted(parts) for parts in documents.values()],
                         [["0.jpg", "1.png", "mask", "tok"], ["mask", "tok", "webp"], ["mask", "tok"]])
        self.assertEqual((documents["000000000"]["0.jpg"], documents["000000000"]["1.png"]), (JPG, PNG))
        self.assertEqual((documents["000000001"]["webp"], about["images"]), (WEBP, 3))

    def test_interleaved_parquet(self):
        self.parquet("web.parquet", {"texts": [["first", None, "last"]], "metadata": ["m"],
                                     "images": [[None, {"bytes": JPG, "path": "u"}, None]]})
        documents, _ = self.prepared("web.parquet")
        self.assertEqual(self.texts(documents), ["first\n\n<image>\n\nlast</s>"])
        self.assertEqual(documents["000000000"]["jpg"], JPG)
        self.assertIn("texts, images; not used: metadata", self.said)

    def test_text(self):
        self.write("a.txt", "a wave\nanother wave\n")
        self.write("b.txt", "the weather")
        self.assertEqual(self.texts(self.prepared("a.txt", "b.txt")[0]), ["a wave\nanother wave\n</s>", "the "
            "weather</s>"])
        self.assertEqual(self.texts(self.prepared("--lines", "a.txt", "b.txt", out="lines")[0], "lines"),
                         ["a wave</s>", "another wave</s>", "the weather</s>"])

    def test_webdataset_by_fields(self):
        self.tar("s.tar", [("x/0.jpg", JPG), ("x/0.json", json.dumps({"conversations": QUESTION}).encode()),
                           ("x/0.cls", b"1"), ("x/1.png", PNG),
                           ("x/1.json", json.dumps({"conversations": QUESTION}).encode())])
        documents, _ = self.prepared("s.tar", "--field", "image=jpg,png", "--field", "messages=json[conversations]")
        self.assertEqual(self.texts(documents), [RENDERED, RENDERED])
        self.assertEqual(json.loads(documents["000000001"]["images"]), [{"shard": "../s.tar", "member": "x/1.png"}])
        self.assertIn("nothing was made of: .cls (1 document)", self.said)

    def test_what_the_webdataset_package_wrote(self):
        shards = sorted((FIXTURES / "webdataset").glob("*.tar"))
        words = ["--field", "image=jpg,png,webp,0.jpg", "--field", "image=1.png", "--field", "text=txt"]
        documents, _ = self.prepared(*shards, *words)
        self.assertEqual(self.texts(documents), [
            "<image>slow waves</s>", "steeper <image> waves, seen upright</s>", "no picture here: žluťoučký kůň</s>",
            "<image>wide waves</s>", "first <image>, then <image></s>"])
        self.assertEqual(json.loads(documents["000000004"]["images"]), [
            {"shard": str(shards[1]), "member": "more/waves_4.0.jpg"},
            {"shard": str(shards[1]), "member": "more/waves_4.1.png"}])

    def test_what_energon_prepared(self):
        documents, _ = self.prepared(FIXTURES / "energon/captions")
        self.assertEqual(self.texts(documents), [f"<image>waves number {i}</s>" for i in range(5)])
        documents, _ = self.prepared(FIXTURES / "energon/questions", out="questions")
        self.assertEqual(self.texts(documents, "questions")[2],
                         "<|im_start|>user\n<image>\nHow many waves in picture 2?<|im_end|>\n<|im_start|>assistant\n"
                         "I count 5.<|im_end|>\n")

    def test_energon_leaves_out_what_split_excludes(self):
        shutil.copytree(FIXTURES / "energon/captions", self.at / "captions")
        self.write("captions/.nv-meta/split.yaml", "split_parts: {train: ['shard_{000..001}.tar'], val: "
                   "[shard_001.tar]}\nexclude: [shard_000.tar/sample_1]\n")
        self.assertEqual(self.texts(self.prepared("captions")[0]),
                         [f"<image>waves number {i}</s>" for i in (0, 2, 3, 4)])
        self.assertEqual(len(self.prepared("captions", "--split", "val", out="val")[0]), 2)


class Runs(Case):
    def many(self, count=3000):
        return self.lines("many.jsonl", [
            {"messages": [{"role": "user", "content": f"wave {i}?"}, {"role": "assistant", "content": "yes "
                "" * (i % 7 + 1)}]}
            if i % 3 else {"text": f"the weather of day {i}"} for i in range(count)])

    def test_the_same_bytes_with_any_number_of_processes(self):
        self.many()
        self.prepared("many.jsonl", "--name", "a", "--jobs", "1", "--shard-documents", "700", out="one")
        self.prepared("many.jsonl", "--name", "a", "--jobs", "3", "--shard-documents", "700", out="three")
        self.assertEqual(files_of(self.at / "one"), files_of(self.at / "three"))
        self.assertEqual([shard["documents"] for shard in read(self.at / "one")[1]["shards"]], [700] * 4 + [200])

    def test_shards_by_bytes(self):
        self.many(100)
        _, about = self.prepared("many.jsonl", "--shard-bytes", "40K")
        self.assertGreater(len(about["shards"]), 3)
        self.assertLessEqual(max(shard["bytes"] for shard in about["shards"]), 40 << 10)

    def test_what_is_skipped_is_counted_and_listed(self):
        self.lines("some.jsonl", [{"text": "a"}, {"text": "<image>"}, {"messages": []}, {"text": "b"}])
        documents, about = self.prepared("some.jsonl", "--refused", "skip")
        self.assertEqual((list(documents), about["documents"]), (["000000000", "000000003"], 2))
        refused = [json.loads(line) for line in (self.at / "out/refused.jsonl").read_text().splitlines()]
        self.assertEqual([(entry["document"], entry["place"], entry["kind"]) for entry in refused],
                         [(1, "some.jsonl:2", "images"), (2, "some.jsonl:3", "damaged")])
        self.assertIn("refused, images: 1 document (refused.jsonl)", self.said)

    def test_show(self):
        self.many(10)
        result = prepare("--tokenizer", TOY, "--template", TOY / "chatml.jinja", "--show", "4", "many.jsonl",
                         cwd=self.at)
        self.assertTrue(result.stdout.endswith(
            "many.jsonl:5: 39 tokens, 22 learnt (in ⟦ ⟧), 0 images\n<|im_start|>user\nwave 4?<|im_end|>\n"
            "<|im_start|>assistant\n⟦yes yes yes yes yes <|im_end|>\n⟧\n"), result.stdout)

    def test_colours(self):
        from prepare_data import show
        from prepare_data.encode import Encoded
        from prepare_data.records import Picture
        encoded = Encoded([0, 1, 2], [0, 0, 1], [Picture("a.jpg")], {})
        names = [b"ask", b"", b"answer\x1b"]
        self.assertTrue(show.document("p", encoded, 1, names, colour=True).split("\n")[1].startswith(
            "\x1b[2mask\x1b[0m\x1b[35m<image 0: a.jpg>\x1b[0m"))
        self.assertTrue(show.document("p", Encoded([0, 2], [0, 1], [], {}), 1, names, colour=True).endswith(
            "\x1b[32manswer\\x1b\x1b[0m"))

        class Terminal:
            def isatty(self):
                return True
        before = os.environ.pop("NO_COLOR", None)
        try:
            self.assertTrue(show.wants_colour(Terminal()))
            os.environ["NO_COLOR"] = "1"
            self.assertFalse(show.wants_colour(Terminal()))
        finally:
            os.environ.pop("NO_COLOR", None)
            if before is not None:
                os.environ["NO_COLOR"] = before

    def test_progress_on_a_terminal(self):
        from prepare_data.progress import Progress, duration

        class Terminal(io.StringIO):
            def isatty(self):
                return True
        terminal, elsewhere = Terminal(), io.StringIO()
        for stream in (terminal, elsewhere):
            progress = Progress(1000, stream, every=0)
            progress.add(250, 1234)
            progress.clear()
        self.assertRegex(terminal.getvalue(), r"^\r1,234 documents  [\d,]+ documents/s  25%  left 0 s\x1b\[K\r\x1b\[K$")
        self.assertEqual(elsewhere.getvalue(), "")
        self.assertEqual([duration(seconds) for seconds in (0.4, 59.6, 61, 7260)], ["0 s", "1 min 00 s", "1 min 01 s",
                                                                                "2 h 01 min"])

    def test_characters_that_the_tokenizer_does_not_know_are_counted(self):
        tokenizer = json.loads((TOY / "tokenizer.json").read_text())
        tokenizer["model"] = {"type": "WordLevel", "unk_token": "<s>", "vocab": {"<s>": 1, "wave": 5}}
        tokenizer["pre_tokenizer"] = {"type": "Whitespace"}
        self.write("words.json", tokenizer)
        self.lines("a.jsonl", [{"text": "wave what wave"}])
        result = prepare("--tokenizer", "words.json", "--pad-token", "<pad>", "--end-token", "</s>", "-o", "out", "a.jsonl",
                         cwd=self.at)
        self.assertIn("characters that the tokenizer does not know became <s>: 1 "
"token\n", result.stdout + result.stderr)

    def test_a_folder_that_is_made_meanwhile_is_not_overwritten(self):
        os.mkfifo(self.at / "slow.jsonl")
        run = subprocess.Popen([*COMMAND, "--tokenizer", TOY, "-o", "out", "slow.jsonl", "--jobs", "1"], cwd=self.at,
                               env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with open(self.at / "slow.jsonl", "wb") as pipe:
            pipe.write(b'{"text": "a"}\n')
            self.write("out/mine", "x")
        self.assertEqual((run.communicate()[1], run.returncode), (
            "error: out: it was made meanwhile, and is not overwritten; name another\n", 1))
        self.assertEqual((sorted(os.listdir(self.at)), os.listdir(self.at / "out")), (["out", "slow.jsonl"], ["mine"]))

    def test_nothing_stays_of_a_run_that_fails_or_is_interrupted(self):
        self.lines("bad.jsonl", [{"text": "a"}] * 100 + [{"text": 3}])
        self.assertEqual(prepare("--tokenizer", TOY, "-o", "out", "bad.jsonl", cwd=self.at).returncode, 1)
        self.assertEqual(os.listdir(self.at), ["bad.jsonl"])
        os.mkfifo(self.at / "slow.jsonl")   # a run that waits for its input
        run = subprocess.Popen([*COMMAND, "--tokenizer", TOY, "-o", "out", "slow.jsonl", "--jobs", "2"],
                               cwd=self.at, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True)
        with open(self.at / "slow.jsonl", "wb") as pipe:
            pipe.write((json.dumps({"text": "a", "note": "n" * 2000}) + "\n").encode() * 400)
            pipe.flush()
            while not list(self.at.glob(".out.part-*/out-*.tar")):
                time.sleep(0.01)
            run.send_signal(signal.SIGTERM)
            self.assertEqual((run.communicate()[1], run.returncode), ("interrupted: nothing was written\n", 130))
        self.assertEqual(sorted(os.listdir(self.at)), ["bad.jsonl", "slow.jsonl"])


if __name__ == "__main__":
    unittest.main()
