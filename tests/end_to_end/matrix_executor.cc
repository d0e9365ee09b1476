// The executor with one fault at one fail point (executor/base/fail_point.h), for kill_matrix.
//   PLANWRIGHT_FAULT=SIGKILL | SIGSTOP | SIGSEGV | exit (status 3) | exception | pause (SIGSTOP, but it can go on)
//   PLANWRIGHT_FAULT_RANK=N         of this rank
//   PLANWRIGHT_FAULT_LIST=NAME      the fail point: FailPoint::list,
//   PLANWRIGHT_FAULT_STEP=N         step,
//   PLANWRIGHT_FAULT_NUMBER=N       and number
//   PLANWRIGHT_FAULT_MOMENT=before | during | after
//   PLANWRIGHT_FAULT_WAITS=FILE     no earlier than this file is there: what another thread writes meanwhile
//   PLANWRIGHT_FAULT_MARK=FILE      gets the moment of the fault (CLOCK_MONOTONIC, in nanoseconds), and, in a second
//                                   line, the path and the kind of the instruction
//
// Before and after: on the thread that does the work. During: a second thread brings the fault as soon as the work has
// begun. Work may take microseconds, so it may be over by then; but it has not passed its point `after`, which waits
// for the fault. To all others the rank is inside the work. A fault during work is one that comes from outside, from a
// library's thread or the kernel: an exception then has no frame of ours around it.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "executor/ops/joined_forms.h"
#include "executor/rank/rank_main.h"
#include "planner/base/files/exit_status.h"
#include "planner/wire/fork/become_rank.h"

namespace planwright::executor {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void Mark(const FailPoint& point) {
  std::ofstream(Variable("PLANWRIGHT_FAULT_MARK"))
      << std::chrono::steady_clock::now().time_since_epoch().count() << "\n"
      << (point.kind ? point.path + " > " + std::string(OpName(*point.kind)) : "") << "\n";
}

void Fail(const FailPoint& point) {
  const std::string waits = Variable("PLANWRIGHT_FAULT_WAITS");
  while (!waits.empty() && access(waits.c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Mark(point);
  const std::string fault = Variable("PLANWRIGHT_FAULT");
  if (fault == "SIGKILL") raise(SIGKILL);
  if (fault == "SIGSTOP") raise(SIGSTOP);
  if (fault == "pause") return void(raise(SIGSTOP));
  if (fault == "SIGSEGV") raise(SIGSEGV);
  if (fault == "exit") _exit(3);
  throw std::runtime_error("planted failure");
}

bool IsPlanned(const FailPoint& point) {
  return point.list == Variable("PLANWRIGHT_FAULT_LIST") &&
         std::to_string(point.step) == Variable("PLANWRIGHT_FAULT_STEP") &&
         std::to_string(point.number) == Variable("PLANWRIGHT_FAULT_NUMBER");
}

// All fail points of a list and step are passed on one thread.
void PassFailPoint(const FailPoint& point) {
  if (!IsPlanned(point)) return;
  static std::thread outside;
  const std::string moment = Variable("PLANWRIGHT_FAULT_MOMENT");
  if (point.moment == FailPoint::Moment::kBefore) {
    if (moment == "before") Fail(point);
    if (moment == "during") outside = std::thread(Fail, point);
  } else {
    if (moment == "after") Fail(point);
    if (moment == "during") outside.join();
  }
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) {
  using namespace planwright::executor;
  const rlimit none = {};
  setrlimit(RLIMIT_CORE, &none);                                      // a core file takes longer than the test allows
  if (!planwright::BecomeRank().ok()) return planwright::kExitUsage;  // now, as the rank decides what is planned
  const auto any_plan = [](planwright::Plan&) { return absl::OkStatus(); };
  const bool planned = Variable("RANK") == Variable("PLANWRIGHT_FAULT_RANK");
  return RankMain(argc, argv,
                  {.compute = ChooseForm,
                   .joined = ChooseJoinedForm,
                   .prepare = any_plan,
                   .fail_point = planned ? FailPointHook(PassFailPoint) : FailPointHook()});
}
