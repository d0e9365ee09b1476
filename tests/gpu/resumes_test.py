#!/usr/bin/env python3
"""The parts of `tests/gpu/measure` in which a run is killed and goes on with another layout, on two CPU ranks.

  resumes_test.py BINARIES
"""

import contextlib
import io
import pathlib
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import resumes  # noqa: E402
from measuring import Measure  # noqa: E402

BINARIES = None


class TwoCpus(Measure):
    devices = ("--device", "cpu", "--yes")
    cases = {"two": resumes.cases("two", 2, gpu="none")}

    def __init__(self, out):
        super().__init__(BINARIES, out)
        self.deadline = time.monotonic() + 600


class Resumes(unittest.TestCase):
    def test_goes_on_with_the_same_losses(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            measure = TwoCpus(pathlib.Path(folder))
            resumes.resume(measure, "two")
            whole, killed, _ = measure.cases["two"]
            records, lives = measure.records_of(whole), measure.records_of_folder(measure.out / killed.name)
        self.assertEqual(measure.failed, [])
        self.assertEqual(printed.getvalue().count("PASS  "), 4, printed.getvalue())
        self.assertEqual({record["life"] for record in lives}, {1, 2})
        self.sees(records, lives)

    def sees(self, records, lives):
        """What is wrong with records that are changed."""
        def failed(change):
            changed = change([dict(record) for record in lives])
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                measure = TwoCpus(pathlib.Path(folder))
                resumes.judge_lives(measure, "two", records, changed)
            return " ".join(measure.failed)

        def another_loss(changed):
            changed[-1]["loss"] *= 1 + 1e-8
            return changed

        self.assertRegex(failed(another_loss), "losses differ by up to 1.0e-08")
        self.assertRegex(failed(lambda changed: changed[:-1]), f"goes from step .* to {resumes.STEPS - 1} of")
        self.assertRegex(failed(lambda changed: changed[1:]), "second life goes")
        self.assertRegex(failed(lambda changed: [{**record, "life": 1} for record in changed]), "from step 0 to 0 of")
        self.assertRegex(failed(lambda changed: []), "two: 0 steps")


if __name__ == "__main__":
    BINARIES = pathlib.Path(sys.argv.pop(1))
    unittest.main()
