// Columns of text for the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace planwright {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // One line a row, columns two spaces apart; a column whose every cell but the header is a number is aligned to the right.
  std::string Text(const std::string& indent = "") const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Characters that `text` (UTF-8) shows.
size_t Width(const std::string& text);
std::string PadRight(const std::string& text, size_t width);

// "0-3, 8, 10-14 by 2"; the middle is left out beyond `most` runs.
std::string RanksText(const std::vector<int>& ranks, size_t most = 6);

// 11515677504 -> "11,515,677,504"
std::string WithCommas(int64_t number);

}  // namespace planwright
