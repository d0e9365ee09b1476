"""tests/golden/data_fixtures made anew by the public programs: the same content. usage: fixtures_test.py SOURCE BUILD
TORCH, the folder of LibTorch's wheel. `./dev soak` runs it. Exit status 77: the programs cannot be had.
"""
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

from packages import BUILD, FIXTURES, SOURCE, fetch

PROGRAMS, TORCH = BUILD / "data_fixtures_python", pathlib.Path(sys.argv[1])
fetch(PROGRAMS, "packages_data_fixtures.txt")
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{PROGRAMS}:{TORCH.resolve().parent}", "PYTHONDONTWRITEBYTECODE": "1"}


def content(path):
    """What must stay: not the number by which Energon tells one preparation from another, nor SQLite's own bytes."""
    if path.name == "index.uuid":
        return "a number of its own"
    if path.suffix == ".sqlite":
        with sqlite3.connect(path) as database:
            return list(database.iterdump())
    return path.read_bytes()


def files(folder):
    return {str(path.relative_to(folder)): content(path) for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "README.md"}


def main():
    if subprocess.run([sys.executable, "-c", "import torch"], env=ENVIRONMENT, capture_output=True).returncode != 0:
        print(f"skipped: this Python cannot import the torch of {TORCH}, which two programs need", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "made"
        subprocess.run([sys.executable, SOURCE / "tests/data/prepare_data/make_fixtures.py", made], check=True,
                       env=ENVIRONMENT)
        expected, found = files(FIXTURES), files(made)
        different = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        for name in different:
            print(f"{name} is " + ("not there any more" if name not in found else "new" if name not in expected else
                                   "another"))
        print(f"{len(expected)} files")
        return 1 if different or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
