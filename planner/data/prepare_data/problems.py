"""What is wrong with an argument or an input, as one line: place, what was expected and found, how to mend it."""
import os

PROGRAM = os.environ.get("PLANWRIGHT_PREPARE", "./dev prepare")  # as who started it called it (package/prepare)


class Problem(Exception):
    """`place` is FILE:LINE, FILE: record N, or an argument. `kind` groups problems of records in the count of refused
    ones. `stops`: nothing more is read, as all that follows would have the same."""

    stops = False

    def __init__(self, place, what, help_text="", kind="damaged"):
        super().__init__(place, what, help_text, kind)
        self.place, self.what, self.help, self.kind = place, what, help_text, kind

    def __str__(self):
        line = f"{self.place}: {self.what}" + (f"; {self.help}" if self.help else "")
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def unexpected(error):
    """A mistake of this program, as a Problem of the whole run."""
    frame = error.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    place = f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"
    return Problem("prepare", f"a mistake of this program, at {place}: {type(error).__name__}: {error}",
                   "report it, with the command and the input", kind=None)


class Problems(Exception):
    """Several at once; `note` says how far the input was read when the list was closed."""

    def __init__(self, problems, note=""):
        super().__init__(problems, note)
        self.problems, self.note = problems, note


def counted(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


KINDS = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object",
         type(None): "null"}


def shown(value, most=60):
    """A value as a message shows it: its JSON kind, and itself where it is short."""
    kind = KINDS.get(type(value), type(value).__name__)
    if isinstance(value, (dict, list)) or value is None:
        return kind
    text = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    text = text if len(text) <= most else text[:most - 3] + "..."
    return text if isinstance(value, bool) else f"{kind} {text}"
