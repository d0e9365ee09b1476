"""Whose the files of others are: the Debian package or the wheel that brought a file, and its licence texts."""
import csv
import glob
import os
import re
import subprocess


class Origin:
    """A Debian package or a wheel: `name` as NOTICE has it, `version`, and the files with its licences."""

    def __init__(self, name, version, texts):
        self.name, self.version, self.texts = name, version, texts
        if not texts:
            raise ValueError(f"no licence text of {name} {version} is on this machine, and a package needs it")

    def folder(self):
        return f"{self.name}-{self.version.split(':')[-1]}"  # without Debian's epoch, which is in no name of a file

    def files(self):
        """Paths in the folder of licences, and where they are here."""
        folder = self.folder()
        return {f"{folder}/{inside}": path for inside, path in self.texts.items()}


def debian(name):
    """A Debian package that is installed; NAME may have * in it."""
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", name],
                           capture_output=True, text=True)
    for line in shown.stdout.splitlines():
        status, package, version = line.split(" ") if line.count(" ") == 2 else ("", "", "")
        path = f"/usr/share/doc/{package}/copyright"
        if status == "installed":
            return Origin(package, version, {"copyright": os.path.realpath(path)} if os.path.exists(path) else {})
    return None


def debian_owner(path):
    """The package that brought a file, under the name that it had before /lib became a link."""
    path = os.path.realpath(path)
    for name in (path, path.removeprefix("/usr"), f"/usr{path}"):
        asked = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if asked.returncode == 0:
            return debian(asked.stdout.split(":")[0])
    return None


LICENCE = re.compile(r"(licen[cs]e|copying|notice)", re.IGNORECASE)
# A wheel may name a licence without its text; Debian has the texts of these.
COMMON = {"License :: OSI Approved :: Apache Software License": "/usr/share/common-licenses/Apache-2.0"}


class Wheels:
    """The wheels that were unpacked side by side into a folder, and which file is of which."""

    def __init__(self, folder):
        self.infos, self.files = {}, {}
        for info in sorted(glob.glob(os.path.join(os.path.realpath(folder), "*.dist-info"))):
            with open(os.path.join(info, "RECORD"), encoding="utf-8", newline="") as record:
                self.files[info] = [os.path.join(os.path.dirname(info), row[0]) for row in csv.reader(record)]
            self.infos.update({path: info for path in self.files[info]})

    def owner(self, path):
        info = self.infos.get(os.path.realpath(path))
        return self.origin(info) if info else None

    def all(self):
        return [self.origin(info) for info in self.files]

    def origin(self, info):
        with open(os.path.join(info, "METADATA"), encoding="utf-8") as file:
            head = file.read().split("\n\n")[0]
        name, version = (re.search(rf"^{key}: (.+)$", head, re.MULTILINE)[1].strip() for key in ("Name", "Version"))
        texts = {os.path.basename(path): path for path in self.files[info]
                 if LICENCE.match(os.path.basename(path)) and os.path.exists(path) and not path.endswith(".py")}
        if not texts:
            texts = {os.path.basename(path): path for words, path in COMMON.items()
                     if f"Classifier: {words}" in head.splitlines() and os.path.exists(path)}
        return Origin(name, version, texts)


def own_torch(folder):
    """A LibTorch that is no wheel has its licence in its folder or above it."""
    for place in (folder, os.path.dirname(folder)):
        texts = [path for path in sorted(glob.glob(f"{place}/*"))
                 if LICENCE.match(os.path.basename(path))]
        if texts:
            break
    return Origin("torch", "own", {os.path.basename(path): path for path in texts})


def packages_of_notice(notice):
    """The Debian packages whose code is inside `plan` and `executor`, as NOTICE names them. A number in a name is that
    of a compiler, which another distribution has in another version."""
    names = []
    for words in re.findall(r"packages?\s+(lib[\w.+-]+(?:,\s+lib[\w.+-]+)*|[\w.+-]+-dev)", notice):
        names += re.split(r",\s+", words)
    found = []
    for name in dict.fromkeys(names):
        origin = debian(name) or debian(re.sub(r"\d+", "*", name))
        if origin is None:
            raise ValueError(f"NOTICE names the package {name}, which is not installed here")
        found.append(origin)
    return found
