"""citations.py finds what it is there for: each case is a small tree with one fault, and one tree is without fault."""
import os
import subprocess
import sys
import tempfile
import unittest

CHECKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'citations.py')
SOUND = {
    'docs/model/mamba.md': '# Mamba-2\n\n## Gated norm\n\n## 1F1B, and more: `x_y`\n\n```\n# no heading\n```\n',
    'README.md': 'See [the norm](docs/model/mamba.md#gated-norm), [this](#top) and [a site](https://a.org/b.md).\n\n'
                 '# Top\n',
    'planner/a.cc': '// docs/model/mamba.md#gated-norm, docs/model/mamba.md#1f1b-and-more-x_y\n'
                    '// planner/a.cc; planner/lower_KIND.cc\n',
}


def report(changes):
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**SOUND, **changes}.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)) or root, exist_ok=True)
            with open(os.path.join(root, name), 'w', encoding='utf-8') as file:
                file.write(text)
        run = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout


class Citations(unittest.TestCase):
    def test_a_sound_tree_passes(self):
        self.assertEqual(report({}), (0, ''))

    def refuses(self, name, text, what):
        status, output = report({name: text})
        self.assertEqual(status, 1)
        self.assertIn(what, output)

    def test_a_page_that_is_not_there(self):
        self.refuses('planner/b.h', '// Formula: docs/model/attention.md#forward.\n',
                     'planner/b.h:1: docs/model/attention.md#forward: there is no such file')

    def test_a_heading_that_is_not_there(self):
        self.refuses('executor/b.def', 'a\n// docs/model/mamba.md#scan\n',
                     'executor/b.def:2: docs/model/mamba.md#scan: mamba.md has no heading "scan"')

    def test_a_comment_in_a_code_block_is_no_heading(self):
        self.refuses('dev', '# docs/model/mamba.md#no-heading\n', 'has no heading "no-heading"')

    def test_a_link_between_pages(self):
        self.refuses('docs/glossary.md', '[scan](model/mamba.md#scan)\n', 'docs/glossary.md:1: model/mamba.md#scan')

    def test_a_link_at_the_end_of_a_page(self):
        self.refuses('docs/glossary.md', 'See [scan].\n\n[scan]: model/mamba.md#scan\n',
                     'docs/glossary.md:3: model/mamba.md')

    def test_a_heading_of_the_page_itself(self):
        self.refuses('docs/glossary.md', '# Words\n[scan](#scan)\n', 'docs/glossary.md:2: #scan')

    def test_a_source_file_that_was_moved(self):
        self.refuses('docs/glossary.md', 'It is in `planner/b.cc`.\n', 'planner/b.cc: there is no such file')

    def test_a_page_that_the_index_does_not_have(self):
        self.refuses('docs/README.md', 'No page.\n', 'docs/README.md: it has no link to docs/model/mamba.md')
        listed = {'docs/README.md': '[Mamba](model/mamba.md)\n', 'docs/decisions/0001-a.md': 'A note.\n'}
        self.assertEqual(report(listed), (0, ''))

    def test_a_text_that_is_not_in_the_repository(self):
        self.refuses('planner/b.cc', '// Formula: facts 3.5.\n', 'planner/b.cc:1: cites "facts"')


if __name__ == '__main__':
    unittest.main()
