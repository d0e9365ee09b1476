"""The files of a package: what lies where in it, as a folder of links to put together and as a tar."""
import gzip
import os
import shutil
import tarfile


class Contents:
    """`files` has, by path in the package, the file of this machine whose content it has, or that content."""

    def __init__(self):
        self.files = {}

    def add(self, inside, source):
        if inside in self.files:
            raise ValueError(f"two files of the package would be {inside}: {self.files[inside]} and {source}")
        self.files[inside] = source

    def add_tree(self, inside, folder, leave_out=()):
        for place, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if name not in leave_out)
            for name in sorted(names):
                if name not in leave_out:
                    path = os.path.join(place, name)
                    self.add(os.path.normpath(os.path.join(inside, os.path.relpath(path, folder))), path)

    def bytes_of(self, inside):
        source = self.files[inside]
        return len(source) if isinstance(source, bytes) else os.stat(source).st_size

    def parts(self):
        """Number of files and their bytes by what stands first in their paths."""
        found = {}
        for inside in sorted(self.files):
            part = inside.split("/")[0] + "/" if "/" in inside else "the top folder"
            count, size = found.get(part, (0, 0))
            found[part] = (count + 1, size + self.bytes_of(inside))
        return found

    def lay_out(self, folder):
        """Makes the folder. Files are hard links where the disk is the same, so nothing may be changed in it."""
        for inside, source in sorted(self.files.items()):
            path = os.path.join(folder, inside)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if isinstance(source, bytes):
                with open(path, "wb") as file:
                    file.write(source)
                continue
            source = os.path.realpath(source)
            try:
                os.link(source, path)
            except OSError:  # another disk, or a disk without links
                shutil.copy(source, path)


def is_program(path):
    with open(path, "rb") as file:
        return file.read(4).startswith((b"\x7fELF", b"#!"))


class Counter:
    """Reads one file after the other, and tells how many bytes it has read in all."""

    def __init__(self, progress):
        self.file, self.done, self.progress = None, 0, progress

    def read(self, number):
        content = self.file.read(number)
        self.done += len(content)
        self.progress(self.done)
        return content


def write_tar(folder, name, path, seconds, progress):
    """Packs `folder` as `name`. The bytes follow from names and content alone: files are sorted, belong to root, are
    of the second `seconds`, and may be run if they are programs. Calls progress(bytes so far) now and then. Replaces
    `path` as a whole."""
    counter = Counter(progress)
    with open(f"{path}.part", "wb") as raw:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
                for place, folders, names in os.walk(folder):
                    folders.sort()
                    inside = os.path.normpath(os.path.join(name, os.path.relpath(place, folder)))
                    tar.addfile(entry(inside, tarfile.DIRTYPE, 0o755, 0, seconds))
                    for file in sorted(names):
                        source = os.path.join(place, file)
                        size = os.stat(source).st_size
                        mode = 0o755 if is_program(source) else 0o644
                        with open(source, "rb") as counter.file:
                            tar.addfile(entry(f"{inside}/{file}", tarfile.REGTYPE, mode, size, seconds), counter)
    os.replace(f"{path}.part", path)


def entry(name, kind, mode, size, seconds):
    found = tarfile.TarInfo(name)
    found.type, found.mode, found.size, found.mtime = kind, mode, size, seconds
    return found  # uid, gid and names of users are 0 and empty
