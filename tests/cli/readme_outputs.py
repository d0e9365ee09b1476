"""Compares what README.md shows of commands with what they print.

Usage: readme_outputs.py PLAN SOURCE_FOLDER

Of each block of README.md that begins with "$ plan show", diff, validate, tune or compile, and names a recipe of this
repository, every line must be printed, in this order. "..." stands for lines that are left out, and at the end of a
line for the rest of it. Times are not compared. What a command writes goes into a folder that is removed.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

COMPARED = ('show', 'diff', 'validate', 'tune', 'compile')


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
        if words[0] != 'plan' or words[1] not in COMPARED or not words[2].startswith('recipes/'):
            continue
        with tempfile.TemporaryDirectory() as folder:
            written = {words[i + 1]: f'{folder}/{i}' for i, word in enumerate(words) if word == '-o'}
            result = subprocess.run([plan] + [written.get(word, word) for word in words[1:]], cwd=source,
                                    capture_output=True, text=True, check=False)
        output = result.stdout + (result.stderr if words[1] in ('validate', 'compile') else '')
        for name, path in written.items():
            output = output.replace(path, name)
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
