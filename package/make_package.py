"""Makes a package: one tar with plan, executor, all libraries that they need but glibc, `prepare`, recipes and pages.

    make_package.py BINARIES OUT --torch FOLDER --prepare FOLDER [--lay-out]

BINARIES is the folder with plan and executor, of a build for CPUs or for GPUs. OUT gets the tar, or with --lay-out the
folder that it would hold, as links. --torch is the LibTorch that the executor is linked to, --prepare a folder with the
Python packages of prepare, for the Python of its name (prepare_data-3.11).

Which libraries are needed says the loader, and whose they are says Debian or the wheel that brought them. Fails if one
of them is not there, has no licence text, or does not stand in NOTICE, and if the finished folder lacks anything. The
same build gives the same bytes. docs/package.md is the page for people.
"""
import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import contents
import loader
import origins

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ("README.md", "CHANGELOG.md", "SECURITY.md", "NOTICE")
# What pip leaves behind, which differs from one run to the next.
NOT_OF_PYTHON = ("__pycache__", "RECORD", "direct_url.json")
EARLIEST = 315532800  # 1980, the first second that every archiver can write


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def size(number):
    unit, name = (1e9, "GB") if number >= 1e9 else (1e6, "MB") if number >= 1e6 else (1e3, "kB")
    return f"{number / unit:.{2 if name == 'GB' else 1}f} {name}"


def git(*words):
    asked = subprocess.run(["git", "-C", SOURCE, *words], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else None


def commit():
    name = git("rev-parse", "HEAD")
    if name is None:
        return "unknown, not made in a clone"
    return name + (" with changes" if git("status", "--porcelain") else "")


def second():
    """The second that all files are of: SOURCE_DATE_EPOCH, or that of the commit."""
    return max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or 0))


def origin_of(path, torch, wheels):
    if owner := wheels.owner(path):
        return owner
    if os.path.realpath(path).startswith(os.path.realpath(torch) + "/"):
        return origins.own_torch(torch)
    if owner := origins.debian_owner(path):
        return owner
    raise ValueError(f"{path} belongs to no Debian package and to no wheel, so its licence is unknown")


def check_notice(found):
    """NOTICE names each of them, or a list of wheels that has it."""
    notice = read("NOTICE")
    known = notice + "".join(read(f"third_party/{name}") for name in re.findall(r"\bwheels_\w+\.txt", notice))

    def named(name):
        name = name.removesuffix("t64")  # of Ubuntu, for packages that have it from Debian 12
        return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", known, re.IGNORECASE)
    unnamed = sorted({origin.name for origin in found if not named(origin.name)})
    if unnamed:
        raise ValueError(f"NOTICE does not name {', '.join(unnamed)}, of which the package would have files")


def python_of(folder):
    """The version of Python for which a folder has the packages of prepare."""
    version = re.fullmatch(r"prepare_data-(\d+\.\d+)", os.path.basename(folder))
    if not version or not os.path.exists(os.path.join(folder, ".complete")):
        raise ValueError(f"--prepare: {folder} is no folder prepare_data-VERSION that third_party/fetch_python filled")
    return version[1]


def about(facts, owners):
    """PACKAGE.md: what this package is, and whose each library is."""
    rows = "".join(f"| `lib/{name}` | {owner.name} {owner.version} | `licences/{owner.folder()}/` |\n"
                   for name, owner in sorted(owners.items()))
    text = read("package/PACKAGE.md.in")
    for key, value in {**facts, "libraries": rows.rstrip("\n")}.items():
        text = text.replace(f"{{{key}}}", value)
    return text.encode()


