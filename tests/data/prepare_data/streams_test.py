"""What is said where a terminal has few characters, and where stdout or stderr are closed, full or left: a run does its
work all the same, and says in a line what it could not say."""
import locale
import os
import subprocess
import sys
import tempfile
import unittest

from cases import Case, read
from packages import COMMAND, ENVIRONMENT, TOY

CHATS = [{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ř \u65e5 yo"}]}]


class Streams(Case):
    def setUp(self):
        super().setUp()
        self.lines("é.jsonl", CHATS)

    def run_as(self, *words, shell="", options=(), **environment):
        """A run in a process of its own; `shell`: redirections."""
        command = [sys.executable, *options, *COMMAND[1:], "--tokenizer", str(TOY), "--template",
                   str(TOY / "chatml.jinja"), "--jobs", "1", *words]
        return subprocess.run(["sh", "-c", f'"$@" {shell}', "sh", *command], cwd=self.at, capture_output=True,
                              env={**ENVIRONMENT, **environment})

    def assert_whole(self, result, note=None):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(read(self.at / "out")[1]["documents"], 1)
        self.assertNotIn(b"Traceback", result.stderr + result.stdout)
        if note is not None:
            self.assertEqual(result.stderr.decode().splitlines()[1:], note)
        subprocess.run(["rm", "-r", self.at / "out"], check=True)

    def test_characters_that_a_terminal_does_not_have(self):
        for name, environment, expected in (
                ("ascii", {"PYTHONIOENCODING": "ascii"}, b"(in \\u27e6 \\u27e7), 0 images"),
                ("latin-1", {"PYTHONIOENCODING": "latin-1"}, b"\xe9.jsonl:1: "),
                ("C", {"LC_ALL": "C"}, "(in ⟦ ⟧), 0 images".encode()),
                ("none", {"LC_ALL": "xx_XX.nonsense"}, "(in ⟦ ⟧), 0 images".encode())):
            with self.subTest(name):
                result = self.run_as("-o", "out", "é.jsonl", options=("-X", "utf8"), **environment)
                self.assertIn(expected, result.stdout)
                self.assert_whole(result)

    def test_a_locale_of_latin_1(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run(["localedef", "-i", "en_US", "-f", "ISO-8859-1", f"{folder}/en_US.ISO-8859-1"],
                                  capture_output=True)
            if made.returncode != 0:
                self.skipTest("localedef makes no locale here: " + made.stderr.decode())
            result = self.run_as("-o", "out", "é.jsonl", options=("-X", "utf8"), LOCPATH=folder,
                                 LC_ALL="en_US.ISO-8859-1")
            self.assertIn(b"\xe9.jsonl:1: 24 tokens, 11 learnt (in \\u27e6 \\u27e7), 0 images", result.stdout)
            self.assert_whole(result)

    def test_errors_of_names_that_are_no_utf_8(self):
        result = self.run_as("-o", "out", "\udce9.jsonl", options=("-X", "utf8"), PYTHONIOENCODING="ascii")
        self.assertEqual((result.returncode, result.stderr), (
            1, b"error: \\udce9.jsonl: there is no such file or folder; the shell expands * and {}, if they are not "
            b"quoted\n"))

    def test_stdout_that_takes_nothing(self):
        note = "note: out is whole; what was said of it could not be written to stdout: "
        self.assert_whole(self.run_as("-o", "out", "é.jsonl", shell=">&-"), [note + "it is closed"])
        self.assert_whole(self.run_as("-o", "out", "é.jsonl", shell="> /dev/full"), [note + "No space left on device"])
        self.assert_whole(self.run_as("-o", "out", "é.jsonl", shell="| true; sleep 0"))
        self.assert_whole(self.run_as("-o", "out", "é.jsonl", shell="2> /dev/full"))
        # The next files that are opened must not be what is closed.
        self.assert_whole(self.run_as("-o", "out", "é.jsonl", shell="<&- >&- 2>&-"))

    def test_show_without_stdout_is_an_error(self):
        for shell, why in ((">&-", "it is closed"), ("> /dev/full", "No space left on device")):
            result = self.run_as("--show", "0", "é.jsonl", shell=shell)
            self.assertEqual((result.returncode, result.stderr.decode()), (
                1, f"error: stdout: what --show prints could not be written: {why}\n"))

    def test_the_program_of_the_project_reads_names_as_utf_8(self):
        """Whatever the locale is: names of files are bytes of UTF-8, and in JSON too."""
        with open(os.path.join(os.path.dirname(__file__), "../../../package/prepare"), encoding="utf-8") as file:
            self.assertEqual(file.read().count('exec "$python" -X utf8 -m prepare_data'), 1)
        self.assertTrue(locale.getpreferredencoding())


if __name__ == "__main__":
    unittest.main()
