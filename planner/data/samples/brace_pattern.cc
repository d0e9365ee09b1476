#include "planner/data/samples/brace_pattern.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace planwright {
namespace {

constexpr int kMostBraces = 16;          // of one name, inside each other or beside each other
constexpr size_t kMostRangeDigits = 18;  // so that ends and counts fit 64 bits
constexpr size_t kMostQuoted = 60;       // bytes of a brace in a message

bool AllDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

int64_t CutOff(int64_t count) { return std::min(count, BracePattern::kMostCounted); }

// Both up to kMostCounted.
int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? BracePattern::kMostCounted : CutOff(product);
}

// What is known of a part of a pattern.
struct Extent {
  int64_t count = 1;
  size_t longest = 0;
  int braces = 0;  // most braces of one name
};

}  // namespace

class BraceParser {
 public:
  explicit BraceParser(std::string_view text) : text_(text) {}

  absl::StatusOr<BracePattern> Parse() {
    BracePattern pattern;
    const Extent extent = ReadSequence(/*level=*/0, pattern.pieces_);
    if (!problem_.empty()) return absl::InvalidArgumentError(problem_);
    pattern.count_ = extent.count, pattern.longest_ = extent.longest;
    return pattern;
  }

 private:
  using Piece = BracePattern::Piece;
  using Sequence = BracePattern::Sequence;

  // The first problem is told.
  void Fail(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
    at_ = text_.size();
  }

  // Up to the end of the text, or in a brace up to its comma or its end.
  Extent ReadSequence(int level, Sequence& into) {
    Extent all;
    while (at_ < text_.size() && !(level > 0 && (text_[at_] == ',' || text_[at_] == '}'))) {
      Piece piece;
      Extent extent;
      if (text_[at_] == '{') {
        extent = ReadBrace(level, piece);
      } else {
        const size_t end = std::min(text_.find_first_of(level > 0 ? "{}," : "{}", at_), text_.size());
        piece.text = std::string(text_.substr(at_, end - at_));
        if (end == at_) Fail("a } without its {");
        extent.longest = end - at_;
        at_ = std::max(at_, end);
      }
      into.push_back(std::move(piece));
      all.count = Product(all.count, extent.count);
      all.longest += extent.longest;
      all.braces += extent.braces;
      if (all.braces > kMostBraces) Fail(absl::StrCat("more than ", kMostBraces, " braces"));
    }
    return all;
  }

  Extent ReadBrace(int level, Piece& piece) {
    const size_t open = at_++;
    // Braces inside each other are also braces of one name; here the depth of this parser is bounded.
    if (level >= kMostBraces) Fail(absl::StrCat("more than ", kMostBraces, " braces"));
    piece.kind = Piece::Kind::kChoices;
    Extent all{.count = 0};
    bool closed = false;
    while (!closed) {
      const Extent extent = ReadSequence(level + 1, piece.choices.emplace_back());
      all.count = CutOff(all.count + extent.count);
      all.longest = std::max(all.longest, extent.longest);
      all.braces = std::max(all.braces, extent.braces);
      if (at_ >= text_.size()) break;
      closed = text_[at_++] == '}';
    }
    if (!closed) Fail("a { without its }");
    ++all.braces;
    return problem_.empty() && piece.choices.size() == 1 ? ReadRange(text_.substr(open + 1, at_ - open - 2), piece)
                                                         : all;
  }

  // The numbers of "FIRST..LAST". An end with a leading zero gives every number its width.
  Extent ReadRange(std::string_view inside, Piece& piece) {
    const size_t dots = std::min(inside.find(".."), inside.size());
    const std::string_view first = inside.substr(0, dots), last = inside.substr(std::min(dots + 2, inside.size()));
    const bool digits =
        AllDigits(first) && AllDigits(last) && first.size() <= kMostRangeDigits && last.size() <= kMostRangeDigits;
    if (digits) {
      std::from_chars(first.data(), first.data() + first.size(), piece.first);
      std::from_chars(last.data(), last.data() + last.size(), piece.last);
    }
    if (!digits || piece.last < piece.first) {
      const std::string shown = inside.size() > kMostQuoted
                                    ? absl::StrCat(std::string(inside.substr(0, kMostQuoted)), "...")
                                    : std::string(inside);
      Fail(absl::StrCat("{", shown, "} is neither a range of whole numbers that ascends, such as {000..099}, nor a ",
                        "list {a,b}"));
      return {};
    }
    const bool zeros = (first.size() > 1 && first[0] == '0') || (last.size() > 1 && last[0] == '0');
    piece.kind = Piece::Kind::kRange;
    piece.choices.clear();
    piece.width = zeros ? std::max(first.size(), last.size()) : 0;
    return {.count = CutOff(piece.last - piece.first + 1),
            .longest = std::max(piece.width, absl::StrCat(piece.last).size()),
            .braces = 1};
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string problem_;
};

absl::StatusOr<BracePattern> BracePattern::Parse(std::string_view text) { return BraceParser(text).Parse(); }

void BracePattern::EachName(const std::function<bool(const std::string&)>& take) const {
  std::string name;
  const Rest all{&pieces_, 0, nullptr};
  Make(&all, name, take);
}

// False: `take` wants no more.
bool BracePattern::Make(const Rest* rest, std::string& name, const std::function<bool(const std::string&)>& take) {
  while (rest != nullptr && rest->at == rest->sequence->size()) rest = rest->next;
  if (rest == nullptr) return take(name);
  const Piece& piece = (*rest->sequence)[rest->at];
  const Rest after{rest->sequence, rest->at + 1, rest->next};
  const size_t before = name.size();
  bool more = true;
  switch (piece.kind) {
    case Piece::Kind::kText:
      name += piece.text;
      more = Make(&after, name, take);
      break;
    case Piece::Kind::kRange:
      for (int64_t number = piece.first; more && number <= piece.last; ++number) {
        const std::string digits = absl::StrCat(number);
        name.resize(before);
        if (digits.size() < piece.width) name.append(piece.width - digits.size(), '0');
        name += digits;
        more = Make(&after, name, take);
      }
      break;
    case Piece::Kind::kChoices:
      for (size_t i = 0; more && i < piece.choices.size(); ++i) {
        const Rest choice{&piece.choices[i], 0, &after};
        name.resize(before);
        more = Make(&choice, name, take);
      }
      break;
  }
  name.resize(before);
  return more;
}

}  // namespace planwright
