"""Inputs of which a part is missing where their format says that more comes: each is an error, in every format."""
import gzip
import io
import os
import pathlib
import shutil
import subprocess
import tarfile
import unittest
import unittest.mock

from bad_records import JPG, line, tar
from cases import Case
from packages import FIXTURES, TOY, prepare


def shard(first, count=10):
    return tar(*((f"{i:04}.txt", f"document {i}".encode()) for i in range(first, first + count)))


def header_of(data, name):
    with tarfile.open(fileobj=io.BytesIO(data)) as file:
        return file.getmember(name).offset


GOOD = shard(0)
AT = header_of(GOOD, "0005.txt")
FETCH = "fetch it or make it anew"
# What is damaged, and what is said of it behind the name of the file.
ARCHIVES = (
    (GOOD[:AT + 130] + bytes([GOOD[AT + 130] ^ 1]) + GOOD[AT + 131:],
     f"the header at byte {AT:,} is damaged, and members behind it are lost; {FETCH}"),
    (GOOD[:AT + 148] + b"badsum!!" + GOOD[AT + 156:],
     f"the header at byte {AT:,} is damaged, and members behind it are lost; {FETCH}"),
    (GOOD[:AT], f"the archive ends at byte {AT:,} without its end mark, so members may be missing; {FETCH}"),
    (GOOD[:AT + 300], f"the archive ends at byte {AT + 300:,} without its end mark, so members may be missing; "
     f"{FETCH}"),
    (GOOD + shard(10), f"the archive ends at byte {10 * 1024:,}, and another one follows at byte {len(GOOD):,}; make "
     "one archive of them: tar --concatenate"),
    (GOOD[:10 * 1024 + 512] + b"x" * 512, f"the archive ends at byte {10 * 1024:,}, and another one follows at byte "
     f"{10 * 1024 + 512:,}; make one archive of them: tar --concatenate"),
    (GOOD[:AT + 512 + 4], "expected a tar file that is not compressed, found another or a damaged one: unexpected end "
     "of data; unpack it, or make it anew"),
)


