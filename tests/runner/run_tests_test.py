"""run_tests.py on a small project with CMake, ninja, ctest and git; the estimate on a clock of its own."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from estimate import Estimate, measured_seconds, words  # noqa: E402
from run_tests import RESULT  # noqa: E402

PROJECT = {
    'CMakeLists.txt': """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
enable_testing()
add_library(rooms STATIC rooms/a.cc)
target_include_directories(rooms PUBLIC ${PROJECT_SOURCE_DIR})
add_executable(plan rooms/main.cc)
add_subdirectory(tests)
""",
    'rooms/a.h': 'int A();\n',
    'rooms/a.cc': '#include "rooms/a.h"\nint A() { return 1; }\n',
    'rooms/main.cc': 'int main() {}\n',
    'docs/page.md': 'A page.\n',
    'docs/other.md': 'Another one.\n',
    'data/numbers.txt': '1\n',
    'tests/CMakeLists.txt': """add_executable(uses_a uses_a.cc)
target_link_libraries(uses_a PRIVATE rooms)
add_executable(reads reads.cc)
add_executable(starts_plan starts_plan.cc)
add_dependencies(starts_plan plan)
foreach(name uses_a reads starts_plan)
  add_test(NAME ${name} COMMAND ${name})
endforeach()
set_tests_properties(uses_a PROPERTIES COST 40 PROCESSORS 2)
add_test(NAME style COMMAND true ${PROJECT_SOURCE_DIR})
add_test(NAME script COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/script/run.sh)
""",
    'tests/uses_a.cc': '#include "rooms/a.h"\nint main() { return A() - 1; }\n',
    'tests/reads.cc': '// Not of docs/other.md.\n#include <cstdio>\nint main() {\n'
                      '  const char* read[] = {"docs/page.md", "data/"};\n'
                      '  std::printf("%s no GPU\\n[  SKIPPED ] Reads.OnAGpu (0 ms)\\n", read[0] + 12);\n}\n',
    'tests/starts_plan.cc': 'int main() {}\n',
    'tests/script/run.sh': '. "$(dirname "$0")/part.sh"\n',
    'tests/script/part.sh': 'true\n',
}


class Small(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = os.path.realpath(cls.folder.name)
        for name, text in {**PROJECT, '.gitignore': 'build\n'}.items():
            cls.write(name, text)
        for command in (('git', 'init', '-q', '-b', 'main'), ('git', 'add', '-A'), cls.commit('first'),
                        ('cmake', '-S', '.', '-B', 'build', '-G', 'Ninja'), ('ninja', '-C', 'build')):
            subprocess.run(command, cwd=cls.root, check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        subprocess.run('git checkout -q main && git reset -q --hard && git clean -fdq && ninja -C build', cwd=self.root,
                       shell=True, check=True, capture_output=True)

    @staticmethod
    def commit(message):
        return ('git', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', message)

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def run_tests(self, *args, **environment):
        return subprocess.run([sys.executable, os.path.join(HERE, 'run_tests.py'), 'build', *args], cwd=self.root,
                              capture_output=True, text=True, check=False, env={**os.environ, **environment})

    def ran(self, *args):
        run = self.run_tests(*args)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return {match[1] for match in map(RESULT.match, run.stdout.splitlines()) if match}

    def test_all_of_them_with_what_is_left_and_what_was_skipped(self):
        run = self.run_tests()
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn('5 tests, about', run.stdout)
        results = [line for line in run.stdout.splitlines() if RESULT.match(line)]
        self.assertEqual(len(results), 5)
        self.assertTrue(all('left: ' in line for line in results), results)
        self.assertIn('skipped in reads: 1 (no GPU)', run.stdout)
        self.assertNotIn('never run here', self.run_tests().stdout)  # ctest has kept their times
        self.assertIn('uses_a', measured_seconds(os.path.join(self.root, 'build')))

    def test_a_failure_is_that_of_ctest(self):
        self.write('rooms/a.cc', 'int A() { return 2; }\n')
        self.assertEqual(self.run_tests('--changed').returncode, 8)

    def test_without_git_and_outside_of_a_clone(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.run_tests('--changed', PATH=folder)
            self.assertEqual((run.returncode, run.stderr), (
                1, '--changed asks git what differs, and git is not installed\n'))
        run = self.run_tests('--changed', GIT_DIR='/nowhere')
        self.assertEqual((run.returncode, run.stderr), (
            1, f'--changed asks git what differs, and git knows no commit of {self.root}\n'))

    def test_nothing_changed(self):
        self.assertIn('nothing differs', self.run_tests('--changed').stdout)

    def test_a_header_touches_who_includes_it(self):
        self.write('rooms/a.h', 'int A();  // one\n')
        self.assertEqual(self.ran('--changed'), {'uses_a', 'style'})

    def test_a_program_touches_the_tests_that_start_it(self):
        self.write('rooms/main.cc', 'int main() { return 0; }\n')
        self.assertEqual(self.ran('--changed'), {'starts_plan', 'style'})

    def test_a_page_touches_the_tests_that_name_it(self):
        self.write('docs/page.md', 'Changed.\n')
        self.assertEqual(self.ran('--changed'), {'reads', 'style'})

    def test_a_page_that_only_a_comment_names(self):
        self.write('docs/other.md', 'Changed.\n')
        run = self.run_tests('--changed')
        self.assertIn('no test names them: docs/other.md', run.stdout)
        self.assertEqual(self.ran('--changed'), {'style'})

    def test_data_touches_the_tests_that_name_its_folder(self):
        self.write('data/numbers.txt', '2\n')
        self.assertEqual(self.ran('--changed'), {'reads', 'style'})

    def test_a_part_of_a_script(self):
        self.write('tests/script/part.sh', ':\n')
        self.assertEqual(self.ran('--changed'), {'script', 'style'})

    def test_a_list_of_sources_touches_its_folder(self):
        with open(os.path.join(self.root, 'tests/CMakeLists.txt'), 'a', encoding='utf-8') as file:
            file.write('# more\n')
        self.assertEqual(self.ran('--changed'), {'uses_a', 'reads', 'starts_plan', 'style'})

    def test_commits_of_the_branch_count_too(self):
        subprocess.run('git checkout -q -b other', cwd=self.root, shell=True, check=True)
        self.write('rooms/a.h', 'int A();  // two\n')
        subprocess.run(self.commit('second') + ('-a',), cwd=self.root, check=True)
        self.assertEqual(self.ran('--changed'), {'uses_a', 'style'})
        self.assertIn('nothing differs', self.run_tests('--changed', '--since', 'HEAD').stdout)
        self.assertIn('git knows no commit nowhere', self.run_tests('--changed', '--since', 'nowhere').stderr)


class Estimates(unittest.TestCase):
    def test_two_at_a_time(self):
        estimate = Estimate([('a', None, 1), ('b', None, 1), ('c', None, 1)], {'a': 10, 'b': 10, 'c': 20}, 2)
        self.assertEqual(estimate.left(0), 20)
        estimate.start('c', 0)
        estimate.start('a', 0)
        self.assertEqual(estimate.left(4), 16)
        estimate.finish('a', 10)
        self.assertEqual(estimate.left(10), 10)

    def test_a_guess_is_corrected_by_what_is_done(self):
        estimate = Estimate([('a', 10, 1), ('b', 30, 1)], {}, 1)
        self.assertEqual((estimate.unknown, estimate.left(0)), (2, 40))
        estimate.start('a', 0)
        estimate.finish('a', 20)
        self.assertEqual(estimate.left(20), 60)

    def test_a_wide_test_takes_several_places(self):
        estimate = Estimate([('wide', 10, 2), ('a', 10, 1), ('b', 10, 1)], {}, 2)
        self.assertEqual(estimate.left(0), 20)

    def test_a_test_that_takes_longer_than_before(self):
        estimate = Estimate([('a', 1, 1)], {}, 1)
        estimate.start('a', 0)
        self.assertEqual(estimate.left(100), 10)
        estimate.finish('a', 100)
        self.assertEqual(estimate.left(100), 0)

    def test_words(self):
        self.assertEqual([words(seconds) for seconds in (0.2, 12.4, 61, 4000)],
                         ['less than a second', '12 s', '1 min', '1 h 6 min'])


if __name__ == '__main__':
    if not shutil.which('git'):
        print('git is not installed: skipped')
        sys.exit(77)
    unittest.main()
