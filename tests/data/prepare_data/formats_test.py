"""Each format of input becomes the shards that the page says (docs/training/prepare_data.md)."""
import gzip
import hashlib
import json
import shutil
import unittest
import unittest.mock

from cases import JPG, PNG, WEBP, Case, files_of
from packages import FIXTURES, TOY, prepare

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
        text = [{**QUESTION[0], "value": "What is it?"}, QUESTION[1]]
        self.write("llava.json", [{"id": "x", "image": "00/a.jpg", "conversations": QUESTION},
                                  {"id": "y", "image": "", "conversations": text}])
        documents, _ = self.prepared("llava.json", "--images", "pictures")
        self.assertEqual(self.texts(documents), [RENDERED, RENDERED.replace("<image>\n", "")])
        self.assertEqual(json.loads(documents["000000000"]["images"]), [{"file": "../pictures/00/a.jpg"}])

    def test_parts_of_a_file(self):
        """Each document once, in order, and with its place, however the file is divided for processes."""
        texts = [f"wave {i}" for i in range(7)]
        self.write("llava.json", [{"text": text} for text in texts])
        with unittest.mock.patch("prepare_data.formats.llava.CHUNK", 3):
            self.assertEqual(self.texts(self.prepared("llava.json")[0]), [f"{text}</s>" for text in texts])
        self.lines("a.jsonl", [{"text": text} for text in texts] + [{"text": 1}])
        with unittest.mock.patch("prepare_data.formats.jsonl.CHUNK", 30):
            self.assertEqual(prepare("--tokenizer", TOY, "-o", "bad", "a.jsonl", cwd=self.at).stderr,
                             "error: a.jsonl:8: text: expected a text, found a number 1; quote it\n")
        self.write("a.txt", "\n".join([*texts, "", "x"]))
        with unittest.mock.patch("prepare_data.formats.text.CHUNK", 20):
            self.prepared("--lines", "a.txt", "--refused", "skip", out="lines")
            self.write("b.txt", b"a\n" * 20 + b"\xff\n")
            self.assertIn("b.txt:21: expected UTF-8", prepare("--tokenizer", TOY, "-o", "bad", "--lines", "b.txt",
                                                              cwd=self.at).stderr)

    def test_jsonl_with_media(self):
        self.tar("set/media/shard_000.tar", [("a.jpg", JPG), ("b/c.png", PNG), ("e/f/g.png", PNG)])
        self.tar("set/media/shard_001.tar", [("d.jpg", JPG)])
        self.lines("set/set.jsonl", [
            {"messages": [{"role": "user", "content": [
                {"type": "image", "image": name, "metadata": {"width": 1}}, {"type": "text", "text": "?"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "!"}]}]}
            for name in ("d.jpg", "b/c.png", "c.png", "f/g.png")])
        documents, _ = self.prepared("set")
        self.assertEqual([json.loads(parts["images"])[0] for parts in documents.values()], [
            {"shard": "../set/media/shard_001.tar", "member": "d.jpg"},
            {"shard": "../set/media/shard_000.tar", "member": "b/c.png"},
            {"shard": "../set/media/shard_000.tar", "member": "b/c.png"},
            {"shard": "../set/media/shard_000.tar", "member": "e/f/g.png"}])
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
        self.prepared("chats.parquet", "--jobs", "2", "--name", "out", out="two")   # a process for each group of rows
        self.assertEqual(files_of(self.at / "two"), files_of(self.at / "out"))

    def test_interleaved_parquet(self):
        self.parquet("web.parquet", {"texts": [["first", None, "last"]], "metadata": ["m"],
                                     "images": [[None, {"bytes": JPG, "path": "u"}, None]]})
        documents, _ = self.prepared("web.parquet")
        self.assertEqual(self.texts(documents), ["first\n\n<image>\n\nlast</s>"])
        self.assertEqual(documents["000000000"]["jpg"], JPG)
        self.assertIn("texts, images; not used: metadata", self.said)

    def test_questions_and_answers_of_the_cauldron(self):
        self.parquet("vqa.parquet", {
            "images": [[{"bytes": JPG, "path": None}, {"bytes": PNG, "path": None}], [{"bytes": WEBP, "path": None}]],
            "texts": [[{"user": "a?", "assistant": "b", "source": "s"},
                       {"user": "c?", "assistant": "d", "source": "s"}],
                      [{"user": "e?", "assistant": "f", "source": "s"}]]})
        documents, about = self.prepared("vqa.parquet")
        turn = "<|im_start|>{}\n{}<|im_end|>\n"
        self.assertEqual(self.texts(documents), [
            turn.format("user", "<image><image>a?") + turn.format("assistant", "b") + turn.format("user", "c?") +
            turn.format("assistant", "d"), turn.format("user", "<image>e?") + turn.format("assistant", "f")])
        self.assertEqual((documents["000000000"]["0.jpg"], documents["000000001"]["webp"]), (JPG, WEBP))
        self.assertIn("nothing was made of: texts[].source (2 documents)", self.said)
        self.parquet("other.parquet", {"images": [[{"bytes": JPG, "path": None}]], "texts": [[{"q": "a?", "a": "b"}]]})
        refused = prepare("--tokenizer", TOY, "--template", TOY / "chatml.jinja", "-o", "no", "other.parquet",
                          cwd=self.at)
        self.assertEqual(refused.stderr, "error: other.parquet: row 0: texts[0]: expected texts user and assistant, as "
                         "in The Cauldron, found the keys q, a; rename the columns first\n")

    def test_compressed_texts(self):
        """The bytes of what is compressed, whatever the file is called."""
        for name in ("a.jsonl", "l.json", "t.txt"):
            self.write(name, {"a.jsonl": '{"text": "see"}\n{"text": "naïve"}\n', "l.json": '[{"text": "a wave"}]',
                              "t.txt": "the weather\nit is"}[name])
            packed = self.at / (name.upper() + ".GZ")
            packed.write_bytes(gzip.compress((self.at / name).read_bytes()[:9]) +
                               gzip.compress((self.at / name).read_bytes()[9:]))   # gzip has several parts
            for words in ([], ["--lines"]) if name == "t.txt" else ([],):
                folder = f"{name[0]}{len(words)}"
                plain = self.prepared(name, *words, out=f"{folder}_plain")[0]
                self.assertEqual(self.prepared(packed.name, *words, out=folder)[0], plain)
        (self.at / "b.jsonl").write_bytes((self.at / "A.JSONL.GZ").read_bytes())
        self.assertEqual(self.texts(self.prepared("b.jsonl", out="b")[0], "b"), ["see</s>", "naïve</s>"])

    def test_members_in_capitals_and_notes_of_macos(self):
        self.tar("photos.tar", [("./._0001.jpg", b"\0\5\x16\7"), ("./0001.JPG", JPG), ("./._0001.txt", b"\0\5\x16\7"),
                                ("./0001.TXT", b"see"), ("./.DS_Store", b"Bud1"), ("./0002.Jpeg", JPG),
                                ("./0002.txt", b"it is")])
        documents, _ = self.prepared("photos.tar")
        self.assertEqual(self.texts(documents), ["<image>see</s>", "<image>it is</s>"])
        self.assertEqual(json.loads(documents["000000000"]["images"]),
                         [{"shard": "../photos.tar", "member": "./0001.JPG"}])
        self.prepared("photos.tar", "--field", "image=JPG,Jpeg", "--field", "text=TXT", "--name", "out", out="fields")
        self.assertEqual(files_of(self.at / "fields"), files_of(self.at / "out"))

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

    def test_pictures_that_a_field_passes_over_are_counted(self):
        self.tar("s.tar", [("0.jpg", JPG), ("0.png", PNG), ("0.txt", b"a"), ("1.png", PNG), ("1.txt", b"b")])
        documents, _ = self.prepared("s.tar", "--field", "image=png,jpg", "--field", "text=txt")
        self.assertEqual([json.loads(parts["images"])[0]["member"] for parts in documents.values()], ["0.png", "1.png"])
        self.assertIn("nothing was made of: .jpg (1 document)", self.said)

    def test_byte_order_marks_of_members(self):
        self.tar("s.tar", [("0.txt", b"\xef\xbb\xbfa wave")])
        self.assertEqual(self.texts(self.prepared("s.tar")[0]), ["a wave</s>"])
        self.tar("j.tar", [("0.json", b"\xef\xbb\xbf" + json.dumps({"a": "a wave"}).encode())])
        self.assertEqual(self.texts(self.prepared("j.tar", "--field", "text=json[a]", out="j")[0], "j"), ["a wave</s>"])
        self.tar("t.tar", [("0.json", b'{"a": "x", "a": "y"}')])
        self.assertIn("t.tar: document 0: json: the key 'a' stands twice in one object; name it once", prepare(
            "--tokenizer", TOY, "-o", "t", "--field", "text=json[a]", "t.tar", cwd=self.at).stderr)

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


if __name__ == "__main__":
    unittest.main()
