"""What tests try, and how strictly, stays: coverage_test.py ROOT LISTS BINARY... compares it with coverage.list.

LISTS is coverage_lists. Of each BINARY the list has its tests. From the sources of numerics, end_to_end and executor it
has the constants and tolerances, and the steps of each run. UPDATE_GOLDENS=1 rewrites the list; read the diff.
"""
import difflib
import os
import re
import subprocess
import sys

FOLDERS = ('tests/end_to_end', 'tests/executor', 'tests/numerics')
CONSTANT = re.compile(r'^\s*(?:static |inline )*constexpr (?:int|int64_t|size_t|float|double)\s+([^;]*\d[^;]*);', re.M)
TOLERANCE = re.compile(r'(?<![\w.])\d+(?:\.\d+)?e-\d+')
RUN = re.compile(r'\b(?:Launch|Run|SavedAgain|Train|TrainStages|Trained|run)\(')


def arguments(text, start):
    """The arguments of a call whose bracket opens before `start`. Those in one pair of braces count as its own."""
    parts, depth, i = [''], 1, start
    while depth and i < len(text):
        c = text[i]
        depth += (c in '([{') - (c in ')]}')
        if depth == 1 and c == '{' or depth == 0:
            pass
        if c == ',' and depth <= 2:
            parts.append('')
        else:
            parts[-1] += c
        i += 1
    return [part.strip(' \n{})') for part in parts]


def steps_of_runs(text):
    for call in RUN.finditer(text):
        for argument in arguments(text, call.end()):
            if re.fullmatch(r'(?:\.steps = )?(?:\d+|k\w*(?:Steps?|Stop|Trained)\w*)', argument):
                yield argument.removeprefix('.steps = ')


def sources(root):
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            yield from (os.path.relpath(os.path.join(folder, n), root) for n in names if n.endswith(('.cc', '.h')))


def numbers(root):
    for path in sorted(sources(root)):
        with open(os.path.join(root, path), encoding='utf-8') as file:
            text = re.sub(r'//[^\n]*', '', file.read())
        found = {'constants': [' '.join(m.split()) for m in CONSTANT.findall(text)],
                 'tolerances': TOLERANCE.findall(text),
                 'steps of runs': list(steps_of_runs(text)) if not path.startswith('tests/executor') else []}
        if any(found.values()):
            yield f'\n# {path}'
            yield from (f'{what}: {"; ".join(values)}' for what, values in found.items() if values)


def tests_of(binary):
    run = subprocess.run([binary, '--gtest_list_tests'], capture_output=True, text=True, check=True)
    lines = [line.split('  #')[0].rstrip() for line in run.stdout.splitlines() if not line.startswith('Running main')]
    return [f'\n# tests of {os.path.basename(binary)}: {sum(line.startswith(" ") for line in lines)}', *lines]


def main(root, lists, *binaries):
    found = ['What tests try, and how strictly. Written by coverage_test.py with UPDATE_GOLDENS=1.']
    found += subprocess.run([lists], capture_output=True, text=True, check=True).stdout.splitlines()
    found += numbers(root)
    for binary in sorted(binaries):
        found += tests_of(binary)
    found = '\n'.join(found).splitlines()
    path = os.path.join(root, 'tests/coverage/coverage.list')
    if os.environ.get('UPDATE_GOLDENS'):
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join(found) + '\n')
        return 0
    with open(path, encoding='utf-8') as file:
        expected = file.read().splitlines()
    changes = list(difflib.unified_diff(expected, found, 'tests/coverage/coverage.list', 'the code', n=1, lineterm=''))
    if changes:
        print('\n'.join(changes))
        print(f'If this is meant: UPDATE_GOLDENS=1 {" ".join(sys.argv)}')
    return 1 if changes else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
