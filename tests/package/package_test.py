"""A package of this build, laid out as links: package_test.py MAKE_PACKAGE BINARIES TORCH PREPARE

It trains in a root that has the files of glibc and nothing else. And what must end the making of a package does.
Exit status 77, by which ctest knows a skipped test: the Python packages of prepare cannot be fetched.
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

MAKE_PACKAGE, BINARIES, TORCH, PREPARE = map(pathlib.Path, sys.argv[1:5])
SOURCE = MAKE_PACKAGE.parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(MAKE_PACKAGE.parent))

import contents  # noqa: E402
import loader  # noqa: E402
import make_package  # noqa: E402
import origins  # noqa: E402

TINY = "recipes/nemotron_moe_vlm_tiny.yaml"
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="planwright_package_"))

# Enters $1, in which there are the kernel's folders, the package, and the files that follow, up to --.
ENTER = """set -e; root=$1; package=$2; inside=$3; shift 3
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root$inside"
mount --rbind /proc "$root/proc"; mount --rbind /dev "$root/dev"; mount --bind "$package" "$root$inside"
while [ "$1" != -- ]; do
  mkdir -p "$root$(dirname "$1")"; : >"$root$1"; mount --bind "$1" "$root$1"; shift
done
shift; exec env -i HOME=/tmp PATH="$inside/bin" "$(command -v chroot)" "$root" "$@" """


def setUpModule():
    fetched = subprocess.run([SOURCE / "third_party/fetch_python", sys.executable, PREPARE,
                              SOURCE / "third_party/packages_prepare_data.txt"])
    if fetched.returncode == 0 and not shutil.which("patchelf"):
        print("skipped: there is no patchelf (third_party/packages_package.txt)", file=sys.stderr)
    if fetched.returncode != 0 or not shutil.which("patchelf"):
        sys.exit(77)


def tearDownModule():
    shutil.rmtree(ROOT)


def make(*words):
    return subprocess.run([sys.executable, MAKE_PACKAGE, BINARIES, *words, "--torch", TORCH, "--prepare", PREPARE,
                           "--lay-out"], capture_output=True, text=True)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = make(ROOT)
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)
        cls.said, cls.folder = made.stdout, pathlib.Path(made.stdout.splitlines()[-1])
        cls.executor = str(cls.folder / "bin/executor")

    def in_bare_root(self, inside, *command):
        glibc = [path for name, path in loader.resolved(loader.interpreter(self.executor), self.executor).items()
                 if loader.GLIBC.fullmatch(name)]
        with tempfile.TemporaryDirectory(prefix="planwright_root_") as root:
            return subprocess.run(["unshare", "-rm", "sh", "-c", ENTER, "sh", root, self.folder, inside,
                                   loader.interpreter(self.executor), *glibc, "--", *command],
                                  capture_output=True, text=True)

    def test_trains_from_any_folder_where_there_is_glibc_and_nothing_else(self):
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespaces for users here, so no other root")
        for inside in ("/package", "/srv/another folder"):
            ran = self.in_bare_root(inside, "plan", "launch", f"{inside}/{TINY}", "--local", "--steps", "1",
                                    "--run-dir", "/tmp/run")
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertRegex(ran.stdout, r"step 1/20 .* loss \d\.\d+")
        # The root is bare: a library that is taken away is missed there.
        library = self.folder / "lib/libglog.so.1"
        library.rename(ROOT / "libglog.so.1")
        try:
            ran = self.in_bare_root("/package", "executor", "--devices")
        finally:
            (ROOT / "libglog.so.1").rename(library)
        self.assertRegex(ran.stderr, r"libglog\.so\.1: cannot open shared object file")

    def test_takes_its_own_libraries_before_those_of_the_environment(self):
        other = ROOT / "other"
        other.mkdir()
        (other / "libglog.so.1").write_text("no library")
        for program, begins in ((self.executor, 0), (BINARIES / "executor", 127)):
            ran = subprocess.run([program, "--devices"], env={"LD_LIBRARY_PATH": str(other)}, capture_output=True,
                                 text=True)
            self.assertEqual(ran.returncode, begins, ran.stderr)

    def test_each_library_has_an_owner_and_a_licence(self):
        rows = re.findall(r"^\| `lib/(\S+)` \| (.+) \| `(licences/.+)` \|$", (self.folder / "PACKAGE.md").read_text(),
                          re.MULTILINE)
        self.assertEqual(sorted(row[0] for row in rows), sorted(os.listdir(self.folder / "lib")))
        for _, owner, licence in rows:
            self.assertTrue(list((self.folder / licence).iterdir()), owner)
        self.assertIn("glog", "".join(row[0] for row in rows))
        self.assertFalse([row for row in rows if loader.GLIBC.fullmatch(row[0])])

    def test_pages_and_facts_are_inside(self):
        about = (self.folder / "PACKAGE.md").read_text()
        self.assertNotRegex(about, r"\{\w+\}")
        self.assertIn(make_package.commit(), about)
        self.assertIn(str(self.folder.name), self.said)
        again = make(ROOT)
        self.assertEqual((again.returncode, again.stderr), (1, f"package: {self.folder} is there already\n"))
        for page in ("docs/README.md", "docs/package.md", "NOTICE", "Containerfile", "recipes/profiles",
                     "schemas/recipe.schema.json"):
            self.assertTrue((self.folder / page).exists(), page)

    def test_prepare_has_its_packages_with_it(self):
        toy = SOURCE / "tests/data/prepare_data/toy"
        python = ROOT / "python"  # the Python of this test is the one whose packages are in the package
        python.mkdir()
        (python / "python3").symlink_to(sys.executable)
        ran = subprocess.run([self.folder / "bin/prepare", "--tokenizer", toy, "--format", "text", "--show", "0",
                              "--lines", SOURCE / "NOTICE"], capture_output=True, text=True,
                             env={"PATH": f"{python}:{os.environ['PATH']}", "PLANWRIGHT_CACHE": str(ROOT / "none")})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("What the programs of Planwright contain", ran.stdout)
        self.assertFalse((ROOT / "none").exists())
        ran = subprocess.run([self.folder / "bin/prepare"], capture_output=True, text=True,
                             env={"PATH": f"{python}:{os.environ['PATH']}"})
        self.assertIn("expected a tokenizer.json or a folder with one, found none; prepare --tokenizer", ran.stderr)

    def copy(self):
        """The package again, in another folder of links, to be damaged."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=ROOT))
        shutil.copytree(self.folder, folder, dirs_exist_ok=True, copy_function=os.link,
                        ignore=lambda place, _: [] if place.endswith(("bin", "lib")) or place == str(self.folder)
                        else os.listdir(place))
        return folder

    def test_a_library_that_is_missing_is_found_and_not_taken_from_this_machine(self):
        folder = self.copy()
        self.assertEqual(loader.problems_of(folder), [])
        (folder / "lib/libunwind.so.8").unlink()
        self.assertIn("libunwind.so.8", "\n".join(loader.problems_of(folder)))
        (folder / "lib/libc10.so").unlink()
        self.assertIn("bin/executor needs libc10.so, which is neither in the package nor of the machine",
                      loader.problems_of(folder))

    def test_an_executor_with_another_path_is_found(self):
        folder = self.copy()
        (folder / "bin/executor").unlink()
        os.link(BINARIES / "executor", folder / "bin/executor")
        said = "\n".join(loader.problems_of(folder))
        self.assertIn("bin/executor does not look into ../lib first", said)
        self.assertIn("bin/executor takes libtorch_cpu.so from", said)

    def test_what_is_not_here_has_no_licence_or_no_name_in_notice_ends_it(self):
        broken = ROOT / "broken"
        shutil.copy(BINARIES / "executor", broken)
        subprocess.run(["patchelf", "--add-needed", "libnowhere.so.7", broken], check=True)
        with self.assertRaisesRegex(ValueError, "does not run here: the loader does not find libnowhere.so.7"):
            loader.libraries_of(str(broken))
        with self.assertRaisesRegex(ValueError, "belongs to no Debian package and to no wheel"):
            make_package.origin_of(str(broken), str(TORCH), origins.Wheels(PREPARE))
        with self.assertRaisesRegex(ValueError, "no licence text of glue 1 is on this machine"):
            origins.Origin("glue", "1", {})
        notice = make_package.read("NOTICE").replace("libunwind8", "libunwind")
        real = make_package.read
        with mock.patch.object(make_package, "read", lambda path: notice if path == "NOTICE" else real(path)):
            with self.assertRaisesRegex(ValueError, "NOTICE does not name libunwind8"):
                make_package.check_notice([origins.debian("libunwind8")])


