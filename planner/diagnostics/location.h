// The location of a value in a recipe. Recipe structs keep it with each value, so that all later rooms can point a
// diagnostic at the line to change.
#pragma once

#include <memory>
#include <string>

namespace planwright {

// A location in a text file. Lines and columns count from 1; columns count bytes. Line 0 means "no location": the value
// is a default or was computed.
struct Location {
  std::shared_ptr<const std::string> file;  // path as the user wrote it; null without a location
  int line = 0;
  int column = 0;
  int length = 1;  // bytes that are underlined: ^~~~

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

}  // namespace planwright
