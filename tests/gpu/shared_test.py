#!/usr/bin/env python3
"""The script that tries what ranks on one device can show (share_device.py), on CPUs with the real programs: a case of
each kind passes, a wrong executor fails, and a later call goes on.

  shared_test.py BINARIES
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BINARIES = None


def share(*words, binaries=None):
    done = subprocess.run([str(HERE / "verify_on_gpus"), "--share", str(binaries or BINARIES), "--cpu", *words],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Shared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_every_piece_is_listed_once(self):
        status, text = share("--list")
        self.assertEqual(status, 0, text)
        *pieces, total = text.splitlines()
        names = [line.split()[0] for line in pieces]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(total, f"{len(pieces)} pieces, {sum(int(line.split()[1]) for line in pieces)} cases")
        groups = {name.split(".")[0] for name in names}
        self.assertEqual(groups, {"times", "kills", "capacity", "bits", "reshard", "resume", "weights", "random",
                                  "streams", "overlap", "dispatch", "documents", "recompute", "bf16", "fp32", "fp64"})
        later = share("--list", "--from", names[3])[1].splitlines()
        self.assertEqual([line.split()[0] for line in later[:-1]], names[3:])

    def test_cases_pass_and_a_later_call_goes_on(self):
        passed = self.folder / "passed"
        chosen = ["--only", "fp64/tp2_tp2,weights/tp2_tp2.file,bf16/ep2", "--passed", str(passed), "--at-once", "1"]
        status, text = share(*chosen, "--every", "1")
        self.assertEqual(status, 0, text)
        self.assertEqual(text.splitlines()[-1], "verdict: PASS")
        names = passed.read_text().splitlines()[1:]
        self.assertIn("fp64/tp2_tp2", names)
        status, text = share(*chosen)
        self.assertEqual(status, 0, text)
        self.assertNotIn("PASS fp64", text)
        self.assertIn("passed before, 0 failed, 0 left", text)
        passed.write_text("# cpu, build 0\n" + "\n".join(names) + "\n")
        status, text = share(*chosen)
        self.assertIn("is of another build or device", text)
        self.assertEqual(status, 1)

    def test_what_is_left_is_told(self):
        status, text = share("--only", "fp64/tp2_tp2", "--minutes", "1e-9")
        self.assertEqual(status, 3, text)
        self.assertEqual(text.splitlines()[-1], "verdict: UNFINISHED")

    def test_a_wrong_executor_fails(self):
        for program in BINARIES.iterdir():
            if program.is_file() and program.name not in ("plan", "executor"):
                (self.folder / program.name).symlink_to(program)
        shutil.copy(BINARIES / "plan", self.folder)  # it looks for the executor where it lies itself
        wrong = self.folder / "executor"  # leaves out the sums of tp: one rank is right
        wrong.write_text(f"#!/bin/sh\nPLANWRIGHT_FAULT=missing_tp_sum exec {BINARIES}/faulty_executor \"$@\"\n")
        wrong.chmod(0o700)
        status, text = share("--only", "fp64/tp2_tp2", "--every", "1", binaries=self.folder)
        self.assertEqual(status, 1, text)
        self.assertIn("FAIL fp64/tp2_tp2", text)
        self.assertIn(" is off by ", text)
        self.assertEqual(text.splitlines()[-1], "verdict: FAIL")


if __name__ == "__main__":
    BINARIES = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
