#include "planner/recipe/format/line_diff.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"

namespace planwright {

std::string LineDiff(const std::string& from, const std::string& to) {
  const std::vector<std::string> a = absl::StrSplit(from, '\n'), b = absl::StrSplit(to, '\n');
  size_t first = 0, a_end = a.size(), b_end = b.size();
  while (first < a_end && first < b_end && a[first] == b[first]) ++first;
  while (a_end > first && b_end > first && a[a_end - 1] == b[b_end - 1]) --a_end, --b_end;
  const size_t n = a_end - first, m = b_end - first;
  // common[i][j]: lines that the rest of both from i and j on have in common. Beyond some size all counts as changed.
  constexpr size_t kMostLines = 4'000;
  const bool whole = n > kMostLines || m > kMostLines;
  std::vector<std::vector<uint16_t>> common(whole ? 0 : n + 1, std::vector<uint16_t>(m + 1, 0));
  for (size_t i = whole ? 0 : n; i-- > 0;) {
    for (size_t j = m; j-- > 0;) {
      common[i][j] = a[first + i] == b[first + j] ? static_cast<uint16_t>(common[i + 1][j + 1] + 1)
                                                  : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string text;
  bool in_change = false;
  for (size_t i = 0, j = 0; i < n || j < m;) {
    if (!whole && i < n && j < m && a[first + i] == b[first + j]) {
      ++i, ++j;
      in_change = false;
      continue;
    }
    if (!in_change) Append(text, "@@ line ", first + i + 1, " @@\n");
    in_change = true;
    if (j == m || (i < n && (whole || common[i + 1][j] >= common[i][j + 1]))) {
      Append(text, "-", a[first + i++], "\n");
    } else {
      Append(text, "+", b[first + j++], "\n");
    }
  }
  return text;
}

std::string DiffToRead(const std::string& diff, const std::string& text) {
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', end + 1)) {
    if (end == 0 || text[end - 1] != '\r') return diff;
  }
  return absl::StrReplaceAll(diff, {{"\r\n", "\n"}});
}

}  // namespace planwright
