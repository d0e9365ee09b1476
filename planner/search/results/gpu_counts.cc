#include "planner/search/results/gpu_counts.h"

#include <charconv>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace planwright {
namespace {

constexpr int64_t kMostGpus = 1'000'000;
constexpr size_t kMostCounts = 64;

std::optional<int64_t> CountOf(const std::string& text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kMostGpus) return std::nullopt;
  return count;
}

absl::Status Wrong(const std::string& text, const std::string& found) {
  return absl::InvalidArgumentError(absl::StrCat("option `--gpus` needs N, N,M,... or MIN..MAX, numbers from 1 to ",
                                                 kMostGpus, "; found `", found, "`",
                                                 found == text ? "" : absl::StrCat(" in `", text, "`")));
}

}  // namespace

absl::StatusOr<GpuCounts> ReadGpuCounts(const std::string& text) {
  if (const size_t dots = text.find(".."); dots != std::string::npos) {
    const std::optional<int64_t> least = CountOf(text.substr(0, dots)), most = CountOf(text.substr(dots + 2));
    if (!least || !most) return Wrong(text, text);
    if (*least >= *most) {
      return absl::InvalidArgumentError(
          absl::StrCat("option `--gpus` needs a range from few to many; found `", text, "`"));
    }
    GpuCounts range{GpuCounts::Form::kRange, {}};
    for (int64_t count = *least; count < *most; count *= 2) range.counts.push_back(count);
    range.counts.push_back(*most);
    return range;
  }
  GpuCounts list;
  std::set<int64_t> known;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::optional<int64_t> count = CountOf(word);
    if (!count) return Wrong(text, word);
    if (!known.insert(*count).second)
      return absl::InvalidArgumentError(absl::StrCat("option `--gpus` names ", *count, " twice"));
    list.counts.push_back(*count);
  }
  if (list.counts.size() > kMostCounts) {
    return absl::InvalidArgumentError(
        absl::StrCat("option `--gpus` names ", list.counts.size(), " numbers; at most ", kMostCounts, " are searched"));
  }
  if (list.counts.size() > 1) list.form = GpuCounts::Form::kList;
  return list;
}

absl::Status CheckWholeNodes(const std::vector<int64_t>& counts, int64_t node) {
  std::vector<int64_t> wrong;
  for (const int64_t count : counts) {
    if (count > node && count % node != 0) wrong.push_back(count);
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("option `--gpus`: ", absl::StrJoin(wrong, ", "),
                                                 " GPUs are not whole nodes of ", node, " (cluster.gpus_per_node)"));
}

}  // namespace planwright
