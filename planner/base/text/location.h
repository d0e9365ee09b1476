// The location of a value in a recipe. Recipe structs keep it with each value, so that all later rooms can point a
// diagnostic at the line to change.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planwright {

// A location in a text file. Lines and columns count from 1; columns count bytes. Line 0 means "no location": the value
// is a default or was computed.
struct Location {
  std::shared_ptr<const std::string> file;  // path as the user wrote it; null without a location
  int line = 0;
  int column = 0;
  int length = 1;  // bytes that are underlined: ^~~~
  // What the recipe has here is missing or wrong, which is reported: the value is not known. A check that needs it is
  // left out (AllKnown). Copies of the value keep this.
  bool broken = false;

  bool known() const { return line > 0; }
};

// A value and its location. It converts to the value implicitly, so that code that does not report problems can ignore
// the location.
template <typename T>
struct Located {
  T value{};
  Location where;

  Located() = default;
  Located(T v) : value(std::move(v)) {}
  Located(T v, Location w) : value(std::move(v)), where(std::move(w)) {}
  operator const T&() const { return value; }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
};

inline bool IsKnown(const Location& where) { return !where.broken; }
template <typename T>
bool IsKnown(const Located<T>& value) {
  return !value.where.broken;
}
template <typename T>
bool IsKnown(const std::optional<T>& value) {
  return !value || IsKnown(*value);
}
template <typename T>
bool IsKnown(const std::vector<T>& values) {
  for (const T& value : values) {
    if (!IsKnown(value)) return false;
  }
  return true;
}

// Whether a check may use these values: none of them is broken. A check names all that it needs, and is left out if
// one is: the problem of the broken value is told already, and what else it would find is not known.
template <typename... Values>
bool AllKnown(const Values&... values) {
  return (IsKnown(values) && ...);
}

}  // namespace planwright
