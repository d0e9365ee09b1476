// What a value is, beyond its type: tokens, labels, the row counts of a bridge, what a module makes, the gradient of
// that. Meanings are followed through the blocks that are called. So a role's program can be asked whether it gives
// each block what that block needs. The table of operations says which operands must have which meaning (`meaning`
// in ops.def).
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

using Meaning = int;  // the number of a text in a Meanings: "tokens", "the row counts of bridge.vision.language"
inline constexpr Meaning kNoMeaning = 0;  // a value inside a block that no rule asks for

using SavedMeanings = std::map<std::pair<std::string_view, std::string_view>, Meaning>;  // by frame and name

// What a call leaves behind: the meanings of its outputs in order, and of what it saved.
struct CallMeanings {
  std::vector<Meaning> outputs;
  SavedMeanings saved;
};

// What the calls of one microbatch have saved so far. Equal versions hold the same, so a version can be part of a key.
struct MicrobatchMeanings {
  SavedMeanings saved;
  int version = 0;
};

// Keeps references: index and violations must outlive it.
class Meanings {
 public:
  Meanings(const PlanIndex& index, std::vector<Violation>& violations);

  Meaning Of(const std::string& text);
  const std::string& TextOf(Meaning meaning) const { return texts_[static_cast<size_t>(meaning)]; }
  Meaning MadeBy(const std::string& module) { return Of("what " + module + " makes"); }
  Meaning GradientOf(Meaning of);
  // `of`: a bridge, as the language model counts its rows; or an encoder, as it counts its own.
  Meaning RowCounts(const std::string& of) { return Of("the row counts of " + of); }
  // The row counts that a module reads with its tokens: of each bridge that ends there, in order.
  const std::vector<Meaning>& RowCountsAt(const std::string& module);
  // What has so many rows: those of an encoder, or their gradient. kNoMeaning: these are no row counts.
  Meaning RowsOf(Meaning counts) const;

  // Walks a block in a frame of a microbatch, and reports operands that are given something else than they must be. A
  // block that is called again with equal meanings is not walked again.
  const CallMeanings& Run(const Block& block, std::string_view frame, const std::vector<Meaning>& inputs,
                          MicrobatchMeanings& microbatch);

 private:
  using RunKey = std::tuple<const Block*, std::string_view, std::vector<Meaning>, int>;  // ..., version
  using ValueMeanings = std::map<std::string_view, Meaning>;

  CallMeanings Walk(const Block& block, std::string_view frame, const std::vector<Meaning>& inputs,
                    MicrobatchMeanings& microbatch);
  Meaning OfOneEncoder(const Instruction& op, const ValueMeanings& values) const;
  void CheckOperands(const Block& block, const Instruction& op, const ValueMeanings& values);
  Meaning Required(const Block& block, const Instruction& op, size_t index);

  const PlanIndex& index_;
  std::vector<Violation>& violations_;
  std::deque<std::string> texts_;  // by meaning
  std::map<std::string, Meaning> numbers_;
  std::map<std::string, std::vector<Meaning>> counts_at_;  // by module
  std::map<Meaning, Meaning> rows_of_;                     // by row counts
  std::map<std::pair<std::string_view, int64_t>, Meaning>
      merged_;  // by module and the token whose positions the rows take
  std::map<RunKey, CallMeanings> runs_;
  std::map<std::pair<int, const CallMeanings*>, int> versions_;  // the version that follows a version and a run
  std::set<std::string> said_;  // each message once, though a block runs in many frames
  int depth_ = 0;               // of calls
};

}  // namespace planwright
