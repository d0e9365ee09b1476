// The program `plan` itself, and the one that is installed beside it.
#pragma once

#include <filesystem>
#include <string>

namespace planwright {

inline std::string OwnProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

// The executor program where nobody named another.
inline std::string ExecutorBesidePlan() { return std::filesystem::path(OwnProgram()).parent_path() / "executor"; }

}  // namespace planwright
