// One list (setup, step or teardown) of every role, run against each other with one runner per role: the order of
// docs/progress.md.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/verify/v3_progress/communication_partners.h"
#include "planner/verify/v3_progress/communication_trace.h"
#include "planner/verify/verify.h"

namespace planwright {

class ProgressProof {
 public:
  using List = std::vector<Instruction> Role::*;

  ProgressProof(const Plan& plan, CommunicationTraces& traces, CommunicationPartners& partners, std::string list_name,
                List list);

  // Nothing, or the first thing that is wrong.
  std::vector<Violation> Run();

 private:
  static constexpr int kNobody = -1;

  // Where a role is.
  struct Runner {
    Trace trace;
    size_t next = 0;
    int open = 0;  // transfers of the exchange it is at that are not met
    bool done() const { return next == trace.size(); }
  };
  // A set of roles on its way to one collective.
  struct Collective {
    int arrived = 0, first = kNobody;
  };
  // Transfers from one role to another over one communicator, in order. At most one of the queues holds any.
  struct Post {
    size_t event = 0;
    const Communication::Part* part = nullptr;
  };
  struct Channel {
    std::deque<Post> sends, receives;
  };
  using ChannelKey = std::tuple<int, int, int>;  // communicator, sender, receiver

  void Walk(int role);
  bool Collect(int role, const Communication& communication);
  bool Exchange(int role, const Communication& communication);
  void Release(int role);

  // Reports (role_meeting_report.cc).
  std::string Where(int role, size_t event, int rank) const;
  int OriginOf(int role, size_t event) const;
  void Fail(int role, size_t event, int rank, const std::string& what);
  void FailMeeting(int role, int other, const Communication& communication);
  void FailTransfer(int role, const Post& mine, int other, const Post& theirs);
  void ReportStuck();
  bool ReportUnequalCollectives();
  bool ReportUnequalCollectives(const Group& group, const std::vector<int>& roles);
  bool ReportUnequalTransfers();
  void ReportCircle();
  int WaitsFor(int role);

  const Plan& plan_;
  CommunicationTraces& traces_;
  CommunicationPartners& partners_;
  const std::string list_name_;
  const List list_;
  std::vector<Runner> runners_;
  std::vector<int> ready_;
  std::vector<std::vector<Collective>> collectives_;  // by group and set
  std::map<ChannelKey, Channel> channels_;
  std::vector<Violation> violations_;
};

}  // namespace planwright
