"""Runs the commands that README.md and other pages show, and compares what they print with what is shown.

    page_commands.py BINARIES SOURCE [--long] [--page PAGE]

BINARIES has plan and executor. Every command runs as it stands, by a shell, in a folder with a copy of recipes: those
of a page one after the other in one folder. What is not run is in exceptions.py, with a reason; what a page does not
show, and a command needs, too. compare.py says how outputs are compared. Of show, diff, tune and launch --dry-run
stdout is compared: pages leave out the warnings, which go to stderr.

--long runs the demo, and then what is too long for `./dev test`, beside the build of SOURCE. A command that the demo
ran is compared with what the demo printed.

A command with a word in capitals, such as RECIPE, or in <> is a form: it is not run. Of forms, of what is not run, and
of commands between backquotes in the text it is checked that the program has such a command with such options.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import blocks
import compare
import exceptions

FORM = re.compile(r'(?:^|[\s=\[])(?:[A-Z]{2,}[A-Z_|.]*|\.\.\.)(?=$|[\s\]])|<\w+>')
OF_STDOUT = re.compile(r'plan (show|diff|tune|launch .*--dry-run) ')
LIBRARIES = re.compile(r'CUDA_|GLOO_|MKL_|NCCL_|OMP_|PYTORCH_|TORCH|UCX_')
OPTION = re.compile(r'(?<=\s)(--[a-z][a-z-]*|-o)\b')
# Commands of the text that only read the repository and take no time.
READS = re.compile(r'plan (explain|(show|validate) recipes/\S+)(?!.*--html)\b')
# A command that is shown to fail says so in one of its lines.
FAILS = re.compile(r'\berror: |: damaged$')


def pages(source):
    return ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'tests/corpus/README.md', 'tests/interop/README.md',
            'third_party/README.md'] + sorted(str(page.relative_to(source)) for page in (source / 'docs').rglob('*.md'))


class Programs:
    """plan and dev: their commands and options, asked once, and runs of them."""

    def __init__(self, binaries, source):
        self.source, self.known = source, {}
        self.environment = dict(os.environ, PATH=f'{binaries}:{os.environ["PATH"]}', LC_ALL='C.UTF-8', TZ='UTC',
                                DATA=str(source / 'tests/golden/data_fixtures/webdataset'))
        self.environment.pop('COLUMNS', None)
        # A launch tells which of the shell's variables libraries read. Pages show one that has none.
        for name in [name for name in self.environment if LIBRARIES.match(name)]:
            self.environment.pop(name)

    def run(self, command, folder):
        result = subprocess.run(['sh', '-c', command], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, text=True, check=False,
                                stderr=subprocess.PIPE if OF_STDOUT.match(command) else subprocess.STDOUT)
        return result.stdout, result.returncode

    def help(self, command):
        if command not in self.known:
            self.known[command] = self.run(command, self.source)[0]
        return self.known[command]

    def unknown(self, command):
        """What a command has that its program has not; empty if nothing."""
        words = re.sub(r'^(build(-gpu)?/bin/)', '', command).split()
        in_dev = rf'^  {re.escape(words[1])}\b'
        if words[0] == './dev' and words[1] != 'help' and not re.search(in_dev, self.help('./dev help'), re.M):
            return f'./dev has no command {words[1]}'
        if words[0].startswith('tests/') and not (self.source / words[0]).exists():
            return f'there is no {words[0]}'
        if words[0] != 'plan' or words[1].startswith('-') or words[1].isupper():
            return ''
        if not re.search(rf'^  {re.escape(words[1])} ', self.help('plan --help'), re.M):
            return f'plan has no command {words[1]}'
        usage = self.help(f'plan {words[1]} --help')
        for option in OPTION.findall(command.split('#')[0]):
            if not re.search(rf'(^|[\s\[|,]){option}\b', usage) and option not in ('--help', '--json'):
                return f'plan {words[1]} has no option {option}'
        return ''


class Page:
    """The commands of one page, run in a folder of its own."""

    def __init__(self, name, programs, folder, used, demo):
        self.name, self.programs, self.used, self.ran = name, programs, used, 0
        self.long, self.demo = demo is not None, demo or {}
        self.folder = folder
        shutil.copytree(programs.source / 'recipes', folder / 'recipes')
        if self.long:
            (folder / 'build').symlink_to(programs.source / 'build')
        else:
            (folder / 'build/demo').mkdir(parents=True)

    def entry(self, table, shown):
        """What a table of exceptions says about a command, or None."""
        for page, command, *says in table:
            if page in ('*', self.name) and '\n'.join([shown.command] + shown.output).startswith(command):
                self.used.add((page, command))
                return says
        return None

    def problem(self, shown):
        """What is wrong with a command of a block; empty if nothing."""
        unknown = self.programs.unknown(shown.command)
        if unknown:
            return unknown
        left_out, before = self.entry(exceptions.NOT_RUN, shown), self.entry(exceptions.BEFORE, shown)
        when = left_out[0] if left_out else exceptions.ALWAYS
        if when != (exceptions.LONG if self.long else exceptions.ALWAYS):
            return ''
        if shown.command in self.demo:
            self.ran += 1
            found = [compare.difference(shown.output, lines, shown.command) for lines in self.demo[shown.command]]
            return '' if '' in found else found[-1]
        if FORM.search(shown.command.split('#')[0]):
            return 'a form has no output: show a command, or say in exceptions.py why not' if shown.output else ''
        if before:
            output, status = self.programs.run(f'set -e\n{before[0]}', self.folder)
            if status:
                return f'what stands before it in exceptions.py ends with {status}:\n{output}'
        folder = self.programs.source if shown.command.startswith('./dev ') else self.folder
        output, status = self.programs.run(shown.command, folder)
        self.ran += 1
        fails = any(FAILS.search(line) for line in shown.output)
        if bool(status) != fails and not (shown.command.startswith('plan diff') and status == 1):
            return f'ends with {status}\n{output}'
        return compare.difference(shown.output, output.splitlines(), shown.command) if shown.output else ''

    def span_problem(self, shown):
        """The same of a command in the text."""
        unknown = self.programs.unknown(shown.command)
        if unknown or self.long or not READS.match(shown.command) or FORM.search(shown.command):
            return unknown
        output, status = self.programs.run(shown.command, self.folder)
        self.ran += 1
        return f'ends with {status}\n{output}' if status else ''


def demonstrated(programs, binaries):
    """What the demo printed of each of its commands: {command: [lines of the first time, of the second, ...]}."""
    output, status = programs.run(f'docs/demo/run {binaries}', programs.source)
    if status:
        sys.exit(f'docs/demo/run ends with {status}\n{output}')
    printed, lines = {}, []
    for line in output.splitlines():
        if line.startswith('$ '):
            lines = []
            printed.setdefault(line[2:], []).append(lines)
        elif not line.startswith('## '):
            lines.append(line)
    return printed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('binaries')
    parser.add_argument('source')
    parser.add_argument('--long', action='store_true')
    parser.add_argument('--page')
    arguments = parser.parse_args()
    arguments.binaries = os.path.abspath(arguments.binaries)
    source = pathlib.Path(arguments.source).resolve()
    programs, used, ran, failed = Programs(arguments.binaries, source), set(), 0, False
    demo = demonstrated(programs, arguments.binaries) if arguments.long else None
    for name in [arguments.page] if arguments.page else pages(source):
        text = (source / name).read_text()
        with tempfile.TemporaryDirectory() as folder:
            page = Page(name, programs, pathlib.Path(folder), used, demo)
            found = [(shown, page.problem(shown)) for shown in blocks.commands(name, text)]
            found += [(shown, page.span_problem(shown)) for shown in blocks.spans(name, text)]
            ran += page.ran
        for shown, problem in found:
            if problem:
                failed = True
                print(f'{shown.place()}: $ {shown.command}\n{problem}\n')
    for page, command, *_ in exceptions.NOT_RUN + exceptions.BEFORE:
        if (page, command) not in used and not arguments.page:
            failed = True
            print(f'exceptions.py: no command of {page} begins with "{command}" any more')
    print(f'{ran} commands of pages ran')
    sys.exit(failed)


if __name__ == '__main__':
    main()
