"""Templates without end or of gigabytes, files that are none, documents that are too long, tokenizers that give up:
each is an error of one line, soon, and in bounded memory."""
import json
import os
import resource
import tempfile
import unittest
import unittest.mock

from cases import Case
from packages import TOY, prepare

from prepare_data import bounds, files
from prepare_data.problems import Problem
from prepare_data.template import ChatTemplate

TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]


class Templates(unittest.TestCase):
    def refused(self, text):
        """What is said of a template, less its begin."""
        before = resource.getrlimit(resource.RLIMIT_AS)
        with self.assertRaises(Problem) as caught:
            ChatTemplate(text, "t.jinja").render(TURNS, None, False, "a.jsonl:1")
        self.assertEqual(resource.getrlimit(resource.RLIMIT_AS), before)
        return str(caught.exception).removeprefix("t.jinja: the template has no bound")

    def test_without_end(self):
        with unittest.mock.patch.object(bounds, "MOST_SECONDS", 1):
            for text in ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                         "{% macro f() %}{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
                         "{% endmacro %}{{ f()|length }}"):
                self.assertEqual(self.refused(text), ", with the turns of a.jsonl:1: it takes more than 1 s of the "
                                 "processor; mend its loops, or give another template")

    def test_of_gigabytes(self):
        with unittest.mock.patch.object(bounds, "MOST_MEMORY", 200 << 20):
            for text in ("{{ 'a' * 1000000000 }}", "{{ 'a' * 100000000 }}", "{{ '%1000000000d' % 1 }}",
                         "{{ messages[0].content * 500000000 }}", "{{ messages|tojson(indent=999999999) }}",
                         "{{ messages[0].content.center(3000000000) }}"):
                with self.subTest(text):
                    self.assertRegex(self.refused(text), "^(, with the turns of a.jsonl:1)?: it takes more than 200 "
                                     "MiB of memory; ")

    def test_that_write_much(self):
        with unittest.mock.patch.object(bounds, "MOST_WRITTEN", 10_000):
            self.assertEqual(self.refused("{% for i in range(99999) %}word {% endfor %}"),
                             ", with the turns of a.jsonl:1: it writes more than 10,000 characters; mend its loops, or "
                             "give another template")

    def test_of_numbers_without_end(self):
        for text in ("{{ 2 ** 99999999999 }}", "{{ (messages|length) ** 100000 }}"):
            self.assertEqual(self.refused(text), ", with the turns of a.jsonl:1: a number of more than 65,536 bits; "
                             "mend its loops, or give another template")
        template = ChatTemplate("{{ 2 ** 100 }} {{ 2 ** -1 }} {{ 1.5 ** 2 }}", "t")
        self.assertEqual(template.render(TURNS, None, False, ""), f"{2 ** 100} 0.5 2.25")

    def test_that_python_cannot_compile(self):
        deep = "".join(f"{{% for a{i} in [1] %}}" for i in range(100)) + "{% endfor %}" * 100
        for text in (deep, "{% for a in [1] %}" * 25 + "{% endfor %}" * 25, "{{ " + "(" * 5000 + ")" * 5000 + " }}",
                     "{{ " + "-" * 100_000 + "1 }}"):
            with self.assertRaises(Problem) as caught:
                ChatTemplate(text, "t.jinja").render(TURNS, None, False, "a:1")
            self.assertRegex(str(caught.exception), "^(t.jinja(:1)?: the template (cannot be compiled|is no Jinja)|"
                             "a:1: the template refuses)")


