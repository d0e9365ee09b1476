"""Whole runs: the same bytes, what is skipped, shown and counted, and what stays of a run that ends early: nothing."""
import io
import json
import os
import signal
import subprocess
import time
import unittest
import unittest.mock

from cases import Case, files_of, read
from packages import COMMAND, ENVIRONMENT, TOY, prepare


def children(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="utf-8") as file:
        return [int(word) for word in file.read().split()]


def ignores_interrupts(process):
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        ignored = next(line for line in file if line.startswith("SigIgn:"))
    return int(ignored.split()[1], 16) & 1 << signal.SIGINT - 1 != 0


class Runs(Case):
    def test_images_that_end_too_early_are_told(self):
        jpg, png = b"\xff\xd8\xff\xe0" + b"j" * 40, b"\x89PNG\r\n\x1a\n" + b"p" * 40
        webp = b"RIFF" + (52).to_bytes(4, "little") + b"WEBP" + b"w" * 48
        images = {"0.jpg": jpg + b"\xff\xd9", "1.png": png + b"IEND\xaeB`\x82", "2.webp": webp,
                  "3.jpg": jpg + b"\xff\xd9" + b"film" * 9000, "4.jpg": jpg + b"moov" + b"f" * 70}
        for name, data in images.items():
            (self.at / name).write_bytes(data)
        self.lines("whole.jsonl", [{"text": "<image>", "image": name} for name in images])
        self.assertNotIn("too early", prepare("--tokenizer", TOY, "-o", "whole", "whole.jsonl", cwd=self.at).stderr)
        for name, data in (("a.jpg", jpg), ("b.png", png), ("c.webp", webp[:-1])):
            (self.at / name).write_bytes(data)
        self.lines("cut.jsonl", [{"text": "<image>", "image": name} for name in ("0.jpg", "a.jpg", "b.png", "c.webp")])
        said = prepare("--tokenizer", TOY, "-o", "cut", "cut.jsonl", cwd=self.at)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("note: 3 images of 4 end too early, such as a.jpg: fetch them again", said.stderr)

    def many(self, count=3000):
        return self.lines("many.jsonl", [
            {"messages": [{"role": "user", "content": f"wave {i}?"}, {"role": "assistant", "content": "yes "
                "" * (i % 7 + 1)}]}
            if i % 3 else {"text": f"the weather of day {i}"} for i in range(count)])

    def test_the_same_bytes_with_any_number_of_processes(self):
        self.many()
        with unittest.mock.patch("prepare_data.formats.jsonl.CHUNK", 10_000):   # so that each process has many tasks
            self.prepared("many.jsonl", "--name", "a", "--jobs", "1", "--shard-documents", "700", out="one")
            self.prepared("many.jsonl", "--name", "a", "--jobs", "3", "--shard-documents", "700", out="three")
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual((self.at / "one").stat().st_mode & 0o777, 0o777 & ~mask)
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
        result = prepare("--tokenizer", "words.json", "--pad-token", "<pad>", "--end-token", "</s>", "-o", "out",
                         "a.jsonl", cwd=self.at)
        self.assertIn("characters that the tokenizer does not know became <s>: 1 "
"token\n", result.stdout + result.stderr)

    def test_a_learnt_prompt_of_the_assistant_is_told(self):
        """A template that reads no add_generation_prompt has one prompt with it and without."""
        turns = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>{% endfor %}"
        self.lines("a.jsonl", [{"messages": [{"role": "user", "content": "?"},
                                            {"role": "assistant", "content": " y"}]}])
        told = ("note: in 1 document the template writes '<|im_start|>assistant\\n' before what the assistant says, "
                "and reads no add_generation_prompt, so it is learnt: write it in the template for "
                "add_generation_prompt too")
        for name, template, expected in (
                ("heading", turns, True),
                ("prompt", turns + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}", False),
                ("none", "{% for m in messages %}{{ m.content }}</s>{% endfor %}", False)):
            with self.subTest(name=name):
                self.write("t.jinja", template)
                self.prepared("--template", "t.jinja", "a.jsonl", out=name)
                self.assertEqual(told in self.noted, expected, self.noted)
        self.write("t.jinja", turns)
        self.prepared("--template", "t.jinja", "--learn", "all", "a.jsonl", out="all")
        self.assertNotIn("add_generation_prompt", self.noted)

    def test_a_folder_that_is_made_meanwhile_is_not_overwritten(self):
        self.lines("a.jsonl", [{"text": "a"}])
        rename = os.rename

        def make_and_rename(part, out):
            self.write("out/mine", "x")
            rename(part, out)
        with unittest.mock.patch("prepare_data.run.os.rename", make_and_rename):
            result = prepare("--tokenizer", TOY, "-o", "out", "a.jsonl", "--jobs", "1", cwd=self.at)
        self.assertEqual((result.stderr, result.returncode), (
            "error: out: it was made meanwhile, and is not overwritten; name another\n", 1))
        self.assertEqual((sorted(os.listdir(self.at)), os.listdir(self.at / "out")), (["a.jsonl", "out"], ["mine"]))

    def started(self, **streams):
        """A run that has long to do, with two processes, which are there."""
        self.lines("slow.jsonl", [{"text": f"the weather of day {i} " * 100} for i in range(6000)])
        run = subprocess.Popen([*COMMAND, "--tokenizer", TOY, "-o", "out", "slow.jsonl", "--jobs", "2"], cwd=self.at,
                               env=ENVIRONMENT, stdout=subprocess.DEVNULL, **streams)
        while len(workers := children(run.pid)) < 2:
            time.sleep(0.01)
        return run, workers

    def test_no_more_processes_than_there_is_work_for(self):
        self.lines("a.jsonl", [{"text": f"wave {i}"} for i in range(4)])
        from prepare_data import workers
        started = []

        class Counted(workers.Workers):
            def start(self):
                super().start()
                started.append(self._processes[-1].pid)
        with unittest.mock.patch("prepare_data.workers.Workers", Counted):
            result = prepare("--tokenizer", TOY, "-o", "out", "a.jsonl", "--jobs", "500", cwd=self.at)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLessEqual(len(started), 4)

    def test_a_process_that_works_ends_with_the_one_that_writes(self):
        run, children_of_run = self.started(stderr=subprocess.DEVNULL)
        for worker in children_of_run:
            while not ignores_interrupts(worker):   # it is not set up yet
                time.sleep(0.01)
            os.kill(worker, signal.SIGSTOP)   # it does not read, so it cannot see that its pipe is closed
        run.kill()
        run.wait()
        while any(os.path.exists(f"/proc/{worker}/exe") for worker in children_of_run):
            time.sleep(0.01)

    def test_a_process_that_is_killed_is_named(self):
        run, workers = self.started(stderr=subprocess.PIPE, text=True)
        os.kill(workers[0], signal.SIGKILL)
        self.assertEqual((run.communicate()[1], run.returncode), (
            "error: --jobs: one of 2 processes is gone, perhaps for want of memory; give fewer --jobs\n", 1))
        self.assertEqual(os.listdir(self.at), ["slow.jsonl"])

    def test_a_run_that_was_killed_leaves_nothing_that_looks_whole(self):
        run, workers = self.started(stderr=subprocess.DEVNULL)
        run.kill()
        run.wait()
        while any(os.path.exists(f"/proc/{worker}/exe") for worker in workers):   # they end by themselves
            time.sleep(0.01)
        left, = self.at.glob(".out.part-*")
        self.assertFalse((left / "prepared.json").exists() or (self.at / "out").exists())
        self.lines("a.jsonl", [{"text": "a"}])
        self.assertIn(f"note: {left.resolve()} is what a run left that was killed; nothing reads it\n",
                      prepare("--tokenizer", TOY, "-o", "out", "a.jsonl", cwd=self.at).stderr)

    def test_nothing_stays_of_a_run_that_fails_or_is_interrupted(self):
        self.lines("bad.jsonl", [{"text": "a"}] * 100 + [{"text": 3}])
        self.assertEqual(prepare("--tokenizer", TOY, "-o", "out", "bad.jsonl", cwd=self.at).returncode, 1)
        self.assertEqual(os.listdir(self.at), ["bad.jsonl"])
        run, _ = self.started(stderr=subprocess.PIPE, text=True)
        while not list(self.at.glob(".out.part-*/out-*.tar")):
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        self.assertEqual((run.communicate()[1], run.returncode), ("interrupted: nothing was written\n", 130))
        self.assertEqual(sorted(os.listdir(self.at)), ["bad.jsonl", "slow.jsonl"])


if __name__ == "__main__":
    unittest.main()
