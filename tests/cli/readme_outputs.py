"""Compares what README.md shows of commands with what they print.

Usage: readme_outputs.py PLAN SOURCE_FOLDER

Of each block of README.md that begins with "$ plan show", diff, validate or tune, and names a recipe of this
repository, every line must be printed, in this order. "..." stands for lines that are left out, and at the end of a
line for the rest of it. Times are not compared.
"""
import pathlib
import re
import subprocess
import sys


def blocks(text):
    """Commands with the lines that are shown of their output."""
    command, lines = None, []
    for line in text.splitlines() + ['end']:
        if line.strip() and not line.startswith('    ') or line.startswith('    $ '):
            if command:
                yield command, [shown for shown in lines if shown]
            command, lines = None, []
        if line.startswith('    $ '):
            command = line[6:]
        elif command:
            lines.append(line[4:].rstrip())


def without_times(line):
    return re.sub(r'\d+\.\d+ s$', 'TIME', line)


def shows(line, printed):
    if line.endswith(' ...'):
        return printed.startswith(line[:-len('...')])
    return without_times(printed) == without_times(line)


def difference(shown, printed):
    """Empty if the lines that are shown are those that were printed."""
    at, anywhere = 0, False
    for line in shown:
        if line == '...':
            anywhere = True
            continue
        end = len(printed) if anywhere else at + 1
        found = [i for i in range(at, min(end, len(printed))) if shows(line, printed[i])]
        if not found:
            return f'shown:   {line}\nprinted: {printed[at] if at < len(printed) else "nothing more"}'
        at, anywhere = found[0] + 1, False
    return '' if anywhere or at == len(printed) else f'printed, and not shown: {printed[at]}'


def main():
    plan, source = sys.argv[1:]
    checked, failed = 0, False
    for command, shown in blocks(pathlib.Path(source, 'README.md').read_text()):
        words = command.split()
        compared = words[0] == 'plan' and words[1] in ('show', 'diff', 'validate', 'tune')
        if not compared or not words[2].startswith('recipes/'):
            continue
        result = subprocess.run([plan] + words[1:], cwd=source, capture_output=True, text=True, check=False)
        output = result.stdout + (result.stderr if words[1] == 'validate' else '')
        problem = difference(shown, [line.rstrip() for line in output.splitlines() if line.strip()])
        checked += 1
        if problem:
            failed = True
            print(f'README.md, $ {command}\n{problem}\n')
    if checked < 4:
        sys.exit(f'README.md shows {checked} commands that can be compared: the reader of its blocks is broken')
    print(f'{checked} commands')
    sys.exit(failed)


if __name__ == '__main__':
    main()
