#!/usr/bin/env python3
"""Compiles every file without precompiled headers and without code: each must include what it needs.

  usage: includes.py BUILD_FOLDER [FILE...]

BUILD_FOLDER is one that CMake configured with -DPLANWRIGHT_EACH_FILE_ALONE=ON. FILEs: these alone.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys


def commands(folder, files):
    """One command for each file: it may be compiled for several targets."""
    with open(os.path.join(folder, 'compile_commands.json'), encoding='utf-8') as text:
        entries = {entry['file']: entry for entry in json.load(text)}
    for file, entry in sorted(entries.items()):
        # Generated files and kernels are others' business: protoc's, and nvcc's.
        if not file.endswith('.cc') or file.startswith(os.path.abspath(folder)) or (files and file not in files):
            continue
        words = shlex.split(entry['command'])
        if 'cmake_pch' in entry['command']:
            sys.exit(f'{folder} has precompiled headers; configure it with -DPLANWRIGHT_EACH_FILE_ALONE=ON')
        index = words.index('-o')
        yield file, words[:index] + words[index + 2:] + ['-fsyntax-only'], entry['directory']


def main():
    folder, files = sys.argv[1], {os.path.abspath(file) for file in sys.argv[2:]}
    todo = list(commands(folder, files))
    if not todo:
        sys.exit(f'no file of {folder}/compile_commands.json is asked for')

    def compiles(item):
        file, words, directory = item
        run = subprocess.run(words, cwd=directory, capture_output=True, text=True)
        return file, run.returncode, run.stderr

    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, status, said in pool.map(compiles, todo):
            if status != 0:
                wrong += 1
                print(''.join(re.findall(r'.*error:.*\n', said)) or said, end='')
    print(f'{len(todo)} files compiled without precompiled headers, {wrong} did not')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
