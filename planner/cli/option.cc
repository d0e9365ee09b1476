#include "planner/cli/option.h"

#include <algorithm>
#include <charconv>

namespace planwright {

Option::Option(std::string_view form, std::string help) : help(std::move(help)) {
  if (const size_t comma = form.find(", "); comma == 2) {
    short_name = form.substr(0, comma);
    form.remove_prefix(comma + 2);
  }
  const size_t space = std::min(form.find(' '), form.size());
  name = form.substr(0, space);
  value = form.substr(std::min(space + 1, form.size()));
}

Option Option::Writes() && {
  writes = true;
  return std::move(*this);
}

Option Option::With(CommandExample shown) && {
  example = std::move(shown);
  return std::move(*this);
}

std::string Option::text() const {
  return (short_name.empty() ? name : short_name + ", " + name) + (value.empty() ? "" : " " + value);
}

Option JsonOption(std::string help) { return Option("--json", &CommandOptions::json, std::move(help)); }

absl::StatusOr<int64_t> WholeNumbers::operator()(const std::string& name, const std::string& text) const {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && number >= least && number <= most) return number;
  // Text of digits that 64 bits do not hold is too large, or too small.
  const bool too_large = whole ? number > most : error == std::errc::result_out_of_range && text[0] != '-';
  return absl::InvalidArgumentError("option `" + name + "` needs a whole number of at " +
                                    (too_large ? "most " + std::to_string(most) : "least " + std::to_string(least)) +
                                    "; found `" + text + "`");
}

absl::StatusOr<std::string> NameOf::operator()(const std::string& name, const std::string& text) const {
  if (!text.empty()) return text;
  return absl::InvalidArgumentError("option `" + name + "` needs the name of " + std::string(what) +
                                    "; found an empty one");
}

}  // namespace planwright
