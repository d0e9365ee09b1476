#include "planner/base/files/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "planner/base/files/file_io.h"

namespace planwright {
namespace {

std::string RankName(int rank, const char* ending) {
  char name[32];
  std::snprintf(name, sizeof name, "rank%04d%s", rank, ending);
  return name;
}

int OpenIn(int folder, const std::string& name) { return OpenToWrite(folder, name, O_WRONLY | O_CREAT | O_APPEND); }

}  // namespace

std::string RankLogName(int rank) { return RankName(rank, ".log"); }
std::string RankOutputName(int rank) { return RankName(rank, ".out"); }

LogFile::LogFile(const std::string& folder, std::string name, Limits limits)
    : name_(std::move(name)), path_(folder + "/" + name_), limits_(limits) {
  [[maybe_unused]] const absl::Status made = MakeDirectories(folder);  // if it failed, open says why
  folder_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  folder_error_ = folder_ < 0 ? errno : 0;
}

LogFile::~LogFile() {
  for (int fd : {file_, folder_}) {
    if (fd >= 0) close(fd);
  }
}

absl::Status LogFile::Open() {
  if (file_ >= 0) return absl::OkStatus();
  if (folder_ >= 0) file_ = OpenIn(folder_, name_);
  if (file_ < 0) {
    const int error = folder_ >= 0 ? errno : folder_error_;
    Note(error);
    return WriteFailed("cannot write " + path_, error);
  }
  struct stat about {};
  size_ = fstat(file_, &about) == 0 ? static_cast<int64_t>(about.st_size) : 0;
  return absl::OkStatus();
}

void LogFile::Write(std::string_view line) {
  if (!Open().ok()) {
    ++lost_;
    return;
  }
  if (size_ > 0 && size_ + static_cast<int64_t>(line.size()) >= limits_.bytes) Rotate();
  std::string bytes = torn_ ? "\n" : "";
  if (const int64_t missing = lost_ - noted_; missing > 0) {
    bytes += "[" + std::to_string(missing) + (missing == 1 ? " line is" : " lines are") + " missing here: " + problem_ +
             "]\n";
  }
  bytes.append(line).push_back('\n');
  if (WriteAll(bytes)) {
    noted_ = lost_;
  } else {
    ++lost_;
  }
}

bool LogFile::WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      Note(errno);
      return false;
    }
    size_ += count;
    torn_ = static_cast<size_t>(count) < bytes.size();
    bytes.remove_prefix(count);
  }
  return true;
}

// If a file cannot be renamed or the next one cannot be made, the full one grows on, and it is tried again with each
// line: too much is better than nothing.
void LogFile::Rotate() {
  const auto old = [&](int number) { return name_ + "." + std::to_string(number); };
  if (!moved_) {
    for (int number = std::max(limits_.old_files, 1) - 1; number > 0; --number)
      renameat(folder_, old(number).c_str(), folder_, old(number + 1).c_str());
    if (renameat(folder_, name_.c_str(), folder_, old(1).c_str()) != 0 && errno != ENOENT) return;
    moved_ = true;
  }
  const int next = OpenIn(folder_, name_);
  if (next < 0) return;
  close(file_);
  file_ = next;
  size_ = 0;
  torn_ = moved_ = false;
}

void LogFile::Note(int error) { problem_ = WhyNotWritten(error); }

}  // namespace planwright
