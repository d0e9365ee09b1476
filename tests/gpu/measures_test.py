#!/usr/bin/env python3
"""Plans every run that a part of `tests/gpu/measure` makes, so that no GPU waits for a recipe that is refused, that
does not fit, or that ends early. Needs no GPU.

  measures_test.py PLAN
"""

import contextlib
import functools
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from measuring import Case  # noqa: E402

PLAN = None


def load_measure():
    loader = importlib.machinery.SourceFileLoader("measure", str(HERE / "measure"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure", loader))
    loader.exec_module(module)
    return module


measure = load_measure()
SPACES = measure.SpacesOneGpu, measure.SpacesTwoGpus
ALL = [(kind, part, case) for kind in measure.KINDS.values() for part, cases in kind.cases.items() for case in cases]


@functools.cache
def plan(*words):
    """The answer of plan in JSON, and what it said beside it."""
    done = subprocess.run([PLAN, *map(str, words), "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout), done.stderr


def problems(case, gpus):
    """What would keep a case from running to its end on so many GPUs, or would make it measure something else."""
    answer, said = plan("validate", case.recipe, *case.overrides)
    found = [problem["message"] for problem in answer["problems"]] + ([said] if said else [])
    if not answer["valid"]:
        return found
    summary = answer["summary"]
    if summary["steps"] < case.steps:
        found.append(f"the budget ends after {summary['steps']} of {case.steps} steps")
    if summary["world_size"] > gpus:
        found.append(f"{summary['world_size']} ranks, and the part asks for {gpus} GPUs")
    roles = plan("show", case.recipe, "memory", *case.overrides)[0]["roles"]
    found += [f"{role['role']} has no limit of memory" for role in roles if not role["limit"]]
    found += [f"{role['role']} needs {role['worst_total']} bytes of {role['limit']}" for role in roles
              if role["limit"] and role["worst_total"] > role["limit"]]
    return found


def work(case):
    """FLOPs of a token, and tokens of a step on each GPU."""
    language = plan("show", case.recipe, "model", *case.overrides)[0]["modules"]["language"]
    ranks = plan("validate", case.recipe, *case.overrides)[0]["summary"]["world_size"]
    samples = language["flops_per_step"] / language["flops_per_sample"]
    return language["flops_per_token"], samples * language["tokens_per_sample"] / ranks


class Measures(unittest.TestCase):
    def test_every_case_is_planned(self):
        self.assertGreater(len(ALL), 40)
        for kind, part, case in ALL:
            with self.subTest(part=part, case=case.name):
                self.assertEqual(problems(case, kind.gpus), [])

    def test_a_part_uses_the_gpus_that_it_asks_for(self):
        for kind in measure.KINDS.values():
            for part, cases in kind.cases.items():
                with self.subTest(part=part):
                    sizes = [plan("validate", case.recipe, *case.overrides)[0]["summary"]["world_size"]
                             for case in cases]
                    self.assertEqual(max(sizes), kind.gpus)

    def test_sees_what_would_fail(self):
        def of(name, part, *overrides, steps=None, gpus=4):
            case = next(case for _, of, case in ALL if of == part and case.name == name)
            return problems(Case(case.name, case.recipe, (*case.overrides, *overrides), steps or case.steps), gpus)

        self.assertEqual(of("four_images", "four_images"), [])
        self.assertNotEqual(of("four_images", "four_images", "batch.global_samples=33"), [])
        self.assertNotEqual(of("four_images", "four_images", "batch.no_such_key=1"), [])
        self.assertIn("of 51 steps", of("four_images", "four_images", steps=51)[0])
        self.assertIn("4 ranks", of("four_images", "four_images", gpus=2)[0])
        self.assertNotEqual(of("four_images", "four_images", "cluster.gpu=a100_sxm"), [])  # 80 GB
        self.assertNotEqual(of("four_images", "four_images", "cluster.gpu=none"), [])
        # Two idle lanes of the encoder: a warning.
        self.assertNotEqual(of("four_images", "four_images", "modules.language.parallel.tp=2"), [])

    def test_scaling_is_fixed_work_for_each_gpu(self):
        for part in ("scaling", "four_scaling", "eight_scaling"):
            tokens, flops = {}, {}
            for _, of, case in ALL:
                if of == part:
                    flops[case.name], tokens[case.name] = work(case)
            with self.subTest(part=part):
                self.assertGreaterEqual(len(tokens), 2)
                self.assertEqual(set(tokens.values()), {65536.0})
                # Twice the experts is a router of twice the width.
                self.assertLess(max(flops.values()) / min(flops.values()), 1.01)

    def test_every_part_has_a_name_of_its_own_and_a_line_of_help(self):
        parts = [part for kind in measure.KINDS.values() for part in kind.limits]
        self.assertEqual(len(parts), len(set(parts)))
        self.assertFalse(set(parts) & set(measure.KINDS))
        names = [case.name for _, _, case in ALL]
        self.assertEqual(len(names), len(set(names)), "two runs would share a folder")
        for part in parts:
            self.assertRegex(measure.__doc__, rf"(?m)^  {part} +\S")
            self.assertTrue(callable(getattr(measure.MEASURES[part], part)))
        for kind in measure.KINDS.values():
            self.assertLessEqual(set(kind.cases), set(kind.limits))

    def test_a_table_has_a_case_that_another_part_has_run(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            out, launched = pathlib.Path(folder), []
            two = measure.TwoGpus(pathlib.Path(PLAN).parent, out)

            def launch(_, case, options=()):
                """What a run leaves that takes a second for each step, and just the memory of the plan."""
                launched.append(case.name)
                total, libraries = sum(two.planned(case).values()), 10**9
                rows = [{"name": name, "planned": size, "measured": size}
                        for name, size in (("context and libraries", libraries), ("in all", total))]
                role = max(two.show("memory", case)["roles"], key=lambda one: one["total"])["role"]
                (out / case.name).mkdir()
                (out / case.name / "outcome.json").write_text(json.dumps({"memory": [{"role": role, "bytes": rows}]}))
                memory = {"tensors_peak": total - libraries, "reserved_peak": total - libraries, "used": total}
                record = {"step_seconds": 1.0, "loss": 1.0, "skipped": False, "device_memory": memory}
                return [record] * case.steps, "device idle 0.0%" if options else ""

            two.launch = launch
            two.text_8()
            two.scaling()
        self.assertEqual(launched, ["text_8", "scaling_one"])
        self.assertRegex(printed.getvalue(), r"(?m)^scaling_two  .*\n(PASS.*\n)*efficiency: .* scaling_two 100")

    def test_layouts_of_a_space_train_one_curve(self):
        """And a search may choose each of them."""
        chosen = re.compile(r"batch\.micro_samples=|gradients\.|modules\.\w+\.(parallel|placement|recompute)[.=]")
        names = [space.name for kind in SPACES for spaces in kind.lists.values() for space in spaces]
        self.assertEqual(len(names), len(set(names)))
        for space in (space for kind in SPACES for spaces in kind.lists.values() for space in spaces):
            layouts = list(space.layouts.values())
            self.assertIn(len(layouts), range(3, 7), space.name)
            self.assertEqual(len(layouts), len(set(layouts)), space.name)
            for overrides in layouts:
                with self.subTest(space=space.name, overrides=overrides):
                    self.assertEqual([word for word in overrides if not chosen.match(word)], [])
                    beside, _ = plan("diff", space.recipe(), *layouts[0], space.recipe(), *overrides)
                    self.assertEqual((beside["same"], beside["may_change_loss"]), (overrides == layouts[0], False))

    def test_spaces_keep_what_has_run(self):
        def of(minutes, late=""):
            """What a part prints, says and keeps, of which each run takes a second, and one fails."""
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
                out, seen = pathlib.Path(folder), []
                spaces = measure.SpacesOneGpu(pathlib.Path(PLAN).parent, out)
                spaces.chosen, spaces.minutes = ["short_1g", "dense_1g"], minutes

                def launch(_, case, options=()):
                    kept = out / "spaces.json"
                    seen.append(len(json.loads(kept.read_text())["runs"]) if kept.exists() else 0)
                    if case.name == late:
                        spaces.judge(False, f"{case.name}: 0 of {case.steps} steps")
                        return None, ""
                    (out / case.name).mkdir()
                    rows = [{"name": "in all", "planned": 2, "measured": 1}]
                    (out / case.name / "outcome.json").write_text(json.dumps({"memory": [{"bytes": rows}]}))
                    return [{"step_seconds": step} for step in (9, 9, 9, 1, 3, 2, 2, 1)], ""

                spaces.launch = launch
                spaces.spaces()
                kept = out / "spaces.json"
                runs = json.loads(kept.read_text())["runs"] if kept.exists() else []
            return printed.getvalue(), spaces.failed, runs, seen

        printed, failed, runs, seen = of(None)
        self.assertEqual((failed, seen), ([], list(range(7))))
        self.assertEqual([run["space"] for run in runs], ["dense_1g"] * 4 + ["short_1g"] * 3)
        self.assertEqual({(run["measured_ms"], run["planned_bytes"], run["used_bytes"]) for run in runs},
                         {(2000, 2, 1)})
        self.assertEqual((runs[0]["recipe"], runs[0]["layout"], runs[0]["overrides"]),
                         ("tests/gpu/spaces/dense_1g.yaml", "2 samples", ["batch.micro_samples=2"]))
        self.assertGreater(runs[0]["data_sheet_ms"], runs[1]["data_sheet_ms"])
        self.assertEqual(printed.count("fastest by data sheets: "), 2)
        printed, failed, runs, _ = of(None, "dense_1g_4_samples")
        self.assertEqual((failed, len(runs)), (["dense_1g_4_samples: 0 of 8 steps"], 6))
        self.assertEqual(printed.count("fastest by data sheets: "), 1)
        _, failed, runs, seen = of(0)
        self.assertEqual((runs, seen), ([], []))
        self.assertRegex(failed[0], "^spaces: no time was left for dense_1g, 2 samples; .*; short_1g, 32 samples$")

    def test_wrong_options_are_refused(self):
        for words, said in ((["--parts", "step", "--minutes", "1"], "are for the parts spaces and spaces_2g"),
                            (["--parts", "regret", "--spaces", "long_2g"], "unknown space long_2g; the parts have exp"),
                            (["--parts", "no"], "unknown part no; there are tests")):
            done = subprocess.run([sys.executable, HERE / "measure", *words], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_too_few_gpus_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            listing = pathlib.Path(folder) / "nvidia-smi"
            listing.write_text("#!/bin/sh\necho 'GPU 0: one'\n")
            listing.chmod(0o755)
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "NCCL_NVLS_ENABLE": "0",
                           "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
            done = subprocess.run([sys.executable, HERE / "measure", pathlib.Path(PLAN).parent, "--out", folder,
                                   "--parts", "text_8,four,eight"], env=environment, capture_output=True, text=True,
                                  check=False)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        for part, gpus in (("text_8", 2), ("four_scaling", 4), ("eight_mock", 8)):
            self.assertIn(f"FAIL  {part} needs {gpus} GPUs, and this machine has 1\n", done.stdout)
        self.assertTrue(done.stdout.endswith("verdict: FAIL\n"), done.stdout)


if __name__ == "__main__":
    PLAN = sys.argv.pop(1)
    unittest.main()
