#!/usr/bin/env python3
"""Tries, on one device that all ranks share, what `gpu_shared` knows: each rank is a node of its own with an agent, and
NCCL goes through sockets. The cases come in pieces of some minutes, so that they can go on another time.

  tests/gpu/verify_on_gpus --share [BINARIES] [OPTIONS]

  BINARIES         the folder of plan, the executors and gpu_shared; default build-gpu/bin, with --cpu build/bin
  --cpu            on the CPUs of this machine over Gloo: all but the device is the same
  --list           prints the pieces, with how many cases they have, and does nothing
  --from PIECE     this piece and those behind it
  --only TEXT,...  cases whose name (GROUP/CASE) has one of these in it, or whose piece (GROUP.N) is one
  --every N        of each group every N-th case, from the first
  --passed FILE    leaves out the cases that FILE names, and adds those that pass: a later call goes on
  --minutes N      begins no case later than that
  --at-once N      cases that run at the same time; default 4, with --cpu 2

Prints a line for each case and for each piece. The last line is `verdict: PASS` (status 0): all chosen cases have
passed, now or in FILE; `verdict: FAIL` (1): some failed; or `verdict: UNFINISHED` (3): none failed, some are left.
"""
import argparse
import hashlib
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["plan", "executor", "faulty_executor", "idle_executor", "matrix_executor", "gpu_shared"]
PIECE = 16            # cases
LONGER = {"kills": 12, "bits": 12, "resume": 12, "reshard": 12}   # cases of several runs, or that wait
GPU_CASE_MINUTES = 9  # then a case is ended: a GPU may be lent for minutes


class Piece:
    def __init__(self, name, cases):
        self.name, self.cases = name, cases


