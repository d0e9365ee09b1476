"""Compares Planwright with Hugging Face transformers (README.md beside this file). ./dev interop starts it.

    interop.py BIN [PART...]

BIN has the programs. The parts: `check` computes the golden files of the oracles anew and compares them; `round_trip`
lets models go in, train and come home; `logits` compares logits as users do, with `plan evaluate`; without any, all
three. `make` writes the golden files, and is only done if it is named.
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PARTS = {"check": ["make_goldens.py", "--check"], "round_trip": ["round_trip.py"], "logits": ["logits.py"],
         "make": ["make_goldens.py"]}


def main(arguments):
    if not arguments or not set(arguments[1:]) <= PARTS.keys():
        print(f"usage: interop.py BIN [{'|'.join(PARTS)}]...", file=sys.stderr)
        return 2
    binaries = pathlib.Path(arguments[0]).resolve()
    status = 0
    for part in arguments[1:] or ["check", "round_trip", "logits"]:
        program, *options = PARTS[part]
        more = [str(binaries)] if part in ("round_trip", "logits") else []
        # Each by itself: to compute in fp64, one of them changes what transformers sees of torch.
        status |= subprocess.run([sys.executable, HERE / program, *options, *more]).returncode != 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
