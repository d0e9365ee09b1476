"""Prints each line over 120 characters of ROOT as FILE:LINE, and ends with 1 if there is one. width.py ROOT

Not looked at: golden files, generated pages and JSON, recipes that a fuzzer found, and of Markdown tables, links and
indented blocks, which show what programs print.
"""
import os
import re
import sys

LIMIT = 120
TEXTS = ('.cc', '.h', '.cu', '.cuh', '.def', '.model', '.md', '.py', '.cmake', '.yaml', '.txt', '.sh')
GENERATED = ('docs/diagnostics.md', 'docs/operations.md', 'docs/recipe_reference.md')
APART = ('tests/golden', 'tests/fuzz/regressions')


def is_script(path):
    with open(path, 'rb') as file:
        return file.read(2) == b'#!'


def files(root):
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root)
        folders[:] = [f for f in folders if not f.startswith(('.', 'build')) and f not in ('runs', '__pycache__')
                      and os.path.normpath(os.path.join(here, f)) not in APART]
        for name in names:
            path = os.path.normpath(os.path.join(here, name))
            if path not in GENERATED and (name.endswith(TEXTS) or is_script(os.path.join(root, path))):
                yield path


def main(root):
    wide = 0
    for path in sorted(files(root)):
        with open(os.path.join(root, path), encoding='utf-8') as lines:
            for number, line in enumerate(lines, 1):
                line = line.rstrip('\n')
                table = path.endswith('.md') and re.match(r' {4}|\s*\||\[[^\]]+\]: ', line)
                if len(line) > LIMIT and not table:
                    print(f'{path}:{number}: {len(line)} characters')
                    wide += 1
    return 1 if wide else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
