#include "planner/recipe/scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

// A longer text is no number that is written in another way.
constexpr size_t kLongestNumber = 64;

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

// A decimal number: digits x 10^exponent.
struct DecimalNumber {
  std::string digits;
  int exponent = 0;
};

std::optional<DecimalNumber> DecimalOf(const std::string& text) {
  const size_t e = text.find_first_of("eE");
  DecimalNumber number;
  if (e != std::string::npos) {
    std::string_view exponent = std::string_view(text).substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), number.exponent);
    if (exponent.empty() || error != std::errc() || end != exponent.data() + exponent.size()) return std::nullopt;
    if (std::abs(number.exponent) > 400) return std::nullopt;
  }
  const std::string mantissa = text.substr(0, e);
  const size_t dot = mantissa.find('.');
  number.digits = mantissa.substr(0, dot);
  if (dot != std::string::npos) {
    number.digits += mantissa.substr(dot + 1);
    number.exponent -= static_cast<int>(mantissa.size() - dot - 1);
  }
  if (!IsDigits(number.digits)) return std::nullopt;
  number.digits.erase(0, std::min(number.digits.find_first_not_of('0'), number.digits.size() - 1));
  return number;
}

// Without an exponent: "0.0003", "10000000". Empty if it is not whole but must be, or has too many digits.
std::string TextOf(DecimalNumber number, bool integer) {
  std::string& digits = number.digits;
  for (; number.exponent < 0 && digits.size() > 1 && digits.back() == '0'; ++number.exponent) digits.pop_back();
  if (digits == "0") return integer ? "0" : "0.0";
  if (std::abs(number.exponent) > 18 || digits.size() > 18 || (integer && number.exponent < 0)) return "";
  if (number.exponent >= 0) return digits + std::string(static_cast<size_t>(number.exponent), '0');
  const auto fraction = static_cast<size_t>(-number.exponent);
  if (digits.size() <= fraction) digits.insert(0, fraction - digits.size() + 1, '0');
  return digits.insert(digits.size() - fraction, ".");
}

// "two" and "two thousand"; 0 if the text is no such number.
int64_t NumberOfWords(const std::string& text) {
  constexpr std::string_view kOnes[] = {"one",   "two",   "three", "four", "five",   "six",
                                        "seven", "eight", "nine",  "ten",  "eleven", "twelve"};
  const std::string lower = absl::AsciiStrToLower(text);
  int64_t value = 0;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(lower, ' ', absl::SkipEmpty()))) {
    const auto one = std::find(std::begin(kOnes), std::end(kOnes), std::string_view(word));
    if (one != std::end(kOnes) && value == 0) {
      value = one - std::begin(kOnes) + 1;
    } else if (value > 0 && value < 1000 && (word == "hundred" || word == "thousand" || word == "million")) {
      value *= word == "hundred" ? 100 : word == "thousand" ? 1000 : 1'000'000;
    } else {
      return 0;
    }
  }
  return value;
}

// What was probably meant, for a help.
ScalarProblem Meant(ScalarProblem problem, const YamlNode& node, bool integer) {
  if (!node.is_scalar()) return problem;
  problem.instead = RewrittenNumber(node.text, integer, /*k_is_1024=*/false);
  if (problem.help.empty() && !problem.instead.empty()) problem.help = Cat("write ", problem.instead);
  return problem;
}

}  // namespace

std::string RewrittenNumber(const std::string& text, bool integer, bool k_is_1024) {
  if (text.size() > kLongestNumber) return "";
  if (const int64_t words = NumberOfWords(text); words > 0) return Cat(words);
  std::string plain = absl::StrReplaceAll(text, {{"_", ""}});
  // Commas only as separators of thousands: "1,5" is no fifteen.
  for (size_t comma; (comma = plain.rfind(',')) != std::string::npos; plain.erase(comma, 1)) {
    if (plain.size() - comma < 4 || (plain.size() - comma) % 3 != 1) return "";
  }
  const bool negative = plain.starts_with('-');
  if (negative || plain.starts_with('+')) plain.erase(0, 1);
  int thousands = 0;
  constexpr std::string_view kSuffixes = "kmbt";
  if (plain.size() > 1) {
    const size_t suffix = kSuffixes.find(absl::ascii_tolower(plain.back() == 'G' ? 'b' : plain.back()));
    if (suffix != std::string_view::npos) {
      plain.pop_back();
      thousands = static_cast<int>(suffix) + 1;
    }
  }
  std::optional<DecimalNumber> number = DecimalOf(plain);
  if (!number) return "";
  if (thousands == 1 && k_is_1024) {
    int64_t count = 0;
    const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), count);
    if (error != std::errc() || end != plain.data() + plain.size() || count > 1 << 20) return "";
    return Cat(count * 1024);
  }
  number->exponent += 3 * thousands;
  const std::string written = TextOf(*std::move(number), integer);
  return written.empty() ? "" : Cat(negative ? "-" : "", written);
}

