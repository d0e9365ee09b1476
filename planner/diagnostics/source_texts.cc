#include "planner/diagnostics/source_texts.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace planwright {
namespace {

constexpr uintmax_t kLargestFile = 16 << 20;  // a message is not worth reading more

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  for (std::string& line : lines) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
  }
  return lines;
}

std::vector<std::string> ReadLines(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) > kLargestFile)
    return {};
  std::ifstream in(file, std::ios::binary);
  return SplitLines(std::string(std::istreambuf_iterator<char>(in), {}));
}

}  // namespace

void SourceTexts::Add(const std::string& name, const std::string& text) { lines_[name] = SplitLines(text); }

const std::string* SourceTexts::Line(const std::string& file, int number) {
  auto found = lines_.find(file);
  if (found == lines_.end()) found = lines_.emplace(file, ReadLines(file)).first;
  if (number < 1 || number > static_cast<int>(found->second.size())) return nullptr;
  return &found->second[number - 1];
}

}  // namespace planwright
