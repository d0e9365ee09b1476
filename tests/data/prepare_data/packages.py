"""For the tests of prepare_data: fetches its packages, and starts it as people do. Exit status 77: they cannot be had.

usage of each test: NAME.py SOURCE BUILD
"""
import contextlib
import io
import os
import pathlib
import subprocess
import sys

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
TOY = SOURCE / "tests/data/prepare_data/toy"
FIXTURES = SOURCE / "tests/golden/data_fixtures"
# As `./dev prepare` has them, which may have fetched them already.
CACHE = pathlib.Path(os.environ.get("PLANWRIGHT_CACHE") or pathlib.Path.home() / ".cache/planwright")
PACKAGES = CACHE / f"prepare_data-{sys.version_info.major}.{sys.version_info.minor}"


def fetch(folder, name):
    """Packages of third_party/NAME for this Python; ends the test as skipped if they cannot be fetched."""
    status = subprocess.run([SOURCE / "third_party/fetch_python", sys.executable, folder,
                             SOURCE / "third_party" / name]).returncode
    if status != 0:
        sys.exit(status)


fetch(PACKAGES, "packages_prepare_data.txt")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.dont_write_bytecode = True
sys.path[:0] = [str(PACKAGES), str(SOURCE / "planner/data")]
del sys.argv[1:3]  # what is left is unittest's


ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{PACKAGES}:{SOURCE / 'planner/data'}", "PYTHONDONTWRITEBYTECODE": "1"}
COMMAND = [sys.executable, "-m", "prepare_data"]


def prepare(*words, cwd):
    """The program in `cwd`: its status, and what it printed. In this process, as starting another one takes longer than
    most runs."""
    from prepare_data.__main__ import main
    before, out, err = os.getcwd(), io.StringIO(), io.StringIO()
    os.chdir(cwd)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(list(map(str, words)))
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())
