// Where a value stands in a recipe, so that any later room can point at the line that asked for it.
#pragma once

#include <memory>
#include <string>

namespace planwright {

// A place in a text file. Lines and columns count from 1, columns in bytes. line 0 means "no place":
// the value is a default or was computed.
struct Location {
  std::shared_ptr<const std::string> file;  // path as the user wrote it; null without a place
  int line = 0;
  int column = 0;
  int length = 1;  // bytes under the caret and its tail

  bool known() const { return line > 0; }
};

// A value and the place it was written at. Converts silently to its value where it is only read.
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
