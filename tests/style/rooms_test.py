"""rooms.py refuses each kind of leak, and cmake/rooms.cmake what is no house."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import rooms

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HOUSE = '''wing base uses
room base_text in planner/base/text links
wing plan uses base
room plan_ir in planner/plan links base_text
room plan_link in planner/plan/link links plan_ir base_text
wing recipe uses plan
room recipe in planner/recipe links plan_ir
wing cli uses recipe
room cli in planner/cli links recipe
program planner/cli/main.cc links cli
'''
PAGE = '''1. **base** x
2. **plan** x
3. **recipe** x
4. **cli** x

| floor | wings |
|---|---|
| 4 | `cli` |
| 3 | `recipe` |
| 2 | `plan` |
| 1 | `base` |

### base

**text** x

### plan

**plan** x

**link** x

### recipe

**recipe** x

### cli

**cli** x

## More
'''
FILES = {
    'planner/base/text/utf8.h': '',
    'planner/plan/plan.h': '#include "planner/base/text/utf8.h"\n',
    'planner/plan/link/link.h': '#include "planner/plan/plan.h"\n#include "planner/base/text/utf8.h"\n',
    'planner/recipe/recipe.h': '#include "planner/plan/plan.h"\n',
    'planner/cli/command.h': '#include "planner/recipe/recipe.h"\n',
    'planner/cli/main.cc': '#include "planner/cli/command.h"\n',
}


class Leaks(unittest.TestCase):
    def leaks(self, changed=(), house=HOUSE, page=PAGE):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**FILES, **dict(changed), 'docs/architecture.md': page, 'house.txt': house}.items():
                path = os.path.join(folder, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(text)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                status = rooms.main(folder, folder)
            self.assertEqual(status, 1 if said.getvalue() else 0)
            return said.getvalue().splitlines()

    def test_a_sound_house(self):
        self.assertEqual(self.leaks(), [])

    def test_a_wing_that_is_not_used(self):
        self.assertEqual(self.leaks({'planner/base/text/near.cc': '\n#include "planner/plan/plan.h"\n'}), [
            'planner/base/text/near.cc:2: includes planner/plan/plan.h, but the wing base does not use plan'])

    def test_a_room_that_is_not_linked(self):
        self.assertEqual(self.leaks({'planner/plan/axis.cc': '#include "planner/plan/link/link.h"\n'}), [
            'planner/plan/axis.cc:1: includes planner/plan/link/link.h, but plan_ir does not link plan_link'])

    def test_a_room_that_is_linked_only_through_others(self):
        self.assertEqual(self.leaks({'planner/recipe/keys.cc': '#include "planner/base/text/utf8.h"\n'}), [
            'planner/recipe/keys.cc:1: includes planner/base/text/utf8.h, but recipe links base_text only through '
            'others; name it in its CMakeLists.txt'])

    def test_a_program(self):
        self.assertEqual(self.leaks({'planner/cli/main.cc': '#include "planner/cli/command.h"\n'
                                                            '#include "planner/recipe/recipe.h"\n'}), [
            'planner/cli/main.cc:2: includes planner/recipe/recipe.h, but planner/cli/main.cc links recipe only '
            'through others; name it in its CMakeLists.txt'])

    def test_a_file_in_no_room(self):
        self.assertEqual(self.leaks({'planner/stray.h': '', 'planner/recipe/a.cc': '#include "planner/stray.h"\n'}), [
            'planner/stray.h:1: lies in no room', 'planner/recipe/a.cc:1: planner/stray.h lies in no room'])

    def test_a_link_that_nobody_includes(self):
        self.assertEqual(self.leaks(house=HOUSE.replace('cli links recipe\n', 'cli links recipe plan_ir\n')), [
            'planner/cli/CMakeLists.txt:1: cli links plan_ir, which none of its files includes'])

    def test_a_wing_that_nobody_includes(self):
        self.assertEqual(self.leaks(house=HOUSE.replace('cli uses recipe', 'cli uses recipe base')), [
            'planner/cli:1: cli uses base, which none of its rooms includes'])

    def test_a_page_that_tells_of_another_house(self):
        self.assertEqual(self.leaks(page=PAGE.replace('**link** x\n', '').replace('4. **cli** x\n', '')), [
            'docs/architecture.md:1: its numbered list has the wings base plan recipe; the house base plan recipe cli',
            'docs/architecture.md:1: its section plan has the rooms plan; the house plan link'])
        self.assertEqual(self.leaks(page=PAGE.replace('### cli\n', '')), [
            'docs/architecture.md:1: its section recipe has the rooms recipe cli; the house recipe',
            'docs/architecture.md:1: has no section "### cli"'])
        self.assertEqual(self.leaks(page=PAGE.replace('| 3 | `recipe` |', '| 3 | `recipe`, `cli` |')), [
            'docs/architecture.md:1: cli is on floor 4, its table says 3'])


class Declarations(unittest.TestCase):
    """Rooms of headers alone, so that no compiler is asked for."""

    def refusal(self, wings, **of_rooms):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            text = {'planner': wings, 'planner/base/text': 'room(base_text)', 'planner/plan': 'room(plan_ir)',
                    'planner/plan/link': 'room(plan_link LINKS plan_ir)', 'planner/cli': 'room(cli LINKS plan_link)'}
            text |= {f'planner/{name.replace("__", "/")}': rooms for name, rooms in of_rooms.items()}
            text[''] = ('cmake_minimum_required(VERSION 3.25)\nproject(small LANGUAGES NONE)\n'
                        f'include({SOURCE}/cmake/precompiled.cmake)\ninclude({SOURCE}/cmake/rooms.cmake)\n'
                        'add_subdirectory(planner)')
            for place, lines in text.items():
                (folder / place).mkdir(parents=True, exist_ok=True)
                (folder / place / 'CMakeLists.txt').write_text(lines + '\n')
            run = subprocess.run(['cmake', '-S', folder, '-B', folder / 'build'], capture_output=True, text=True)
            if run.returncode == 0:
                return (folder / 'build/house.txt').read_text()
            return ' '.join(run.stderr.split('(message):')[1].split('Call Stack')[0].split())

    WINGS = 'wing(base ROOMS text)\nwing(plan USES base ROOMS plan link)\nwing(cli USES plan ROOMS cli)'

    def test_a_sound_house(self):
        self.assertEqual(self.refusal(self.WINGS), (
            'wing base uses \nroom base_text in planner/base/text links \nwing plan uses base\n'
            'room plan_ir in planner/plan links \nroom plan_link in planner/plan/link links plan_ir\n'
            'wing cli uses plan\nroom cli in planner/cli links plan_link\n'))

    def test_a_later_wing(self):
        self.assertEqual(self.refusal(self.WINGS.replace('USES base', 'USES cli')),
                         'wing plan uses cli, which is not a wing before it')

    def test_a_later_room(self):
        self.assertEqual(self.refusal(self.WINGS, plan='room(plan_ir LINKS plan_link)'),
                         'room plan_ir links plan_link, which is not a room before it')

    def test_a_room_of_a_wing_that_is_not_used(self):
        self.assertEqual(self.refusal(self.WINGS.replace('USES base ', ''), plan='room(plan_ir LINKS base_text)'),
                         'room plan_ir links base_text, but the wing plan does not use base')

    def test_another_name_than_that_of_its_folder(self):
        self.assertEqual(self.refusal(self.WINGS, plan__link='room(linking)'),
                         'the room in this folder is called plan_link, not linking')


if __name__ == '__main__':
    sys.exit(unittest.main())
