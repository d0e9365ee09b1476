// The messages of ProgressProof: if roles do not meet, they name both sides at the first position that is wrong.

#include <algorithm>
#include <optional>

#include "planner/base/text/text.h"
#include "planner/verify/v3_progress/progress_proof.h"

namespace planwright {
namespace {

using std::string;

// " (recipe.yaml:17)", or "".
string LineOf(const Plan& plan, int origin) {
  if (origin < 0 || origin >= static_cast<int>(plan.origins.size()) || plan.origins[origin].file.empty()) return "";
  return Cat(" (", plan.origins[origin].file, ":", plan.origins[origin].line, ")");
}

// "1st", "22nd"
string Nth(size_t number) {
  const size_t ones = number % 10, tens = number / 10 % 10;
  const char* ending = tens == 1 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th";
  return Cat(number, ending);
}

string Times(size_t count) { return count == 1 ? "once" : count == 0 ? "never" : Cat(count, " times"); }

}  // namespace

int ProgressProof::OriginOf(int role, size_t event) const {
  const Role& named = plan_.roles[role];
  return traces_.PathOf(list_name_, named.*list_, event, named.origin).origin;
}

// "rank 5 (role language.s0.sibling) at step 40 > language.moe.forward 3: all_reduce ... over ... (recipe.yaml:17)".
// `rank` -1: the first rank of the role.
string ProgressProof::Where(int role, size_t event, int rank) const {
  const Role& named = plan_.roles[role];
  const string who = Cat("rank ", rank >= 0 ? rank : partners_.FirstRank(role), " (role ", named.name, ")");
  if (event >= runners_[role].trace.size())
    return Cat(who, " at the end of its ", list_name_, LineOf(plan_, named.origin));
  const CommunicationTraces::EventPath found = traces_.PathOf(list_name_, named.*list_, event, named.origin);
  return Cat(who, " at ", found.path, ": ", traces_.TextOf(traces_.at(runners_[role].trace[event])),
             LineOf(plan_, found.origin));
}

void ProgressProof::Fail(int role, size_t event, int rank, const string& what) {
  violations_.push_back({"V3", Cat(Where(role, event, rank), " ", what), OriginOf(role, event)});
}

void ProgressProof::FailCollective(int role, int other, const Communication& communication) {
  const auto [mine, theirs] = partners_.ExampleRanks(*communication.group, role, other);
  Fail(role, runners_[role].next, mine, Cat("meets ", Where(other, runners_[other].next, theirs)));
}

void ProgressProof::FailTransfer(int role, const Post& mine, int other, const Post& theirs) {
  const auto [rank, peer] = partners_.ExampleRanks(*mine.part->part, role, other);
  Fail(role, mine.event, rank,
       Cat("would ", traces_.TextOf(*mine.part), " where ", Where(other, theirs.event, peer), " would ",
           traces_.TextOf(*theirs.part)));
}

// All runners that are left wait. The cause is, in this order: collectives that some members lack, transfers that one
// end lacks, or a circle of waits.
void ProgressProof::ReportStuck() {
  if (std::all_of(runners_.begin(), runners_.end(), [](const Runner& runner) { return runner.done(); })) return;
  if (!ReportUnequalCollectives() && !ReportUnequalTransfers()) ReportCircle();
}

// Finds roles of one set whose sequences of collectives over a group differ.
bool ProgressProof::ReportUnequalCollectives() {
  for (size_t index = 0; index < collectives_.size(); ++index) {
    for (size_t set = 0; set < collectives_[index].size(); ++set) {
      if (ReportUnequalCollectives(plan_.groups[index], partners_.MeetingsOf(plan_.groups[index]).sets[set]))
        return true;
    }
  }
  return false;
}

bool ProgressProof::ReportUnequalCollectives(const Group& group, const std::vector<int>& roles) {
  const auto events = [&](int role) {
    std::vector<size_t> found;
    for (size_t i = 0; i < runners_[role].trace.size(); ++i) {
      if (traces_.at(runners_[role].trace[i]).group == &group) found.push_back(i);
    }
    return found;
  };
  const auto signature = [&](int role, size_t event) { return traces_.at(runners_[role].trace[event]).signature; };
  const std::vector<size_t> first = events(roles.front());
  for (int other : roles) {
    const std::vector<size_t> second = events(other);
    const size_t common = std::min(first.size(), second.size());
    // The first position where the two sequences differ.
    size_t i = 0;
    while (i < common && signature(roles.front(), first[i]) == signature(other, second[i])) ++i;
    if (i == first.size() && i == second.size()) continue;
    const auto [rank, peer] = partners_.ExampleRanks(group, roles.front(), other);
    const bool longer = i < first.size();
    const int here = longer ? roles.front() : other, there = longer ? other : roles.front();
    const size_t at = longer ? first[i] : second[i];
    if (i < common) {
      Fail(roles.front(), first[i], rank,
           Cat("is its ", Nth(i + 1), " collective over ", group.name, ", and meets ", Where(other, second[i], peer)));
    } else {
      Fail(here, at, longer ? rank : peer,
           Cat("is its ", Nth(i + 1), " collective over ", group.name, "; rank ", longer ? peer : rank, " (role ",
               plan_.roles[there].name, ")", LineOf(plan_, plan_.roles[there].origin), " has only ", i));
    }
    return true;
  }
  return false;
}

// Finds two roles where one sends more or fewer transfers than the other receives.
bool ProgressProof::ReportUnequalTransfers() {
  std::map<ChannelKey, std::pair<std::vector<Post>, std::vector<Post>>> posts;
  for (size_t i = 0; i < runners_.size(); ++i) {
    const int role = static_cast<int>(i);
    for (size_t event = 0; event < runners_[i].trace.size(); ++event) {
      for (const Communication::Part& part : traces_.at(runners_[i].trace[event]).parts) {
        const CommunicationPartners::Peers& peers = partners_.PeersOf(*part.part);
        if (!peers.problem.empty()) continue;
        for (int peer : peers.of_role[i]) {
          if (part.part->send) posts[{part.communicator, role, peer}].first.push_back({event, &part});
          if (!part.part->send) posts[{part.communicator, peer, role}].second.push_back({event, &part});
        }
      }
    }
  }
  for (const auto& [key, both] : posts) {
    const auto& [sends, receives] = both;
    if (sends.size() == receives.size()) continue;
    const bool more_sent = sends.size() > receives.size();
    const auto [communicator, from, to] = key;
    const int here = more_sent ? from : to, there = more_sent ? to : from;
    // Points at the first transfer that differs from the other end's: if a direction is missing there, this shows it.
    const std::vector<Post>& longer = more_sent ? sends : receives;
    const std::vector<Post>& shorter = more_sent ? receives : sends;
    size_t i = 0;
    while (i < shorter.size() && longer[i].part->signature == shorter[i].part->signature) ++i;
    const auto [rank, peer] = partners_.ExampleRanks(*longer[i].part->part, here, there);
    Fail(here, longer[i].event, rank,
         Cat(more_sent ? "sends " : "receives ", Times(longer.size()), " where rank ", peer, " (role ",
             plan_.roles[there].name, ")", LineOf(plan_, plan_.roles[there].origin),
             more_sent ? " receives " : " sends ", Times(shorter.size())));
    return true;
  }
  return false;
}

// A role that `role` waits for, or kNobody.
int ProgressProof::RoleWaitedFor(int role) {
  const Communication& communication = traces_.at(runners_[role].trace[runners_[role].next]);
  if (communication.instruction->kind != OpKind::kExchange) {
    const CommunicationPartners::Meetings& meetings = partners_.MeetingsOf(*communication.group);
    for (int other : meetings.sets[meetings.set_of_role[role]]) {
      const Runner& runner = runners_[other];
      if (runner.done() || traces_.at(runner.trace[runner.next]).group != communication.group) return other;
    }
    return kNobody;
  }
  // At an exchange: the other end of some transfer that the role has posted and that is not met.
  for (const auto& [key, channel] : channels_) {
    const auto [communicator, from, to] = key;
    if (from == role && !channel.sends.empty()) return to;
    if (to == role && !channel.receives.empty()) return from;
  }
  return kNobody;
}

// Each role that is left waits for another, so a walk from a role to the one that it waits for comes to a circle.
void ProgressProof::ReportCircle() {
  std::vector<int> walk;
  for (size_t role = 0; role < runners_.size() && walk.empty(); ++role) {
    if (!runners_[role].done()) walk.push_back(static_cast<int>(role));
  }
  for (;;) {
    const int next = runners_[walk.back()].done() ? kNobody : RoleWaitedFor(walk.back());
    if (next == kNobody) break;
    const auto seen = std::find(walk.begin(), walk.end(), next);
    if (seen == walk.end()) {
      walk.push_back(next);
      continue;
    }
    walk.erase(walk.begin(), seen);  // what leads to the circle is no part of it
    break;
  }
  string text = "waits in a circle";
  for (size_t i = 0; i < walk.size(); ++i) {
    const int next = walk[(i + 1) % walk.size()];
    if (walk.size() == 1) {
      Append(text, ": for ranks of its own role");
    } else {
      Append(text, i == 0 ? ": for " : ", which waits for ",
             i + 1 < walk.size() ? Where(next, runners_[next].next, -1) : "the first");
    }
  }
  Fail(walk.front(), runners_[walk.front()].next, -1, text);
}

}  // namespace planwright
