#include "planner/show/table.h"

#include <algorithm>

#include "planner/plan/plan.h"

namespace planwright {
namespace {

bool IsNumber(const std::string& cell) {
  return cell.empty() || (cell.find_first_not_of("0123456789.,-+e%") == std::string::npos && cell != "-");
}

std::string RangeText(const RankRange& range) {
  const int last = range.first + (range.count - 1) * range.stride;
  if (range.count == 1) return std::to_string(range.first);
  std::string text = std::to_string(range.first) + (range.count == 2 && range.stride > 1 ? ", " : "-") + std::to_string(last);
  if (range.stride > 1 && range.count > 2) text += " by " + std::to_string(range.stride);
  return text;
}

}  // namespace

size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

std::string PadRight(const std::string& text, size_t width) {
  const size_t shown = Width(text);
  return shown < width ? text + std::string(width - shown, ' ') : text;
}

std::string Table::Text(const std::string& indent) const {
  const size_t columns = rows_[0].size();
  std::vector<size_t> widths(columns);
  std::vector<bool> right(columns, rows_.size() > 1);
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], Width(rows_[r][c]));
      if (r > 0 && !IsNumber(rows_[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line = indent;
    for (size_t c = 0; c < columns; ++c) {
      if (c > 0) line += "  ";
      line += right[c] ? std::string(widths[c] - Width(row[c]), ' ') + row[c] : PadRight(row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string RanksText(const std::vector<int>& ranks, size_t most) {
  const std::vector<RankRange> ranges = Compress(ranks);
  std::string text;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.size() > most && i == most - 1) return text + ", ... " + std::to_string(ranks.back());
    text += (i > 0 ? ", " : "") + RangeText(ranges[i]);
  }
  return text;
}

std::string WithCommas(int64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) text.insert(at, ",");
  return text;
}

}  // namespace planwright
