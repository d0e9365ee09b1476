#include "planner/data/samples/shard_list.h"

#include <absl/strings/str_cat.h>
#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/data/samples/brace_pattern.h"
#include "planner/plan/remote_names.h"

namespace planwright {
namespace {

constexpr size_t kLongestPath = PATH_MAX - 1;
constexpr int64_t kMostNameBytes = int64_t{1} << 28;  // of all names of a pattern
// The matcher calls itself for each of them.
constexpr int64_t kMostGlobFolders = 64;

absl::Status Wrong(const std::string& pattern, const std::string& what) {
  constexpr size_t kMostQuoted = 200;
  size_t end = std::min(pattern.size(), kMostQuoted);
  while (end < pattern.size() && end > 0 && (pattern[end] & 0xC0) == 0x80) --end;  // not inside a character
  const std::string shown = end < pattern.size() ? pattern.substr(0, end) + "..." : pattern;
  return absl::InvalidArgumentError(absl::StrCat("shards ", shown, ": ", what));
}

absl::Status TooMany(const std::string& pattern) {
  return Wrong(pattern, absl::StrCat("it names more than ", kMostShards, " files"));
}

absl::StatusOr<BracePattern> ParsePattern(const std::string& pattern) {
  if (pattern.empty()) return absl::InvalidArgumentError("shards: an empty name");
  if (const std::string why = NotMounted(pattern); !why.empty()) return Wrong(pattern, why);
  absl::StatusOr<BracePattern> parsed = BracePattern::Parse(pattern);
  if (!parsed.ok()) return Wrong(pattern, std::string(parsed.status().message()));
  if (parsed->count() > kMostShards) return TooMany(pattern);
  if (parsed->longest() > kLongestPath)
    return Wrong(pattern, absl::StrCat("it names a file whose path is longer than ", kLongestPath, " bytes"));
  if (parsed->count() * static_cast<int64_t>(parsed->longest()) > kMostNameBytes)
    return Wrong(pattern, absl::StrCat("its names are longer than ", kMostNameBytes, " bytes together"));
  return parsed;
}

bool HasGlob(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

// The base is a folder, not a pattern.
std::string WithoutGlobs(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// What glob() reads of folders, up to a limit: it has no way to tell its functions more than this.
thread_local int64_t entries_left = 0;
thread_local bool entries_cut = false;

dirent* NextEntry(void* folder) {
  if (entries_left <= 0) {
    entries_cut = true;
    errno = 0;
    return nullptr;
  }
  dirent* entry = readdir(static_cast<DIR*>(folder));
  entries_left -= entry != nullptr;
  return entry;
}

// Adds the files that match, and counts down what is read of folders.
absl::Status AddMatches(const std::string& base, const std::string& pattern, const std::string& text, int64_t& entries,
                        FirstShards& into) {
  for (size_t open = text.find('['); open != std::string::npos; open = text.find('[', open + 1)) {
    if (text.find(']', open + 2) == std::string::npos) return Wrong(pattern, "a [ without its ]");
  }
  const auto first = text.begin() + static_cast<std::ptrdiff_t>(text.find_first_of("*?["));
  if (std::count(first, text.end(), '/') > kMostGlobFolders)
    return Wrong(pattern, absl::StrCat("more than ", kMostGlobFolders, " folders behind its first * ? or ["));
  const bool relative = !base.empty() && !text.starts_with('/');
  const std::string prefix = relative ? base + "/" : "";
  glob_t found{};
  found.gl_opendir = [](const char* name) { return static_cast<void*>(opendir(name)); };
  found.gl_readdir = NextEntry;
  found.gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
  found.gl_stat = [](const char* name, struct stat* into_stat) { return stat(name, into_stat); };
  found.gl_lstat = [](const char* name, struct stat* into_stat) { return lstat(name, into_stat); };
  entries_left = entries, entries_cut = false;
  const int failed = glob((WithoutGlobs(prefix) + text).c_str(), GLOB_ERR | GLOB_ALTDIRFUNC, nullptr, &found);
  const int error = errno;
  entries = entries_left;
  into.all = into.all && !entries_cut;
  for (size_t i = 0; failed == 0 && i < found.gl_pathc; ++i)
    into.files.push_back(std::string(found.gl_pathv[i]).substr(prefix.size()));
  globfree(&found);
  // A folder that is not there has no files.
  if (failed == 0 || failed == GLOB_NOMATCH || (failed == GLOB_ABORTED && error == ENOENT)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("shards ", pattern, ": its folders cannot be listed: ",
                                             failed == GLOB_NOSPACE ? "out of memory" : std::strerror(error)));
}

}  // namespace

absl::StatusOr<int64_t> CountShardNames(const std::string& pattern) {
  const absl::StatusOr<BracePattern> parsed = ParsePattern(pattern);
  if (!parsed.ok()) return parsed.status();
  return parsed->count();
}

absl::StatusOr<FirstShards> FirstShardsOf(const std::string& base, const std::string& pattern, ShardLimit& left) {
  const absl::StatusOr<BracePattern> parsed = ParsePattern(pattern);
  if (!parsed.ok()) return parsed.status();
  const auto most = static_cast<size_t>(std::max<int64_t>(0, left.names));
  FirstShards first;
  absl::Status status;
  parsed->EachName([&](const std::string& name) {
    const bool glob = HasGlob(name);
    if (left.names <= 0 || first.files.size() >= most || (glob && left.entries <= 0)) return first.all = false;
    --left.names;
    if (!glob) {
      first.files.push_back(name);
      return true;
    }
    status = AddMatches(base, pattern, name, left.entries, first);
    return status.ok();
  });
  if (!status.ok()) return status;
  std::vector<std::string>& files = first.files;
  if (static_cast<int64_t>(files.size()) > kMostShards) return TooMany(pattern);
  if (files.empty() && first.all)
    return absl::NotFoundError(absl::StrCat("shards ", pattern, ": no file matches ", ResolvePath(base, pattern)));
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return first;
}

absl::StatusOr<std::vector<std::string>> ExpandShards(const std::string& base, const std::string& pattern) {
  ShardLimit none = {.names = kMostShards + 1, .entries = std::numeric_limits<int64_t>::max()};
  absl::StatusOr<FirstShards> all = FirstShardsOf(base, pattern, none);
  if (!all.ok()) return all.status();
  return std::move(all->files);
}

absl::StatusOr<std::vector<std::string>> ExpandAllShards(const std::string& base,
                                                         const std::vector<std::string>& patterns) {
  int64_t names = 0;
  for (const std::string& pattern : patterns) {
    const absl::StatusOr<int64_t> count = CountShardNames(pattern);
    if (!count.ok()) return count.status();
    if ((names += *count) > kMostShards)
      return absl::InvalidArgumentError(absl::StrCat("shards: they name more than ", kMostShards, " files"));
  }
  std::vector<std::string> all;
  std::map<std::string, size_t> named_by;  // the path without detours; the pattern that named it
  for (size_t i = 0; i < patterns.size(); ++i) {
    absl::StatusOr<std::vector<std::string>> files = ExpandShards(base, patterns[i]);
    if (!files.ok()) return files.status();
    for (std::string& file : *files) {
      const std::string plain = std::filesystem::path(ResolvePath(base, file)).lexically_normal().string();
      const auto [found, is_new] = named_by.try_emplace(plain, i);
      if (!is_new) {
        return absl::InvalidArgumentError(
            absl::StrCat("shards: ", file, " is named twice: by ", patterns[found->second], " and by ", patterns[i]));
      }
      all.push_back(std::move(file));
    }
  }
  return all;
}

}  // namespace planwright
