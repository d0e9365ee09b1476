#include "planner/run/outcome/last_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "planner/base/files/log_file.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

constexpr size_t kLines = 10;       // of each file
constexpr size_t kLongest = 1000;   // bytes of a line
constexpr off_t kTail = 64 * 1024;  // bytes of a file that are looked at

// The last bytes of a plain file, from the begin of a line if there is one; empty for anything else.
std::string TailOf(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hold us up
  if (fd < 0) return "";
  std::string bytes;
  struct stat about {};
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
    const off_t from = std::max<off_t>(about.st_size - kTail, 0);
    bytes.resize(static_cast<size_t>(about.st_size - from));
    const ssize_t count = pread(fd, bytes.data(), bytes.size(), from);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    const size_t begin = bytes.find('\n');
    if (from > 0 && begin != std::string::npos) bytes.erase(0, begin + 1);
  }
  close(fd);
  return bytes;
}

std::string ForPeople(std::string line) {
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line.size() <= kLongest ? Printable(line) : Printable(line.substr(0, kLongest)) + "...";
}

std::vector<std::string> LinesOf(const std::string& bytes) {
  std::vector<std::string> lines;
  for (size_t from = 0; from < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', from), bytes.size());
    lines.push_back(ForPeople(bytes.substr(from, end - from)));
    from = end + 1;
  }
  return lines;
}

}  // namespace

// A log that has just begun a new file has most of its last lines in the one before.
std::vector<std::string> LastLinesOfFile(const std::string& path) {
  std::vector<std::string> lines = LinesOf(TailOf(path));
  if (lines.size() < kLines) {
    std::vector<std::string> before = LinesOf(TailOf(path + ".1"));
    before.insert(before.end(), std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
    lines = std::move(before);
  }
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  return lines;
}

std::vector<LastLines> LastLinesOf(const std::string& run_dir, int rank) {
  LastLines log{"logs/" + RankLogName(rank)}, output{"logs/" + RankOutputName(rank)};
  log.lines = LastLinesOfFile(run_dir + "/" + log.file);
  output.lines = LastLinesOfFile(run_dir + "/" + output.file);
  // A rank that ends by itself logs its message and prints it.
  std::erase_if(output.lines, [&](const std::string& line) {
    return std::any_of(log.lines.begin(), log.lines.end(),
                       [&](const std::string& logged) { return logged.ends_with(line); });
  });
  std::vector<LastLines> found;
  for (LastLines* file : {&log, &output}) {
    if (!file->lines.empty()) found.push_back(std::move(*file));
  }
  return found;
}

}  // namespace planwright
