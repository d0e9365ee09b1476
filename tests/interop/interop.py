"""Compares Planwright with Hugging Face transformers (README.md beside this file). ./dev interop starts it.

    interop.py BIN [PART...]
    interop.py BIN curves [OPTION...]

BIN has the programs. The parts: `check` computes the golden files of the oracles anew and compares them, and compares
settings of image processors; `round_trip` lets models go in, train and come home; `logits` compares logits as users do,
with `plan evaluate`; `steps` compares the losses of 40 steps of training; `adapters` lets PEFT open adapters and
compares logits; without any, all five. `make` writes the golden files, and `curves` compares curves of 3,000 steps
(long_curves.py has its options): these are only done if they are named.
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PARTS = {"check": [["make_goldens.py", "--check"], ["adapters.py", "--check"], ["processors.py"]],
         "round_trip": [["round_trip.py"]], "logits": [["logits.py"]], "steps": [["long_curves.py", "--short"]],
         "adapters": [["adapters.py", "--open"]],
         "make": [["make_goldens.py"], ["adapters.py"]]}
WITH_PROGRAMS = ("round_trip", "logits", "steps", "adapters")


def main(arguments):
    binaries = pathlib.Path(arguments[0]).resolve() if arguments else None
    if arguments[1:2] == ["curves"]:
        return subprocess.run([sys.executable, HERE / "long_curves.py", binaries, *arguments[2:]]).returncode
    if not arguments or not set(arguments[1:]) <= PARTS.keys():
        print(f"usage: interop.py BIN [{'|'.join(PARTS)}]... or interop.py BIN curves [OPTION...]", file=sys.stderr)
        return 2
    status = 0
    for part in arguments[1:] or ["check", "round_trip", "logits", "steps", "adapters"]:
        more = [str(binaries)] if part in WITH_PROGRAMS else []
        for program, *options in PARTS[part]:
            # Each by itself: to compute in fp64, one of them changes what transformers sees of torch.
            status |= subprocess.run([sys.executable, HERE / program, *options, *more]).returncode != 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
