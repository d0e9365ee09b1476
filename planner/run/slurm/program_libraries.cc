#include "planner/run/slurm/program_libraries.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "planner/run/launch/program_output.h"

namespace planwright {

absl::StatusOr<std::vector<LoadedLibrary>> LibrariesOf(const std::string& program,
                                                       std::vector<std::string> environment) {
  // The loader runs what LD_AUDIT names even then; what a recipe gives does not run before a launch.
  std::erase_if(environment, [](const std::string& variable) { return variable.starts_with("LD_AUDIT="); });
  environment.emplace_back("LD_TRACE_LOADED_OBJECTS=1");
  const absl::StatusOr<std::string> printed = OutputOf({program, "--devices"}, environment);
  if (!printed.ok()) return printed.status();
  std::vector<LoadedLibrary> libraries;
  const std::vector<std::string> lines = absl::StrSplit(*printed, '\n');
  for (const std::string& line : lines) {
    // "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f...)", "\tlibcuda.so.1 => not found"; the loader itself
    // and what the kernel gives have no arrow.
    const std::vector<std::string> sides = absl::StrSplit(line, " => ");
    if (sides.size() != 2) continue;
    const std::string path = sides[1].substr(0, sides[1].rfind(" ("));
    // "/opt/planwright/bin/../lib/libtorch.so" of a relative RUNPATH.
    const std::string found = path.starts_with('/') ? std::filesystem::path(path).lexically_normal().string() : "";
    libraries.push_back({std::string(absl::StripAsciiWhitespace(sides[0])), found});
  }
  return libraries;
}

bool IsOfSystem(const std::string& path) {
  constexpr std::string_view kFolders[] = {"/bin/",   "/dev/",  "/etc/",  "/lib/", "/lib32/",
                                           "/lib64/", "/proc/", "/sbin/", "/sys/", "/usr/"};
  return std::any_of(std::begin(kFolders), std::end(kFolders),
                     [&](std::string_view folder) { return path.starts_with(folder) || path + "/" == folder; });
}

}  // namespace planwright
