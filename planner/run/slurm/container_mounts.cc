#include "planner/run/slurm/container_mounts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/near_name.h"
#include "planner/plan/slurm_options.h"
#include "planner/run/slurm/program_libraries.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

struct Mount {
  std::string from, to;
  bool read_only = false;
};

Mount MountOf(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  Mount mount = {parts[0], parts.size() > 1 ? parts[1] : parts[0]};
  if (parts.size() > 2) {
    const std::vector<std::string> flags = absl::StrSplit(parts[2], '+');
    mount.read_only = std::find(flags.begin(), flags.end(), "ro") != flags.end();
  }
  return mount;
}

// Whether `path` is `folder` or in it.
bool IsIn(const std::string& path, const std::string& folder) {
  const std::string with_slash = folder.ends_with('/') ? folder : folder + "/";
  return path == folder || path.starts_with(with_slash);
}

bool IsHere(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The innermost mount at which a container has the path; none: it has not.
const Mount* Over(const std::vector<Mount>& mounts, const std::string& path) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    if (IsIn(path, mount.to) && (found == nullptr || mount.to.size() >= found->to.size())) found = &mount;
  }
  return found;
}

// ", near /lustre/data" of a folder that is not here, if one beside it has almost its name.
std::string NearFolder(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  const std::optional<std::string> near = NearName(fs::path(path).filename().string(), names);
  return near ? absl::StrCat("; did you mean ", (parent / *near).string(), "?") : "";
}

// Nodes unpack an image; they take nothing but squashfs. Empty if this one is.
std::string ImageProblem(const std::string& path) {
  std::error_code error;
  std::string beginning(4, ' ');
  std::ifstream(path, std::ios::binary).read(beginning.data(), 4);
  const bool folder = fs::is_directory(path, error);
  if (!folder && beginning == "hsqs") return "";
  return absl::StrCat("launch.slurm.container: ", path, folder ? " is a folder" : " is no squashfs file",
                      ", and no node would start a container of it; `enroot import -o FILE.sqsh docker://IMAGE` makes "
                      "a file of an image, `mksquashfs FOLDER FILE.sqsh` one of a folder");
}

// Mounts of the recipe that no container could have: where they shall be is in a read-only mount, which has no such
// place, and none can be made. `all`: outer folders first.
std::vector<std::string> MountsWithoutAPlace(const std::vector<std::string>& of_recipe,
                                             const std::vector<std::string>& all) {
  std::vector<std::string> problems;
  std::vector<Mount> outer;
  for (const std::string& text : all) {
    const Mount mount = MountOf(text);
    const bool added = std::find(of_recipe.begin(), of_recipe.end(), text) == of_recipe.end();
    const Mount* over = added ? nullptr : Over(outer, mount.to);
    if (over != nullptr && over->to != mount.to && over->read_only && IsHere(over->from)) {
      const std::string place = over->from + mount.to.substr(over->to.size());
      if (!IsHere(place))
        problems.push_back(absl::StrCat("launch.slurm.mounts: nothing can be mounted at ", mount.to, ", as ", over->to,
                                        " is mounted read-only and has no such place; make ", place,
                                        " or mount at another path"));
    }
    outer.push_back(mount);
  }
  return problems;
}

// What is mounted for a file: its folder, or, of a file in a folder of the system, itself.
std::string PlaceOf(const NeededFile& file) {
  std::error_code error;
  if (fs::is_directory(file.path, error) || !IsHere(file.path)) return file.path;
  const std::string folder = fs::path(file.path).parent_path().string();
  return IsOfSystem(folder) || folder == "/" ? file.path : folder;
}

}  // namespace

ContainerMounts MountsFor(const LaunchPlan& launch, std::vector<NeededFile>& needed) {
  ContainerMounts mounts;
  std::vector<Mount> of_recipe;
  for (const std::string& text : launch.mounts) {
    of_recipe.push_back(MountOf(text));
    mounts.all.push_back(text);
    const std::string& from = of_recipe.back().from;
    if (!IsHere(from)) {
      mounts.notes.push_back(absl::StrCat("launch.slurm.mounts: ", from, " is not on this machine", NearFolder(from),
                                          "; a node without it starts no container"));
    }
  }
  if (launch.container.starts_with('/') && IsHere(launch.container)) {
    if (std::string problem = ImageProblem(launch.container); !problem.empty())
      mounts.problems.push_back(std::move(problem));
  } else if (launch.container.starts_with('/')) {
    mounts.notes.push_back(absl::StrCat("launch.slurm.container: ", launch.container, " is not on this machine",
                                        NearFolder(launch.container), "; a node without it starts no container"));
  }
  std::map<std::string, bool> added;  // the place, and whether it is written to; outer folders first
  for (NeededFile& file : needed) {
    if (const Mount* over = Over(of_recipe, file.path)) {
      file.seen = absl::StrCat("launch.slurm.mounts: ", over->from);
      if (file.writes && over->read_only) {
        mounts.problems.push_back(absl::StrCat(file.what, " ", file.path,
                                               " is written to, and launch.slurm.mounts has ", over->to,
                                               " as read-only; remove its ro"));
      }
      const std::string source = over->from + file.path.substr(over->to.size());
      if (IsHere(over->from) && !IsHere(source) && !file.writes)
        mounts.problems.push_back(absl::StrCat(file.what, " ", file.path, " is ", source,
                                               " of the node by launch.slurm.mounts, which is not on this machine"));
      continue;
    }
    const std::string place = PlaceOf(file);
    if (!file.here) {
      mounts.problems.push_back(absl::StrCat("no container would see ", file.what, " ", file.path,
                                             ": it is under no mount, and not on this machine; write launch.slurm."
                                             "mounts: [FOLDER_OF_THE_NODE:",
                                             fs::path(file.path).parent_path().string(), "]"));
    } else if (!SlurmWordProblem(place, "/=").empty() || place.find(':') != std::string::npos) {
      mounts.problems.push_back(absl::StrCat("no container would see ", file.what, " ", file.path,
                                             ": srun cannot be given a mount of this name; use a path of letters, "
                                             "digits, and . _ - + @ % / ="));
    } else {
      file.seen = file.writes ? "mounted" : "mounted, read-only";
      added[place] = added[place] || file.writes;
    }
  }
  for (const auto& [place, writes] : added) {
    const bool covered = std::any_of(added.begin(), added.end(), [&](const auto& other) {
      return other.first != place && IsIn(place, other.first) && other.second == writes;
    });
    if (!covered) mounts.all.push_back(absl::StrCat(place, ":", place, writes ? "" : ":ro"));
  }
  // A folder that is mounted later would hide what is mounted in it.
  std::stable_sort(mounts.all.begin(), mounts.all.end(),
                   [](const std::string& a, const std::string& b) { return MountOf(a).to < MountOf(b).to; });
  for (std::string& problem : MountsWithoutAPlace(launch.mounts, mounts.all))
    mounts.problems.push_back(std::move(problem));
  return mounts;
}

}  // namespace planwright
