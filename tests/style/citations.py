"""Finds citations that lead nowhere: pages, headings, and files of this repository that comments and pages name.

    citations.py ROOT

Looked at: every text file of ROOT outside build folders and golden files. A citation is
  - `docs/PAGE.md` or `docs/PAGE.md#heading`, in any file;
  - a Markdown link to a page, with or without a heading;
  - `planner/...`, `executor/...`, `tests/...` with the ending of a source file.
A heading's name is made as GitHub makes it: lower case, no punctuation, hyphens for spaces. Prints each citation that
leads nowhere as FILE:LINE: WHAT, and ends with 1 if there is one. A numbered citation of "facts", a text that is not in
this repository, is reported too, and a page of docs that docs/README.md does not link.
"""
import os
import re
import sys

TEXTS = ('.cc', '.h', '.cu', '.cuh', '.def', '.model', '.md', '.py', '.cmake', '.yaml', '.txt', '.json')
PAGE = re.compile(r'(?<![\w/.-])(?:\.\./)*(docs/[\w./-]+\.md)(?:#([\w-]+))?')
LINK = re.compile(r'(?:\]\(|^\[[^\]]+\]: )(?!https?:)([^)\s]+)')
SOURCE = re.compile(r'(?<![\w/.-])((?:planner|executor|tests)/[\w./-]+\.(?:cc|h|cu|def|model|py|yaml))\b')
FACTS = re.compile(r'\bfacts\s+(?:section\s+)?\d', re.IGNORECASE)
PLACEHOLDER = re.compile(r'[A-Z]{3}')  # lower_KIND.cc, docs/PAGE.md: the reader fills it in
# They name files that are not here.
OF_THEIR_OWN = ('citations.py', 'citations_test.py', 'rooms_test.py', 'run_tests_test.py')
FENCE = re.compile(r'^\s*```')


def texts(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders
                      if not f.startswith(('.', 'build')) and f not in ('golden', 'runs', '__pycache__')]
        for name in files:
            if name.endswith(TEXTS) or (folder == root and name == 'dev'):
                yield os.path.join(folder, name)


def heading_name(title):
    title = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', title.strip())
    return re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-')


def headings(page, known={}):
    if page not in known:
        names, fenced = [], False
        with open(page, encoding='utf-8') as lines:
            for line in lines:
                if FENCE.match(line):
                    fenced = not fenced
                match = None if fenced else re.match(r'#+\s+(.*)', line)
                if match:
                    name, again = heading_name(match[1]), 0
                    while (name if not again else f'{name}-{again}') in names:
                        again += 1
                    names.append(name if not again else f'{name}-{again}')
        known[page] = names
    return known[page]


def problem(path, heading):
    if not os.path.exists(path):
        return 'there is no such file'
    if heading and path.endswith('.md') and heading not in headings(path):
        return f'{os.path.basename(path)} has no heading "{heading}"'
    return None


def citations(root, path, line):
    """Each citation of a line: what stands there, the file it means, the heading or None."""
    for match in PAGE.finditer(line):
        if PLACEHOLDER.search(match[1]):
            continue
        yield match[0], os.path.join(root, match[1]), match[2]
    if path.endswith('.md'):
        for match in LINK.finditer(line):
            target, _, heading = match[1].partition('#')
            yield match[1], os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path, heading
    for match in SOURCE.finditer(line):
        if not PLACEHOLDER.search(match[1]):
            yield match[1], os.path.join(root, match[1]), None


def unlisted(root):
    """The pages of docs that its index does not link; decisions are notes, which their folder lists."""
    docs = os.path.normpath(os.path.join(root, 'docs'))
    index = os.path.join(docs, 'README.md')
    if not os.path.exists(index):
        return []
    with open(index, encoding='utf-8') as lines:
        linked = {os.path.normpath(os.path.join(docs, match[1].partition('#')[0]))
                  for line in lines for match in LINK.finditer(line)}
    pages = {os.path.join(folder, name) for folder, _, names in os.walk(docs) for name in names
             if name.endswith('.md') and os.path.basename(folder) != 'decisions'}
    return [os.path.relpath(page, root) for page in sorted(pages - linked - {index})]


def main(root):
    found = 0
    for page in unlisted(root):
        print(f'docs/README.md: it has no link to {page}')
        found += 1
    for path in sorted(texts(root)):
        if os.path.basename(path) in OF_THEIR_OWN:
            continue
        with open(path, encoding='utf-8') as lines:
            for number, line in enumerate(lines, 1):
                location = f'{os.path.relpath(path, root)}:{number}'
                wrong = [f'{what}: {why}' for what, target, heading in citations(root, path, line)
                         if (why := problem(target, heading))]
                if FACTS.search(line):
                    wrong.append('cites "facts", which is not in this repository')
                for what in dict.fromkeys(wrong):
                    print(f'{location}: {what}')
                    found += 1
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
