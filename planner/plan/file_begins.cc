#include "planner/plan/file_begins.h"

#include <algorithm>

namespace planwright {
namespace {

// Whether these are the first two keys of an object, with any spaces between.
bool BeginsWithKeys(std::string_view text, std::string_view first, std::string_view second) {
  const auto pass = [&](std::string_view word) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
  };
  if (!pass("{") || !pass(first) || !pass(":")) return false;
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return false;
  text.remove_prefix(comma + 1);
  return pass(second) && pass(":");
}

}  // namespace

bool BeginsPlan(std::string_view head) { return BeginsWithKeys(head, "\"format_version\"", "\"tool_version\""); }

bool BeginsProfile(std::string_view head) { return BeginsWithKeys(head, "\"format_version\"", "\"gpu\""); }

}  // namespace planwright
