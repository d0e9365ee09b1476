"""Finds the commands that a Markdown page shows, with the lines of output that it shows of each.

A block is indented by four spaces after an empty line, or fenced. It shows commands if its first line is a prompt
("$ plan ...", "node0 $ ...") or begins with a program of PROGRAMS. With prompts, what follows a command is its output;
without, every line is a command. A line that ends with a backslash goes on in the next one.
"""
import re

PROMPT = re.compile(r'^(?:\w+ )?\$ ')
PROGRAMS = re.compile(r'^(?:[A-Z_]+=\S+ )*'
                      r'(?:plan|\./dev|build(?:-gpu)?/bin/\w+|tests/[\w/]+|python3?|pip|mkdir|export) ')
SPAN = re.compile(r'(?<!`)`((?:plan|\./dev) [^`]+)`')


class Shown:
    """One command of a page: where it stands, and the lines that the page shows of its output."""

    def __init__(self, page, line, command):
        self.page, self.line, self.command, self.output = page, line, command, []

    def place(self):
        return f'{self.page}:{self.line}'


def raw_blocks(text):
    """(number of the first line, lines without their indent) of each block."""
    lines, at, fenced, before = text.splitlines(), 0, False, ''
    while at < len(lines):
        line = lines[at]
        if line.startswith('```'):
            end = at + 1
            while not lines[end].startswith('```'):
                end += 1
            yield at + 2, lines[at + 1:end]
            at = end + 1
        elif line.startswith('    ') and not before.strip():
            end = at
            while end < len(lines) and (lines[end].startswith('    ') or not lines[end].strip()):
                end += 1
            yield at + 1, [block_line[4:] for block_line in lines[at:end]]
            at = end
        else:
            at += 1
        before = lines[at - 1]


def commands(page, text):
    """Each Shown of a page, in order."""
    for first, lines in raw_blocks(text):
        prompts = bool(PROMPT.match(lines[0]))
        if not prompts and not PROGRAMS.match(lines[0]):
            continue
        shown, goes_on = None, False
        for number, line in enumerate(lines, first):
            if goes_on:
                shown.command += ' ' + line.strip()
            elif PROMPT.match(line) or not prompts and line.strip():
                if shown:
                    yield shown
                shown = Shown(page, number, PROMPT.sub('', line).strip())
            elif line.strip():
                shown.output.append(line.rstrip())
                continue
            goes_on = bool(shown) and shown.command.endswith('\\')
            shown.command = shown.command.removesuffix('\\').strip()
        yield shown


def spans(page, text):
    """Each command that stands in a line of text between backquotes, as a Shown without output."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in SPAN.finditer(line):
            yield Shown(page, number, match[1].replace('\\|', '|'))
