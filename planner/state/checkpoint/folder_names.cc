#include "planner/state/checkpoint/folder_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/checkpoint/life_start.h"

namespace planwright {

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error == std::errc::no_such_file_or_directory) return absl::NotFoundError("there is no folder " + folder);
  if (error) return absl::UnavailableError(absl::StrCat("cannot read the folder ", folder, ": ", error.message()));
  return names;
}

absl::Status CheckFolder(const std::string& folder) {
  struct stat about {};
  if (stat(folder.c_str(), &about) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return absl::InvalidArgumentError("there is no folder " + folder);
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", folder, ": ", std::strerror(errno)));
  }
  if (!S_ISDIR(about.st_mode)) return absl::InvalidArgumentError(folder + " is not a folder");
  if (faccessat(AT_FDCWD, folder.c_str(), R_OK | X_OK, AT_EACCESS) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot read the folder ", folder, ": ", std::strerror(errno)));
}

std::optional<CheckpointName> ReadCheckpointName(std::string_view name) {
  constexpr std::string_view kStep = "step-", kLife = ".life-";
  const size_t dot = name.find(kLife);
  if (!name.starts_with(kStep) || dot == std::string_view::npos) return std::nullopt;
  const int64_t step = NumberFrom(name.substr(kStep.size(), dot - kStep.size())),
                life = NumberFrom(name.substr(dot + kLife.size()));
  if (step < 0 || life < 1 || life > kMostLives) return std::nullopt;
  // Another way to write the same numbers would make two folders of one checkpoint.
  if (name != CheckpointFolder(step, static_cast<int>(life))) return std::nullopt;
  return CheckpointName{step, static_cast<int>(life)};
}

int64_t NumberFrom(std::string_view text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

}  // namespace planwright