class Opened(unittest.TestCase):
    def library(self, name, code="", needs=()):
        """A real library, in ROOT/opened, which looks for others beside itself."""
        folder = ROOT / "opened"
        folder.mkdir(exist_ok=True)
        words = [f"-l:{need}" for need in needs]
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", folder / name, f"-L{folder}",
                        "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", f"-Wl,-soname,{name}", *words],
                       input=code, text=True, check=True)
        return folder / name

    def test_a_build_for_gpus_has_what_its_libraries_open_by_name(self):
        opens = 'const char* {0}() {{ return "{1}"; }}'
        self.library("libdeep.so.1")
        self.library("libpart.so.9", opens.format("part", "libdeep.so.1"))
        self.library("libgone.so.1")
        self.library("libplugin.so.2", needs=["libgone.so.1"])
        (ROOT / "opened/libgone.so.1").unlink()
        self.library("libunnamed.so.1")
        self.library("libibverbs.so.1")
        self.library("libcard.so.1", needs=["libibverbs.so.1"])
        self.library("libtorch_cuda.so", opens.format("one", "libpart.so") + opens.format("two", "libplugin.so.2") +
                     opens.format("three", "libnot_here.so.4") + opens.format("four", "libcard.so.1"))
        program = ROOT / "opened/program"
        subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", program, f"-L{ROOT}/opened", "-Wl,--no-as-needed",
                        "-l:libtorch_cuda.so", f"-Wl,-rpath,{ROOT}/opened"],
                       input="int main() { return 0; }", text=True, check=True)
        inside, left_out = loader.libraries_of(str(program))
        self.assertEqual(sorted(inside), ["libcard.so.1", "libdeep.so.1", "libpart.so.9", "libtorch_cuda.so"])
        self.assertEqual(left_out, {"libplugin.so.2": "needs libgone.so.1"})


