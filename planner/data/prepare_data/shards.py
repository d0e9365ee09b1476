"""Documents -> tar files (ustar), the same bytes for the same documents."""
import json
import os
import tarfile

BLOCK = 512
RECORD = 10240  # a tar file is padded to whole records


def _template():
    info = tarfile.TarInfo("")
    info.mode, info.mtime = 0o644, 0
    return info.tobuf(tarfile.USTAR_FORMAT)


TEMPLATE = _template()
SUM = sum(TEMPLATE[:148]) + sum(TEMPLATE[156:]) + 8 * 32 - sum(b"00000000000")  # without the size field


def member(name, data):
    """Header and content of a plain file, padded to blocks. tarfile makes the same header in ten times the time."""
    name, size = name.encode(), b"%011o" % len(data)
    checksum = b"%06o\0 " % (SUM + sum(name) + sum(size))
    header = name.ljust(100, b"\0") + TEMPLATE[100:124] + size + TEMPLATE[135:148] + checksum + TEMPLATE[156:]
    return header + data + b"\0" * (-len(data) % BLOCK)


class Reference:
    """Paths of pictures as .images has them: relative to the folder of the shards if the input was named so."""

    def __init__(self, out):
        self._out, self._known = os.path.realpath(out), {}

    def of(self, path):
        if os.path.isabs(path):
            return path
        folder, last = os.path.split(path)
        if folder not in self._known:
            self._known[folder] = os.path.relpath(os.path.realpath(folder or "."), self._out)
        return os.path.normpath(os.path.join(self._known[folder], last))

    def entry(self, picture):
        if picture.member:
            return {"shard": self.of(picture.path), "member": picture.member}
        return {"file": self.of(picture.path)}


class ShardWriter:
    """Writes NAME-000000.tar, ... into `folder`. A shard ends before it would have more documents or bytes than asked
    for; a document that alone is larger than that has its own."""

    def __init__(self, folder, name, documents, size, reference):
        self._folder, self._name, self._most_documents, self._most_bytes = folder, name, documents, size
        self._reference, self._file = reference, None
        self.shards = []

    def members(self, key, packed):
        """What a document is in the tar file."""
        parts = [member(f"{key}.tok", packed.tok)]
        if packed.mask is not None:
            parts.append(member(f"{key}.mask", packed.mask))
        if packed.pictures and packed.pictures[0].path:
            entries = [self._reference.entry(picture) for picture in packed.pictures]
            parts.append(member(f"{key}.images", json.dumps(entries, ensure_ascii=False).encode()))
        else:
            for number, (picture, kind) in enumerate(zip(packed.pictures, packed.kinds)):
                name = f"{key}.{kind}" if len(packed.pictures) == 1 else f"{key}.{number}.{kind}"
                parts.append(member(name, picture.data))
        return b"".join(parts)

    def add(self, key, packed):
        data = self.members(key, packed)
        if self._file and (self.shards[-1]["documents"] == self._most_documents or
                           self._file.tell() + len(data) + 2 * BLOCK > self._most_bytes):
            self.close()
        if not self._file:
            name = f"{self._name}-{len(self.shards):06}.tar"
            self._file = open(os.path.join(self._folder, name), "wb")
            self.shards.append({"file": name, "documents": 0, "tokens": 0, "bytes": 0})
        self._file.write(data)
        self.shards[-1]["documents"] += 1
        self.shards[-1]["tokens"] += len(packed.tok) // 4

    def close(self):
        if self._file:
            self._file.write(b"\0" * 2 * BLOCK)
            self._file.write(b"\0" * (-self._file.tell() % RECORD))
            self.shards[-1]["bytes"] = self._file.tell()
            self._file.close()
            self._file = None
