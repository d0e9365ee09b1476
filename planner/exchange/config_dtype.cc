#include "planner/exchange/config_dtype.h"

#include <algorithm>
#include <utility>

namespace planwright {
namespace {

constexpr std::string_view kTorch = "torch.";

// The end of the text that begins with a quote at `at`: behind its closing quote.
size_t EndOfText(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return std::min(at + 1, text.size());
}

// Bits of a word or of a type of a header, and which of two kinds of 16 bits: numbers of bf16 are no numbers of fp16.
struct Width {
  int bits = 0;  // 0: it is no floating point
  bool half = false;
};
Width WidthOf(std::string_view name) {
  if (name == "bfloat16" || name == "BF16") return {16, false};
  if (name == "float16" || name == "half" || name == "F16") return {16, true};
  if (name == "float32" || name == "float" || name == "F32") return {32, false};
  if (name == "float64" || name == "double" || name == "F64") return {64, false};
  return {};
}

}  // namespace

std::string TorchName(DType dtype) {
  switch (dtype) {
    case DType::kBf16: return "bfloat16";
    case DType::kFp32: return "float32";
    case DType::kFp64: return "float64";
    case DType::kInt64: break;
  }
  return "";
}

std::string WordForBoth(const std::string& word, std::string_view header_type) {
  const Width own = WidthOf(word), other = WidthOf(header_type);
  if (own.bits == 0 || other.bits == 0 || other.bits < own.bits) return word;
  if (other.bits > own.bits) return other.bits == 32 ? "float32" : "float64";
  return own.half == other.half ? word : "float32";
}

std::vector<DtypeWord> DtypeWords(std::string_view text) {
  struct Level {
    bool object = false;
    std::string_view key = {};  // of the value that comes next
    bool at_value = false;
  };
  std::vector<Level> levels;
  std::vector<DtypeWord> words;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[') {
      levels.push_back({.object = c == '{'});
    } else if (c == '}' || c == ']') {
      if (!levels.empty()) levels.pop_back();
    } else if (c == ':' && !levels.empty()) {
      levels.back().at_value = true;
    } else if (c == ',' && !levels.empty()) {
      levels.back().at_value = false;
    } else if (c == '"') {
      const size_t end = EndOfText(text, at);
      const std::string_view inner = text.substr(at + 1, end - at - 2);
      at = end - 1;
      if (levels.empty() || !levels.back().object) continue;
      if (!levels.back().at_value) {
        levels.back().key = inner;
        continue;
      }
      const std::string_view key = levels.back().key;
      const bool near = levels.size() == 1 || (levels.size() == 2 && levels[0].object);
      if (!near || (key != "dtype" && key != "torch_dtype")) continue;
      const size_t prefix = inner.starts_with(kTorch) ? kTorch.size() : 0;
      words.push_back({.part = levels.size() == 1 ? "" : std::string(levels[0].key),
                       .first = end - 1 - inner.size() + prefix,
                       .end = end - 1,
                       .word = std::string(inner.substr(prefix))});
    }
  }
  return words;
}

std::string WithDtypeWords(const std::string& text, const std::string& whole, const std::string& own,
                           const std::set<std::string>& parts) {
  std::string changed = text;
  std::vector<DtypeWord> words = DtypeWords(text);
  std::reverse(words.begin(), words.end());  // from the end on, so that places stay
  for (const DtypeWord& word : words) {
    if (word.part.empty()) changed.replace(word.first, word.end - word.first, whole);
    if (parts.contains(word.part)) changed.replace(word.first, word.end - word.first, own);
  }
  return changed;
}

}  // namespace planwright