class Tar(unittest.TestCase):
    def pack(self, name, order, seconds):
        folder = ROOT / name
        for file in order:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text("#!/bin/sh\n" if file.startswith("bin/") else file)
            (folder / file).chmod(0o600)
            os.utime(folder / file, (seconds, seconds))
        contents.write_tar(folder, "top", ROOT / f"{name}.tar.gz", 1700000000, lambda done: None)
        return (ROOT / f"{name}.tar.gz").read_bytes()

    def test_the_bytes_depend_on_names_and_content_alone(self):
        files = ["bin/run", "a.txt", "b/c.txt", "b/a.txt", "z.txt"]
        first = self.pack("first", files, 1000000000)
        self.assertEqual(first, self.pack("second", files[::-1], 1600000000))
        (ROOT / "second/z.txt").write_text("y.txt")
        contents.write_tar(ROOT / "second", "top", ROOT / "second.tar.gz", 1700000000, lambda done: None)
        self.assertNotEqual(first, (ROOT / "second.tar.gz").read_bytes())
        with gzip.open(ROOT / "first.tar.gz") as packed, tarfile.open(fileobj=packed) as tar:
            members = tar.getmembers()
        self.assertEqual([member.name for member in members],
                         ["top", "top/a.txt", "top/z.txt", "top/b", "top/b/a.txt", "top/b/c.txt", "top/bin",
                          "top/bin/run"])
        self.assertEqual({(member.uid, member.gid, member.uname, member.mtime) for member in members},
                         {(0, 0, "", 1700000000)})
        self.assertEqual([member.name for member in members if member.isfile() and member.mode == 0o755],
                         ["top/bin/run"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
