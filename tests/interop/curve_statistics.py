"""What the curves of several systems and seeds say: how far systems are apart, beside how far seeds are.

A curve is a list of lines as curve_runs.py keeps them. Losses are compared as means of windows of WINDOW steps, and so
are the losses of what was held out, at each evaluation. For the runs of a system there is a curve of each seed.

    spread     of the seeds of one system: in each window their standard deviation (n - 1), then the root mean square
               over windows
    distance   of two systems: the difference of their curves of the same seed, root mean square over windows and seeds
"""
import dataclasses
import math

WINDOW = 100
START = 20  # first steps, which must agree to rounding
ROUNDING = 1e-5  # relative, of a loss in fp32
ROUNDING_FP64 = 1e-9  # and of one in fp64
LAYOUTS_BELOW = 0.1  # of the spread: how far two layouts may be apart


def windows(curve, size=WINDOW):
    """The mean loss of each window; a last one that is not full is left out."""
    losses = [line["loss"] for line in curve if "loss" in line]
    return [sum(losses[i:i + size]) / size for i in range(0, len(losses) - size + 1, size)]


def held_out(curve):
    """The losses of what was held out, but for that before the first step."""
    return [line["held_out"] for line in curve if "held_out" in line and line["step"] > 0]


def root_mean_square(values):
    return math.sqrt(sum(value * value for value in values) / len(values))


def spread(curves):
    """Of lists of numbers, one for each seed. Deviations of at least two."""
    def deviation(values):
        mean = sum(values) / len(values)
        return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))

    return root_mean_square([deviation(values) for values in zip(*curves, strict=True)])


def distance(curves, others):
    """Of lists of numbers, one for each seed, and those of another system with the same seeds."""
    return root_mean_square([a - b for curve, other in zip(curves, others, strict=True)
                             for a, b in zip(curve, other, strict=True)])


def step_losses(curve):
    return [line["loss"] for line in curve if "loss" in line]


def largest_difference(losses, others):
    """Relative to the others."""
    found = [abs(a - b) / abs(b) for a, b in zip(losses, others, strict=True)]
    return math.inf if any(map(math.isnan, found)) else max(found)


def start_difference(curve, other, steps=START):
    """The largest relative difference of the losses of the first steps."""
    return largest_difference(step_losses(curve)[:steps], step_losses(other)[:steps])


def whole_difference(curve, other):
    """The largest relative difference of any loss, of a step or of what was held out."""
    return max(largest_difference(step_losses(curve), step_losses(other)),
               largest_difference(held_out(curve), held_out(other)))


@dataclasses.dataclass(frozen=True)
class Bounds:
    """How far two systems may be apart; None: not asked."""
    of_spread: float
    start: float | None = None  # relative difference of the first steps
    whole: float | None = None  # and of all losses


@dataclasses.dataclass
class Comparison:
    """Two systems, over the seeds that both have."""
    name: str
    of_training: float  # distance over spread
    of_held_out: float
    start: float  # the largest relative difference of the first steps
    whole: float  # and of all losses
    bounds: Bounds
    seeds: int = 0

    def problems(self):
        found = [f"{what} is {value:.2g} of the spread, and {self.bounds.of_spread:g} is allowed"
                 for what, value in (("the training loss", self.of_training), ("the held-out loss", self.of_held_out))
                 if not value < self.bounds.of_spread]
        for what, value, bound in ((f"the first {START} steps", self.start, self.bounds.start),
                                   ("losses", self.whole, self.bounds.whole)):
            if bound is not None and not value <= bound:
                found.append(f"{what} differ by {value:.1e}, and {bound:.0e} is allowed")
        return found


def compare(name, runs, others, spreads, bounds):
    """`runs`, `others`: curves by seed. `spreads`: that of the training loss, and of the held-out loss."""
    seeds = sorted(runs.keys() & others.keys())
    mine, theirs = [runs[seed] for seed in seeds], [others[seed] for seed in seeds]
    parts = [distance(list(map(part, mine)), list(map(part, theirs))) / whole
             for part, whole in zip((windows, held_out), spreads)]
    differences = [max(map(difference, mine, theirs)) for difference in (start_difference, whole_difference)]
    return Comparison(name, *parts, *differences, bounds, len(seeds))
