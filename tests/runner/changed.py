"""Which test programs and which tests a change can touch, by ninja's own dependencies.

A program is touched by what it is made from: sources, headers, libraries, and programs that it starts and therefore
depends on. Files that no program is made from (recipes, golden files, pages) touch the programs whose tests name them,
or a folder above them, outside of comments. A script is touched by files of its folder; one that reads the whole
source tree is always touched.
"""
import os
import re
import shutil
import subprocess

SOURCES = ('.cc', '.cu', '.cuh', '.def', '.h', '.inc')
COMMENT = re.compile(r'//[^\n]*|#[^\n]*(?<!")$', re.M)


def output_of(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


def changed_files(root, base=None):
    """Paths below `root` that differ from the commit where this branch left `base` (main if there is one, or else the
    last commit), with what is not committed."""
    if not shutil.which('git'):
        raise SystemExit('--changed asks git what differs, and git is not installed')
    if subprocess.run(['git', 'rev-parse', '-q', 'HEAD'], cwd=root, capture_output=True, check=False).returncode != 0:
        raise SystemExit(f'--changed asks git what differs, and git knows no commit of {root}')
    known = subprocess.run(['git', 'rev-parse', '--verify', '-q', base or 'main'], cwd=root, capture_output=True,
                           check=False).returncode == 0
    if base and not known:
        raise SystemExit(f'git knows no commit {base}')
    commit = output_of('git', 'merge-base', base or 'main', 'HEAD', cwd=root).strip() if known else 'HEAD'
    names = output_of('git', 'diff', '--name-only', '-z', commit, cwd=root)
    names += output_of('git', 'ls-files', '-z', '--others', '--exclude-standard', cwd=root)
    return commit, sorted({name for name in names.split('\0') if name})


class Graph:
    """What ninja knows of a build folder of `root`."""

    def __init__(self, root, build):
        self.root, self.build = os.path.realpath(root), os.path.realpath(build)
        targets = output_of('ninja', '-C', self.build, '-t', 'targets', 'all')
        self.programs = sorted(re.findall(r'^(bin/\S+): \S*EXECUTABLE_LINKER', targets, re.M))
        self.headers = self._headers()

    def _inside(self, path):
        """The path below the root; None for files of the system."""
        path = os.path.normpath(os.path.join(self.build, path))
        return os.path.relpath(path, self.root) if path.startswith(self.root + os.sep) else None

    def _headers(self):
        """What each object was compiled from when it was last compiled."""
        headers, current = {}, None
        for line in output_of('ninja', '-C', self.build, '-t', 'deps').splitlines():
            if line.startswith('    '):
                path = self._inside(line.strip())
                if path:
                    current.add(path)
            elif ': #deps' in line:
                current = headers.setdefault(line.split(': #deps')[0], set())
        return headers

    def files_of(self, program):
        """The files below the root that the program is made from, and whether it was ever built as it is now."""
        files, compiled = set(), True
        for path in output_of('ninja', '-C', self.build, '-t', 'inputs', program).splitlines():
            if path.endswith('.o'):
                compiled = compiled and path in self.headers
                files |= self.headers.get(path, set())
            elif self._inside(path) and not self._inside(path).startswith(os.path.relpath(self.build, self.root)):
                files.add(self._inside(path))
        return files, compiled


def text_of(path):
    try:
        with open(path, encoding='utf-8') as file:
            return COMMENT.sub('', file.read())
    except (OSError, UnicodeDecodeError):
        return ''


def names(text, path):
    """Whether a test with this text reads the file: it names it, or a folder above it as the end of a string."""
    if re.search(rf'(?<![\w.]){re.escape(os.path.basename(path))}(?![\w.])', text):
        return True
    folder = os.path.dirname(path)
    while folder:
        if re.search(rf'(?<![\w.]){re.escape(folder)}/?"', text):
            return True
        folder = os.path.dirname(folder)
    return False


def touched_programs(graph, changed):
    """Programs that the change can touch, and changed files that touch none."""
    files = {program: graph.files_of(program) for program in graph.programs}
    everything = set().union(*(of for of, _ in files.values())) if files else set()
    # Of a program that was never built ninja does not know the headers.
    source = any(path.endswith(SOURCES) for path in changed)
    touched = {program for program, (_, compiled) in files.items() if source and not compiled}
    alone = []
    for path in changed:
        # A list of sources may change how anything in its folder and below is made.
        lists = os.path.basename(path) == 'CMakeLists.txt' or path.endswith('.cmake')
        above = '' if path.endswith('.cmake') else os.path.dirname(path)
        if lists:
            hit = {p for p, (of, _) in files.items() if any(not above or f.startswith(above + '/') for f in of)}
        elif path in everything:
            hit = {p for p, (of, _) in files.items() if path in of}
        else:
            hit = {p for p, (of, _) in files.items()
                   if any(f.startswith('tests/') and names(text_of(os.path.join(graph.root, f)), path) for f in of)}
        touched |= hit
        if not hit:
            alone.append(path)
    return touched, alone


def touched_tests(graph, tests, programs, changed):
    """The tests (of ctest's JSON) that start a touched program, or are a script that the change can touch."""
    paths = {os.path.join(graph.build, program) for program in programs}
    started = {os.path.join(graph.build, 'bin', name) for name in ('plan', 'executor')} & paths
    folders = {os.path.dirname(os.path.join(graph.root, path)) for path in changed}
    chosen = []
    for test in tests:
        words = test.get('command', [])
        scripts = [w for w in words if w.startswith(graph.root + os.sep) and os.path.isfile(w)
                   and not w.startswith(graph.build + os.sep)]
        reads_all = graph.root in words and not any(w.startswith(graph.build) for w in words)
        uses_folder = any(w in (graph.build, os.path.join(graph.build, 'bin')) for w in words)
        if (reads_all or any(w in paths for w in words) or uses_folder and started
                or any(os.path.dirname(script) in folders for script in scripts)):
            chosen.append(test['name'])
    return chosen
