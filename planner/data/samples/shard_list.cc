#include "planner/data/samples/shard_list.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "planner/base/files/file_io.h"

namespace planwright {
namespace {

constexpr int kMostBraceLevels = 16;
constexpr size_t kMostRangeDigits = 18;  // so that ends and counts fit 64 bits

absl::Status Wrong(const std::string& pattern, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("shards ", pattern, ": ", what));
}

// Where the brace that opens at `open` closes; npos: nowhere.
size_t ClosingBrace(const std::string& text, size_t open) {
  int level = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++level;
    if (text[i] == '}' && --level == 0) return i;
  }
  return std::string::npos;
}

// The parts between the commas that are in no inner brace.
std::vector<std::string> CommaParts(const std::string& inside) {
  std::vector<std::string> parts(1);
  int level = 0;
  for (char c : inside) {
    if (c == ',' && level == 0) {
      parts.emplace_back();
      continue;
    }
    level += c == '{' ? 1 : c == '}' ? -1 : 0;
    parts.back() += c;
  }
  return parts;
}

bool AllDigits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The numbers of "FIRST..LAST", as texts. An end with a leading zero gives every number its width. nullopt: no range.
std::optional<std::vector<std::string>> RangeParts(const std::string& inside) {
  const size_t dots = inside.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const std::string first = inside.substr(0, dots), last = inside.substr(dots + 2);
  if (!AllDigits(first) || !AllDigits(last) || first.size() > kMostRangeDigits || last.size() > kMostRangeDigits)
    return std::nullopt;
  int64_t begin = 0, end = 0;
  if (!absl::SimpleAtoi(first, &begin) || !absl::SimpleAtoi(last, &end) || end < begin || end - begin >= kMostShards)
    return std::nullopt;
  const bool zeros = (first.size() > 1 && first[0] == '0') || (last.size() > 1 && last[0] == '0');
  const size_t width = zeros ? std::max(first.size(), last.size()) : 0;
  std::vector<std::string> parts;
  for (int64_t number = begin; number <= end; ++number) {
    std::string text = absl::StrCat(number);
    if (text.size() < width) text.insert(0, width - text.size(), '0');
    parts.push_back(std::move(text));
  }
  return parts;
}

absl::Status ExpandBraces(const std::string& pattern, const std::string& text, int level,
                          std::vector<std::string>& into) {
  const size_t open = text.find('{');
  if (open == std::string::npos) {
    if (text.find('}') != std::string::npos) return Wrong(pattern, "a } without its {");
    if (static_cast<int64_t>(into.size()) >= kMostShards)
      return Wrong(pattern, absl::StrCat("it names more than ", kMostShards, " files"));
    into.push_back(text);
    return absl::OkStatus();
  }
  const size_t close = ClosingBrace(text, open);
  if (text.substr(0, open).find('}') != std::string::npos) return Wrong(pattern, "a } without its {");
  if (close == std::string::npos) return Wrong(pattern, "a { without its }");
  if (level >= kMostBraceLevels) return Wrong(pattern, absl::StrCat("more than ", kMostBraceLevels, " braces"));
  const std::string inside = text.substr(open + 1, close - open - 1);
  std::vector<std::string> parts = CommaParts(inside);
  if (parts.size() == 1) {
    std::optional<std::vector<std::string>> range = RangeParts(inside);
    if (!range) {
      return Wrong(pattern, absl::StrCat("{", inside, "} is neither a range of whole numbers that ascends, such as ",
                                         "{000..099}, nor a list {a,b}"));
    }
    parts = *std::move(range);
  }
  for (const std::string& part : parts) {
    const absl::Status status =
        ExpandBraces(pattern, text.substr(0, open) + part + text.substr(close + 1), level + 1, into);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
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

absl::Status AddMatches(const std::string& base, const std::string& pattern, const std::string& text,
                        std::vector<std::string>& into) {
  for (size_t open = text.find('['); open != std::string::npos; open = text.find('[', open + 1)) {
    if (text.find(']', open + 2) == std::string::npos) return Wrong(pattern, "a [ without its ]");
  }
  const bool relative = !base.empty() && !text.starts_with('/');
  const std::string prefix = relative ? base + "/" : "";
  glob_t found{};
  const int failed = glob((WithoutGlobs(prefix) + text).c_str(), GLOB_ERR, nullptr, &found);
  const int error = errno;
  for (size_t i = 0; failed == 0 && i < found.gl_pathc; ++i)
    into.push_back(std::string(found.gl_pathv[i]).substr(prefix.size()));
  globfree(&found);
  // A folder that is not there has no files.
  if (failed == 0 || failed == GLOB_NOMATCH || (failed == GLOB_ABORTED && error == ENOENT)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("shards ", pattern, ": its folders cannot be listed: ",
                                             failed == GLOB_NOSPACE ? "out of memory" : std::strerror(error)));
}

}  // namespace

std::string NotMounted(const std::string& path) {
  if (path.starts_with('~')) return "~ is not read: write the path of the folder";
  const size_t colon = path.find("://");
  if (colon == std::string::npos || path.find('/') < colon) return "";
  return "object stores and URLs are not read: mount the store, and write the path of the file";
}

absl::StatusOr<std::vector<std::string>> ExpandShards(const std::string& base, const std::string& pattern) {
  if (pattern.empty()) return absl::InvalidArgumentError("shards: an empty name");
  if (const std::string why = NotMounted(pattern); !why.empty()) return Wrong(pattern, why);
  std::vector<std::string> texts, files;
  if (absl::Status status = ExpandBraces(pattern, pattern, 0, texts); !status.ok()) return status;
  for (const std::string& text : texts) {
    if (!HasGlob(text)) {
      files.push_back(text);
    } else if (absl::Status status = AddMatches(base, pattern, text, files); !status.ok()) {
      return status;
    }
    if (static_cast<int64_t>(files.size()) > kMostShards)
      return Wrong(pattern, absl::StrCat("it names more than ", kMostShards, " files"));
  }
  if (files.empty())
    return absl::NotFoundError(absl::StrCat("shards ", pattern, ": no file matches ", ResolvePath(base, pattern)));
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

absl::StatusOr<std::vector<std::string>> ExpandAllShards(const std::string& base,
                                                         const std::vector<std::string>& patterns) {
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
