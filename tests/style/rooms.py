"""Finds leaks in the walls of the house: includes of rooms that a room does not link, and what nobody uses.

    rooms.py ROOT BUILD

CMake notes the house in BUILD/house.txt (cmake/rooms.cmake): wings with the wings that they use, rooms with their
folders and links, programs with theirs. Looked at: every source and header of planner and executor, and the list of
wings and rooms in docs/architecture.md. Prints each leak as FILE:LINE: WHAT, and ends with 1 if there is one.
"""
import os
import re
import sys

SOURCES = ('.cc', '.h', '.cu', '.cuh', '.def')
INCLUDE = re.compile(r'\s*#include "((?:planner|executor)/[^"]+)"')
PAGE = 'docs/architecture.md'


class House:
    def __init__(self, build):
        self.uses, self.rooms, self.folders, self.links, self.wing = {}, {}, {}, {}, {}
        with open(os.path.join(build, 'house.txt'), encoding='utf-8') as lines:
            for line in lines:
                words = line.split()
                if words[0] == 'wing':
                    self.uses[words[1]], self.rooms[words[1]] = words[3:], []
                elif words[0] == 'room':  # of the wing before it
                    name, folder, wing = words[1], words[3], list(self.uses)[-1]
                    self.folders[folder] = name
                    self.links[name], self.wing[name] = words[5:], wing
                    self.rooms[wing].append('' if folder == self.main_folder(wing) else os.path.basename(folder))
                else:  # a program, by the file that it adds to rooms
                    self.links[words[1]], self.wing[words[1]] = words[3:], list(self.uses)[-1]

    @staticmethod
    def main_folder(wing):
        return wing if wing == 'executor' else f'planner/{wing}'

    def room_of(self, path):
        """A room, a program that is this file, or None."""
        if path in self.links:
            return path
        while '/' in path:
            path = os.path.dirname(path)
            if path in self.folders:
                return self.folders[path]
        return None

    def reached(self, start, next_of):
        found, left = set(), [start]
        while left:
            for name in next_of.get(left.pop(), []):
                if name not in found:
                    found.add(name)
                    left.append(name)
        return found


def sources(root):
    for top in ('planner', 'executor'):
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith(SOURCES):
                    yield os.path.relpath(os.path.join(folder, name), root)


def leak(house, here, there):
    """What is wrong with an include of room `there` in room `here`, or None."""
    if here == there or there in house.links[here]:
        return None
    wing, other = house.wing.get(here), house.wing[there]
    if wing and wing != other and other not in house.reached(wing, house.uses):
        return f'the wing {wing} does not use {other}'
    if there in house.reached(here, house.links):
        return f'{here} links {there} only through others; name it in its CMakeLists.txt'
    return f'{here} does not link {there}'


def leaks_of_files(root, house):
    used = set()  # pairs of rooms
    for path in sources(root):
        here = house.room_of(path)
        if here is None:
            yield f'{path}:1: lies in no room'
            continue
        with open(os.path.join(root, path), encoding='utf-8') as lines:
            for number, line in enumerate(lines, 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                there = house.room_of(match[1])
                if there is None:
                    yield f'{path}:{number}: {match[1]} lies in no room'
                    continue
                used.add((here, there))
                why = leak(house, here, there)
                if why:
                    yield f'{path}:{number}: includes {match[1]}, but {why}'
    places = {name: folder for folder, name in house.folders.items()}
    for here, links in house.links.items():
        for there in links:
            if there in house.wing and (here, there) not in used and here in places:
                yield f'{places[here]}/CMakeLists.txt:1: {here} links {there}, which none of its files includes'
    pairs = {(house.wing.get(here), house.wing[there]) for here, there in used}
    for wing, uses in house.uses.items():
        for other in uses:
            if (wing, other) not in pairs:
                yield f'{house.main_folder(wing)}:1: {wing} uses {other}, which none of its rooms includes'


def floor(house, wing):
    return 1 + max((floor(house, used) for used in house.uses[wing]), default=0)


def leaks_of_page(root, house):
    """The numbered list has every wing, the table its floor, and its section every room, in the house's order."""
    with open(os.path.join(root, PAGE), encoding='utf-8') as file:
        text = file.read()
    listed = re.findall(r'^\d+\. \*\*(\w+)\*\*', text, re.M)
    if listed != list(house.uses):
        yield f'{PAGE}:1: its numbered list has the wings {" ".join(listed)}; the house {" ".join(house.uses)}'
    floors = {wing: int(row[0]) for row in re.findall(r'^\| (\d+) \| (.*) \|$', text, re.M)
              for wing in re.findall(r'`(\w+)`', row[1])}
    for wing in house.uses:
        if floors.get(wing) != floor(house, wing):
            yield f'{PAGE}:1: {wing} is on floor {floor(house, wing)}, its table says {floors.get(wing)}'
    for wing, rooms in house.rooms.items():
        section = re.search(rf'^### {wing}\n(.*?)(?=^##|\Z)', text, re.M | re.S)
        named = re.findall(r'^\*\*([\w]+)\*\*', section[1], re.M) if section else []
        rooms = [room or wing for room in rooms]
        if section is None:
            yield f'{PAGE}:1: has no section "### {wing}"'
        elif named != rooms:
            yield f'{PAGE}:1: its section {wing} has the rooms {" ".join(named)}; the house {" ".join(rooms)}'


def main(root, build):
    house = House(build)
    found = [*leaks_of_files(root, house), *leaks_of_page(root, house)]
    print(*found, sep='\n', end='\n' if found else '')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