class Damaged(Case):
    def said(self, *words):
        result = prepare("--tokenizer", TOY, "--template", TOY / "chatml.jinja", "-o", "out", "--jobs", "1", *words,
                         cwd=self.at)
        self.assertEqual((result.returncode, (self.at / "out").exists()), (1, False), result.stdout)
        return result.stderr.removeprefix("error: ").removesuffix("\n")

    def test_whole_archives_are_read(self):
        for data in (GOOD, GOOD[:10 * 1024 + 512], GOOD + bytes(1 << 20)):   # one block of zeros is an end too
            self.write("a.tar", data)
            self.assertEqual(len(self.prepared("a.tar")[0]), 10)
            shutil.rmtree(self.at / "out")

    def test_archives_of_documents(self):
        for data, expected in ARCHIVES:
            with self.subTest(expected=expected):
                self.write("a.tar", data)
                self.assertEqual(self.said("a.tar"), f"a.tar: {expected}")
                # Whatever is done with documents that cannot be prepared: nobody knows which are lost.
                self.assertEqual(self.said("a.tar", "--refused", "skip"), f"a.tar: {expected}")

    def test_sparse_members(self):
        """What an archive has of them is a map of their holes, and the rest."""
        with open(self.at / "0.txt", "wb") as file:
            file.truncate(1 << 20)
            file.seek(1 << 20)
            file.write(b"the end")
        for form in ("gnu", "posix"):
            subprocess.run(["tar", f"--format={form}", "--sparse", "-cf", "a.tar", "0.txt"], cwd=self.at, check=True)
            self.assertEqual(self.said("a.tar", "--refused", "skip"), "a.tar: member 0.txt: expected a plain file, "
                             "found a sparse one, whose bytes are not all there; make the archive anew, without "
                             "--sparse")

    def test_archives_of_images(self):
        images = tar(*((f"{i}.jpg", JPG) for i in range(6)))
        at = header_of(images, "3.jpg")
        self.write("m/m.jsonl", line({"text": "<image>", "image": "0.jpg"}))
        for data, what in ((images[:at], "without its end mark"), (images[:at + 150] + b"?" + images[at + 151:],
                                                                  "is damaged"), (images * 2, "another one follows")):
            self.write("m/media/shard_0.tar", data)
            self.assertRegex(self.said("m"), f"^m/media/shard_0.tar: .*{what}")

    def test_energon_says_how_many_documents_there_are(self):
        shutil.copytree(FIXTURES / "energon/captions", self.at / "e")
        with tarfile.open(self.at / "e/shard_000.tar") as file:
            last = file.getmembers()[-2].offset   # of a document with two members
        data = (self.at / "e/shard_000.tar").read_bytes()
        self.write("e/shard_000.tar", data[:last] + bytes(10240))
        self.assertEqual(self.said("e"), "e/shard_000.tar: it has 2 documents, and .nv-meta says 3; fetch the shard "
                         "anew, or run `energon prepare` again")
        self.write("e/.nv-meta/.info.json", "{\"shard_counts\": [3, 2]}")
        self.assertEqual(self.said("e"), "e/.nv-meta/.info.json: shard_counts: expected shards and numbers, found a "
                         "list; run `energon prepare` again")
        os.remove(self.at / "e/.nv-meta/.info.json")
        self.write("e/.nv-meta/.info.yaml", "shard_counts: {shard_000.tar: 4, shard_001.tar: 2}\n")
        self.assertIn("it has 2 documents, and .nv-meta says 4", self.said("e"))

    def test_parquet_has_the_rows_that_it_says(self):
        import pyarrow
        import pyarrow.parquet
        path = self.at / "a.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"text": [f"row {i}" for i in range(5000)]}), path,
                                    row_group_size=2000, compression="none")
        data = path.read_bytes()
        for cut in (len(data) // 2, len(data) - 1):
            path.write_bytes(data[:cut])
            self.assertRegex(self.said("a.parquet"), "^a.parquet: expected a parquet file, found another: ")
        path.write_bytes(data)
        whole = pyarrow.parquet.ParquetFile.iter_batches   # below without its last rows, as if it had ended quietly
        with unittest.mock.patch.object(pyarrow.parquet.ParquetFile, "iter_batches",
                                        lambda file, *words, **rest: list(whole(file, *words, **rest))[:-1]):
            self.assertIn("a.parquet: row group 0 has 1,984 rows, and the file says 2,000; fetch or write the file "
                          "anew", self.said("a.parquet"))

    def test_json_ends_where_it_should(self):
        self.write("a.jsonl", line({"text": "whole"}) + line({"text": "cut"})[:-4])
        self.assertRegex(self.said("a.jsonl"), "^a.jsonl:2: expected JSON, found something else at column")
        self.write("a.jsonl", line({"text": "whole"}) + bytes(4096))   # a copy that was never finished
        self.assertRegex(self.said("a.jsonl"), "^a.jsonl:2: expected JSON, found something else at column 1: ")
        self.write("a.json", b'[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}')
        self.assertRegex(self.said("a.json"), "^a.json: expected JSON, found something else at column")
        self.write("a.jsonl", line({"text": "without a line break at its end"})[:-1])
        self.assertEqual(len(self.prepared("a.jsonl")[0]), 1)

    def test_gzip_ends_where_it_should(self):
        lines = b"".join(line({"text": f"line {i}"}) for i in range(2000))
        packed = gzip.compress(lines)
        for data, what in ((packed[:-4], "Compressed file ended before"), (packed[:40], "Compressed file ended before"),
                           (packed[:-8] + bytes(4) + packed[-4:], "CRC check failed"),
                           (packed + b"more", "Not a gzipped file"), (packed[:30] + b"\xff" * 99, "Error -3")):
            with self.subTest(what):
                self.write("a.jsonl.gz", data)
                self.assertRegex(self.said("a.jsonl.gz", "--refused", "skip"),
                                 f"^a.jsonl.gz: the gzip file is damaged: {what}.*; fetch it anew$")
        for name, by in (("a.jsonl.zst", "unzstd"), ("a.json.XZ", "unxz")):
            self.write(name, b"x")
            self.assertEqual(self.said(name), f"{name}: it is compressed in a way that is not read; unpack it: {by}")
        self.write("a.tar.gz", gzip.compress(GOOD))
        self.assertRegex(self.said("a.tar.gz"), "^a.tar.gz: expected a tar file that is not compressed, found another")

    def test_a_file_that_is_still_written(self):
        from prepare_data import run
        pack = run.pack
        for name, whole, more in (("a.jsonl", line({"text": "first"}), line({"text": "more"})),
                                  ("a.txt", b"text", b" and more"), ("a.tar", GOOD, bytes(10240)),
                                  ("a.json", b'[{"conversations": [{"from": "gpt", "value": "b"}]}]', b"\n")):
            self.write(name, whole)

            def written(place, encoded, name=name, rest=[more]):
                with open(self.at / name, "ab") as file:
                    file.write(rest.pop() if rest else b"")
                return pack(place, encoded)
            with self.subTest(name), unittest.mock.patch("prepare_data.run.pack", written):
                self.assertEqual(self.said(name), f"{name}: it was changed while it was read, so nobody knows what is "
                                 "missing; wait until it is whole")

    def test_a_member_that_is_gone_when_it_is_read(self):
        self.write("a.tar", GOOD)
        from prepare_data.formats import webdataset
        found = list(webdataset.documents(str(self.at / "a.tar")))
        os.truncate(self.at / "a.tar", AT + 520)
        with unittest.mock.patch("prepare_data.formats.webdataset.documents", lambda _: iter(found)):
            self.assertIn(f"a.tar: it ends at byte {AT + 520:,}, and had {AT + 512 + 10:,} when its headers were read; "
                          "do not change the input meanwhile", self.said("a.tar", "--refused", "skip"))


if __name__ == "__main__":
    unittest.main()
