"""How long tests will still take: from the times of their last run here, and for tests that never ran here from the
cost that CMakeLists.txt give, corrected by how those that are done compare with theirs."""
import os

DEFAULT = 0.2  # seconds of a test of which nothing is known
TRUSTED = 5.0  # expected seconds of finished tests, from which on they correct the others


def measured_seconds(build):
    """Mean seconds by name, as ctest keeps them."""
    seconds = {}
    try:
        with open(os.path.join(build, 'Testing/Temporary/CTestCostData.txt'), encoding='utf-8') as file:
            for line in file:
                if line.startswith('---'):
                    break
                name, runs, mean = line.rsplit(maxsplit=2)
                if int(runs) > 0:
                    seconds[name] = float(mean)
    except OSError:
        pass
    return seconds


class Estimate:
    def __init__(self, tests, measured, slots):
        """`tests`: name, cost or None, and how many of the `slots` it takes."""
        self.slots = slots
        self.width = {name: min(width, slots) for name, _, width in tests}
        self.expected = {name: measured.get(name, cost or DEFAULT) for name, cost, _ in tests}
        self.unknown = sum(name not in measured for name, _, _ in tests)
        self.waiting, self.running = set(self.expected), {}
        self.planned = self.took = 0.0

    def start(self, name, now):
        if name in self.waiting:
            self.waiting.discard(name)
            self.running[name] = now

    def finish(self, name, seconds):
        self.waiting.discard(name)
        if self.running.pop(name, None) is not None:
            self.planned += self.expected[name]
            self.took += seconds

    def left(self, now):
        """Seconds until all are done."""
        pace = self.took / self.planned if self.planned >= TRUSTED else 1.0
        each = {name: self.expected[name] * pace for name in self.waiting}
        # Of one that takes longer than expected nobody knows the end: a tenth of what it took is left.
        each.update({name: max(self.expected[name] * pace - (now - began), (now - began) / 10)
                     for name, began in self.running.items()})
        if not each:
            return 0.0
        return max(sum(seconds * self.width[name] for name, seconds in each.items()) / self.slots, max(each.values()))


def words(seconds):
    if seconds < 1:
        return 'less than a second'
    if seconds < 60:
        return f'{seconds:.0f} s'
    return f'{seconds // 60:.0f} min' if seconds < 3600 else f'{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min'
