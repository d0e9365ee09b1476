"""Runs tests and says how long is left: run_tests.py BUILD [--changed [--since COMMIT]] [ARGS of ctest]

--changed builds and runs what a change can touch (changed.py). Tests that were skipped, in whole or in part, are named
at the end with their reason. Ends as ctest does.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import changed
from estimate import Estimate, measured_seconds, words

START = re.compile(r'\s*Start\s+\d+: (.+)')
RESULT = re.compile(r'\s*\d+/\d+ Test\s+#\d+: (.+?) \.*\s*(?:\*+)?.*?([\d.]+) sec')
SKIPPED = re.compile(r'\[  SKIPPED \] (\S+) \(')
SLOTS = (os.cpu_count() or 1) + 1  # one more than there are cores: some tests mostly wait


def tests_of(build, *args):
    listed = subprocess.run(['ctest', '--test-dir', build, '--show-only=json-v1', *args], capture_output=True,
                            text=True, check=False)
    if listed.returncode != 0:
        raise SystemExit(listed.stderr.strip() or listed.returncode)
    return json.loads(listed.stdout[listed.stdout.index('{'):])['tests']


def known(test):
    properties = {p['name']: p['value'] for p in test.get('properties', [])}
    return test['name'], properties.get('COST'), int(properties.get('PROCESSORS', 1))


def skips(build):
    """How often each reason was given, by test, in the last run."""
    reasons = collections.Counter()
    try:
        with open(os.path.join(build, 'Testing/Temporary/LastTest.log'), encoding='utf-8', errors='replace') as file:
            test, before = '', ''
            for line in file:
                if ' Testing: ' in line:
                    test = line.split(' Testing: ')[1].strip()
                elif SKIPPED.match(line):
                    reasons[test, before or 'no reason given'] += 1
                elif line.strip():
                    before = line.strip()
    except OSError:
        pass
    return reasons


def run(build, args):
    tests = tests_of(build, *args)
    estimate = Estimate([known(test) for test in tests], measured_seconds(build), SLOTS)
    print(f'{len(tests)} tests, about {words(estimate.left(0))}'
          + (f'; {estimate.unknown} have never run here, so theirs is a guess' if estimate.unknown else ''), flush=True)
    command = ['ctest', '--test-dir', build, '--output-on-failure', '--no-tests=error', '--parallel', str(SLOTS), *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors='replace', bufsize=1) as process:
        for line in process.stdout:
            line = line.rstrip('\n')
            if match := START.fullmatch(line):
                estimate.start(match[1], time.monotonic())
            elif match := RESULT.match(line):
                estimate.finish(match[1], float(match[2]))
                line += f'  left: {words(estimate.left(time.monotonic()))}'
            print(line, flush=True)
    for (test, reason), times in sorted(skips(build).items()):
        print(f'skipped in {test}: {times} ({reason})')
    return process.returncode


def run_changed(root, build, since, args):
    commit, files = changed.changed_files(root, since)
    if not files:
        print(f'nothing differs from {commit}')
        return 0
    graph = changed.Graph(root, build)
    programs, alone = changed.touched_programs(graph, files)
    print(f'{len(files)} files differ from {commit[:12]}: they touch {len(programs)} of {len(graph.programs)} programs')
    if alone:
        print(f'no program is made from these, and no test names them: {" ".join(alone)}')
    if programs:
        status = subprocess.run(['ninja', '-C', build, *sorted(programs)], check=False,
                                env={**os.environ, 'NINJA_STATUS': 'building [%f/%t] '}).returncode
        if status != 0:
            return status
    chosen = set(changed.touched_tests(graph, tests_of(build), programs, files))
    numbers = [str(i) for i, test in enumerate(tests_of(build), 1) if test['name'] in chosen]
    if not numbers:
        print('no test can see the change')
        return 0
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as list_file:  # ctest: start, end, stride, then numbers
        list_file.write(','.join(['0', '0', '0', *numbers]) + '\n')  # without a line's end ctest loses the last
        list_file.flush()
        return run(build, ['-I', list_file.name, *args])


def main(args):
    build, args = args[0], args[1:]
    root = os.getcwd()
    if '--changed' not in args:
        return run(build, args)
    args.remove('--changed')
    since = None
    if '--since' in args:
        at = args.index('--since')
        if at + 1 == len(args):
            raise SystemExit('--since needs a commit')
        since = args[at + 1]
        del args[at:at + 2]
    return run_changed(root, build, since, args)


if __name__ == '__main__':
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
