"""`./dev prepare`. Exit status: 0 done, 1 something is wrong with arguments or input, 130 interrupted."""
import os
import signal
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes are parallel already, and are forked

from .arguments import parse  # noqa: E402
from .problems import Problem, Problems  # noqa: E402
from .run import Run  # noqa: E402


def interrupt(number, _):
    signal.signal(number, signal.SIG_IGN)   # once is enough; what was made is being removed
    raise KeyboardInterrupt


def main(words):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:   # as nohup does
            signal.signal(number, interrupt)   # so that nothing half-made stays
    options = None
    try:
        options = parse(words)
        run = Run(options, sys.stdout, sys.stderr)
        run.show(options.show) if options.show is not None else run.prepare()
        return 0
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
    except Problems as problems:
        for problem in problems.problems:
            print(f"error: {problem}", file=sys.stderr)
        if problems.note:
            print(f"note: {problems.note}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        place = error.filename or getattr(options, "out", None) or "files"
        print(f"error: {place}: {error.strerror or error}", file=sys.stderr)
    except (MemoryError, RecursionError) as error:
        print(f"error: the input is too large or too deep to read at once: {type(error).__name__}; divide it, or give "
              "fewer --jobs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