def pieces_of(names):
    """The cases in their order, cut into pieces of one group each, which have equally many."""
    groups = {}
    for name in names:
        groups.setdefault(name.split("/")[0], []).append(name)
    pieces = []
    for group, cases in groups.items():
        number = -(-len(cases) // LONGER.get(group, PIECE))
        bounds = [len(cases) * i // number for i in range(number + 1)]
        pieces += [Piece(f"{group}.{i + 1}", cases[bounds[i]:bounds[i + 1]]) for i in range(number)]
    return pieces


def every(names, apart):
    seen, chosen = {}, []
    for name in names:
        group = name.split("/")[0]
        seen[group] = seen.get(group, -1) + 1
        if seen[group] % apart == 0:
            chosen.append(name)
    return chosen


class Passed:
    """The cases that passed, in a file, of one build on one kind of device."""

    def __init__(self, path, binaries, device):
        digest = hashlib.sha256()
        for program in PROGRAMS:
            digest.update((binaries / program).read_bytes())
        head = f"# {device}, build {digest.hexdigest()[:16]}"
        self.path, self.names, self.lock = path, set(), threading.Lock()
        if path is None:
            return
        if path.exists():
            lines = path.read_text().splitlines()
            if lines[:1] != [head]:
                sys.exit(f"share_device.py: {path} is of another build or device ({lines[0] if lines else 'empty'}), "
                         f"not of this one ({head}): name another file, or remove it")
            self.names = set(lines[1:])
        else:
            path.write_text(head + "\n")

    def add(self, name):
        with self.lock:
            self.names.add(name)
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(name + "\n")


class Worker:
    """One gpu_shared, which keeps the runs of one rank that it compares with from case to case."""

    def __init__(self, binaries, device):
        self.command = [str(binaries / "gpu_shared"), str(binaries), str(ROOT), device]
        self.limit = GPU_CASE_MINUTES * 60 if device == "cuda" else None
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.STDOUT, start_new_session=True)

    def end(self):
        if self.process is None:
            return
        self.process.stdin.close()
        self.process.wait()
        self.process = None

    def kill(self):
        """With all that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)

    def run(self, name):
        """Whether the case passed, and what it printed."""
        if self.process is None:
            self.start()
        late = threading.Timer(self.limit, self.kill) if self.limit else None
        if late:
            late.start()
        lines, done = [], None
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.startswith((f"PASS {name} ", f"FAIL {name} ")):
                    done = line.rstrip()
                    break
                lines.append(line)
        except BrokenPipeError:
            pass
        if late:
            late.cancel()
        if done is None:
            self.process.wait()
            self.process = None
            return False, f"FAIL {name} gpu_shared ended, or took longer than a case may\n" + "".join(lines)
        return done.startswith("PASS"), done if done.startswith("PASS") else done + "\n" + "".join(lines)


class Share:
    def __init__(self, options, passed, workers):
        self.options, self.passed, self.workers = options, passed, workers
        self.end = time.monotonic() + options.minutes * 60 if options.minutes else None
        self.failed, self.left = [], []
        self.printing = threading.Lock()

    def late(self):
        return self.end is not None and time.monotonic() > self.end

    def work(self, worker, cases, failed):
        while not self.late():
            try:
                name = cases.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            good, text = worker.run(name)
            if good:
                self.passed.add(name)
            else:
                failed.append(name)
            first, *more = text.split("\n", 1)
            with self.printing:
                print(f"{first}  {time.monotonic() - began:.0f} s", *more, sep="\n", flush=True)

    def piece(self, piece):
        cases, failed, began = queue.Queue(), [], time.monotonic()
        todo = [name for name in piece.cases if name not in self.passed.names]
        for name in todo:
            cases.put(name)
        threads = [threading.Thread(target=self.work, args=(worker, cases, failed)) for worker in self.workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        left = [cases.get_nowait() for _ in range(cases.qsize())]
        self.failed += failed
        self.left += left
        verdict = "FAIL" if failed else "UNFINISHED" if left else "PASS"
        print(f"piece {piece.name}: {verdict}, {len(piece.cases)} cases, {len(piece.cases) - len(todo)} passed before, "
              f"{len(failed)} failed, {len(left)} left, {time.monotonic() - began:.0f} s", flush=True)


def read_options():
    parser = argparse.ArgumentParser(prog="verify_on_gpus --share", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="?", type=pathlib.Path)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--from", dest="first")
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--passed", type=pathlib.Path)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--at-once", type=int)
    options = parser.parse_args()
    options.binaries = (options.binaries or ROOT / ("build/bin" if options.cpu else "build-gpu/bin")).resolve()
    options.at_once = options.at_once or (2 if options.cpu else 4)
    if options.every < 1 or options.at_once < 1:
        parser.error("--every and --at-once take numbers from 1")
    for program in PROGRAMS:
        if not (options.binaries / program).exists():
            parser.error(f"no {program} in {options.binaries}: build it (docs/gpu.md)")
    return options


def chosen_pieces(options):
    listed = subprocess.run([str(options.binaries / "gpu_shared"), "--list"], capture_output=True, text=True,
                            check=False)
    if listed.returncode != 0:
        sys.exit(f"share_device.py: gpu_shared --list failed\n{listed.stderr}")
    pieces = pieces_of(every(listed.stdout.split(), options.every))
    if options.first is not None:
        names = [piece.name for piece in pieces]
        if options.first not in names:
            sys.exit(f"share_device.py: no piece is named {options.first}; --list has their names")
        pieces = pieces[names.index(options.first):]
    wanted = [text for text in options.only.split(",") if text]
    for piece in pieces:
        piece.cases = [name for name in piece.cases
                       if not wanted or any(text in name or text == piece.name for text in wanted)]
    pieces = [piece for piece in pieces if piece.cases]
    if not pieces:
        sys.exit("share_device.py: no case is chosen; --list has the pieces")
    return pieces


def main():
    options = read_options()
    pieces = chosen_pieces(options)
    if options.list:
        for piece in pieces:
            print(f"{piece.name:<14} {len(piece.cases):3d} cases, {piece.cases[0]} to {piece.cases[-1]}")
        print(f"{len(pieces)} pieces, {sum(len(piece.cases) for piece in pieces)} cases")
        return 0
    device = "cpu" if options.cpu else "cuda"
    workers = [Worker(options.binaries, device) for _ in range(options.at_once)]
    share = Share(options, Passed(options.passed, options.binaries, device), workers)
    for piece in pieces:
        share.piece(piece)
    for worker in workers:
        worker.end()
    cases = sum(len(piece.cases) for piece in pieces)
    print(f"{cases} cases in {len(pieces)} pieces: {len(share.failed)} failed, {len(share.left)} left")
    for name in share.failed:
        print(f"failed: {name}")
    verdict, status = ("FAIL", 1) if share.failed else ("UNFINISHED", 3) if share.left else ("PASS", 0)
    print(f"verdict: {verdict}")
    return status


if __name__ == "__main__":
    sys.exit(main())
