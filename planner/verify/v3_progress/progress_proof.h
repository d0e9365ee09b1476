// The proof of V3 for one list (kRoleLists) of all roles. One runner for each role goes through the role's
// trace until it meets its partners. This is step C2 of docs/progress.md#what-is-proved.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/plan/link/communication_partners.h"
#include "planner/verify/v3_progress/communication_trace.h"
#include "planner/verify/verify.h"

namespace planwright {

class ProgressProof {
 public:
  using List = std::vector<Instruction> Role::*;

  ProgressProof(const Plan& plan, CommunicationTraces& traces, CommunicationPartners& partners, std::string list_name,
                List list);

  // Empty, or one violation: the first thing that is wrong.
  std::vector<Violation> Run();

 private:
  static constexpr int kNobody = -1;

  // How far a role has come.
  struct Runner {
    Trace trace;
    size_t next = 0;  // the event that it is at
    int open = 0;     // if that is an exchange: its transfers that are not met yet
    bool done() const { return next == trace.size(); }
  };
  // The next collective of a set of roles: how many have arrived, and which came first.
  struct Collective {
    int arrived = 0, first = kNobody;
  };
  // A transfer that waits for its other end. A channel has the waiting transfers from one role to another over one
  // communicator, in order; one of its two queues is always empty.
  struct Post {
    size_t event = 0;
    const Communication::Part* part = nullptr;
  };
  struct Channel {
    std::deque<Post> sends, receives;
  };
  using ChannelKey = std::tuple<int, int, int>;  // communicator, sender, receiver

  void Advance(int role);
  bool ArriveAtCollective(int role, const Communication& communication);
  bool PostExchange(int role, const Communication& communication);
  void Release(int role);

  // Messages (progress_proof_report.cc).
  std::string Where(int role, size_t event, int rank) const;
  int OriginOf(int role, size_t event) const;
  void Fail(int role, size_t event, int rank, const std::string& what);
  void FailCollective(int role, int other, const Communication& communication);
  void FailTransfer(int role, const Post& mine, int other, const Post& theirs);
  void ReportStuck();
  bool ReportUnequalCollectives();
  bool ReportUnequalCollectives(const Group& group, const std::vector<int>& roles);
  bool ReportUnequalTransfers();
  void ReportCircle();
  int RoleWaitedFor(int role);

  const Plan& plan_;
  CommunicationTraces& traces_;
  CommunicationPartners& partners_;
  const std::string list_name_;
  const List list_;
  std::vector<Runner> runners_;
  std::vector<int> ready_;                            // roles whose next event may be done
  std::vector<std::vector<Collective>> collectives_;  // by group and set
  std::map<ChannelKey, Channel> channels_;
  std::vector<Violation> violations_;
};

}  // namespace planwright
