// V4 of what a forward saves: in each microbatch the backward of a frame takes every value that its forward saved,
// once. With activation recompute there are three blocks: the one that runs again takes what the first saved, and the
// backward takes what that one saves.
//
// Not here: the types of what is taken, and the gradients made of it (V5, verify_backward.cc).

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

class SavedValues {
 public:
  SavedValues(const PlanIndex& index, const MicrobatchCalls& microbatch, std::vector<Violation>& violations)
      : index_(index), microbatch_(microbatch), violations_(violations) {}

  void Check() {
    Follow(0, microbatch_.calls.size());
    for (const auto& [frame, block] : saved_) {
      Fail(absl::StrCat("block ", block->name, " saves values in frame ", string(frame), " that no backward takes"),
           block);
    }
  }

 private:
  void Fail(string message, const Block* block) {
    violations_.push_back({"V4", std::move(message), index_.OriginOf(-1, block->origin, index_.module(block->module))});
  }

  // Calls [first, end) in order. A call takes when it starts and saves when it ends, so the calls inside it come in
  // between.
  void Follow(size_t first, size_t end) {
    for (size_t i = first; i < end; i = static_cast<size_t>(microbatch_.calls[i].end)) {
      const FrameCall& call = microbatch_.calls[i];
      if (!call.block->takes.empty()) Take(call);
      Follow(i + 1, static_cast<size_t>(call.end));
      if (!call.block->saved.empty() && !saved_.emplace(call.frame, call.block).second) {
        Fail(absl::StrCat("block ", call.block->name, " saves values in frame ", string(call.frame),
                          ", where earlier ones are not taken yet"),
             call.block);
      }
    }
  }

  void Take(const FrameCall& call) {
    auto it = saved_.find(call.frame);
    if (it == saved_.end()) {
      return Fail(absl::StrCat("block ", call.block->name, " takes values of frame ", string(call.frame),
                               " that no forward saved"),
                  call.block);
    }
    const Block& forward = *it->second;
    std::set<string_view> have(forward.saved.begin(), forward.saved.end());
    for (const Output& take : call.block->takes) {
      if (!have.erase(take.name)) {
        Fail(absl::StrCat("block ", call.block->name, " takes ", take.name, ", which ", forward.name, " does not save"),
             call.block);
      }
    }
    for (string_view left : have)
      Fail(absl::StrCat("block ", call.block->name, " does not take ", string(left), ", which ", forward.name,
                        " saves for it"),
           call.block);
    saved_.erase(it);
  }

  const PlanIndex& index_;
  const MicrobatchCalls& microbatch_;
  std::vector<Violation>& violations_;
  std::map<string_view, const Block*> saved_;  // by frame: the forward whose values wait to be taken
};

}  // namespace

std::vector<Violation> VerifySavedValues(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<Violation> violations;
  for (const MicrobatchCalls& microbatch : microbatches) SavedValues(index, microbatch, violations).Check();
  return violations;
}

}  // namespace planwright
