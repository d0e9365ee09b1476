// Which communications of a step meet: the k-th instance of a collective of each member, and the k-th send and receive
// of a channel (docs/progress.md#definitions, D4 and D5). For roles, whose ranks all meet alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/plan/link/communication_partners.h"
#include "planner/plan/link/linked_program.h"

namespace planwright {

// One entry of one role's step: index among the programs, and among the entries of LinkedProgram::step().
struct StepEntry {
  int role = 0;
  uint32_t entry = 0;
};

class CommunicationMatches {
 public:
  // `programs`: by role, in the order of Plan::roles. `partners`: of the same plan, which V3 must accept: of others
  // some communications have no partner here.
  CommunicationMatches(const std::vector<const LinkedProgram*>& programs, CommunicationPartners& partners);

  // The communications of other roles that this one meets. Empty for what is no communication, and for one within its
  // own role.
  std::span<const StepEntry> of(int role, size_t entry) const {
    const size_t at = first_[static_cast<size_t>(role)] + entry;
    return {met_.data() + begins_[at], begins_[at + 1] - begins_[at]};
  }

 private:
  std::vector<size_t> first_;     // by role: the index of its first entry in begins_
  std::vector<uint32_t> begins_;  // by entry of all roles, and at the end: where its partners begin in met_
  std::vector<StepEntry> met_;
};

}  // namespace planwright
