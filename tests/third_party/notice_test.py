"""NOTICE lists what plan and executor contain and use: notice_test.py BUILD SOURCE

Compared are the files of other folders that the linker takes (LINK_LIBRARIES of build.ninja), in both directions, and
the libraries that third_party/README.md calls linked. What only a build for GPUs or a compiler's own library brings may
stand in NOTICE and not in build.ninja.
"""
import fnmatch
import os
import re
import sys
import unittest

BUILD, SOURCE = sys.argv[1:3]
C_LIBRARY = {'-latomic', '-ldl', '-lm', '-lpthread', '-lrt'}  # of the compiler and the C library, which NOTICE has
# Linked by the compiler itself, by glog, or on GPUs alone.
UNNAMED = {'libstdc++.a', 'libgcc.a', 'libgcc_eh.a', 'libatomic.a', 'libc.a', 'libm.a', 'libstdc++.so', 'libgcc_s.so',
           'libatomic.so', 'libc.so', 'libm.so', 'libpthread.so', 'libunwind.so', 'libgflags.so', 'libtorch_cuda.so',
           'libc10_cuda.so', 'libnccl.so', 'libcudart.so', 'liblzma.so', 'libgomp.so', 'libz.so', 'headers'}


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def linked(target):
    """The libraries outside of the build that build.ninja links into a program, without their versions."""
    edge = re.search(rf'^build bin/{target}: CXX_EXECUTABLE_LINKER.*?^  LINK_LIBRARIES = (.*?)$',
                     read(os.path.join(BUILD, 'build.ninja')), re.M | re.S)
    words = {word for word in edge[1].split() if word.startswith('/') or re.match(r'-l\w', word)} - C_LIBRARY
    names = {os.path.basename(word) if word.startswith('/') else f'lib{word[2:]}.so' for word in words}
    return {re.sub(r'\.so[.\d]*$', '.so', name) for name in names}


def listed(first, last):
    """The files that stand in brackets in a part of NOTICE."""
    part = read(os.path.join(SOURCE, 'NOTICE'))
    part = part[part.index(first):part.index(last) if last else len(part)]
    files = set()
    for bracket in re.findall(r'\(([^()]*)\)', part):
        files |= set(re.findall(r'\blib[\w+*-]+\.(?:a|so)\b|\bheaders\b', bracket))
    return files


IN_PLAN = listed('Contained in `plan`', 'Contained in `executor`')
IN_EXECUTOR = listed('Contained in `executor`', None)


class Notice(unittest.TestCase):
    def same(self, files, patterns):
        for file in sorted(files):
            self.assertTrue(any(fnmatch.fnmatch(file, p) for p in patterns), f'NOTICE does not have {file}')
        for pattern in sorted(patterns - UNNAMED):
            self.assertTrue(fnmatch.filter(files, pattern), f'{pattern} of NOTICE is not linked')

    def test_plan(self):
        self.same(linked('plan'), IN_PLAN)

    def test_executor(self):
        if 'build bin/executor:' in read(os.path.join(BUILD, 'build.ninja')):
            self.same(linked('executor'), IN_EXECUTOR)

    def test_what_readme_calls_linked(self):
        page = read(os.path.join(SOURCE, 'third_party/README.md'))
        table = page[page.index('## Linked into'):page.index('## Used by')]
        rows = re.findall(r'^\| ([^|]+) \|', table, re.M)[2:]
        self.assertGreater(len(rows), 8)
        notice = read(os.path.join(SOURCE, 'NOTICE'))
        for row in rows:
            for name in re.split(r', | and ', re.sub(r' \([^)]*\)', '', row)):
                name = name.removesuffix("'s compiler")
                self.assertIn(name.strip(), notice)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
