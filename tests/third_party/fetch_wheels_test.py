"""Runs third_party/fetch_wheels with small wheels from a package index on this machine, and pip as people have it.

The index can damage what it sends, end early, keep a client waiting, or lack a wheel. No test waits for a time: each
one waits for what the program or the index says.
"""
import collections
import hashlib
import http.server
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "third_party" / "fetch_wheels"
LISTS = sorted((ROOT / "third_party").glob("wheels_*.txt"))


def make_wheel(folder, name, files, version="13.0.1"):
    """A wheel for Linux with these files: (path, bytes, whether it is a program)."""
    stem = f"{name.replace('-', '_')}-{version}"
    path = folder / f"{stem}-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    info = [(f"{stem}.dist-info/METADATA", about.encode(), False),
            (f"{stem}.dist-info/WHEEL", b"Wheel-Version: 1.0\nTag: py3-none-manylinux2014_x86_64\n", False),
            (f"{stem}.dist-info/RECORD", b"", False)]
    with zipfile.ZipFile(path, "w") as archive:
        for inside, content, program in files + info:
            entry = zipfile.ZipInfo(inside)
            entry.external_attr = (0o755 if program else 0o644) << 16
            archive.writestr(entry, content)
    return path


def unpacked_bytes(path):
    with zipfile.ZipFile(path) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def list_line(path, sizes=None):
    name, version = path.name.split("-")[:2]
    packed, unpacked = sizes or (path.stat().st_size, unpacked_bytes(path))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name.replace('_', '-')}=={version} \\\n  --hash=sha256:{digest}  # {packed} bytes, {unpacked} unpacked\n"


