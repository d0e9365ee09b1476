#include "planner/recipe/scalar.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "planner/diagnostics/text.h"

namespace planwright {
namespace {

constexpr std::string_view kRemoveQuotes = "remove the quotes: a value in quotes is text";

bool Fail(ScalarProblem* problem, ScalarProblem what) {
  if (problem != nullptr) *problem = std::move(what);
  return false;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view WithoutSign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

// "010", but not "0" or "0.5".
bool HasLeadingZero(std::string_view digits) {
  return digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
}

// The accepted form of a number: digits [ . digits ] [ e sign digits ]. Neither "1." nor ".5" nor "nan".
bool IsNumber(std::string_view text) {
  text = WithoutSign(text);
  const size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    if (!IsDigits(WithoutSign(text.substr(e + 1)))) return false;
    text = text.substr(0, e);
  }
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return IsDigits(text);
  return IsDigits(text.substr(0, dot)) && IsDigits(text.substr(dot + 1));
}

// How to write what was probably meant: "write 1000000" for 1e6 or 1_000_000.
std::string IntegerHelp(const YamlNode& node) {
  if (!node.is_scalar()) return "";
  if (node.quoted) return IsDigits(WithoutSign(node.text)) ? std::string(kRemoveQuotes) : "";
  if (HasLeadingZero(WithoutSign(node.text)) && IsDigits(WithoutSign(node.text)))
    return "remove the leading zeros: some YAML readers take them for octal";
  const std::string bare = absl::StrReplaceAll(node.text, {{"_", ""}, {",", ""}});
  if (bare != node.text && IsDigits(WithoutSign(bare))) return Cat("write ", bare);
  double value = 0;
  if (IsNumber(node.text) && ReadNumber(node, &value, nullptr) && std::floor(value) == value &&
      std::fabs(value) < 1e15) {  // such integers are exact as doubles
    return Cat("write ", static_cast<int64_t>(value));
  }
  return "";
}

}  // namespace

bool ReadInteger(const YamlNode& node, int64_t* value, ScalarProblem* problem) {
  const std::string_view digits = WithoutSign(node.text);
  if (!node.is_scalar() || node.quoted || !IsDigits(digits) || HasLeadingZero(digits) || node.text[0] == '+') {
    return Fail(problem, {DiagnosticKind::kWrongType, "an integer", IntegerHelp(node)});
  }
  // The form is right, so that only a value out of range can fail here.
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), *value);
  if (error == std::errc()) return true;
  return Fail(problem, {DiagnosticKind::kOutOfRange, "an integer that fits into 64 bits", ""});
}

bool ReadNumber(const YamlNode& node, double* value, ScalarProblem* problem) {
  std::string help;
  if (node.quoted && IsNumber(node.text)) help = kRemoveQuotes;
  if (!node.quoted && HasLeadingZero(WithoutSign(node.text))) help = "remove the leading zeros";
  if (!node.is_scalar() || node.quoted || !IsNumber(node.text) || HasLeadingZero(WithoutSign(node.text)) ||
      node.text[0] == '+') {
    return Fail(problem, {DiagnosticKind::kWrongType, "a number", help});
  }
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), *value);
  if (error == std::errc()) return true;
  return Fail(problem, {DiagnosticKind::kOutOfRange, "a number that a double can hold", ""});
}

bool ReadBool(const YamlNode& node, bool* value, ScalarProblem* problem) {
  if (node.is_scalar() && !node.quoted && (node.text == "true" || node.text == "false")) {
    *value = node.text == "true";
    return true;
  }
  // YAML 1.1 also has yes, no, on and off.
  std::string help;
  if (node.text == "yes" || node.text == "on") help = "write true";
  if (node.text == "no" || node.text == "off") help = "write false";
  return Fail(problem, {DiagnosticKind::kWrongType, "true or false", std::move(help)});
}

bool ReadString(const YamlNode& node, std::string* value, ScalarProblem* problem) {
  // Text that YAML would read as a number or a boolean must be quoted, or one cannot see that it is text.
  const bool looks_otherwise = !node.quoted && (node.text == "true" || node.text == "false" || IsNumber(node.text));
  if (!node.is_scalar() || looks_otherwise) {
    return Fail(problem, {DiagnosticKind::kWrongType, "text", looks_otherwise ? Cat("write \"", node.text, "\"") : ""});
  }
  if (node.text.empty()) return Fail(problem, {DiagnosticKind::kWrongType, "text that is not empty", ""});
  *value = node.text;
  return true;
}

}  // namespace planwright