class Bounds(Case):
    def said(self, *words):
        before = sorted(os.listdir(self.at))
        result = prepare("--tokenizer", TOY, "--template", TOY / "chatml.jinja", "-o", "out", "--jobs", "1", *words,
                         cwd=self.at)
        self.assertEqual((result.returncode, sorted(os.listdir(self.at))), (1, before), result.stdout)
        return result.stderr.removeprefix("error: ").removesuffix("\n")

    def test_a_template_without_bound_is_told_once(self):
        self.lines("a.jsonl", [{"messages": TURNS}] * 300)
        self.write("t.jinja", "{% for i in range(99999) %}word {% endfor %}")
        with unittest.mock.patch.object(bounds, "MOST_WRITTEN", 10_000):
            said = self.said("a.jsonl", "--template", "t.jinja", "--refused", "skip").splitlines()
        self.assertRegex(said[0], "^t.jinja: the template has no bound, with the turns of a.jsonl:1: ")
        self.assertEqual(said[1:], ["note: the list ends after 1 document"])

    def test_plain_files_alone_are_read(self):
        os.mkfifo(self.at / "pipe.jsonl")
        self.lines("a.jsonl", [{"text": "a"}])
        plain = "expected a file or a folder, found a pipe or a device; write it into a plain file"
        self.assertEqual(self.said("pipe.jsonl"), f"pipe.jsonl: {plain}")
        self.assertEqual(self.said("--format", "jsonl", "/dev/zero"), f"/dev/zero: {plain}")
        none = "expected a file, found a folder, a pipe or a device; write it into a plain file"
        self.assertEqual(self.said("a.jsonl", "--tokenizer", "pipe.jsonl"), f"pipe.jsonl: {none}")
        self.assertEqual(self.said("a.jsonl", "--template", "pipe.jsonl"), f"pipe.jsonl: {none}")
        self.assertEqual(self.said("a.jsonl", "--tokenizer", "/dev/zero"), f"/dev/zero: {none}")
        self.write("lfs.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        pointer = "expected the file, found a pointer of Git LFS; fetch it: `git lfs pull` in its folder"
        self.assertEqual(self.said("a.jsonl", "--tokenizer", "lfs.json"), f"lfs.json: {pointer}")
        self.assertEqual(self.said("lfs.json"), f"lfs.json: {pointer}")
        os.makedirs(self.at / "m/media")
        self.lines("m/m.jsonl", [{"text": "<image>", "image": "a.jpg"}])
        os.mkfifo(self.at / "m/media/shard_0.tar")
        self.assertEqual(self.said("m"), f"m/media/shard_0.tar: {none}")
        os.makedirs(self.at / "e/.nv-meta")
        os.mkfifo(self.at / "e/.nv-meta/dataset.yaml")
        self.assertEqual(self.said("e"), f"e/.nv-meta/dataset.yaml: {none}")

    def test_documents_have_a_length(self):
        patches = [unittest.mock.patch.object(module, "MOST_DOCUMENT", 10_000) for module in (files, *(
            __import__(f"prepare_data.formats.{name}", fromlist=["x"]) for name in ("text", "webdataset")))]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        long = "word " * 3000
        self.lines("a.jsonl", [{"text": "a"}, {"text": long}, {"text": "b"}])
        self.assertEqual(self.said("a.jsonl"), "a.jsonl:2: a line of more than 10,000 bytes; divide the document")
        self.write("a.txt", long)
        self.assertEqual(self.said("a.txt"), "a.txt: a document of more than 10,000 bytes; divide the document")
        self.write("a.txt", f"a\n{long}\n\nb")
        self.assertEqual(self.said("a.txt", "--lines"), "a.txt:2: a line of more than 10,000 bytes; divide the "
                         "document")
        self.tar("a.tar", [("0.txt", long.encode())])
        self.assertEqual(self.said("a.tar"), "a.tar: document 0: a member 0.txt of more than 10,000 bytes; divide the "
                         "document")
        # Lines behind a long one are read, under their numbers.
        documents, _ = self.prepared("a.jsonl", "--refused", "skip")
        self.assertEqual((list(documents), self.texts(documents)), (["000000000", "000000002"], ["a</s>", "b</s>"]))
        # The line that has as much as it may is a document.
        self.lines("b.jsonl", [{"text": "x" * (10_000 - len('{"text": ""}\n'))}, {"text": "b"}])
        self.assertEqual(len(self.prepared("b.jsonl", out="b")[0]), 2)

    def test_the_rest_of_a_long_line_is_passed_over(self):
        path = self.write("a.jsonl", b"a\n" + b"x" * (3 << 20) + b"\nb\n" + b"y" * (2 << 20))
        with unittest.mock.patch.object(files, "MOST_DOCUMENT", 1 << 16):
            chunks = list(files.line_chunks(str(path), 1 << 10))
        self.assertEqual([(first, lines) for _, first, lines in chunks], [(1, [b"a\n", None]), (3, [b"b\n", None])])
        self.assertEqual(sum(size for size, *_ in chunks), path.stat().st_size)

    def test_ids_that_no_vocabulary_has(self):
        self.lines("a.jsonl", [{"text": "a"}])
        self.assertRegex(self.said("a.jsonl", "--pad-token", "2000000000"), "^--pad-token: expected a token of .* or "
                         "an id below 16,777,216, found '2000000000'")
        self.assertRegex(self.said("a.jsonl", "--pad-token", "9" * 5000), "^--pad-token: expected a token of .* or an "
                         "id below 16,777,216, found '99")
        tokenizer = json.loads((TOY / "tokenizer.json").read_text())
        tokenizer["model"] = {"type": "WordLevel", "unk_token": "<s>", "vocab": {"<s>": 1, "wave": 4_000_000_000}}
        self.write("t/tokenizer.json", tokenizer)
        self.assertEqual(self.said("a.jsonl", "--tokenizer", "t", "--end-token", "2", "--pad-token", "0"),
                         "t/tokenizer.json: it has the id 4,000,000,000; ids are below 16,777,216 here; mend the ids "
                         "of its added tokens")

    def test_braces_of_energon(self):
        self.write("e/.nv-meta/dataset.yaml", "sample_type: {__class__: TextSample}\nfield_map: {text: txt}\n")
        patch = unittest.mock.patch("prepare_data.formats.energon.MOST_NAMES", 10_000)
        patch.start()
        self.addCleanup(patch.stop)
        for braces in ("{000000..99999999999}", "{0..999}{0..999}{0..999}", "{a,b}" * 40, "{99999999..1}"):
            self.write("e/.nv-meta/split.yaml", f"split_parts: {{train: ['s{braces}.tar']}}\n")
            self.assertEqual(self.said("e"), "e/.nv-meta/split.yaml: it names more than 10,000 shards or documents; "
                             "divide the folder")

    def test_a_tokenizer_that_gives_up(self):
        tokenizer = json.loads((TOY / "tokenizer.json").read_text())
        tokenizer["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated",
                                      "invert": False}
        self.write("t/tokenizer.json", tokenizer)
        self.lines("a.jsonl", [{"text": "a"}, {"text": "a" * 60 + "b"}])
        # Nor does the library say anything by itself, on the stream of the process.
        with tempfile.TemporaryFile() as said:
            stderr = os.dup(2)
            os.dup2(said.fileno(), 2)
            try:
                what = self.said("a.jsonl", "--tokenizer", "t", "--end-token", "2", "--pad-token", "0")
            finally:
                os.dup2(stderr, 2)
                os.close(stderr)
            self.assertEqual(said.seek(0, os.SEEK_END), 0)
        self.assertRegex(what, r"^a.jsonl:2: the tokenizer gives up on its text: .*; divide the text, or leave it out$")

    def test_a_mistake_of_the_program_is_one_line(self):
        self.lines("a.jsonl", [{"text": "a"}])
        with unittest.mock.patch("prepare_data.run.pack", lambda *_: {}["gone"]):
            self.assertRegex(self.said("a.jsonl"), r"^prepare: a mistake of this program, at bounds_test.py:\d+: "
                             "KeyError: 'gone'; report it, with the command and the input$")
        with unittest.mock.patch("prepare_data.run.choose", lambda *_: [][0]):
            self.assertRegex(self.said("a.jsonl"), "^prepare: a mistake of this program, at ")


if __name__ == "__main__":
    unittest.main()
