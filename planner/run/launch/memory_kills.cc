#include "planner/run/launch/memory_kills.h"

#include <fstream>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace planwright {
namespace {

// The number after `key` in a file of lines "KEY NUMBER".
std::optional<int64_t> NumberIn(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    int64_t number = 0;
    if (words.size() == 2 && words[0] == key && absl::SimpleAtoi(words[1], &number)) return number;
  }
  return std::nullopt;
}

// " (limit 2.15 GB)"; empty: there is none. Version 1 says "no limit" by a number near 2^63.
std::string LimitText(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  int64_t bytes = 0;
  if (!std::getline(file, text) || !absl::SimpleAtoi(text, &bytes) || bytes > (int64_t{1} << 60)) return "";
  return absl::StrFormat(" (limit %.3g GB)", static_cast<double>(bytes) / 1e9);
}

struct MemoryCgroup {
  std::string name;                     // "/job_7"
  std::string mount;                    // where the controller is
  const char *kills = "", *limit = "";  // names of files
};

// Lines of /proc/self/cgroup are "4:memory:/job_7", and "0::/job_7" of version 2. A system may have both; then the one
// that has the memory controller counts.
std::optional<MemoryCgroup> OwnMemoryCgroup(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::optional<MemoryCgroup> unified;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    for (const std::string& controller : std::vector<std::string>(absl::StrSplit(parts[1], ','))) {
      if (controller == "memory")
        return MemoryCgroup{parts[2], root + "/sys/fs/cgroup/memory", "/memory.oom_control", "/memory.limit_in_bytes"};
    }
    if (parts[0] == "0") unified = MemoryCgroup{parts[2], root + "/sys/fs/cgroup", "/memory.events", "/memory.max"};
  }
  return unified;
}

}  // namespace

MemoryKills ReadMemoryKills(const std::string& root) {
  if (const std::optional<MemoryCgroup> own = OwnMemoryCgroup(root)) {
    // A container may see its own cgroup as the top of the tree, but know it by its name outside.
    for (const std::string& folder : {own->mount + own->name, own->mount}) {
      if (const std::optional<int64_t> count = NumberIn(folder + own->kills, "oom_kill"))
        return {*count, absl::StrCat("the cgroup ", own->name, LimitText(folder + own->limit))};
    }
  }
  if (const std::optional<int64_t> count = NumberIn(root + "/proc/vmstat", "oom_kill")) return {*count, "this machine"};
  return {};
}

}  // namespace planwright
