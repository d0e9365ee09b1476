// V3. The argument that this proves what it says for every rank and every interleaving is docs/progress.md.

#include "planner/verify/role_meeting.h"

namespace planwright {
namespace {

struct NamedList {
  const char* name;
  RoleMeeting::List list;
};

}  // namespace

std::vector<Violation> VerifyProgress(const Plan& plan) {
  constexpr NamedList kLists[] = {{"setup", &Role::setup}, {"step", &Role::step}, {"teardown", &Role::teardown}};
  CommunicationTraces traces(plan);
  RoleRelations relations(plan);
  for (const NamedList& named : kLists) {
    // Each list begins and ends with nothing under way, so lists one after the other, and steps one after the other,
    // are in order too.
    if (auto violations = RoleMeeting(plan, traces, relations, named.name, named.list).Run(); !violations.empty())
      return violations;
  }
  return {};
}

}  // namespace planwright
