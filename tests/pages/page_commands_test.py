"""Tests of what finds commands in pages (blocks.py) and of what compares their outputs (compare.py)."""
import unittest

import blocks
import compare

PAGE = '''Text with `plan explain batch` in it.

    $ plan show a.yaml \\
        x=1
    first line

      second
    $ plan show b.yaml
    node0 $ plan agent f &

A key:

    key: {value: 1}

Commands alone:

    plan show c.yaml ranks
    plan show d.yaml   # why

```sh
$ plan validate e.yaml
```
'''


class Blocks(unittest.TestCase):
    def test_finds_commands_and_what_is_shown_of_them(self):
        found = [(c.line, c.command, c.output) for c in blocks.commands('p.md', PAGE)]
        self.assertEqual(found, [(3, 'plan show a.yaml x=1', ['first line', '  second']), (8, 'plan show b.yaml', []),
                                 (9, 'plan agent f &', []), (17, 'plan show c.yaml ranks', []),
                                 (18, 'plan show d.yaml   # why', []), (21, 'plan validate e.yaml', [])])
        self.assertEqual([c.command for c in blocks.spans('p.md', PAGE)], ['plan explain batch'])


class Compare(unittest.TestCase):
    def same(self, command, shown, printed):
        self.assertEqual(compare.difference(shown, printed, command), '')

    def differs(self, command, shown, printed):
        self.assertNotEqual(compare.difference(shown, printed, command), '')

    def test_every_line_in_its_order(self):
        self.same('plan show', ['a', 'b'], ['a', '', 'b'])
        self.same('plan show', ['a', '...', 'c'], ['a', 'b', 'b2', 'c'])
        self.same('plan show', ['a is ... of c', '...'], ['a is b of c', 'd'])
        self.differs('plan show', ['a', 'c'], ['a', 'b', 'c'])
        self.differs('plan show', ['a', '...', 'c'], ['c', 'a'])
        self.differs('plan show', ['a'], ['a', 'b'])
        self.differs('plan show', ['a', 'b'], ['a'])
        self.differs('plan show', ['a is ... of d'], ['a is b of c'])

    def test_what_the_planner_computes_is_compared_to_the_last_digit(self):
        self.differs('plan show', ['a step takes 6.9 s'], ['a step takes 6.8 s'])
        self.differs('plan show', ['role   s0'], ['role  s0'])
        self.differs('plan tune', ['1  3.55 s'], ['1  3.56 s'])

    def test_what_depends_on_the_machine_is_not(self):
        self.same('plan launch r', ['step 1/3  samples 8  loss 5.53  grad norm 3.4  0.063 s  5 tok/s/rank'],
                  ['step 1/3  samples 8  loss 5.5301  grad norm 3.41  1.2 s (0.003 s for data)  55 tok/s/rank'])
        self.differs('plan launch r', ['step 1/3  loss 5.53  0.1 s'], ['step 1/3  loss 5.93  0.1 s'])
        self.differs('plan launch r', ['step 1/3  loss 5.53  0.1 s'], ['step 1/4  loss 5.53  0.1 s'])
        self.same('plan checkpoint ls run', ['8  2026-11-22T18:35:02Z  usable'], ['8  2026-11-24T01:00:00Z  usable'])
        self.differs('plan checkpoint ls run', ['8  2026-11-22T18:35:02Z  usable'],
                     ['8  2026-11-24T01:00:00Z  damaged'])


if __name__ == '__main__':
    unittest.main()
