#include "planner/recipe/recipe_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

absl::StatusOr<std::string> ReadRecipeFile(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return absl::NotFoundError("there is no such file");
  if (!fs::exists(status)) return absl::FailedPreconditionError(error.message());
  if (fs::is_directory(status)) return absl::FailedPreconditionError("it is a folder");
  if (!fs::is_regular_file(status)) return absl::FailedPreconditionError("it is not a plain file");
  // Some files of /proc call themselves plain and wait for ever: O_NONBLOCK has them say that they would.
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return absl::PermissionDeniedError(std::strerror(errno));
  std::string text;
  char chunk[1 << 14];
  ssize_t count = 1;
  while (count > 0 && text.size() <= kLargestRecipe) {  // a byte more than allowed shows that there is more
    count = read(file, chunk, std::min(sizeof chunk, kLargestRecipe + 1 - text.size()));
    if (count > 0) text.append(chunk, static_cast<size_t>(count));
  }
  close(file);
  if (count < 0) return absl::DataLossError("reading it failed");
  return text;
}

std::string ResolvePath(const std::string& path, const Location& named_at) {
  const std::filesystem::path named(path);
  if (named.is_absolute() || !named_at.file || *named_at.file == kCommandLine) return named.lexically_normal().string();
  return (std::filesystem::path(*named_at.file).parent_path() / named).lexically_normal().string();
}

}  // namespace planwright
