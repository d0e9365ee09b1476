// Text for the terminal: tables, wrapped lines and numbers. Widths are characters, of UTF-8 text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace planwright {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // One line for each row, columns two spaces apart. A column of numbers (its header aside) is aligned to the right. If
  // the table is wider than `width` characters (0: any width), the words of its last column wrap. If that is not
  // enough, it is cut into pieces, one below the other, that all begin with the first column.
  std::string Text(const std::string& indent = "", size_t width = 0) const;

 private:
  struct Layout {
    std::vector<size_t> widths;
    std::vector<bool> right;
  };
  Layout Measured() const;
  // The first column, and columns [first, end).
  std::string Piece(const Layout& layout, size_t first, size_t end, const std::string& indent, size_t width) const;

  std::vector<std::vector<std::string>> rows_;
};

// Characters that `text` (UTF-8) shows.
size_t Width(const std::string& text);
std::string PadRight(const std::string& text, size_t width);

// One line as lines of at most `width` characters, broken at spaces. Lines after the first begin with `indent` spaces.
// A word longer than a line stays whole. No newline at the end.
std::string Wrapped(const std::string& line, size_t width, size_t indent = 0);

// 11515677504 -> "11,515,677,504"
std::string WithCommas(int64_t number);

// "1 rank", "1,024 ranks"
std::string Counted(int64_t number, const std::string& noun);

}  // namespace planwright
