#include "planner/plan/value_type.h"

#include <charconv>
#include <iterator>

#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"

namespace planwright {
namespace {

using State = AxisLayout::State;

// In the order of DType.
constexpr std::string_view kDTypeNames[] = {"int64", "fp32", "fp64", "bf16"};
constexpr int64_t kDTypeBytes[] = {8, 4, 8, 2};

template <typename Int>
bool ReadInteger(std::string_view text, Int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Calls visit(word) for each word between separators, also for empty ones, until it returns false. Returns false if
// some call did.
template <typename Visit>
bool VisitWords(std::string_view text, char separator, Visit visit) {
  for (;;) {
    const size_t end = text.find(separator);
    if (!visit(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

void AppendLayout(const Layout& layout, std::string& text) {
  for (const auto& [axis, state] : layout) {
    ((text += ' ') += AxisName(axis)) += ':';
    switch (state.state) {
      case State::kReplicated: text += "replicated"; break;
      case State::kSharded: (text += state.zigzag ? "zigzag" : "shard") += std::to_string(state.dim); break;
      case State::kPartial: text += "partial"; break;
    }
  }
}

// "tp:shard0". An axis that is named twice is an error.
bool ReadAxisLayout(std::string_view word, Layout& layout) {
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos) return false;
  const std::optional<Axis> axis = AxisFromName(word.substr(0, colon));
  std::string_view state = word.substr(colon + 1);
  AxisLayout result;
  if (state == "partial") {
    result.state = State::kPartial;
  } else if (state.starts_with("shard") || state.starts_with("zigzag")) {
    result.state = State::kSharded;
    result.zigzag = state.starts_with("zigzag");
    if (!ReadInteger(state.substr(result.zigzag ? 6 : 5), result.dim) || result.dim < 0) return false;
  } else if (state != "replicated") {
    return false;
  }
  return axis && layout.emplace(*axis, result).second;
}

// Symbols stand between commas and brackets, so they may not contain any.
bool IsOneWord(std::string_view symbol) {
  return !symbol.empty() && symbol.find_first_of(",[] ") == std::string_view::npos;
}

bool ReadDims(std::string_view text, std::vector<Dim>& dims) {
  if (text.empty()) return true;
  return VisitWords(text, ',', [&](std::string_view word) {
    if (int64_t size = 0; ReadInteger(word, size)) {
      if (size > kLargestDim || size < -kLargestDim) return false;
      dims.emplace_back(size);
    } else {
      dims.emplace_back(std::string(word));
    }
    return IsOneWord(word);
  });
}

void AppendType(const ValueType& type, std::string& text) {
  (text += DTypeName(type.dtype)) += '[';
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (i > 0) text += ',';
    if (const auto* size = std::get_if<int64_t>(&type.dims[i])) {
      text += std::to_string(*size);
    } else {
      const std::string& symbol = std::get<std::string>(type.dims[i]);
      if (!IsOneWord(symbol)) Bug("a dim's symbol is not one word: " + symbol);
      text += symbol;
    }
  }
  text += ']';
  if (type.host) text += " host";
  AppendLayout(type.layout, text);
  if (type.gradient) AppendLayout(*type.gradient, text += " |");
}

}  // namespace

std::string_view DTypeName(DType dtype) { return kDTypeNames[static_cast<int>(dtype)]; }
int64_t DTypeBytes(DType dtype) { return kDTypeBytes[static_cast<int>(dtype)]; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kDTypeNames); ++i) {
    if (kDTypeNames[i] == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::string TypeText(const ValueType& type) {
  std::string text;
  AppendType(type, text);
  return text;
}

std::optional<ValueType> TypeFromText(std::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ValueType type;
  const std::optional<DType> dtype = DTypeFromName(text.substr(0, open));
  if (!dtype || !ReadDims(text.substr(open + 1, close - open - 1), type.dims)) return std::nullopt;
  type.dtype = *dtype;
  std::string_view rest = text.substr(close + 1);
  if (rest.empty()) return type;
  if (rest[0] != ' ') return std::nullopt;
  // After the dims, in this order: "host", the layout of the value, and behind "|" the layout of the gradient.
  const bool good = VisitWords(rest.substr(1), ' ', [&](std::string_view word) {
    if (word == "|" && !type.gradient) {
      type.gradient.emplace();
      return true;
    }
    if (word == "host" && !type.host && type.layout.empty() && !type.gradient) return type.host = true;
    return ReadAxisLayout(word, type.gradient ? *type.gradient : type.layout);
  });
  return good ? std::optional(type) : std::nullopt;
}

std::string OutputText(const Output& output) {
  if (output.name.find(": ") != std::string::npos) Bug("a value's name contains a colon: " + output.name);
  std::string text = output.name + ": ";
  AppendType(output.type, text);
  return text;
}

std::optional<Output> OutputFromText(std::string_view text) {
  const size_t colon = text.find(": ");  // the first one ends the name: OutputText allows none in it
  if (colon == std::string_view::npos) return std::nullopt;
  std::optional<ValueType> type = TypeFromText(text.substr(colon + 2));
  if (!type) return std::nullopt;
  return Output{std::string(text.substr(0, colon)), *std::move(type)};
}

}  // namespace planwright
