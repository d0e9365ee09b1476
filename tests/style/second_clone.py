#!/usr/bin/env python3
"""Builds two clones in two folders with one empty compiler cache: the second one must find what the first one compiled.

  usage: second_clone.py REPOSITORY [-DOPTION...] [TARGET...]

What a commit of REPOSITORY has is built, without tests and executor unless options say otherwise; TARGET is `plan`
unless it is named. Fails if less than 95 % of the second build comes from the cache, or if ccache could not cache a
file at all.
"""
import os
import re
import subprocess
import sys
import tempfile

LEAST_HITS = 0.95
# Why ccache calls the compiler without looking at its cache.
NOT_CACHEABLE = ('bad_compiler_arguments', 'could_not_use_precompiled_header', 'unsupported_code_directive',
                 'unsupported_compiler_option', 'unsupported_source_language')


def counters(environment):
    """ccache's own counters, by name."""
    text = subprocess.run(['ccache', '--print-stats'], env=environment, check=True, capture_output=True, text=True)
    return {name: int(count) for name, count in re.findall(r'^(\w+)\t(\d+)$', text.stdout, re.M)}


def build(repository, folder, options, targets, environment):
    """Clones, builds the targets and returns what ccache counted: hits, misses, and calls that it passed on."""
    subprocess.run(['git', 'clone', '--quiet', repository, folder], check=True)
    subprocess.run(['ccache', '--zero-stats'], env=environment, check=True, capture_output=True)
    for command in (['cmake', '-S', '.', '-B', 'build', '-G', 'Ninja', *options],
                    ['ninja', '-C', 'build', *targets]):
        run = subprocess.run(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        if run.returncode != 0:
            sys.exit(f'{" ".join(command)} in {folder}:\n{run.stdout}')
    count = counters(environment)
    hits = count['direct_cache_hit'] + count['preprocessed_cache_hit']
    return hits, count['cache_miss'], sum(count[reason] for reason in NOT_CACHEABLE)


def main():
    repository = os.path.abspath(sys.argv[1])
    options = [word for word in sys.argv[2:] if word.startswith('-D')]
    options = ['-DPLANWRIGHT_EXECUTOR=OFF', '-DPLANWRIGHT_TESTS=OFF', *options]
    targets = [word for word in sys.argv[2:] if not word.startswith('-D')] or ['plan']
    try:
        subprocess.run(['ccache', '--version'], check=True, capture_output=True)
    except FileNotFoundError:
        print('skipped: there is no ccache')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith('CCACHE_')}
        environment['CCACHE_DIR'] = os.path.join(folder, 'cache')
        # Folders of different lengths: a path that stays in an object or a command shows.
        results = [build(repository, os.path.join(folder, name), options, targets, environment)
                   for name in ('first', os.path.join('another', 'second_clone'))]
    for name, (hits, misses, passed_on) in zip(('first', 'second'), results):
        print(f'{name} clone: {hits} from the cache, {misses} compiled, {passed_on} not cacheable')
    hits, misses, passed_on = results[1]
    share = hits / max(1, hits + misses + passed_on)
    print(f'{share:.1%} of the second clone came from the cache; expected {LEAST_HITS:.0%} or more')
    sys.exit(0 if share >= LEAST_HITS and results[0][1] > 0 else 1)


if __name__ == '__main__':
    main()
