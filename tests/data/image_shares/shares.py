"""Sets of documents with a given share of image tokens, for the tiny recipe."""
import io
import random
import struct
import tarfile
import zlib

SEQUENCE = 256      # tokens of a sample
SIDE = 8            # pixels of an image token of the tiny encoder: 2 patches of 4 pixels
TEXT = b"the quick brown fox jumps over the lazy dog and runs away from it as fast as it can "


def png(width, height, random_numbers):
    rows = b"".join(b"\0" + bytes(random_numbers.randrange(256) for _ in range(3 * width)) for _ in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write(path, share, documents, seed=1):
    """A shard whose documents have about this share of image tokens. Sizes and numbers of images differ."""
    numbers = random.Random(seed)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        def add(name, data):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))

        for number in range(documents):
            length = numbers.randrange(40, 200)
            wanted, tokens, images = share * length, 0, []
            if share < 0.1:  # few documents have any
                wanted = wanted * 10 if numbers.random() < 0.1 else 0
            while tokens < wanted:
                rows, columns = numbers.randrange(1, 5), numbers.randrange(1, 5)
                images.append((rows, columns))
                tokens += rows * columns
            text = (TEXT * 3)[:max(1, length - tokens)]
            add(f"{number:05}.txt", b"<image>" * len(images) + text)
            for index, (rows, columns) in enumerate(images):
                add(f"{number:05}.{index}.png", png(SIDE * columns, SIDE * rows, numbers))
