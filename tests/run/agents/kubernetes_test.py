#!/usr/bin/env python3
"""Runs what the pods of docs/examples/kubernetes.yaml run, each in namespaces of its own, as there is no Kubernetes.

usage: kubernetes_test.py SOURCE BIN FOLDER
A pod is a process that is number 1 of its namespace, with its own host name, network and address, the environment of
the Job, and the shared volume at its mount path. Exit status 77: this machine gives no namespaces (not root).
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import yaml

SOURCE, BIN, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
SERVICE, JOB = yaml.safe_load_all((SOURCE / "docs/examples/kubernetes.yaml").read_text())
POD = JOB["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
NODES = JOB["spec"]["completions"]
PATIENCE = 600
TAG = f"pwk{os.getpid()}"


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def eventually(ready):
    until = time.monotonic() + PATIENCE
    while not (value := ready()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)
    return value


class Network:
    """A network namespace for each node, all on one bridge."""

    def __init__(self):
        self.names = []
        self.add(f"{TAG}-hub")
        run("ip", "-n", f"{TAG}-hub", "link", "add", "bridge0", "type", "bridge")
        run("ip", "-n", f"{TAG}-hub", "link", "set", "bridge0", "up")
        for node in range(NODES):
            name = self.add(f"{TAG}-{node}")
            run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{node}", "netns",
                f"{TAG}-hub")
            run("ip", "-n", f"{TAG}-hub", "link", "set", f"port{node}", "master", "bridge0", "up")
            run("ip", "-n", name, "address", "add", f"10.88.0.{node + 1}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")

    def add(self, name):
        run("ip", "netns", "add", name)
        self.names.append(name)
        return name

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


class Pod:
    def __init__(self, index, shared, changed):
        mounted = next(one["mountPath"] for one in CONTAINER["volumeMounts"] if one["name"] == "shared")
        environment = {one["name"]: one["value"] for one in CONTAINER["env"]}
        environment |= changed
        environment |= {"JOB_COMPLETION_INDEX": str(index), "PATH": f"{BIN}:/usr/bin:/bin", "HOME": "/root"}
        host = f"{JOB['metadata']['name']}-{index}"
        script = (f"hostname {host} && mount -t tmpfs tmpfs {pathlib.Path(mounted).parent} && mkdir -p {mounted} && "
                  f'mount --bind {shared} {mounted} && cd / && exec "$@"')
        self.output = FOLDER / f"{host}-{time.monotonic_ns()}.log"
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", f"{TAG}-{index}", "unshare", "--uts", "--mount", "--pid", "--fork",
                 "--kill-child", "--mount-proc", "sh", "-c", script, "pod", *CONTAINER["command"], *CONTAINER["args"]],
                env=environment, stdout=output, stderr=output)

    def text(self):
        return self.output.read_text(errors="replace")

    def end(self):
        return self.process.wait(PATIENCE)

    def evict(self):
        """SIGTERM to process 1 of the pod, as kubelet sends it."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGTERM)


