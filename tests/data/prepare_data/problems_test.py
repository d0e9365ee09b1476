"""Each mistake of arguments and inputs is one line, here to the letter; no mistake leaves a folder."""
import io
import json
import os
import pathlib
import shutil
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout

from bad_records import JPG, RECORDS, TURNS, line, tar
from packages import FIXTURES, TOY, prepare

from prepare_data import __main__ as program


class Problems(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.at = pathlib.Path(folder.name)
        os.chdir(self.at)
        pathlib.Path("there.jpg").write_bytes(JPG)
        pathlib.Path("picture.gif").write_bytes(b"GIF89a" + b"\0" * 20)

    def said(self, *words, template=True):
        """What one run in this process says on stderr; it must fail and leave nothing."""
        before = sorted(os.listdir("."))
        error = io.StringIO()
        with redirect_stderr(error), redirect_stdout(io.StringIO()):
            status = program.main(["--tokenizer", str(TOY), "-o", "out", "--jobs", "1",
                                   *(["--template", str(TOY / "chatml.jinja")] if template else []), *map(str, words)])
        self.assertEqual((status, sorted(os.listdir("."))), (1, before))
        return error.getvalue().removeprefix("error: ").removesuffix("\n")

    def test_inputs(self):
        for name, data, expected in RECORDS:
            with self.subTest(expected=expected):
                pathlib.Path(name).write_bytes(data)
                self.assertEqual(self.said(name), expected)
                os.remove(name)

    def test_pictures_are_no_documents(self):
        os.makedirs("photos/cats")
        how = ('write a file with a line for each picture, such as {"images": ["%s"], "messages": [{"role": "user", '
               '"content": "<image>\\nWhat is this?"}, {"role": "assistant", "content": "..."}]}, and '
               "name it: ./dev prepare ... captions.jsonl (docs/training/prepare_data.md#inputs)")
        self.assertEqual(self.said("photos"), "photos: nothing in its name says what it is; give --format: jsonl, "
                         "llava, jsonl_media, parquet, text, webdataset, energon")
        pathlib.Path("photos/cats/a.JPG").write_bytes(JPG)
        self.assertEqual(self.said("photos"), "photos: expected documents, found a folder of pictures; " +
                         how % "photos/cats/a.JPG")
        self.assertEqual(self.said("there.jpg"), "there.jpg: expected documents, found a picture; " + how % "there.jpg")

    def test_an_image_that_is_a_pipe_is_not_waited_for(self):
        os.mkfifo("pipe.jpg")
        pathlib.Path("a.jsonl").write_bytes(line({"text": "<image>", "image": "pipe.jpg"}))
        self.assertEqual(self.said("a.jsonl"), "a.jsonl:1: image: pipe.jpg: expected a file, found a folder, a pipe or "
                         "a device; write pictures as plain files")

    def test_all_mistakes_of_an_input_in_one_list(self):
        pathlib.Path("a.jsonl").write_bytes(line({"text": 1}) + line({"text": "x"}) + line({"text": 2}))
        self.assertEqual(self.said("a.jsonl"), "a.jsonl:1: text: expected a text, found a number 1; quote it\n"
                         "error: a.jsonl:3: text: expected a text, found a number 2; quote it")
        pathlib.Path("a.jsonl").write_bytes(line({"text": 1}) * 100)
        said = self.said("a.jsonl").split("\n")
        self.assertEqual((len(said), said[-1]), (21, "note: the list ends after 100 documents"))

    def test_all_mistakes_of_the_arguments_in_one_list(self):
        self.assertEqual(
            prepare("gone.jsonl", "--shard-bytes", "1T", "--date", "31.1.2026", "--template-set", "x", "--jobs", "0",
                    "--images", "gone", "-o", "a/b", cwd=self.at).stderr.split("\n"),
            ["error: gone.jsonl: there is no such file or folder; the shell expands * and {}, if they are not quoted",
             "error: --tokenizer: expected a tokenizer.json or a folder with one, found none; ./dev prepare "
             "--tokenizer FOLDER -o OUT INPUT...",
             "error: --images: there is no folder gone",
             f"error: a/b: there is no folder {self.at.resolve()}/a to make it in; make that first",
             "error: --shard-bytes: expected a whole number from 1 on, with K, M or G, found '1T'",
             "error: --jobs: expected a whole number from 1 to 512, found '0'",
             "error: --template-set: expected KEY=JSON, found 'x'",
             "error: --date: expected a date as 2026-01-31, found '31.1.2026'", ""])

    def test_arguments(self):
        pathlib.Path("a.jsonl").write_bytes(line({"text": "x"}))
        pathlib.Path("a.txt").write_bytes(b"x")
        pathlib.Path("no.json").write_bytes(b"{}")
        pathlib.Path("no.jinja").write_bytes(b"{% if %}")
        os.mkdir("empty")
        self.assertEqual(self.said("a.jsonl", "--lines"), "--lines: it is for text, and the inputs are jsonl; leave "
            "it out")
        self.assertEqual(self.said("a.jsonl", "--split", "train"), "--split: it is for energon, and the inputs are "
                         "jsonl; leave it out")
        turns = "jsonl, jsonl_media, llava, parquet, webdataset, energon"
        for option in (["--learn", "assistant"], ["--lists"], ["--template-set", "a=1"], ["--date", "2026-01-31"]):
            self.assertEqual(self.said("a.txt", *option), f"{option[0]}: it is for {turns}, and the inputs are text; "
                             "leave it out")
        self.assertEqual(self.said("a.jsonl", "--template-name", "x"), f"--template-name: {TOY / 'chatml.jinja'} is "
                         "one template, without a name; leave it out")
        self.assertEqual(self.said("a.jsonl", "a.txt"), "inputs: they are of several formats: jsonl, text; prepare "
                         "each format by itself, or give --format")
        self.assertEqual(self.said("a.jsonl", "-o", "empty"), "empty: it is there already, and is not overwritten; "
                         "remove it, or name another")
        self.assertEqual(self.said("a.jsonl", "-o", "x", "--show", "0"), "--out: expected either --out OUT or --show "
                         "N, found both")
        self.assertEqual(self.said("a.jsonl", "--tokenizer", "empty"), "empty/tokenizer.json: it cannot be read: No "
                         "such file or directory; look at its path")
        for name, config, expected in (
                ("encoder", {"model_type": "radio", "patch_size": 16}, "encoder: it has no tokenizer.json: its "
                 "config.json is of an encoder (model_type radio); give the folder of the language model"),
                ("words", {"model_type": "llama", "vocab_size": 8}, "words: it has config.json (model_type llama) and "
                 "no tokenizer.json; other kinds must be converted first: docs/training/prepare_data.md")):
            os.mkdir(name)
            pathlib.Path(name, "config.json").write_text(json.dumps(config))
            self.assertEqual(self.said("a.jsonl", "--tokenizer", name), expected)
        self.assertRegex(self.said("a.jsonl", "--tokenizer", "no.json"), "^no.json: expected a tokenizer.json of "
                         "Hugging Face's tokenizers, found another file: ")
        self.assertEqual(self.said("a.jsonl", "--template", "no.jinja", template=False), "no.jinja:1: the template is "
                         "no Jinja: Expected an expression, got 'end of statement block'; render it with Hugging Face "
                         "transformers to see whether it is whole")
        self.assertEqual(self.said("a.jsonl", "--image-token", "</s>"), "--image-token: it is the same id as "
                         "--end-token, 2: ends would be images; choose another token; its special tokens are <pad> <s> "
                         "</s> "
                         "<image> "
                         "<|im_start|> <|im_end|> <|begin_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> "
                         "[INST] [/INST] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] "
                         "[TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS]")
        self.assertRegex(self.said("a.jsonl", "--image-token", "<img>"), "^--image-token: expected a token of .*toy/"
                         "tokenizer.json or an id below 16,777,216, found '<img>'; its special tokens are <pad> ")
        self.assertRegex(self.said("a.jsonl", "--as-special", "<x>"), "^--as-special: expected special tokens of the "
                         "tokenizer, found <x>; they are <pad> ")
        self.assertEqual(self.said("a.jsonl", "--template-name", "x", template=False), f"{TOY}/tokenizer_config.json: "
                         "it has no chat_template; leave --template-name out")
        pathlib.Path("c.jsonl").write_bytes(line({"messages": TURNS}))
        self.assertEqual(self.said("c.jsonl", template=False), "c.jsonl:1: a conversation needs a chat template, and "
                         "the tokenizer's folder has none; give --template FILE.jinja")

    def test_nothing_says_which_token_it_is(self):
        pathlib.Path("a.jsonl").write_bytes(line({"text": "<image>", "image": "there.jpg"}))
        shutil.copy(TOY / "tokenizer.json", "tokenizer.json")   # without its tokenizer_config.json
        text = pathlib.Path("tokenizer.json").read_text()
        text = text.replace('"</s>"', '"<stop>"').replace('"<image>"', '"<picture>"')
        pathlib.Path("tokenizer.json").write_text(text)
        self.assertRegex(self.said("a.jsonl", "--tokenizer", "."), r"^--end-token: nothing says which token of "
                         r"\./tokenizer.json it is; give one that no text has; its special tokens are <pad> <s> "
                         r"<stop> ")
        self.assertRegex(self.said("a.jsonl", "--tokenizer", ".", "--end-token", "<stop>"), r"^a.jsonl:1: the "
                         r"document has "
                         r"images, and nothing says which id is the image token; give --image-token; special tokens "
r"are ")

    def test_fields(self):
        pathlib.Path("a.tar").write_bytes(tar(("0.json", b'{"a": [1]}')))
        for words, expected in (
                (["text"], "--field: expected NAME=MEMBER, found 'text'"),
                (["title=txt"], "--field: expected one of image, text, caption, messages, context, answers, found "
                 "'title'; name the field as such"),
                (["image=jpg"], "--field: expected text, caption, messages, or context with answers, found none of "
                 "them; a document has one kind of text"),
                (["text=json[a"], "--field: expected a member's ending with keys, as json[0][value], found 'json[a'; "
                 "keys stand in square brackets"),
                (["image=json[a]", "text=txt"], "--field: image: expected the ending of a member, found 'json[a]'; "
                 "images must be members of the tar file"),
                (["text=json[b]"], "a.tar: document 0: json: expected something with 'b', found an object; see the "
                 "field map"),
                (["text=json[a][7]"], "a.tar: document 0: json[a]: expected something with '7', found a list; see the "
                 "field map"),
                (["text=json[a][0]"], "a.tar: document 0: text: expected a text, found a number 1; quote it")):
            with self.subTest(words=words):
                self.assertEqual(self.said("a.tar", *(part for word in words for part in ("--field", word))), expected)

    def test_energon(self):
        shutil.copytree(FIXTURES / "energon/captions", "e")
        config = pathlib.Path("e/.nv-meta/dataset.yaml")
        for text, expected in (
                ("sample_type: {__module__: megatron.energon, __class__: CrudeWebdataset}\n",
                 "the data set is crude: a cooker, which is Python code, makes its samples, and is not run; say the "
                 "fields yourself: --format webdataset --field ..."),
                ("__module__: megatron.energon\n__class__: CrudeWebdataset\n",
                 "the data set is crude: a cooker, which is Python code, makes its samples, and is not run; say the "
                 "fields yourself: --format webdataset --field ..."),
                ("sample_type: {__class__: CaptioningSample}\nsample_loader: loader.py:load\npart_filter: "
                 "loader.py:part\n",
                 "sample_loader loader.py:load is Python code, and is not run; say the fields yourself: --format "
                 "webdataset --field ..."),
                ("sample_type: {__class__: OCRSample}\nfield_map: {image: jpg, text: txt}\n",
                 "expected a sample_type CaptioningSample, VQASample, TextSample, found OCRSample; say the fields "
                 "yourself: --format webdataset --field ..."),
                ("sample_type: {__class__: VQASample}\nfield_map: {image: jpg, context: txt, answers: txt, "
                 "answer_weights: json}\n", "field_map: answer_weights of VQASample cannot be taken over; remove it, "
                 "or say the fields yourself: --format webdataset --field ..."),
                ("sample_type: {__class__: TextSample}\n", "field_map: expected names and fields, found null; run "
                 "`energon prepare` again")):
            with self.subTest(text=text):
                config.write_text(text)
                self.assertEqual(self.said("e"), f"e/.nv-meta/dataset.yaml: {expected}")
        config.write_text("sample_type: [\n")
        self.assertEqual(self.said("e"), "e/.nv-meta/dataset.yaml:2: expected YAML, found something else: expected "
                         "the node content, but found '<stream end>'; run `energon prepare` again")
        shutil.copy(FIXTURES / "energon/captions/.nv-meta/dataset.yaml", config)
        self.assertEqual(self.said("e", "--split", "test"), "e/.nv-meta/split.yaml: part 'test' has no shards; give "
            "--split")
        os.remove("e/.nv-meta/.info.json")   # which says how many documents a shard has
        pathlib.Path("e/shard_000.tar").write_bytes(tar(("0.txt", b"x")))
        self.assertEqual(self.said("e"), "e/shard_000.tar: document 0: expected a member jpg, found txt; the field "
                         "map says "
                         "that each document has it")
        os.remove("e/shard_001.tar")
        self.assertEqual(self.said("e"), "e/.nv-meta/split.yaml: shard shard_001.tar is not in the folder; run "
                         "`energon prepare` again")

    def test_media(self):
        os.makedirs("m/media")
        pathlib.Path("m/m.jsonl").write_bytes(line({"text": "<image>", "image": "x.jpg"}))
        self.assertEqual(self.said("m"), "m/media: expected tar files media/shard_*.tar, found none; give their "
                         "folder by --images, or --format jsonl if images are files")
        pathlib.Path("m/media/shard_0.tar").write_bytes(tar(("a/x.jpg", JPG), ("b/x.jpg", JPG)))
        self.assertEqual(self.said("m"), "m/m.jsonl:1: image: several media files have a x.jpg, and none is x.jpg; "
                         "the tar files of media/ must have all images, under the names of the records")
        pathlib.Path("m/media/shard_1.tar").write_bytes(tar(("a/x.jpg", JPG)))
        self.assertEqual(self.said("m"), "m/media/shard_1.tar: member a/x.jpg is also in m/media/shard_0.tar; an "
                         "image must have one name in all media files")
        os.remove("m/media/shard_1.tar")
        for member, image in (("val/x.jpg", "train/x.jpg"), ("x.jpg", "train/x.jpg"), ("train/x.jpg", "rain/x.jpg")):
            pathlib.Path("m/m.jsonl").write_bytes(line({"text": "<image>", "image": image}))
            pathlib.Path("m/media/shard_0.tar").write_bytes(tar((member, JPG)))
            self.assertEqual(self.said("m"), f"m/m.jsonl:1: image: no media file has {image}; m/media/shard_0.tar has "
                             f"{member}; the tar files of media/ must have all images, under the names of the records")
        pathlib.Path("m/m.jsonl").write_bytes(line({"text": "<image>", "image": "x.jpg"}))
        pathlib.Path("m/media/shard_0.tar").write_bytes(tar(("y.jpg", JPG)))
        self.assertEqual(self.said("m"), "m/m.jsonl:1: image: no media file has x.jpg; the tar files of media/ must "
                         "have all images, under the names of the records")

    def test_parquet_rows(self):
        import pyarrow
        import pyarrow.parquet
        for columns, expected in (
                ({"texts": [["a", None]], "images": [[None, "https://x.org/a.jpg"]]},
                 "p.parquet: row 0: images[1]: expected a file, found the address https://x.org/a.jpg; fetch the "
                 "images first, and write where they lie"),
                ({"texts": [["a", None]], "images": [[None]]}, "p.parquet: row 0: expected lists texts and images of "
                 "one length, found a list and a list; as in OBELICS: in each position one of the two is null"),
                ({"texts": [["a"]], "images": [[{"bytes": JPG}]]}, "p.parquet: row 0: position 0 of texts and images "
                 "has both; as in OBELICS: in each position one of the two is null"),
                ({"text": ["<image>"], "image": [{"bytes": b"GIF89a"}]}, "p.parquet: row 0: image 0: expected a JPEG, "
                 "PNG or WebP picture, found a file that begins with 47 49 46 38 39 61; convert the pictures first"),
                ({"text": ["a", "b", "", "d"]}, "p.parquet: row 2: the text is empty; leave it out"),
                ({"tokens": [[1]]}, "p.parquet: expected a column messages, conversations, text or texts, found "
                 "tokens; rename the columns first")):
            with self.subTest(expected=expected):
                pyarrow.parquet.write_table(pyarrow.table(columns), "p.parquet", row_group_size=2)
                self.assertEqual(self.said("p.parquet"), expected)


if __name__ == "__main__":
    unittest.main()