def closed_port():
    """A port at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Index(http.server.ThreadingHTTPServer):
    """A package index of the wheels in a folder. `faults` says what happens to the next downloads of a file: "damage",
    "truncate", or "hold" (until `release`); `sent` has the files that were asked for."""
    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Answer)
        self.folder = folder
        self.faults = collections.defaultdict(list)
        self.sent = []
        self.held, self.release = threading.Event(), threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client):
        pass  # a client that was killed


class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        kind, _, name = self.path.strip("/").partition("/")
        files = list(self.server.folder.glob("*.whl"))
        if kind == "simple":
            found = [file.name for file in files if file.name.startswith(name.replace("-", "_") + "-")]
            self.answer("".join(f'<a href="/files/{file}">{file}</a>' for file in found).encode() if found else None)
            return
        self.server.sent.append(name.split("-")[0].replace("_", "-"))
        content = (self.server.folder / name).read_bytes()
        fault = (self.server.faults[self.server.sent[-1]] or [None]).pop(0)
        if fault == "hold":
            self.server.held.set()
            self.server.release.wait()
        if fault == "damage":
            content = content[:100] + bytes([content[100] ^ 1]) + content[101:]
        self.answer(content, sent=len(content) // 2 if fault == "truncate" else len(content))

    def answer(self, content, sent=None):
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "application/zip")
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write((content or b"")[:sent])
        self.close_connection = True


class FetchWheels(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="planwright_wheels_")
        self.addCleanup(temporary.cleanup)
        self.work = pathlib.Path(temporary.name)
        self.folder = self.work / "cache" / "torch"
        self.by_hand = self.work / "cache" / "wheels"
        self.by_hand.mkdir(parents=True)
        served = self.work / "served"
        served.mkdir()
        self.wheels = {
            "libs": make_wheel(served, "libs", [("nvidia/cu13/lib/libfake.so.13", os.urandom(20000), False),
                                                ("nvidia/cu13/include/fake.h", b"#pragma once\n", False)]),
            "compiler": make_wheel(served, "compiler", [("nvidia/cu13/bin/nvcc", b"#!/bin/sh\n", True)]),
            "nccl": make_wheel(served, "nccl", [("nvidia/nccl/lib/libnccl.so.2", os.urandom(5000), False)])}
        self.list = self.work / "wheels.txt"
        self.write_list()
        self.index = Index(served)
        self.addCleanup(self.index.server_close)
        self.addCleanup(self.index.shutdown)
        self.addCleanup(self.index.release.set)

    def write_list(self, sizes=None):
        self.list.write_text("# three wheels\n" + "".join(list_line(wheel, sizes) for wheel in self.wheels.values()))

    def environment(self, port=None, retries=0):
        # No setting of this machine's pip, and no proxy.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        return dict(kept, PIP_CONFIG_FILE=os.devnull, PIP_RETRIES=str(retries), NO_PROXY="127.0.0.1",
                    no_proxy="127.0.0.1", PIP_INDEX_URL=f"http://127.0.0.1:{port or self.index.server_port}/simple/")

    def start(self, before=(), **where):
        return subprocess.Popen([*before, sys.executable, str(PROGRAM), str(self.folder), str(self.list)],
                                env=self.environment(**where), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, start_new_session=True)

    def fetch(self, **how):
        """Exit status and all that was said."""
        program = self.start(**how)
        said, _ = program.communicate()
        return program.returncode, said

    def assert_whole(self):
        inside = lambda path: zipfile.ZipFile(path).open(zipfile.ZipFile(path).namelist()[0]).read()
        self.assertEqual((self.folder / "nvidia/cu13/lib/libfake.so.13").read_bytes(), inside(self.wheels["libs"]))
        self.assertEqual((self.folder / "nvidia/nccl/lib/libnccl.so.2").read_bytes(), inside(self.wheels["nccl"]))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                         ["compiler-13.0.1.dist-info", "libs-13.0.1.dist-info", "nccl-13.0.1.dist-info", "nvidia"])

    def assert_failed(self, result, *texts):
        status, said = result
        self.assertEqual(status, 1, said)
        for text in texts:
            self.assertIn(text, said)
        self.assertNotIn("Traceback", said)

    def test_says_how_large_it_is_fetches_once_and_makes_the_links_of_a_toolkit(self):
        status, said = self.fetch()
        self.assertEqual(status, 0, said)
        self.assert_whole()
        packed = sum(wheel.stat().st_size for wheel in self.wheels.values())
        self.assertIn(f"fetching 3 wheels, {packed / 1e6:.1f} MB", said)
        self.assertRegex(said, r"libs 13\.0\.1 +0\.0 MB, unpacked +0\.0 MB")
        self.assertEqual(os.readlink(self.folder / "nvidia/cu13/lib/libfake.so"), "libfake.so.13")
        self.assertEqual(os.readlink(self.folder / "nvidia/cu13/lib64"), "lib")
        self.assertTrue(os.access(self.folder / "nvidia/cu13/bin/nvcc", os.X_OK))
        self.assertFalse(os.access(self.folder / "nvidia/cu13/include/fake.h", os.X_OK))
        self.assertEqual(self.fetch(), (0, ""))
        self.assertEqual(self.index.sent, ["libs", "compiler", "nccl"])

    def test_a_wheel_that_arrives_damaged_or_cut_off_is_fetched_again(self):
        self.index.faults["libs"] = ["damage"]
        self.index.faults["nccl"] = ["truncate", "truncate"]
        status, said = self.fetch()
        self.assertEqual(status, 0, said)
        self.assert_whole()
        self.assertRegex(said, r"libs 13\.0\.1: what came has the SHA-256 digest [0-9a-f]{64}, expected")
        self.assertEqual(self.index.sent, ["libs", "libs", "compiler", "nccl", "nccl", "nccl"])

    def test_a_wheel_that_stays_damaged_is_refused_and_the_others_stay(self):
        self.index.faults["compiler"] = ["damage"] * 9
        self.assert_failed(self.fetch(), "compiler 13.0.1 is damaged", "3 times", "expected",
                           "still missing: compiler 13.0.1, nccl 13.0.1", str(self.by_hand))
        self.assertEqual([path.name for path in self.folder.glob("*.dist-info")], ["libs-13.0.1.dist-info"])
        self.assertFalse((self.folder / "nvidia/cu13/bin").exists())

    def test_goes_on_where_it_was_killed(self):
        self.index.faults["compiler"] = ["hold"]
        program = self.start()
        self.index.held.wait()
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        self.index.release.set()
        self.assertTrue(list(self.folder.glob(".fetching-*")))
        status, said = self.fetch()
        self.assertEqual(status, 0, said)
        self.assert_whole()
        self.assertIn("fetching 2 wheels", said)
        self.assertEqual(self.index.sent, ["libs", "compiler", "compiler", "nccl"])

    def test_an_interrupt_leaves_nothing_half_done(self):
        self.index.faults["compiler"] = ["hold"]
        program = self.start()
        self.index.held.wait()
        os.killpg(program.pid, signal.SIGINT)
        said, _ = program.communicate()
        self.assertEqual(program.returncode, 130, said)
        self.assertIn("run it again to go on", said)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["libs-13.0.1.dist-info", "nvidia"])

    def test_two_at_once_fetch_each_wheel_once(self):
        self.index.faults["libs"] = ["hold"]
        first = self.start()
        self.index.held.wait()
        second = self.start()
        self.assertIn("waiting for another one", second.stdout.readline())
        self.index.release.set()
        said, _ = first.communicate()
        self.assertEqual(first.returncode, 0, said)
        self.assertEqual((second.communicate()[0], second.returncode), ("", 0))
        self.assertEqual(self.index.sent, ["libs", "compiler", "nccl"])

    def test_a_wheel_that_the_index_has_not_is_named(self):
        os.remove(self.index.folder / self.wheels["nccl"].name)
        self.assert_failed(self.fetch(), "nccl 13.0.1 cannot be fetched: pip finds no package index, or one without",
                           "still missing: nccl 13.0.1\n")
        make_wheel(self.index.folder, "nccl", [], version="14.0.0")
        self.assert_failed(self.fetch(), "nccl 13.0.1 cannot be fetched, as the package index of pip has other ",
                           "from versions: 14.0.0", "still missing: nccl 13.0.1\n")

    def test_without_a_network_says_what_to_fetch_and_where_to_put_it(self):
        self.assert_failed(self.fetch(port=closed_port(), retries=1),
                           "libs 13.0.1 cannot be fetched, as pip reaches no package index", "Connection refused",
                           "still missing: libs 13.0.1, compiler 13.0.1, nccl 13.0.1", f"-r {self.list} -d wheels",
                           f"put the files into {self.by_hand}")

    def test_takes_wheels_that_a_person_fetched_with_the_command_that_it_names(self):
        port = closed_port()
        _, said = self.fetch(port=port)
        command = re.search(r"python3 -m (pip download .*) -d wheels", said)[1].split()
        subprocess.run([sys.executable, "-m", *command, "-q", "-d", str(self.by_hand)], check=True,
                       env=self.environment())
        status, said = self.fetch(port=port)
        self.assertEqual(status, 0, said)
        self.assert_whole()
        self.assertEqual(len(list(self.by_hand.glob("*.whl"))), 3)

    def test_a_damaged_wheel_of_a_person_is_refused_by_its_path(self):
        path = self.by_hand / self.wheels["libs"].name
        path.write_bytes(self.wheels["libs"].read_bytes()[:-1])
        self.assert_failed(self.fetch(), f"{path} is damaged or another wheel", "remove it")
        self.assertEqual(self.index.sent, [])

    def test_a_disk_that_is_too_small_is_refused_before_anything_is_fetched(self):
        self.write_list(sizes=(10, 10**18))
        self.assert_failed(self.fetch(), "free, and 3000000000.00 GB are needed", "PLANWRIGHT_CACHE")
        self.assertEqual(self.index.sent, [])

    def test_a_disk_that_fills_up_is_named(self):
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespaces for users here, so no small disk")
        self.wheels["libs"] = make_wheel(self.index.folder, "libs", [("nvidia/cu13/lib/libfake.so.13",
                                                                    os.urandom(4 << 20), False)])
        self.write_list(sizes=(10, 10))  # less than it is, as if somebody else filled the disk meanwhile
        self.folder.mkdir()
        small = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=2m none "$0" && exec "$@"', str(self.folder)]
        self.assert_failed(self.fetch(before=small), f"the disk of {self.folder} is full", "still missing: libs 13.0.1")
        large = [word.replace("size=2m", "size=7m") for word in small]  # the wheel fits, but not its files beside it
        self.assert_failed(self.fetch(before=large), f"the disk of {self.folder} is full", "still missing: libs 13.0.1")

    def test_a_list_with_wrong_sizes_or_words_is_refused(self):
        self.write_list(sizes=(10, 20))
        self.assert_failed(self.fetch(), "the list says that libs 13.0.1 has 10 bytes, 20 unpacked", "mend the list")
        self.list.write_text("libs==13.0.1\n")
        self.assert_failed(self.fetch(), f"{self.list}: found 'libs==13.0.1', expected NAME==VERSION --hash=")
        self.list = self.work / "none.txt"
        self.assert_failed(self.fetch(), f"cannot read the list {self.list}: No such file or directory")


class PinnedLists(unittest.TestCase):
    def test_every_list_can_be_read_and_names_each_wheel_once(self):
        loader = importlib.machinery.SourceFileLoader("fetch_wheels", str(PROGRAM))
        program = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch_wheels", loader))
        sys.dont_write_bytecode = True
        loader.exec_module(program)
        names = [wheel.name for path in LISTS for wheel in program.read_list(path)]
        self.assertEqual([name for name, count in collections.Counter(names).items() if count > 1], [])
        self.assertEqual([path.name for path in LISTS],
                         ["wheels_nvcc.txt", "wheels_torch.txt", "wheels_torch_cuda.txt"])
        self.assertTrue({"torch", "nvidia-nccl-cu13", "nvidia-cuda-nvcc"} <= set(names))


if __name__ == "__main__":
    unittest.main()
