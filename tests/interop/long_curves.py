"""Long curves of a toy that learns, by Planwright and by transformers (README.md beside this file).

    long_curves.py BIN [--out FOLDER] [--steps N] [--seeds N,N,...] [--runs NAME,...] [--damage NAME]
    long_curves.py BIN --short

Both begin with the same weights and train the same conversations about icons, in the same order. A run that was
interrupted goes on when the same command is given again; a curve that is there is not computed again. Several processes
may share a folder, each with other --runs or --seeds. At the end there is a table, and a verdict by
curve_statistics.py. Ends with 1 if the verdict is bad.

With --short there are 40 steps of one seed, every loss of which must agree to 1e-5, and damaged runs that must not.
"""
import argparse
import contextlib
import fcntl
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

import torch
import transformers

import curve_runs
import icon_samples
from curve_statistics import (LAYOUTS_BELOW, ROUNDING, ROUNDING_FP64, WINDOW, Bounds, compare, held_out, spread,
                              start_difference, windows)
from families import language_of, model_of

THEIRS, NEXT = "transformers", "transformers_next_weights"
OURS, OURS_BF16, OURS_FP64 = "ours_fp32", "ours_bf16", "ours_fp64"
# By name: layout and precision; None: transformers.
SYSTEMS = {THEIRS: None, NEXT: None, OURS: ("one_rank", "fp32"), OURS_BF16: ("one_rank", "bf16"),
           "ours_fp32_apart_tp2": ("apart_tp2", "fp32"), OURS_FP64: ("one_rank", "fp64"),
           "ours_fp64_apart_tp2": ("apart_tp2", "fp64")}
# Which two are compared, and how far they may be apart. NEXT says what rounding alone does to this toy: it begins with
# the next number of fp32 for each weight.
OTHERS, LAYOUTS = Bounds(1.0, ROUNDING), Bounds(LAYOUTS_BELOW, ROUNDING)
JUDGED = [(OURS, THEIRS, OTHERS), (OURS_BF16, THEIRS, Bounds(1.0)), (NEXT, THEIRS, LAYOUTS),
          ("ours_fp32_apart_tp2", OURS, LAYOUTS),
          ("ours_fp64_apart_tp2", OURS_FP64, Bounds(LAYOUTS_BELOW, ROUNDING_FP64, ROUNDING))]
SHORT = {THEIRS: None, OURS: ("one_rank", "fp32"), "ours_fp32_apart_tp2_ep2": ("apart_tp2_ep2", "fp32"),
         "ours_fp32_dp2_pp2": ("dp2_pp2", "fp32")}
# What transformers' side does otherwise. The judgement must see each.
DAMAGES = {"learning_rate": {"learning_rate": 1.5}, "betas": {"betas": (0.9, 0.999)}, "clip": {"clip": 4.0},
           "samples": {"samples": 1}, "no_decay": {"weight_decay": 0.0}, "no_balance": {"bias_rate": 0.0}}
CHANGES = {NEXT: {"next_weights": True}}
SHORT_STEPS = 40
CHATS = 2  # for each sample: more than fit, so that no sample comes twice
SHOWN = (1, 5, 10, 20)  # windows of the table, with the last one