def collect(options):
    """The contents of a package, its facts, and what was left out of it, with reasons."""
    executor, plan = (os.path.join(options.binaries, name) for name in ("executor", "plan"))
    libraries, left_out = loader.libraries_of(executor)
    wheels = origins.Wheels(os.path.dirname(os.path.realpath(options.torch)))
    owners = {name: origin_of(path, options.torch, wheels) for name, path in libraries.items()}
    python = python_of(options.prepare)
    found = [*origins.packages_of_notice(read("NOTICE")), *owners.values(), *origins.Wheels(options.prepare).all()]
    check_notice(found)

    version = loader.said(plan, "--version").split()[1].rstrip(",")
    kind = "gpu" if "libtorch_cuda.so" in libraries else "cpu"
    glibc = ".".join(map(str, loader.newest_glibc([executor, *libraries.values()])))
    facts = {"version": version, "kind": kind, "machine": platform.machine(), "commit": commit(), "glibc": glibc,
             "python": python, "name": f"planwright-{version}-linux-{platform.machine()}-{kind}"}

    files = contents.Contents()
    files.add("bin/plan", plan)
    files.add("bin/executor", executor)
    files.add("bin/prepare", os.path.join(SOURCE, "package/prepare"))
    for name, path in libraries.items():
        files.add(f"lib/{name}", path)
    files.add_tree("planner/data/prepare_data", os.path.join(SOURCE, "planner/data/prepare_data"), ("__pycache__",))
    for name in ("fetch_python", "packages_prepare_data.txt"):
        files.add(f"third_party/{name}", os.path.join(SOURCE, "third_party", name))
    files.add_tree(f"third_party/prepare_data-{python}", options.prepare, NOT_OF_PYTHON)
    for folder in ("recipes", "schemas"):
        files.add_tree(folder, os.path.join(SOURCE, folder))
    files.add_tree("docs", os.path.join(SOURCE, "docs"), ("demo", "draw_plan_page"))
    for name in PAGES:
        files.add(name, os.path.join(SOURCE, name))
    files.add("Containerfile", os.path.join(SOURCE, "package/Containerfile"))
    files.add("PACKAGE.md", about(facts, owners))
    for inside, path in {inside: path for origin in found for inside, path in origin.files().items()}.items():
        files.add(f"licences/{inside}", path)
    return files, facts, left_out


def lay_out(files, folder):
    """Makes the folder of a package that runs where it lies, and looks at it as the loader does."""
    files.lay_out(folder)
    executor = os.path.join(folder, "bin/executor")
    # RPATH and not RUNPATH: it also counts for what libraries without a path of their own need, and comes before
    # LD_LIBRARY_PATH, which on many machines names libraries of other versions.
    shutil.copy(executor, f"{executor}.new")
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", f"{executor}.new"], check=True)
    os.replace(f"{executor}.new", executor)
    if problems := loader.problems_of(folder):
        raise ValueError("the package would not run:\n  " + "\n  ".join(problems))


def tell(files, facts, left_out):
    print(f"{facts['name']}: for glibc {facts['glibc']} or newer; prepare for Python {facts['python']}")
    total = 0
    for part, (count, number) in files.parts().items():
        print(f"  {part:<24} {count:>6} files {size(number):>10}")
        total += number
    print(f"  {'unpacked':<24} {len(files.files):>6} files {size(total):>10}")
    for name, reason in sorted(left_out.items()):
        print(f"  left out, as libraries open it by name only where it is: {name} ({reason})")
    sys.stdout.flush()
    return total


def pack(folder, facts, path, total):
    said = [-1]

    def progress(done):
        percent = 100 * done // max(total, 1)
        if percent // 10 > said[0] // 10 or (sys.stderr.isatty() and percent > said[0]):
            said[0] = percent
            end = "\r" if sys.stderr.isatty() and percent < 100 else "\n"
            print(f"packing {size(done)} of {size(total)}, {percent} %", end=end, file=sys.stderr, flush=True)
    contents.write_tar(folder, facts["name"], path, second(), progress)


def main(words):
    parser = argparse.ArgumentParser(prog="make_package.py", allow_abbrev=False)
    parser.add_argument("binaries")
    parser.add_argument("out")
    parser.add_argument("--torch", required=True)
    parser.add_argument("--prepare", required=True)
    parser.add_argument("--lay-out", action="store_true")
    options = parser.parse_args(words)
    try:
        files, facts, left_out = collect(options)
        total = tell(files, facts, left_out)
        os.makedirs(options.out, exist_ok=True)
        if options.lay_out:
            folder = os.path.join(options.out, facts["name"])
            if os.path.lexists(folder):
                raise ValueError(f"{folder} is there already")
            lay_out(files, folder)
            print(folder)
            return 0
        free = shutil.disk_usage(options.out).free
        if free < 2 * total:  # where nothing can be linked, the folder is as large as all files, and so may the tar be
            raise ValueError(f"{options.out} has {size(free)} free, and up to {size(2 * total)} are needed")
        path = os.path.join(options.out, f"{facts['name']}.tar.gz")
        with tempfile.TemporaryDirectory(prefix=".package-", dir=options.out) as folder:
            lay_out(files, folder)
            pack(folder, facts, path, total)
        print(f"{path}: {size(os.stat(path).st_size)}")
        return 0
    except (OSError, ValueError) as error:
        print(f"package: {error}", file=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(f"package: {' '.join(map(str, error.cmd))} failed:\n{error.stderr or ''}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
