#include "planner/exchange/config_keys.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

using Json = ConfigKeys::Json;

constexpr int64_t kLargestSize = int64_t{1} << 24;

// The integer of a JSON number, also of 4.0, as Python may have written it.
std::optional<int64_t> IntegerOf(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kLargestSize)) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (std::floor(number) != number || std::fabs(number) > static_cast<double>(kLargestSize)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// JSON compares 1 and 1.0 as equal, and so does this.
bool IsNothing(const Json& value) {
  return value.is_null() || value == Json(false) || value == Json(0) || (value.is_object() && value.empty());
}

}  // namespace

std::string ValueText(const Json& value) {
  constexpr size_t kLongest = 80;
  std::string text = Printable(JsonText(value));
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

std::string ShortestText(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc() ? std::string(text, end) : std::string();
}

ConfigKeys::ConfigKeys(const Json& keys, std::string path, Findings& findings)
    : keys_(keys), path_(std::move(path)), findings_(findings) {}

std::string ConfigKeys::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void ConfigKeys::WrongValue(std::string_view key, const Json& value, const std::string& message) {
  findings_.Problem(PathOf(key), ValueText(value), message);
}

const Json* ConfigKeys::Find(Names names, std::string* path) {
  const Json* first = nullptr;
  const char* first_name = *names.begin();
  for (const char* name : names) {
    known_.insert(name);
    const auto found = keys_.find(name);
    if (found == keys_.end() || found->is_null()) continue;
    if (first == nullptr) {
      first = &*found, first_name = name;
    } else if (*first != *found) {
      WrongValue(name, *found, absl::StrCat("is another name of ", first_name, ", which is ", ValueText(*first)));
    }
  }
  if (path != nullptr) *path = PathOf(first_name);
  return first;
}

Sourced<int64_t> ConfigKeys::Size(Names names) {
  std::string path;
  const Json* value = Find(names, &path);
  if (value == nullptr) {
    findings_.Problem(path, "", "is missing");
    return {0, path};
  }
  const std::optional<int64_t> size = IntegerOf(*value);
  if (size && *size >= 1) return {*size, path};
  findings_.Problem(path, ValueText(*value), absl::StrCat("is no integer from 1 to ", kLargestSize));
  return {0, path};
}

Sourced<int64_t> ConfigKeys::Size(Names names, int64_t otherwise, const std::string& default_of) {
  if (Find(names) == nullptr) return {otherwise, "default of " + default_of};
  // The names agree, or Find has said so.
  for (const char* name : names) {
    if (Find({name}) != nullptr) return Size({name});
  }
  return {};
}

std::optional<Sourced<int64_t>> ConfigKeys::Count(Names names) {
  std::string path;
  const Json* value = Find(names, &path);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> count = IntegerOf(*value);
  if (count && *count >= 0) return Sourced<int64_t>{*count, path};
  findings_.Problem(path, ValueText(*value), absl::StrCat("is no integer from 0 to ", kLargestSize));
  return std::nullopt;
}

Sourced<double> ConfigKeys::Number(Names names, double otherwise, const std::string& default_of) {
  std::string path;
  const Json* value = Find(names, &path);
  if (value == nullptr) return {otherwise, "default of " + default_of};
  const double number = value->is_number() ? value->get<double>() : 0.0;
  if (!std::isfinite(number) || number <= 0) findings_.Problem(path, ValueText(*value), "is no number above 0");
  return {number, path};
}

Sourced<bool> ConfigKeys::Flag(Names names, bool otherwise, const std::string& default_of) {
  std::string path;
  const Json* value = Find(names, &path);
  if (value == nullptr) return {otherwise, "default of " + default_of};
  if (value->is_boolean()) return {value->get<bool>(), path};
  findings_.Problem(path, ValueText(*value), "is neither true nor false");
  return {otherwise, path};
}

std::optional<Sourced<std::string>> ConfigKeys::Word(Names names) {
  std::string path;
  const Json* value = Find(names, &path);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return Sourced<std::string>{value->get<std::string>(), path};
  findings_.Problem(path, ValueText(*value), "is no text");
  return std::nullopt;
}

void ConfigKeys::Only(const char* key, const Json& value, const std::string& why) {
  const Json* found = Find({key});
  if (found != nullptr && *found != value)
    WrongValue(key, *found, absl::StrCat("cannot be expressed, only ", ValueText(value), ": ", why));
}

void ConfigKeys::Nothing(const char* key, const std::string& why) {
  const Json* found = Find({key});
  if (found != nullptr && !IsNothing(*found))
    WrongValue(key, *found, absl::StrCat("cannot be expressed, only null, false or 0: ", why));
}

void ConfigKeys::Known(Names names) { known_.insert(names.begin(), names.end()); }

void ConfigKeys::NotTaken(Names names, const std::string& why) {
  for (const char* name : names) {
    const Json* found = Find({name});
    if (found == nullptr) continue;
    findings_.notes.push_back(absl::StrCat(PathOf(name), " = ", ValueText(*found), " is not taken over: ", why));
  }
}

void ConfigKeys::Rest(const std::set<std::string>& ignored) {
  const std::vector<std::string> names(known_.begin(), known_.end());
  for (const auto& [key, value] : keys_.items()) {
    if (known_.contains(key)) continue;
    const std::string where = PathOf(Printable(key));
    if (ignored.contains(PathOf(key))) {
      findings_.notes.push_back(absl::StrCat(where, " = ", ValueText(value), " is ignored, as --ignore says"));
    } else if (value.is_null()) {
      findings_.notes.push_back(absl::StrCat(where, " = null is not known"));
    } else {
      const std::string near = NearNameHelp(key, names);
      findings_.Problem(where, ValueText(value), absl::StrCat("is not known", near.empty() ? "" : "; ", near));
    }
  }
}

void ConfigKeys::RestSaysNothing(const std::string& why) {
  std::string names;
  for (const auto& [key, value] : keys_.items()) {
    if (!known_.contains(key)) absl::StrAppend(&names, names.empty() ? "" : ", ", Printable(key));
  }
  if (!names.empty()) findings_.notes.push_back(absl::StrCat("not read of ", path_, ", ", why, ": ", names));
}

}  // namespace planwright
