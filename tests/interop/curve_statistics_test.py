"""The judgement of long curves, on curves whose spread and distance are known by hand."""
import math
import unittest

from curve_statistics import (WINDOW, Bounds, compare, distance, held_out, spread, start_difference, whole_difference,
                              windows)


def curve(levels, held=(), first=None):
    """A line for each step: windows with these mean losses, which alternate around it, and evaluations. `first`: the
    relative difference of the first step."""
    lines = [{"step": 0, "held_out": 100.0}]
    for level in levels:
        lines += [{"step": len(lines), "loss": level + (0.25 if i % 2 else -0.25)} for i in range(WINDOW)]
    if first is not None:
        lines[1]["loss"] *= 1 + first
    return lines + [{"step": WINDOW * (i + 1), "held_out": loss} for i, loss in enumerate(held)]


def judged(shift, bound=1.0, held_shift=0.0, first=None, start=1e-5, whole=None):
    """Three seeds, whose spread is 1 in both windows and 2 in what was held out, and another system."""
    theirs = {seed: curve([5.0 + seed, 3.0 - seed], [2.0 * seed]) for seed in (1, 2, 3)}
    ours = {seed: curve([5.0 + seed + shift, 3.0 - seed - shift], [2.0 * seed + held_shift], first)
            for seed in theirs}
    spreads = [spread([part(one) for one in theirs.values()]) for part in (windows, held_out)]
    return compare("ours", ours, theirs, spreads, Bounds(bound, start, whole))


class Numbers(unittest.TestCase):
    def test_windows_are_means_of_full_windows(self):
        self.assertEqual(windows(curve([4.0, 2.0]) + [{"step": 201, "loss": 99.0}]), [4.0, 2.0])

    def test_evaluations_before_the_first_step_do_not_count(self):
        self.assertEqual(held_out(curve([4.0], [7.0, 6.0])), [7.0, 6.0])

    def test_spread_is_that_of_seeds(self):
        self.assertAlmostEqual(spread([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]), math.sqrt(0.5))

    def test_distance_is_of_the_same_seed(self):
        self.assertEqual(distance([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]), 0.0)
        self.assertAlmostEqual(distance([[1.0], [3.0]], [[3.0], [1.0]]), 2.0)

    def test_curves_of_other_lengths_are_refused(self):
        with self.assertRaises(ValueError):
            distance([[1.0, 2.0]], [[1.0]])

    def test_start_is_of_the_first_steps_alone(self):
        self.assertAlmostEqual(start_difference(curve([4.0], first=1e-3), curve([4.0])), 1e-3)
        self.assertEqual(start_difference(curve([4.0, 9.0]), curve([4.0, 2.0])), 0.0)

    def test_the_whole_is_of_all_steps_and_of_what_was_held_out(self):
        self.assertAlmostEqual(whole_difference(curve([4.0], [2.0], first=1e-3), curve([4.0], [2.0])), 1e-3)
        self.assertAlmostEqual(whole_difference(curve([4.0], [2.5]), curve([4.0], [2.0])), 0.25)
        self.assertGreater(whole_difference(curve([4.0, 2.2], [2.0]), curve([4.0, 2.0], [2.0])), 0.08)


class Verdicts(unittest.TestCase):
    def test_inside_of_the_spread(self):
        found = judged(0.5, held_shift=-0.5)
        self.assertAlmostEqual(found.of_training, 0.5)
        self.assertAlmostEqual(found.of_held_out, 0.25)
        self.assertEqual(found.seeds, 3)
        self.assertEqual(judged(0.5, held_shift=-0.5, start=None).problems(), [])

    def test_outside_of_the_spread(self):
        self.assertIn("training loss", judged(1.5, start=None).problems()[0])
        self.assertIn("held-out loss", judged(0.0, held_shift=2.5).problems()[0])

    def test_layouts_must_be_closer(self):
        self.assertEqual(judged(0.05, 0.1, start=None).problems(), [])
        self.assertTrue(judged(0.2, 0.1, start=None).problems())

    def test_a_loss_that_is_no_number_is_no_agreement(self):
        self.assertTrue(judged(math.nan, start=None).problems())
        self.assertIn("first", judged(0.0, first=math.nan).problems()[-1])

    def test_the_first_steps_agree_to_rounding(self):
        self.assertEqual(judged(0.0, first=1e-6).problems(), [])
        self.assertIn("first", judged(0.0, first=1e-4).problems()[0])
        self.assertEqual(judged(0.0, first=1e-4, start=None).problems(), [])

    def test_in_fp64_every_loss_agrees(self):
        self.assertEqual(judged(0.0, start=1e-9, whole=1e-5).problems(), [])
        self.assertIn("first", judged(0.0, first=1e-7, start=1e-9, whole=1e-5).problems()[0])
        self.assertIn("losses", judged(1e-3, start=None, whole=1e-5).problems()[0])
        self.assertIn("losses", judged(0.0, held_shift=1e-3, whole=1e-5).problems()[0])
        self.assertEqual(judged(1e-3, start=None).problems(), [])


if __name__ == "__main__":
    unittest.main()
