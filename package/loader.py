"""What a program needs to run, as the loader and the files themselves say it."""
import mmap
import os
import re
import subprocess

# Of the C library, which belongs to its machine: it knows the machine's name service and locales, and the loader of a
# program is one of its files.
GLIBC = re.compile(r"(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|util|resolv|anl|mvec|BrokenLocale))\.so\.\d+")
# Of drivers, which belong to the kernel of their machine: NVIDIA's, and those of network cards.
DRIVER = re.compile(r"lib(cuda|nvidia-[\w-]+|ibverbs|rdmacm|mlx\d)\.so\.\d+")
# A name by which a library opens another one while it runs. cuDNN leaves the number at the end out, and adds it.
OPENED = re.compile(rb"\0(lib[\w+-]+\.so(?:\.\d+)*)(?=\0)")
VERSION = re.compile(r"Name: GLIBC_(\d+(?:\.\d+)+)")


def of_machine(name):
    return bool(GLIBC.fullmatch(name) or DRIVER.fullmatch(name))


def clean_environment():
    return {**{name: value for name, value in os.environ.items() if not name.startswith("LD_")}, "LC_ALL": "C"}


def said(*command):
    return subprocess.run(command, env=clean_environment(), check=True, capture_output=True, text=True).stdout


def interpreter(program):
    return re.search(r"program interpreter: (\S+?)\]", said("readelf", "--program-headers", "--wide", program))[1]


def resolved(loader, path, *folders):
    """All that the loader takes for a program or a library, by name: a path, or None where it finds nothing. It looks
    into `folders` first."""
    first = ["--library-path", ":".join(folders)] if folders else []
    # As ldd asks it. With --list it would end at the first that it does not find.
    listed = subprocess.run([loader, *first, path], env={**clean_environment(), "LD_TRACE_LOADED_OBJECTS": "1"},
                            capture_output=True, text=True)
    places = {}
    for line in listed.stdout.splitlines():
        name, _, place = line.strip().partition(" => ")
        if place:
            places[name] = None if place == "not found" else place.split(" (0x")[0]
    if not places and listed.returncode != 0:
        raise ValueError(f"{loader} cannot load {path}: {listed.stderr.strip()}")
    return places


def needed(loader, path, *folders):
    """The same without what belongs to the machine, and without what only that needs."""
    places, found, look_at = resolved(loader, path, *folders), {}, [path]
    while look_at:
        for tag, name in dynamic(look_at.pop()):
            if tag == "NEEDED" and name not in found and not of_machine(name):
                found[name] = places.get(name)
                if found[name]:
                    look_at.append(found[name])
    return found


def dynamic(path):
    """Lines of the dynamic section: tag and value."""
    return re.findall(r"^ 0x\w+ \((\w+)\) +(?:.*\[(.*)\])?", said("readelf", "--dynamic", "--wide", path), re.MULTILINE)


def search_path(path):
    """The folders in which the loader looks for what this file needs or opens, and its own."""
    own = os.path.dirname(path)
    words = [word for tag, value in dynamic(path) if tag in ("RPATH", "RUNPATH") for word in value.split(":") if word]
    return [own] + [re.sub(r"\$\{?ORIGIN\}?", lambda _: own, word) for word in words]


def opened_by_name(path):
    """Libraries that this one names in its text and that lie where it looks for them."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        names = {name.decode() for name in OPENED.findall(text)}
    found = set()
    for folder in search_path(path):
        for file in os.listdir(folder) if os.path.isdir(folder) else ():
            if any(file == name or re.fullmatch(re.escape(name) + r"\.\d+", file) for name in names):
                found.add(os.path.join(folder, file))
    return found


def newest_glibc(paths):
    """The oldest C library with which all of these run: (2, 36)."""
    versions = [tuple(map(int, text.split("."))) for path in paths
                for text in VERSION.findall(said("readelf", "--version-info", "--wide", path))]
    return max(versions)


def name_of(path):
    """The name under which the loader knows a library."""
    return next((value for tag, value in dynamic(path) if tag == "SONAME"), os.path.basename(path))


def libraries_of(program):
    """What a package with this program holds: paths by name, and what was left out, by name, with the reason.

    That is all that the program and its libraries need but what belongs to the machine. If it is built for GPUs, also
    what they open by name, where all that this needs is there. A build for CPUs opens no library of its folders by
    name, although LibTorch names there its own for GPUs."""
    loader = interpreter(program)
    inside = needed(loader, program)
    missing = sorted(name for name, path in inside.items() if path is None)
    if missing:
        raise ValueError(f"{program} does not run here: the loader does not find {', '.join(missing)}")
    left_out = {}
    look_at = [path for path in inside.values() if "libtorch_cuda.so" in inside]
    folders = sorted({os.path.dirname(path) for path in look_at})
    while look_at:
        for path in sorted(opened_by_name(look_at.pop())):
            name = name_of(path)
            if name in inside or name in left_out or of_machine(name):
                continue
            more = {name: path, **needed(loader, path, *folders)}
            missing = sorted(other for other, place in more.items() if place is None)
            if missing:
                left_out[name] = f"needs {', '.join(missing)}"
                continue
            for other, place in more.items():
                if other not in inside:
                    inside[other] = place
                    look_at.append(place)
    return {name: os.path.realpath(path) for name, path in inside.items()}, left_out


def problems_of(root):
    """What of the programs and libraries of a package the loader would not find in it: lines for people."""
    program, folder = os.path.join(root, "bin/executor"), os.path.join(root, "lib")
    loader, found = interpreter(program), []

    def judge(path, libraries):
        for name, place in sorted(libraries.items()):
            if place is None:
                found.append(f"{path} needs {name}, which is neither in the package nor of the machine")
            elif os.path.dirname(os.path.realpath(place)) != os.path.realpath(folder):
                found.append(f"{path} takes {name} from {place}, which is not in the package")
    judge("bin/executor", needed(loader, program))
    for file in sorted(os.listdir(folder)):
        path = os.path.join(folder, file)
        judge(f"lib/{file}", needed(loader, path, folder))
        # Where a library has a RUNPATH, the RPATH of the program does not count for what it needs.
        tags = dict(dynamic(path))
        if "RUNPATH" in tags and "NEEDED" in tags and folder not in map(os.path.normpath, search_path(path)[1:]):
            found.append(f"lib/{file} looks for libraries in {tags['RUNPATH']} and not beside itself")
    if ("RPATH", "$ORIGIN/../lib") not in dynamic(program):
        found.append("bin/executor does not look into ../lib first")
    if any(name in ("NEEDED", "INTERP") for name, _ in dynamic(os.path.join(root, "bin/plan"))):
        found.append("bin/plan needs shared libraries")
    return found
