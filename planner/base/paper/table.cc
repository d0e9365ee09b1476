#include "planner/base/paper/table.h"

#include <algorithm>

namespace planwright {
namespace {

// An empty cell may stand in a column of numbers, a lone "-" is a word.
bool IsNumber(const std::string& cell) {
  return cell.empty() || (cell.find_first_not_of("0123456789.,-+e%") == std::string::npos && cell != "-");
}

}  // namespace

size_t Width(const std::string& text) {
  // Every byte counts except the second to last of a character (10xxxxxx in UTF-8). Double-width characters count once.
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

std::string PadRight(const std::string& text, size_t width) {
  const size_t shown = Width(text);
  return shown < width ? text + std::string(width - shown, ' ') : text;
}

std::string Wrapped(const std::string& line, size_t width, size_t indent) {
  std::string text, current;
  size_t at = line.find_first_not_of(' ');
  if (at == std::string::npos) return line;
  current = line.substr(0, at);
  bool empty = true;  // no word on the current line yet
  while (at < line.size()) {
    const size_t end = std::min(line.find(' ', at), line.size()),
                 next = std::min(line.find_first_not_of(' ', end), line.size());
    const std::string word = line.substr(at, end - at);
    if (!empty && Width(current) + Width(word) > width) {
      current.erase(current.find_last_not_of(' ') + 1);
      text += current + "\n";
      current.assign(indent, ' ');
    }
    current += word + line.substr(end, next - end);
    empty = false;
    at = next;
  }
  current.erase(current.find_last_not_of(' ') + 1);
  return text + current;
}

Table::Layout Table::Measured() const {
  Layout layout{std::vector<size_t>(rows_[0].size()), std::vector<bool>(rows_[0].size(), rows_.size() > 1)};
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      layout.widths[c] = std::max(layout.widths[c], Width(rows_[r][c]));
      if (r > 0 && !IsNumber(rows_[r][c])) layout.right[c] = false;
    }
  }
  return layout;
}

std::string Table::Piece(const Layout& layout, size_t first, size_t end, const std::string& indent,
                         size_t width) const {
  size_t others = Width(indent) + layout.widths[0];  // of all in front of the piece's last column
  for (size_t c = first; c < end; ++c) others += 2 + (c + 1 < end ? layout.widths[c] : 0);
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line = indent;
    for (size_t c = 0; c < end; ++c) {
      if (c > 0 && c < first) continue;
      if (c > 0) line += "  ";
      const std::string gap(layout.widths[c] - Width(row[c]), ' ');
      line += layout.right[c] ? gap + row[c] : row[c] + gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (width > 0 && Width(line) > width ? Wrapped(line, width, others) : line) + "\n";
  }
  return text;
}

std::string Table::Text(const std::string& indent, size_t width) const {
  constexpr size_t kLeastWords = 32;  // the last column is not wrapped to less
  const Layout layout = Measured();
  const size_t columns = layout.widths.size();
  // The last column can wrap, so it needs less than its width.
  const auto needed = [&](size_t c) {
    return c + 1 == columns ? std::min(layout.widths[c], kLeastWords) : layout.widths[c];
  };
  std::string text;
  for (size_t first = 1, end = 1; first < columns || text.empty(); first = end) {
    for (size_t reached = Width(indent) + layout.widths[0]; end < columns; ++end) {
      reached += 2 + needed(end);
      if (width > 0 && reached > width && end > first) break;  // every piece has one column besides the first
    }
    text += (text.empty() ? "" : "\n") + Piece(layout, first, end, indent, width);
  }
  return text;
}

std::string Counted(int64_t number, const std::string& noun) {
  return WithCommas(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string WithCommas(int64_t number) {
  std::string text = std::to_string(number);
  // From the right, and never between a minus and the first digit.
  for (int at = static_cast<int>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) text.insert(at, ",");
  return text;
}

}  // namespace planwright
