// What a value is, beyond its type: tokens, labels, the row counts of a bridge, what a module makes, the gradient of
// that. Followed through the blocks that are called, so that a role's program can be asked whether it hands each block
// what it needs.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/verify/shared/plan_index.h"
#include "planner/verify/verify.h"

namespace planwright {

using Meaning = int;  // by number, of a Meanings
inline constexpr Meaning kNoMeaning = 0;

using SavedMeanings = std::map<std::pair<std::string_view, std::string_view>, Meaning>;  // by frame and name

// What a call leaves: of its outputs in order, and of what it saved.
struct CallMeanings {
  std::vector<Meaning> outputs;
  SavedMeanings saved;
};

// What the calls of one microbatch have saved so far.
struct MicrobatchMeanings {
  SavedMeanings saved;
  int version = 0;  // equal versions hold the same
};

// Keeps references: index and violations must outlive it.
class Meanings {
 public:
  Meanings(const PlanIndex& index, std::vector<Violation>& violations);

  Meaning Of(const std::string& text);
  const std::string& TextOf(Meaning meaning) const { return texts_[static_cast<size_t>(meaning)]; }
  Meaning MadeBy(const std::string& module) { return Of("what " + module + " makes"); }
  Meaning GradientOf(Meaning of);
  Meaning RowCounts(const std::string& of) { return Of("the row counts of " + of); }  // of a bridge, of an encoder
  // Of each bridge that ends at a module, in order.
  const std::vector<Meaning>& RowCountsAt(const std::string& module);
  // The rows, or the gradient of rows, that have such counts; kNoMeaning: these are no row counts of a bridge.
  Meaning RowsOf(Meaning counts) const;

  // Runs a block in a frame of a microbatch. Each way to run it is looked at once.
  const CallMeanings& Run(const Block& block, std::string_view frame, const std::vector<Meaning>& inputs,
                          MicrobatchMeanings& microbatch);

 private:
  using Key = std::tuple<const Block*, std::string_view, std::vector<Meaning>, int>;

  CallMeanings Walk(const Block& block, std::string_view frame, const std::vector<Meaning>& inputs,
                    MicrobatchMeanings& microbatch);
  void Check(const Block& block, const Instruction& op, const std::map<std::string_view, Meaning>& values);
  Meaning Required(const Block& block, const Instruction& op, size_t place);

  const PlanIndex& index_;
  std::vector<Violation>& violations_;
  std::deque<std::string> texts_;
  std::map<std::string, Meaning> numbers_;
  std::map<std::string, std::vector<Meaning>> counts_at_;           // by module
  std::map<Meaning, Meaning> rows_of_;                              // by row counts
  std::map<std::pair<std::string_view, int64_t>, Meaning> merged_;  // by module and the token whose places rows take
  std::map<Key, CallMeanings> known_;
  std::map<std::pair<int, const CallMeanings*>, int> versions_;  // that follow a version and a call
  std::set<std::string> said_;
  int depth_ = 0;
};

}  // namespace planwright
