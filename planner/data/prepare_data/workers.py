"""Tasks -> results on several processes, in the order of the tasks, with one task of each process in memory."""
import ctypes
import multiprocessing
import os
import signal

from .problems import Problem


MOST_JOBS = 512
PR_SET_PDEATHSIG = 1


def _end_with(parent):
    """Ends this process when `parent`, which started it, is gone, also in the middle of a task."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)   # it was gone before that took effect


def _serve(work, pipe, others, parent):
    """A worker: it ends when the process that writes closes its end of the pipe, or is gone."""
    _end_with(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)   # the process that writes ends the others
    for other in others:   # inherited ends, which would keep pipes open
        other.close()
    try:
        while True:
            pipe.send(work(pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


class Workers:
    """Processes that inherit `work`, as a tokenizer cannot be sent. They are started one by one, as tasks come."""

    def __init__(self, work):
        self._work, self._context = work, multiprocessing.get_context("fork")
        self._pipes, self._processes = [], []

    def start(self):
        mine, theirs = self._context.Pipe()
        self._pipes.append(mine)
        process = self._context.Process(target=_serve, args=(self._work, theirs, list(self._pipes), os.getpid()),
                                        daemon=True)
        try:
            process.start()
        except OSError as error:
            raise Problem("--jobs", f"process {len(self._pipes)} cannot be started: {error.strerror}",
                          "give fewer --jobs") from error
        self._processes.append(process)
        theirs.close()

    def send(self, worker, task):
        try:
            self._pipes[worker].send(task)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._gone() from error

    def receive(self, worker):
        try:
            return self._pipes[worker].recv()
        except (EOFError, ConnectionResetError) as error:
            raise self._gone() from error

    def _gone(self):
        return Problem("--jobs", f"one of {len(self._processes)} processes is gone, perhaps for want of memory",
                       "give fewer --jobs")

    def end(self):
        for process in self._processes:
            process.kill()
        for process, pipe in zip(self._processes, self._pipes):
            process.join()
            pipe.close()


def in_order(work, tasks, jobs):
    """Yields (weight, work(task)) for (weight, task) of `tasks`. Results do not depend on `jobs`."""
    if jobs == 1:
        for weight, task in tasks:
            yield weight, work(task)
        return
    workers = Workers(work)
    try:
        waiting, turn = [], 0   # weights of the tasks that workers have; the oldest is worker `turn`'s
        for weight, task in tasks:
            if len(waiting) < jobs:
                workers.start()
                workers.send(len(waiting), task)
                waiting.append(weight)
                continue
            done = waiting[turn], workers.receive(turn)
            workers.send(turn, task)
            waiting[turn] = weight
            turn = (turn + 1) % jobs
            yield done
        for worker in [(turn + i) % len(waiting) for i in range(len(waiting))]:
            yield waiting[worker], workers.receive(worker)
    finally:
        workers.end()
