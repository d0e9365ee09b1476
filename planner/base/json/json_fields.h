// Fields of a JSON object that another program, another version or a damaged disk may have written: one that is missing
// or of another type counts as not given.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace planwright {

// null where there is no such field.
inline const nlohmann::json& FieldOf(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

inline std::string TextOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json& field = FieldOf(object, key);
  return field.is_string() ? field.get<std::string>() : "";
}

// nullopt also for null, which stands for a number that was not finite.
inline std::optional<double> NumberOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json& field = FieldOf(object, key);
  return field.is_number() ? std::optional(field.get<double>()) : std::nullopt;
}

// NaN instead of nullopt.
inline double NumberOrNan(const nlohmann::json& object, const char* key) {
  return NumberOf(object, key).value_or(std::numeric_limits<double>::quiet_NaN());
}

// A whole number in [least, most]; nullopt if it is another one. Bounds are at most 2^53.
inline std::optional<int64_t> IntegerOf(const nlohmann::json& object, const char* key, int64_t least, int64_t most) {
  const nlohmann::json& field = FieldOf(object, key);
  if (!field.is_number_integer()) return std::nullopt;
  const double value = field.get<double>();  // any whole number, also one that int64_t cannot hold
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most))) return std::nullopt;
  return static_cast<int64_t>(value);
}

// The texts of a list; what is no text is left out.
inline std::vector<std::string> TextsOf(const nlohmann::json& object, const char* key) {
  std::vector<std::string> texts;
  const nlohmann::json& field = FieldOf(object, key);
  if (!field.is_array()) return texts;
  for (const nlohmann::json& text : field) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

inline constexpr int64_t kLargestCount = int64_t{1} << 53;  // a double holds all whole numbers up to here
inline constexpr int64_t kLargestRank = 1'000'000'000;

}  // namespace planwright
