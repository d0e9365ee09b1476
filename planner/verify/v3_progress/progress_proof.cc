#include "planner/verify/v3_progress/progress_proof.h"

#include <algorithm>

#include "planner/base/text/text.h"

namespace planwright {
namespace {

// Each group has a communicator for each stream that it is used on.
bool HasStream(const Group& group, const Instruction& instruction) {
  return std::find(group.streams.begin(), group.streams.end(), instruction.stream) != group.streams.end();
}

std::string NoCommunicator(const Instruction& instruction) {
  return Cat("is on ", instruction.stream.empty() ? std::string("the main stream") : Cat("stream ", instruction.stream),
             ", for which its group has no communicator");
}

}  // namespace

ProgressProof::ProgressProof(const Plan& plan, CommunicationTraces& traces, CommunicationPartners& partners,
                             std::string list_name, List list)
    : plan_(plan), traces_(traces), partners_(partners), list_name_(std::move(list_name)), list_(list),
      runners_(plan.roles.size()), collectives_(plan.groups.size()) {
  for (size_t role = 0; role < plan.roles.size(); ++role) {
    if (partners.FirstRank(static_cast<int>(role)) >= 0) runners_[role].trace = traces.TraceOf(plan.roles[role].*list);
  }
}

// The order in which roles are advanced does not matter: a meeting of some roles never prevents another meeting. So if
// the runners end in one order of arrival, they end in all.
std::vector<Violation> ProgressProof::Run() {
  if (traces_.too_long()) return {{"V3", Cat("the programs unroll to more than ", kMostEvents, " communications"), -1}};
  for (size_t role = runners_.size(); role-- > 0;) ready_.push_back(static_cast<int>(role));
  while (!ready_.empty() && violations_.empty()) {
    const int role = ready_.back();
    ready_.pop_back();
    Advance(role);
  }
  if (violations_.empty()) ReportStuck();
  return std::move(violations_);
}

// Lets the role go on until it must wait, fails or ends.
void ProgressProof::Advance(int role) {
  Runner& runner = runners_[role];
  while (!runner.done() && violations_.empty()) {
    const Communication& communication = traces_.at(runner.trace[runner.next]);
    if (!communication.problem.empty())
      return Fail(role, runner.next, partners_.FirstRank(role), communication.problem);
    const bool met = communication.instruction->kind == OpKind::kExchange ? PostExchange(role, communication)
                                                                          : ArriveAtCollective(role, communication);
    if (!met) return;
    ++runner.next;
  }
}

// The event that the role waits at is done.
void ProgressProof::Release(int role) {
  ++runners_[role].next;
  ready_.push_back(role);
}

// Rule 1 of C2. Returns whether the role was the last of its set to arrive; then the others are released.
bool ProgressProof::ArriveAtCollective(int role, const Communication& communication) {
  const auto fail = [&](const std::string& what) {
    Fail(role, runners_[role].next, partners_.FirstRank(role), what);
    return false;
  };
  const CommunicationPartners::Meetings& meetings = partners_.MeetingsOf(*communication.group);
  const int set = meetings.set_of_role[role];
  if (set < 0 || !meetings.all_members[role]) return fail("is called by ranks that are not all members");
  if (meetings.members > 1 && !HasStream(*communication.group, *communication.instruction))
    return fail(NoCommunicator(*communication.instruction));
  if (communication.root < 0 || communication.root >= meetings.members) return fail("has a root that is no member");
  const std::vector<int>& roles = meetings.sets[set];
  if (roles.size() == 1) return true;  // all members run the same program and arrive together
  std::vector<Collective>& collectives = collectives_[communication.group_index];
  if (collectives.empty()) collectives.resize(meetings.sets.size());
  Collective& collective = collectives[set];
  if (collective.arrived == 0) collective.first = role;
  const Runner& first = runners_[collective.first];
  if (traces_.at(first.trace[first.next]).signature != communication.signature) {
    FailCollective(role, collective.first, communication);
    return false;
  }
  if (++collective.arrived < static_cast<int>(roles.size())) return false;
  collective.arrived = 0;
  for (int other : roles) {
    if (other != role) Release(other);
  }
  return true;
}

// Rule 2 of C2. Posts all parts of the exchange. Returns whether all their transfers are met already.
bool ProgressProof::PostExchange(int role, const Communication& communication) {
  Runner& runner = runners_[role];
  runner.open = 0;
  for (const Communication::Part& part : communication.parts) {
    const CommunicationPartners::Peers& peers = partners_.PeersOf(*part.part);
    const int first = partners_.FirstRank(role);
    if (!peers.problem.empty()) return Fail(role, runner.next, first, peers.problem), false;
    const Group* group = plan_.FindGroup(part.part->bridge.empty() ? part.part->group : part.part->bridge);
    if (group && !HasStream(*group, *communication.instruction)) {
      return Fail(role, runner.next, first, NoCommunicator(*communication.instruction)), false;
    }
    if (peers.rank_without_peer[role] >= 0) {
      return Fail(role, runner.next, peers.rank_without_peer[role],
                  Cat("has nobody at the other end of its ", traces_.TextOf(part))),
             false;
    }
    for (int peer : peers.of_role[role]) {
      const bool send = part.part->send;
      Channel& channel =
          channels_[send ? ChannelKey(part.communicator, role, peer) : ChannelKey(part.communicator, peer, role)];
      std::deque<Post>& mine = send ? channel.sends : channel.receives;
      std::deque<Post>& theirs = send ? channel.receives : channel.sends;
      if (theirs.empty()) {
        mine.push_back({runner.next, &part});
        ++runner.open;
        continue;
      }
      const Post met = theirs.front();
      if (met.part->signature != part.signature) return FailTransfer(role, {runner.next, &part}, peer, met), false;
      theirs.pop_front();
      if (peer == role) {
        --runner.open;  // an earlier part of this very exchange
      } else if (--runners_[peer].open == 0) {
        Release(peer);
      }
    }
  }
  return runner.open == 0;
}

}  // namespace planwright