bool ReadInteger(const YamlNode& node, int64_t* value, ScalarProblem* problem) {
  const std::string_view digits = WithoutSign(node.text);
  if (!node.is_scalar() || node.quoted || !IsDigits(digits) || HasLeadingZero(digits) || node.text[0] == '+') {
    if (problem == nullptr) return false;
    std::string help;
    if (node.quoted && IsDigits(digits)) help = kRemoveQuotes;
    if (!node.quoted && IsDigits(digits) && HasLeadingZero(digits))
      help = "remove the leading zeros: some YAML readers take them for octal";
    return Fail(problem, Meant({DiagnosticKind::kWrongType, "an integer", std::move(help)}, node, /*integer=*/true));
  }
  // The form is right, so that only a value out of range can fail here.
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), *value);
  if (error == std::errc()) return true;
  return Fail(problem, {DiagnosticKind::kOutOfRange, "an integer that fits into 64 bits", ""});
}

bool ReadNumber(const YamlNode& node, double* value, ScalarProblem* problem) {
  if (!node.is_scalar() || node.quoted || !IsNumber(node.text) || HasLeadingZero(WithoutSign(node.text)) ||
      node.text[0] == '+') {
    if (problem == nullptr) return false;
    std::string help;
    if (node.quoted && IsNumber(node.text)) help = kRemoveQuotes;
    if (!node.quoted && HasLeadingZero(WithoutSign(node.text))) help = "remove the leading zeros";
    return Fail(problem, Meant({DiagnosticKind::kWrongType, "a number", std::move(help)}, node, /*integer=*/false));
  }
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), *value);
  if (error == std::errc()) {
    *value += 0.0;  // -0 is 0
    return true;
  }
  return Fail(problem, {DiagnosticKind::kOutOfRange, "a number that a double can hold", ""});
}

bool ReadBool(const YamlNode& node, bool* value, ScalarProblem* problem) {
  if (node.is_scalar() && !node.quoted && (node.text == "true" || node.text == "false")) {
    *value = node.text == "true";
    return true;
  }
  // YAML 1.1 also has yes, no, on and off.
  std::string instead;
  for (const std::string_view yes : {"yes", "on", "1", "True", "TRUE", "true"}) {
    if (node.text == yes) instead = "true";
  }
  for (const std::string_view no : {"no", "off", "0", "False", "FALSE", "false"}) {
    if (node.text == no) instead = "false";
  }
  return Fail(problem,
              {DiagnosticKind::kWrongType, "true or false", instead.empty() ? "" : Cat("write ", instead), instead});
}

bool ReadString(const YamlNode& node, std::string* value, ScalarProblem* problem) {
  // Text that YAML would read as a number or a boolean must be quoted, or one cannot see that it is text.
  const bool looks_otherwise = !node.quoted && (node.text == "true" || node.text == "false" || IsNumber(node.text));
  if (!node.is_scalar() || looks_otherwise) {
    const std::string instead = looks_otherwise ? Cat("\"", node.text, "\"") : "";
    return Fail(problem, {DiagnosticKind::kWrongType, "text", looks_otherwise ? Cat("write ", instead) : "", instead});
  }
  if (node.text.empty()) return Fail(problem, {DiagnosticKind::kWrongType, "text that is not empty", ""});
  *value = node.text;
  return true;
}

std::optional<RanksInARow> ReadRanksInARow(const YamlNode& node) {
  std::vector<YamlNode> ranks = node.items;
  const size_t dash = node.text.find('-');
  if (node.is_scalar() && !node.quoted && dash != std::string::npos) {
    ranks.assign(2, node);
    ranks[0].text = node.text.substr(0, dash);
    ranks[1].text = node.text.substr(dash + 1);
  }
  int64_t first = 0, rank = 0;
  if (ranks.empty() || !ReadInteger(ranks[0], &first, nullptr) || first < 0 || first > kMostRanks) return std::nullopt;
  if (node.is_scalar()) {
    if (!ReadInteger(ranks[1], &rank, nullptr) || rank < first || rank > kMostRanks) return std::nullopt;
    return RanksInARow{first, rank - first + 1};
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!ReadInteger(ranks[i], &rank, nullptr) || rank != first + static_cast<int64_t>(i)) return std::nullopt;
  }
  return RanksInARow{first, static_cast<int64_t>(ranks.size())};
}

}  // namespace planwright
