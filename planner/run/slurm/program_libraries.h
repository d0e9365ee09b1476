// The shared libraries that a program loads, as the loader of this machine finds them. The loader is asked, so that it
// counts where they are by RUNPATH, by LD_LIBRARY_PATH and by the cache of the system.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct LoadedLibrary {
  std::string name;  // "libglog.so.1"
  std::string path;  // absolute; empty: not found
};

// Of a program, or, of a script, of the shell that reads it; none of a program that is linked statically.
// `environment`: "NAME=value" of the process that would load it. The program itself does not run, unless it is static:
// then it is asked for its --devices. Errors are those of OutputOf (planner/run/launch/program_output.h).
absl::StatusOr<std::vector<LoadedLibrary>> LibrariesOf(const std::string& program,
                                                       std::vector<std::string> environment);

// Whether a path is of the system itself (/lib, /usr and the like): each machine and each image has its own.
bool IsOfSystem(const std::string& path);

}  // namespace planwright
