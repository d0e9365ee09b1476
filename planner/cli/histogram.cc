#include "planner/cli/histogram.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"

namespace planwright {
namespace {

constexpr int64_t kBarLength = 40;  // of the most frequent bin

double Mean(const std::vector<int64_t>& values) {
  if (values.empty()) return 0;
  return static_cast<double>(std::accumulate(values.begin(), values.end(), int64_t{0})) /
         static_cast<double>(values.size());
}

}  // namespace

std::vector<HistogramBin> BinsOf(const std::vector<int64_t>& values) {
  if (values.empty()) return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const int64_t width = (*most - *least) / kHistogramBins + 1;
  std::vector<HistogramBin> bins;
  for (int64_t first = *least; first <= *most; first += width)
    bins.push_back({first, std::min(first + width - 1, *most), 0});
  for (int64_t value : values) ++bins[(value - *least) / width].count;
  return bins;
}

std::string HistogramText(const std::string& title, const std::vector<int64_t>& values) {
  const std::vector<HistogramBin> bins = BinsOf(values);
  if (bins.empty()) return "";
  int64_t most = 1;
  size_t width = 0, count_width = 0;
  std::vector<std::string> ranges, counts;
  for (const HistogramBin& bin : bins) {
    most = std::max(most, bin.count);
    ranges.push_back(bin.first == bin.last ? WithCommas(bin.first)
                                           : WithCommas(bin.first) + " to " + WithCommas(bin.last));
    counts.push_back(WithCommas(bin.count));
    width = std::max(width, ranges.back().size());
    count_width = std::max(count_width, counts.back().size());
  }
  std::string text = absl::StrFormat("%s: %s, mean %.1f, largest %s\n", title, WithCommas(values.size()), Mean(values),
                                     WithCommas(bins.back().last));
  for (size_t i = 0; i < bins.size(); ++i) {
    absl::StrAppend(&text, "  ", PadRight(ranges[i], width), "  ", std::string(count_width - counts[i].size(), ' '),
                    counts[i]);
    // Whatever comes has a bar, however short.
    const int64_t bar = bins[i].count == 0 ? 0 : std::max<int64_t>(1, bins[i].count * kBarLength / most);
    if (bar > 0) text += "  ";
    for (int64_t k = 0; k < bar; ++k) text += "█";
    text += "\n";
  }
  return text;
}

nlohmann::ordered_json HistogramJson(const std::vector<int64_t>& values) {
  nlohmann::ordered_json bins = nlohmann::ordered_json::array();
  for (const HistogramBin& bin : BinsOf(values))
    bins.push_back({{"first", bin.first}, {"last", bin.last}, {"count", bin.count}});
  const int64_t largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  return {{"values", values.size()}, {"mean", Mean(values)}, {"largest", largest}, {"bins", std::move(bins)}};
}

}  // namespace planwright
