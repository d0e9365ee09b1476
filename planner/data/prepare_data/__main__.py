"""`./dev prepare`. Exit status: 0 done, 1 something is wrong with arguments or input, 130 interrupted."""
import os
import signal
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes are parallel already, and are forked

from .voice import Voice, keep_first_files  # noqa: E402

keep_first_files()

from .arguments import parse  # noqa: E402
from .problems import Problem, Problems, unexpected  # noqa: E402
from .run import Run  # noqa: E402


def interrupt(number, _):
    signal.signal(number, signal.SIG_IGN)   # once is enough; what was made is being removed
    raise KeyboardInterrupt


def main(words):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:   # as nohup does
            signal.signal(number, interrupt)   # so that nothing half-made stays
    out, err = Voice(sys.stdout, 1), Voice(sys.stderr, 2)
    try:
        return act(words, out, err)
    finally:
        out.flush()
        err.flush()


def act(words, out, err):
    options = None
    try:
        options = parse(words)
        run = Run(options, out, err)
        run.show(options.show) if options.show is not None else run.prepare()
        out.flush()
        if out.lost is None:
            return 0
        if options.show is not None:
            raise Problem("stdout", f"what --show prints could not be written: {out.lost}")
        print(f"note: {options.out} is whole; what was said of it could not be written to stdout: {out.lost}", file=err)
        return 0
    except Problem as problem:
        print(f"error: {problem}", file=err)
    except Problems as problems:
        for problem in problems.problems:
            print(f"error: {problem}", file=err)
        if problems.note:
            print(f"note: {problems.note}", file=err)
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=err)
        return 130
    except OSError as error:
        place = error.filename or getattr(options, "out", None) or "files"
        print(f"error: {Problem(place, error.strerror or str(error))}", file=err)
    except (MemoryError, RecursionError) as error:
        print(f"error: the input is too large or too deep to read at once: {type(error).__name__}; divide it, or give "
              "fewer --jobs", file=err)
    except Exception as error:   # a mistake of this program is one line too
        print(f"error: {unexpected(error)}", file=err)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
