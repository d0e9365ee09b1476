"""Compares what a page shows of a command with what it prints.

Each line that is shown must be printed, in this order. "..." alone stands for lines that are left out, and after a
space for what a line leaves out. Empty lines do not count. What depends on the machine is compared by RULES, for the
commands that they name, and nothing else is: `plan show` and `plan tune` print the same everywhere.
"""
import re

EVERY = ('',)
TIMED = ('launch', 'report', 'status', 'evaluate', 'measure', 'validate', 'data', 'prepare')
# Why the lines differ, the commands that may, what differs, and what stands for it on both sides.
RULES = (
    ('how fast the machine is: times', TIMED,
     r'\b(\d+ h \d+ min|\d+ min \d\d s|\d+(\.\d+)? (ms|s|min|h))\b|\bunder 1 ms\b', 'TIME'),
    ('how fast the machine is: the parts of a start', ('launch',),
     r'(\bready (?:in|after) TIME:)( [a-z ]+ \d+\.\d,?)+$', r'\1'),
    ('how fast the machine is: the slowest rank of a trial', ('launch',), r'(?<=the slowest, rank )\d+', 'RANK'),
    ('how much memory the machine has, and which rank of a trial holds most', ('launch',),
     r'(?<=processes held )\d+\.\d\d GB, the most rank \d+ with \d+\.\d\d GB; \d+\.\d\d GB', 'SIZES'),
    ('how fast the machine is: waits', ('launch',), 
     r'; training waited TIME for the one before| \(TIME for data\)', ''),
    ('how fast the machine is: rates', TIMED, r'\b\d+(\.\d+)?( thousand)? ((tok|tokens|samples)/s)', r'RATE \3'),
    ('how fast the machine is: shares of the time', ('report',), r'\b\d+\.\d %', 'SHARE'),
    ('when the command runs', EVERY, 
     r'\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?|\b\d{8} \d\d:\d\d:\d\d\.\d+ \+0000', 'DATE'),
    ('how fast the machine is: a row of several runs', ('report',),
     r'(TIME) +\d+(?:\.\d+)?(?: thousand)? +(SHARE)', r'\1 \2'),
    ('at which step the demo kills a rank', ('report',),
     r'\b\d+ steps again: \d+ to \d+|\b1-1[5-9]\b', 'LOST'),
    ('what else runs here: numbers of processes', EVERY, r'\bprocess \d+|(?<= rank\d )\d+', 'PROCESS'),
    ('the name of the machine', EVERY,
     r'(?<=SIGKILL on )\S+|(?<=PROCESS on )[^)\s]+|(?<=ranks on )\S+(?= loaded)|(?<=PASS  memory  on )[^,]+', 'HOST'),
    ('the name of the processor', ('measure',), r'(?<=json: )[^,]+', 'PROCESSOR'),
    ('where programs and runs lie', ('launch job.yaml',),
     r'(?<![\w.])(?:/[\w.@+-]+)+(?=/(?:bin|lib|runs)\b)', 'FOLDER'),
    ('each run draws a name', ('checkpoint', 'launch'), r'\b[0-9a-f]{32}\b', 'RUN'),
    ('another processor rounds otherwise: digests of weights', ('checkpoint verify',), r'\b[0-9a-f]{64}\b', 'DIGEST'),
)
# Another processor rounds losses, norms and means of squares otherwise: they may be off by this share.
ROUNDING = 0.02
ROUNDED = re.compile(r'(\b(?:loss|norm|rows|held_out|from|to),? )(\d+\.\d+(?:e-?\d+)?)')
LEFT_OUT = '...'


def masked(line, command):
    """The line with what RULES name replaced, and one space wherever there are several."""
    for _, of, what, becomes in RULES:
        if command.split(' ', 1)[1].startswith(of):
            line = re.sub(what, becomes, line)
    return ' '.join(line.split())


def same(shown, printed):
    """Whether two masked lines are the same, but for what is rounded."""
    if ROUNDED.sub(r'\1', shown) != ROUNDED.sub(r'\1', printed):
        return False
    return all(abs(float(a) - float(b)) <= ROUNDING * abs(float(a))
               for (_, a), (_, b) in zip(ROUNDED.findall(shown), ROUNDED.findall(printed)))


def shows(line, printed, command):
    if printed == line:
        return True
    expected = masked(line, command)
    if ' ' + LEFT_OUT in expected:
        parts = [re.escape(part) for part in expected.split(' ' + LEFT_OUT)]
        return bool(re.fullmatch('.*'.join(parts), masked(printed, command)))
    # Columns must stand where they stand, unless figures that are not compared have other widths.
    moves = command.split(' ', 1)[1].startswith(TIMED) or expected != ' '.join(line.split())
    return moves and same(expected, masked(printed, command))


def difference(shown, printed, command):
    """Empty if the lines that are shown are those that were printed; else what is wrong."""
    printed = [line.rstrip() for line in printed if line.strip()]
    at, anywhere = 0, False
    for line in shown:
        if line.strip() == LEFT_OUT:
            anywhere = True
            continue
        end = len(printed) if anywhere else at + 1
        found = [i for i in range(at, min(end, len(printed))) if shows(line, printed[i], command)]
        if not found:
            where = 'anywhere below' if anywhere else 'here'
            return '\n'.join([f'- {line}', f'is not printed {where}:'] + [f'+ {text}' for text in printed[at:at + 60]] +
                             (['nothing more is printed'] if at + 60 >= len(printed) else []))
        at, anywhere = found[0] + 1, False
    if anywhere or at == len(printed):
        return ''
    return '\n'.join(['is printed, and not shown:'] + [f'+ {text}' for text in printed[at:at + 60]])
