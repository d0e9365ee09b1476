"""Bounds on what a chat template may take: it is a program, and comes from others."""
import contextlib
import resource
import signal
import threading

MOST_SECONDS = 10          # of the processor, for one rendering; hundreds of turns take less than one
MOST_MEMORY = 1 << 30      # bytes that a rendering may take beside what is there
MOST_WRITTEN = 64 << 20    # characters that a rendering may write
MOST_POWER = 1 << 16       # bits of a number that ** makes; others would take hours in one step


class Beyond(Exception):
    """What is beyond its bound, for a message."""


def _end(*_):
    raise Beyond(f"it takes more than {MOST_SECONDS} s of the processor")


def _memory():
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


@contextlib.contextmanager
def bounded():
    """Raises Beyond for what takes longer or more. Time is that of the processor: a busy machine changes nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = _memory() + MOST_MEMORY
    timed = threading.current_thread() is threading.main_thread()   # others get no signals
    before = signal.signal(signal.SIGVTALRM, _end) if timed else None
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        yield
    except MemoryError as error:
        raise Beyond(f"it takes more than {MOST_MEMORY >> 20:,} MiB of memory") from error
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def joined(parts):
    """The text of what a template writes."""
    found, length = [], 0
    for part in parts:
        found.append(part)
        length += len(part)
        if length > MOST_WRITTEN:
            raise Beyond(f"it writes more than {MOST_WRITTEN:,} characters")
    return "".join(found)


def power(left, right):
    """left ** right of a template."""
    if isinstance(left, int) and isinstance(right, int) and right > 0 and left.bit_length() * right > MOST_POWER:
        raise Beyond(f"a number of more than {MOST_POWER:,} bits")
    return left ** right