@contextlib.contextmanager
def locked(path, busy=None):
    """One process at a time. `busy`: what is said instead of waiting."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise SystemExit(busy) from None
        yield


class Runs:
    """The runs of a folder, which share data and weights."""

    def __init__(self, plan, folder, steps, systems):
        self.plan, self.folder, self.steps, self.systems = plan, folder, steps, systems
        self.recipe = curve_runs.toy(steps, experts=systems is SHORT)
        self.icons = folder / "icons"
        self.samples = {}  # of one seed
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock"):
            self.claim()
            icon_samples.prepare(self.icons, language_of(self.recipe)["vocabulary"],
                                 CHATS * self.recipe["budget"]["train_samples"])

    def claim(self):
        """A folder has the runs of one toy and one number of steps."""
        path, text = self.folder / "toy.json", json.dumps(self.recipe, indent=1) + "\n"
        if path.exists() and path.read_text() != text:
            raise SystemExit(f"{self.folder} has runs of another toy or another number of steps; "
                             "choose another --out, or remove it")
        path.write_text(text)

    def samples_of(self, seed):
        """Those of the training, and the set that is held out."""
        if seed not in self.samples:
            encoder, data = model_of(self.recipe, "radio_vit"), self.recipe["data"]
            length = self.recipe["batch"]["sequence_length"]
            self.samples = {seed: [icon_samples.Samples(self.icons / name, seed, length, encoder, data)
                                   for name in ("train", curve_runs.SET)]}
            packs, needed = len(self.samples[seed][0].packs), self.recipe["budget"]["train_samples"]
            if packs < needed:
                raise SystemExit(f"{packs} samples are too few for {needed}: some would come twice")
        return self.samples[seed]

    def weights(self, seed):
        folder = self.folder / f"weights-{seed}"
        with locked(self.folder / "lock"):
            curve_runs.make_weights(self.recipe, seed, folder)
            if not curve_runs.imported_recipe(folder).exists():
                icon_samples.run([self.plan, "import", folder, "-o", curve_runs.imported_recipe(folder)])
        return folder

    def curve(self, system, seed, damage=None, evaluated=True):
        """Computes it if it is not there."""
        name = f"{system}{'-' + damage if damage else ''}-{seed}"
        path = self.folder / "curves" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        with locked(path.with_suffix(".lock"), f"{name} is being computed by another process"):
            if not path.exists():
                print(f"{name}: {self.steps} steps", flush=True)
                lines = self.compute(system, seed, self.folder / name,
                                     CHANGES.get(system, {}) | DAMAGES.get(damage, {}), evaluated)
                part = path.with_suffix(".part")
                part.write_text("".join(json.dumps(line) + "\n" for line in lines))
                part.replace(path)
        return curve_runs.read_lines(path)

    def compute(self, system, seed, folder, change, evaluated):
        train, held = self.samples_of(seed)
        weights = self.weights(seed)
        if self.systems[system] is None:
            return curve_runs.run_theirs(self.recipe, self.steps, folder, weights, train, held if evaluated else None,
                                         change)
        return curve_runs.run_ours(self.plan, self.recipe, seed, folder, weights, self.icons, *self.systems[system],
                                   len(held.packs) if evaluated else None)


# --- a few steps, exactly


def other_samples(runs, seed):
    """The numbers of samples that are others for Planwright, by `plan data trace`."""
    recipe, train = runs.folder / f"{OURS}-{seed}/recipe.yaml", runs.samples_of(seed)[0]
    found = []
    epoch = len(train.packs)
    # The first ones, those of the last steps, and those where a later epoch begins.
    for number in [*range(8), *range(4 * SHORT_STEPS - 4, 4 * SHORT_STEPS), 5 * epoch - 1, 5 * epoch]:
        ours = json.loads(subprocess.run(
            [runs.plan, "data", "trace", recipe, "--sample", str(number), "--json"], text=True,
            stdout=subprocess.PIPE, check=True).stdout)["samples"][0]
        tokens, labels, mask, pictures = train.row(number)
        grids = [train.picture(path)[1] for path in pictures]
        if ([ours["tokens"], ours["labels"], ours["loss_mask"]] != [tokens, labels, mask]
                or [[image["rows"], image["cols"]] for image in ours["images"]] != grids):
            found.append(number)
    return found


def went_on(runs, seed, theirs):
    """Whether a run of transformers that was interrupted has the numbers of one that was not."""
    folder = runs.folder / "interrupted"
    runs.compute(THEIRS, seed, folder, {"stop": SHORT_STEPS // 2}, False)
    return runs.compute(THEIRS, seed, folder, {}, False) == theirs


def short(plan, folder):
    """Returns how much is not as it must be."""
    runs, seed, wrong = Runs(plan, folder, SHORT_STEPS, SHORT), 1, 0
    theirs = runs.curve(THEIRS, seed, evaluated=False)
    lines = []

    def judge(what, curve, expected):
        nonlocal wrong
        difference = start_difference(curve, theirs, SHORT_STEPS)
        good = (difference <= ROUNDING) == expected
        wrong += not good
        lines.append(f"{what:<38} {curve[-1]['loss']:>9.6f} {difference:>10.1e}  "
                     f"{'the same' if difference <= ROUNDING else 'another'}{'' if good else ', which is WRONG'}")

    for system in [name for name in SHORT if name != THEIRS]:
        judge(system, runs.curve(system, seed, evaluated=False), True)
    for damage in DAMAGES:
        judge(f"{THEIRS}, damaged: {damage}", runs.curve(THEIRS, seed, damage, evaluated=False), False)
    others = other_samples(runs, seed)
    if others:
        lines.append(f"`plan data trace` has other samples, which is WRONG: {', '.join(map(str, others))}")
    resumed = went_on(runs, seed, theirs)
    if not resumed:
        lines.append(f"{THEIRS}, interrupted: another curve, which is WRONG")
    print(f"{f'{SHORT_STEPS} steps beside {THEIRS}':<38} {'last loss':>9} {'difference':>10}", *lines, sep="\n")
    return wrong + len(others) + (not resumed)


# --- many steps


def row(words):
    print("| " + " | ".join(words) + " |")


def shown_windows(curve):
    last = len(windows(curve))
    return [k for k in SHOWN if k < last] + [last]


def show_losses(curves):
    shown = shown_windows(next(iter(curves[THEIRS].values())))
    row(["loss, mean of steps", "seed", *(f"{(k - 1) * WINDOW + 1} to {k * WINDOW}" for k in shown), "held out"])
    row(["---"] * (len(shown) + 3))
    for system, of_seeds in curves.items():
        for seed, curve in of_seeds.items():
            found = windows(curve)
            row([system, str(seed), *(f"{found[k - 1]:.4f}" for k in shown), f"{held_out(curve)[-1]:.4f}"])


def judge(curves):
    """Prints how far systems are apart, and returns whether all is as it must be."""
    theirs = curves[THEIRS]
    spreads = [spread([part(curve) for curve in theirs.values()]) for part in (windows, held_out)]
    row(["", "training loss", "held-out loss", "first steps", "all steps", "verdict"])
    row(["---"] * 6)
    row([f"spread of {len(theirs)} seeds of {THEIRS}", *(f"{value:.4f}" for value in spreads), "", "", ""])
    judged = JUDGED + [(system, THEIRS, OTHERS) for system in curves if system not in SYSTEMS]
    found = [compare(f"{system} and {other}", curves[system], curves[other], spreads, bounds)
             for system, other, bounds in judged]
    for one in found:
        row([f"{one.name}, {one.seeds} seed{'s' * (one.seeds > 1)}", share(one.of_training, one.bounds.of_spread),
             share(one.of_held_out, one.bounds.of_spread), relative(one.start, one.bounds.start),
             relative(one.whole, one.bounds.whole), "; ".join(one.problems()) or "good"])
    good = not any(one.problems() for one in found)
    print(f"\n{'PASS: systems are apart by less than seeds, and layouts by far less' if good else 'FAIL'}")
    return good


def share(value, bound):
    return f"{100 * value:.2g} % of {bound:.0%}"


def relative(value, bound):
    return f"{value:.1e}" + ("" if bound is None else f" of {bound:.0e}")


def names_of(known):
    def read(text):
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(known)}")
        return names
    return read


def numbers(text):
    if not all(word.isascii() and word.isdigit() for word in text.split(",")):
        raise argparse.ArgumentTypeError(f"expected whole numbers as in 1,2,3, found {text!r}")
    found = [int(word) for word in text.split(",")]
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"a seed stands twice in {text}")
    return found


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="./dev interop curves", description=__doc__.splitlines()[0])
    parser.add_argument("binaries", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/curves"),
                        help="where the runs stay, and go on (build/curves)")
    parser.add_argument("--steps", type=int, default=3000, help=f"of each run, a multiple of {WINDOW} (3000)")
    parser.add_argument("--seeds", type=numbers, default=[1, 2, 3], help="of weights and orders (1,2,3)")
    parser.add_argument("--runs", type=names_of(SYSTEMS), help=f"only these of {','.join(SYSTEMS)}, and no table")
    parser.add_argument("--damage", choices=DAMAGES,
                        help="one more run of transformers, which does this otherwise: the verdict must be FAIL")
    parser.add_argument("--short", action="store_true", help="40 steps, exactly: ./dev interop steps")
    options = parser.parse_args(arguments)
    if options.steps < WINDOW or options.steps % WINDOW:
        parser.error(f"--steps: expected a multiple of {WINDOW}, found {options.steps}")
    if len(options.seeds) < 2 and not options.runs and not options.short:
        parser.error("--seeds: one seed has no spread; give two or more, or --runs")
    return options


def main(arguments):
    options = options_of(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a run that was launched ends, too
    torch.set_num_threads(1)  # toys are too small for more
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    plan = options.binaries.resolve() / "plan"
    if options.short:
        with tempfile.TemporaryDirectory() as folder:
            wrong = short(plan, pathlib.Path(folder))
        print("every loss is the same, and every damage was seen" if wrong == 0 else f"{wrong} of these are WRONG")
        return 1 if wrong else 0
    runs = Runs(plan, options.out.resolve(), options.steps, SYSTEMS)
    curves = {}
    for seed in options.seeds:
        for system in options.runs or SYSTEMS:
            curves.setdefault(system, {})[seed] = runs.curve(system, seed)
    if options.damage:
        seed = options.seeds[0]
        curves[f"{THEIRS}, damaged: {options.damage}"] = {seed: runs.curve(THEIRS, seed, options.damage)}
    if options.runs:
        return 0
    show_losses(curves)
    print()
    return 0 if judge(curves) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
