#include "planner/exchange/other_beginnings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

// Fewer may have the same ends by accident, and are named each.
constexpr size_t kFewest = 4;
// Each beginning is the largest of some tries. Each try reads all names, and each candidate some of them.
constexpr size_t kMostBeginnings = 16;
constexpr int kMostTries = 64, kMostCandidates = 100;

// Where the words of a name begin, which end with dots.
std::vector<size_t> BeginsOf(string_view name) {
  std::vector<size_t> begins = {0};
  for (size_t dot = name.find('.'); dot != string_view::npos; dot = name.find('.', dot + 1)) begins.push_back(dot + 1);
  return begins;
}

// Whether a word of a beginning is a number. Such a one is of one layer: not the beginning of its names is another one,
// but what stands behind the number.
bool HasNumber(string_view beginning) {
  for (const size_t at : BeginsOf(beginning)) {
    if (at < beginning.size() && beginning[at] >= '0' && beginning[at] <= '9') return true;
  }
  return false;
}

// The names that have `theirs` where missing ones have `ours`.
std::vector<string> NamesWith(const string& theirs, const string& ours, const TensorShapes& missing,
                              const TensorShapes& unknown) {
  std::vector<string> names;
  for (auto one = unknown.lower_bound(theirs); one != unknown.end() && one->first.starts_with(theirs); ++one) {
    const auto same = missing.find(ours + one->first.substr(theirs.size()));
    if (same != missing.end() && same->second == one->second) names.push_back(one->first);
  }
  return names;
}

// How another beginning explains this name: by the longest end that it shares with a missing one.
std::optional<OtherBeginning> Explained(const string& name, const TensorShapes& missing, const TensorShapes& unknown) {
  int candidates = 0;
  for (const size_t begin : BeginsOf(name)) {
    if (HasNumber(string_view(name).substr(0, begin))) break;
    const string_view end = string_view(name).substr(begin);
    const string behind_dot = absl::StrCat(".", name.substr(begin));
    for (const auto& [other, shape] : missing) {
      const bool ends = other == end || other.ends_with(behind_dot);
      if (!ends || shape != unknown.at(name)) continue;
      OtherBeginning found = {name.substr(0, begin), other.substr(0, other.size() - end.size()), {}};
      if (HasNumber(found.ours)) continue;
      if (++candidates > kMostCandidates) return std::nullopt;
      found.names = NamesWith(found.theirs, found.ours, missing, unknown);
      if (found.names.size() >= kFewest) return found;
    }
  }
  return std::nullopt;
}

// A name of each kind of tensors: those that differ in numbers of layers and experts alone are of one kind.
std::vector<string> OneOfEachKind(const TensorShapes& shapes) {
  std::set<string> kinds;
  std::vector<string> names;
  for (const auto& [name, shape] : shapes) {
    string kind;
    for (const char c : name) {
      const bool digit = absl::ascii_isdigit(static_cast<unsigned char>(c));
      if (!digit || !kind.ends_with('0')) kind += digit ? '0' : c;
    }
    if (kinds.insert(std::move(kind)).second) names.push_back(name);
  }
  return names;
}

// The beginning that explains the most names: others may explain some of the same.
std::optional<OtherBeginning> LargestOf(const TensorShapes& missing, const TensorShapes& unknown) {
  std::optional<OtherBeginning> largest;
  std::set<string> explained;
  int tries = 0;
  for (const string& name : OneOfEachKind(unknown)) {
    if (explained.contains(name)) continue;
    if (++tries > kMostTries) break;
    std::optional<OtherBeginning> found = Explained(name, missing, unknown);
    if (!found) continue;
    explained.insert(found->names.begin(), found->names.end());
    if (!largest || found->names.size() > largest->names.size()) largest = std::move(found);
  }
  return largest;
}

// Adds the words that all names have behind the beginnings, up to the number of a layer.
void AddCommonWords(OtherBeginning& found) {
  const auto [first, last] = std::minmax_element(found.names.begin(), found.names.end());
  const size_t same = static_cast<size_t>(
      std::mismatch(first->begin(), first->end(), last->begin(), last->end()).first - first->begin());
  const string_view behind = string_view(*first).substr(found.theirs.size());
  string words;
  for (const size_t end : BeginsOf(behind)) {
    if (found.theirs.size() + end <= same && !HasNumber(behind.substr(0, end))) words = behind.substr(0, end);
  }
  found.theirs += words, found.ours += words;
}

}  // namespace

std::vector<OtherBeginning> TakeOtherBeginnings(TensorShapes& missing, TensorShapes& unknown, TensorShapes& extras) {
  std::vector<OtherBeginning> all;
  while (all.size() < kMostBeginnings && missing.size() >= kFewest) {
    std::optional<OtherBeginning> found = LargestOf(missing, unknown);
    if (!found) break;
    for (string& extra : NamesWith(found->theirs, found->ours, missing, extras))
      found->names.push_back(std::move(extra));
    for (const string& one : found->names) {
      missing.erase(found->ours + one.substr(found->theirs.size()));
      unknown.erase(one);
      extras.erase(one);
    }
    AddCommonWords(*found);
    all.push_back(*std::move(found));
  }
  return all;
}

}  // namespace planwright
