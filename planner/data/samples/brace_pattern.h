// A name with braces: {000..099} counts, with the zeros of its ends; {a,b} is each of its parts, which may have braces.
// It is parsed once, so that its names are counted before any of them is made.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

class BracePattern {
 public:
  // InvalidArgument says what is wrong: braces that do not end, a range that is none, more braces in one name than 16.
  static absl::StatusOr<BracePattern> Parse(std::string_view text);

  // How many names there are, each as often as it is named. From kMostCounted on they are not counted further.
  static constexpr int64_t kMostCounted = int64_t{1} << 53;
  int64_t count() const { return count_; }
  // Bytes of the longest name.
  size_t longest() const { return longest_; }

  // Calls `take` with one name after the other, the last brace counting fastest, until it returns false.
  void EachName(const std::function<bool(const std::string& name)>& take) const;

 private:
  friend class BraceParser;

  struct Piece;
  using Sequence = std::vector<Piece>;
  // A text, or one of `choices`, or a number from `first` to `last` with at least `width` digits.
  struct Piece {
    enum class Kind { kText, kChoices, kRange } kind = Kind::kText;
    std::string text;
    std::vector<Sequence> choices;
    int64_t first = 0, last = 0;
    size_t width = 0;
  };
  // What of a name is still to be made: the pieces of `sequence` from `at` on, and then `next`.
  struct Rest {
    const Sequence* sequence;
    size_t at;
    const Rest* next;
  };
  static bool Make(const Rest* rest, std::string& name, const std::function<bool(const std::string&)>& take);

  Sequence pieces_;
  int64_t count_ = 0;
  size_t longest_ = 0;
};

}  // namespace planwright