class InNamespaces(unittest.TestCase):
    def setUp(self):
        self.shared = FOLDER / "shared"
        shutil.rmtree(self.shared, ignore_errors=True)
        self.shared.mkdir(parents=True)
        values = {one["name"]: one["value"] for one in CONTAINER["env"]}
        mounted = pathlib.Path(next(one["mountPath"] for one in CONTAINER["volumeMounts"] if one["name"] == "shared"))
        self.recipe = self.shared / pathlib.Path(values["RECIPE"]).relative_to(mounted)
        self.run = self.shared / pathlib.Path(values["RUN"]).relative_to(mounted)
        self.network = Network()
        self.addCleanup(self.network.close)
        self.pods = []

    def tearDown(self):
        for pod in self.pods:
            if pod.process.poll() is None:
                pod.process.kill()
                pod.process.wait()

    def write_recipe(self, steps):
        recipe = yaml.safe_load((SOURCE / "recipes/nemotron_moe_vlm_tiny.yaml").read_text())
        self.recipe.write_text(yaml.safe_dump({
            "extends": str(SOURCE / "recipes/nemotron_moe_vlm_tiny.yaml"),
            "cluster": {"nodes": NODES, "gpus_per_node": 1},
            "modules": {"language": {"placement": {"first_rank": 1}}},
            "budget": {"train_samples": steps * recipe["batch"]["global_samples"]},
            "checkpoint": {"every_steps": 50}}))

    def start(self, **changed):
        """The pods of the Job. `changed`: values of its environment."""
        # Pods come in any order: here the head is the last one.
        self.pods = [Pod(index, self.shared, changed) for index in reversed(range(NODES))]

    def ends(self):
        return [pod.end() for pod in self.pods]

    def steps(self):
        path = self.run / "metrics.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    def test_a_run_is_trained_and_one_that_is_evicted_goes_on(self):
        self.write_recipe(200)
        self.start()
        eventually(lambda: self.steps() >= 2 or any(pod.process.poll() is not None for pod in self.pods))
        self.pods[0].evict()  # not that of the head
        self.assertEqual(self.ends(), [75] * NODES, [pod.text() for pod in self.pods])
        done = self.steps()
        self.assertGreaterEqual(done, 2)
        self.start()  # what the Job does: new pods of the same indexes
        self.assertEqual(self.ends(), [0] * NODES, [pod.text() for pod in self.pods])
        self.assertEqual(self.steps(), 200)
        self.assertEqual(json.loads((self.run / "lives/2/start.json").read_text())["from_step"], done)
        for index in range(NODES):
            log = (self.run / f"logs/rank{index:04}.log").read_text()
            self.assertIn(f"rank {index} of {NODES} on {JOB['metadata']['name']}-{index},", log)

    def test_a_trial_has_a_verdict_and_leaves_the_run_alone(self):
        self.write_recipe(10)
        for _ in range(2):  # the second one finds the head of the first
            self.start(TRY="--try")
            self.assertEqual(self.ends(), [0] * NODES, [pod.text() for pod in self.pods])
            head = self.pods[-1].text()
            for line in (f"PASS  start   {NODES} ranks on ", "exchange over ", "the trial passed: "):
                self.assertIn(line, head)
            self.assertNotIn(" over :", head)
            self.assertIn("the trial passed: ", self.pods[0].text())
        self.assertFalse(self.run.exists())
        self.start()
        self.assertEqual(self.ends(), [0] * NODES, [pod.text() for pod in self.pods])
        self.assertEqual(self.steps(), 10)

    def test_what_cannot_succeed_fails_the_job(self):
        self.write_recipe(10)
        self.recipe.write_text(self.recipe.read_text().replace("extends", "extents"))
        self.start()
        head = self.pods[-1]
        status = head.end()
        fail_job = next(rule for rule in JOB["spec"]["podFailurePolicy"]["rules"] if rule["action"] == "FailJob")
        self.assertIn(status, fail_job["onExitCodes"]["values"], head.text())


class TheFile(unittest.TestCase):
    def test_its_parts_belong_together(self):
        name = JOB["metadata"]["name"]
        self.assertEqual(JOB["spec"]["completionMode"], "Indexed")
        self.assertEqual(JOB["spec"]["parallelism"], NODES)
        self.assertEqual(SERVICE["spec"]["clusterIP"], "None")
        self.assertEqual(SERVICE["spec"]["selector"], {"job-name": name})
        self.assertEqual(POD["subdomain"], SERVICE["metadata"]["name"])
        volumes = {volume["name"] for volume in POD["volumes"]}
        self.assertEqual({mount["name"] for mount in CONTAINER["volumeMounts"]}, volumes)

    def test_statuses_are_those_of_the_table(self):
        rows = re.findall(r"^\| (\d+) \|.*\| (yes|no) \|[^|]*\|$", (SOURCE / "docs/failures.md").read_text(), re.M)
        again = {int(status) for status, restart in rows if restart == "no"} | {1}
        rules = JOB["spec"]["podFailurePolicy"]["rules"]
        fail = next(rule for rule in rules if rule["action"] == "FailJob")["onExitCodes"]["values"]
        ignored = next(rule for rule in rules if "onExitCodes" in rule and rule["action"] == "Ignore")
        self.assertEqual(ignored["onExitCodes"]["values"], [75])
        # A replaced life (18) has a newer one, which decides.
        self.assertEqual(set(fail), again - {18, 75})

    def test_the_page_shows_its_commands(self):
        page = (SOURCE / "docs/kubernetes.md").read_text()
        for line in CONTAINER["args"][0].splitlines():
            self.assertIn(line.strip(), page)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "ip", "link", "add", "bridge0", "type", "bridge"],
                                           capture_output=True, check=False).returncode != 0:
        print("no namespaces: root is needed, and iproute2; what can be checked without them is")
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(TheFile)
        sys.exit(77 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1)
    unittest.main(argv=sys.argv[:1])
