#include "planner/base/text/near_name.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

// The distance takes quadratic time, and a longer word is not a typing mistake in a key.
constexpr size_t kLongestName = 100;

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
  // edits[i][j]: edits from the first i letters of `a` to the first j letters of `b`.
  std::vector<std::vector<int>> edits(n + 1, std::vector<int>(m + 1));
  for (int i = 0; i <= n; ++i) edits[i][0] = i;
  for (int j = 0; j <= m; ++j) edits[0][j] = j;
  auto same = [&](int i, int j) { return absl::ascii_tolower(a[i - 1]) == absl::ascii_tolower(b[j - 1]); };
  for (int i = 1; i <= n; ++i) {
    for (int j = 1; j <= m; ++j) {
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + (same(i, j) ? 0 : 1)});
      // two letters are swapped
      if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j))
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[n][m];
}

std::optional<std::string> NearName(std::string_view wrong, const std::vector<std::string>& known) {
  if (wrong.size() > kLongestName) return std::nullopt;
  std::optional<std::string> best;
  int best_edits = 0;
  for (const std::string& name : known) {
    if (name.size() > kLongestName || !IsPrintable(name)) continue;
    const int edits = EditDistance(wrong, name);
    const int allowed = std::max<int>(1, static_cast<int>(std::max(name.size(), wrong.size())) / 3);
    // `>=` keeps the first of equally close names: tables list frequent keys first.
    if (edits > allowed || (best && edits >= best_edits)) continue;
    best = name;
    best_edits = edits;
  }
  return best;
}

std::string NearNameHelp(std::string_view wrong, const std::vector<std::string>& known, std::string otherwise) {
  if (std::optional<std::string> near = NearName(wrong, known)) return Cat("did you mean `", *near, "`?");
  return otherwise;
}

}  // namespace planwright
