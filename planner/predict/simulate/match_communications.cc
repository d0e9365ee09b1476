#include "planner/predict/simulate/match_communications.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planwright {
namespace {

// Where communications meet: among a set of roles of a group, or from one role to another over a bridge or between
// stages. On each stream by itself.
struct SetKey {
  int group, stream, set;
  auto operator<=>(const SetKey&) const = default;
};
struct ChannelKey {
  bool bridged;
  int over;  // the index of the bridge, or of the group
  int stream, sender, receiver;
  auto operator<=>(const ChannelKey&) const = default;
};

struct Channel {
  std::vector<StepEntry> sends, receives;
};

class Matcher {
 public:
  Matcher(const std::vector<const LinkedProgram*>& programs, CommunicationPartners& partners)
      : programs_(programs), partners_(partners) {
    for (size_t role = 0; role < programs.size(); ++role) {
      for (size_t i = programs[role]->step().first; i < programs[role]->step().end; ++i) {
        const LinkedInstruction& instruction = *programs[role]->entries()[i].instruction;
        if (instruction.op_class != OpClass::kCommunication) continue;
        const StepEntry here = {static_cast<int>(role), static_cast<uint32_t>(i - programs[role]->step().first)};
        instruction.source->kind == OpKind::kExchange ? AddExchange(here, instruction)
                                                      : AddCollective(here, instruction);
      }
    }
  }

  // Both directions of every meeting.
  template <typename Meet>
  void ForEachMeeting(Meet meet) const {
    for (const auto& [key, by_role] : collectives_) {
      for (const auto& mine : by_role) {
        for (const auto& theirs : by_role) {
          if (&mine == &theirs) continue;
          const size_t both = std::min(mine.second.size(), theirs.second.size());
          for (size_t k = 0; k < both; ++k) meet(mine.second[k], theirs.second[k]);
        }
      }
    }
    for (const auto& [key, channel] : channels_) {
      if (key.sender == key.receiver) continue;
      for (size_t k = 0; k < std::min(channel.sends.size(), channel.receives.size()); ++k)
        meet(channel.sends[k], channel.receives[k]), meet(channel.receives[k], channel.sends[k]);
    }
  }

 private:
  void AddCollective(StepEntry here, const LinkedInstruction& instruction) {
    const Plan& plan = programs_[static_cast<size_t>(here.role)]->blocks().plan();
    const CommunicationPartners::Meetings& met = partners_.MeetingsOf(plan.groups[instruction.group]);
    const int set = met.set_of_role[here.role];
    if (set >= 0 && met.sets[set].size() > 1)
      collectives_[{instruction.group, instruction.stream, set}][here.role].push_back(here);
  }

  void AddExchange(StepEntry here, const LinkedInstruction& instruction) {
    for (size_t p = 0; p < instruction.parts.size(); ++p) {
      const ExchangePart& part = instruction.source->parts[p];
      const bool bridged = instruction.parts[p].bridge >= 0;
      const int over = bridged ? instruction.parts[p].bridge : instruction.parts[p].group;
      for (int peer : partners_.PeersOf(part).of_role[here.role]) {
        const int sender = part.send ? here.role : peer, receiver = part.send ? peer : here.role;
        Channel& channel = channels_[{bridged, over, instruction.stream, sender, receiver}];
        (part.send ? channel.sends : channel.receives).push_back(here);
      }
    }
  }

  const std::vector<const LinkedProgram*>& programs_;
  CommunicationPartners& partners_;
  std::map<SetKey, std::map<int, std::vector<StepEntry>>> collectives_;  // the instances of each role, in order
  std::map<ChannelKey, Channel> channels_;
};

}  // namespace

CommunicationMatches::CommunicationMatches(const std::vector<const LinkedProgram*>& programs,
                                           CommunicationPartners& partners) {
  const Matcher matcher(programs, partners);
  size_t entries = 0;
  for (const LinkedProgram* program : programs) {
    first_.push_back(entries);
    entries += program->step().end - program->step().first;
  }
  begins_.assign(entries + 1, 0);
  const auto at = [&](const StepEntry& of) { return first_[static_cast<size_t>(of.role)] + of.entry; };
  matcher.ForEachMeeting([&](const StepEntry& mine, const StepEntry&) { ++begins_[at(mine) + 1]; });
  for (size_t i = 0; i < entries; ++i) begins_[i + 1] += begins_[i];
  met_.resize(begins_.back());
  std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
  matcher.ForEachMeeting([&](const StepEntry& mine, const StepEntry& theirs) { met_[next[at(mine)]++] = theirs; });
}

}  // namespace planwright
