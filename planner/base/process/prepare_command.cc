#include "planner/base/process/prepare_command.h"

#include <system_error>

namespace planwright {

std::string PrepareCommand(const std::filesystem::path& program) {
  std::error_code error;
  const std::filesystem::path own = program.empty() ? std::filesystem::read_symlink("/proc/self/exe", error) : program;
  const bool beside = std::filesystem::is_regular_file(own.parent_path() / "prepare", error);
  return beside ? "prepare" : "./dev prepare";
}

}  // namespace planwright
