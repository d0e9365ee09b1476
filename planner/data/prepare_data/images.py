"""Where pictures are: files of a folder, members of tar files; and what kind a file is, by its first bytes."""
import os
import stat
import tarfile

from .files import opened, read_at
from .problems import Problem
from .records import Picture

FIRST_BYTES = 12
LAST_BYTES = 1 << 16
BEHIND_PICTURES = (b"SEFT", b"moov")   # at the ends of files in which a phone has put a film behind the picture


def kind_of(data):
    """"jpg", "png" or "webp" by the first 12 bytes, or None. A run reads no other kinds."""
    if data[:3] == b"\xff\xd8\xff":
        return "jpg"
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return "png"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return None


def check_kind(data, name, place):
    kind = kind_of(data)
    if kind is None:
        found = f"a file that begins with {data[:8].hex(' ')}" if data else "an empty file"
        raise Problem(place, f"{name}: expected a JPEG, PNG or WebP picture, found {found}",
                      "convert the pictures first", kind="images")
    return kind


def members(path):
    """The plain members of a tar file, in order: TarInfo. Its damage is a Problem."""
    try:
        with opened(path) as file, tarfile.open(path, "r:", file) as tar:
            for member in tar:
                if member.issparse():
                    raise Problem(path, f"member {member.name}: expected a plain file, found a sparse one, whose bytes "
                                  "are not all there", "make the archive anew, without --sparse")
                if member.isreg():
                    yield member
                elif not member.isdir():
                    raise Problem(path, f"member {member.name}: expected a file, found a link or a device",
                                  "write the files themselves: tar --dereference --hard-dereference")
            check_end(path, file, tar.offset)
    except tarfile.TarError as error:
        raise Problem(path, f"expected a tar file that is not compressed, found another or a damaged one: {error}",
                      "unpack it, or make it anew") from error
    except OSError as error:
        raise Problem(path, f"it cannot be read: {error.strerror}", "look at its path and its permissions") from error


def check_end(path, file, offset):
    """tarfile ends without a word at a header that it cannot read, at the end of a file that was cut off between two
    members, and at the end mark of the first of several archives. `offset`: where it ended."""
    file.seek(offset)
    block = file.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE:
        raise Problem(path, f"the archive ends at byte {offset + len(block):,} without its end mark, so members may be "
                      "missing", "fetch it or make it anew")
    if block.strip(b"\0"):
        raise Problem(path, f"the header at byte {offset:,} is damaged, and members behind it are lost",
                      "fetch it or make it anew")
    while block := file.read(1 << 20):
        if block.strip(b"\0"):
            at = file.tell() - len(block.lstrip(b"\0"))
            raise Problem(path, f"the archive ends at byte {offset:,}, and another one follows at byte {at:,}",
                          "make one archive of them: tar --concatenate")


def ends_too_early(file, kind, begin):
    """Whether a file plainly lacks its end, as one that was not fetched to it. There may be more behind a picture; what
    is damaged inside only the index finds."""
    size = os.fstat(file.fileno()).st_size
    if kind == "webp":
        return int.from_bytes(begin[4:8], "little") + 8 > size
    end = b"\xff\xd9" if kind == "jpg" else b"IEND"
    for last in (16, LAST_BYTES):
        file.seek(max(0, size - last))
        text = file.read(last)
        if end in text:
            return False
    return not any(mark in text for mark in BEHIND_PICTURES)


class Folder:
    """Pictures as files; a relative path counts from `root`."""

    def __init__(self, root):
        self.root = root

    def find(self, path, place):
        whole = os.path.join(self.root, path)
        try:
            # Opening a pipe would wait for somebody who writes into it.
            if not stat.S_ISREG(os.stat(whole).st_mode):
                raise Problem(place, f"{whole}: expected a file, found a folder, a pipe or a device",
                              "write pictures as plain files", kind="images")
            with open(whole, "rb") as file:
                begin = file.read(FIRST_BYTES)
                is_cut = ends_too_early(file, check_kind(begin, whole, place), begin)
        except ValueError as error:
            raise Problem(place, f"{path!r} is no name of a file: {error}", "mend the name", kind="images") from error
        except OSError as error:
            raise Problem(place, f"there is no image {whole}" if isinstance(error, FileNotFoundError) else
                          f"{whole} cannot be read: {error.strerror}",
                          "images lie beside the file that names them, or in --images FOLDER", kind="images") from error
        return Picture(whole, is_cut=is_cut)


def plain(path):
    return path.removeprefix("./")


class Media:
    """Pictures as members of tar files, by the name of the member, or by its end where only one ends so: `a.jpg` and
    `train/a.jpg` mean the member `x/train/a.jpg`. Where a record names a folder that the member lacks, it may be
    another picture: `train/a.jpg` is neither `val/a.jpg` nor `a.jpg`."""

    def __init__(self, shards):
        self._whole, self._last = {}, {}
        for shard in shards:
            for member in members(shard):
                name, place = plain(member.name), (shard, member.name, member.offset_data)
                if name in self._whole:
                    raise Problem(shard, f"member {member.name} is also in {self._whole[name][0]}",
                                  "an image must have one name in all media files")
                self._whole[name] = place
                self._last.setdefault(os.path.basename(name), []).append(place)

    def find(self, path, place):
        last = self._last.get(os.path.basename(path), [])
        exact = self._whole.get(plain(path))
        fitting = [exact] if exact else [found for found in last if found[1].endswith("/" + plain(path))]
        if len(fitting) != 1:
            why = (f"several media files have a {path}, and none is {path}" if fitting else
                   f"no media file has {path}" + (f"; {last[0][0]} has {last[0][1]}" if last else ""))
            raise Problem(place, why, "the tar files of media/ must have all images, under the names of the records",
                          kind="images")
        shard, member, offset = fitting[0]
        check_kind(read_at(shard, offset, FIRST_BYTES), f"{shard}: {member}", place)
        return Picture(shard, member)
