// What differs between the `executor` program and the executors of tests.
#pragma once

#include <absl/status/status.h>

#include <functional>

#include "executor/base/fail_point.h"
#include "executor/ops/joined_forms.h"
#include "executor/streams/streams.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

struct RankMainHooks {
  std::function<ComputeForm(const ComputeBinding&)> compute;  // ChooseForm of executor/ops/forms.h
  // ChooseJoinedForm of executor/ops/joined_forms.h; empty: each instruction runs by itself.
  std::function<JoinedHandler(const ComputeBinding& first, const ComputeBinding& second)> joined = {};
  // Called with the plan as loaded, before any peer is contacted. An error ends the rank with that message.
  std::function<absl::Status(Plan&)> prepare;
  BeforeInstruction before_instruction = {};  // executor/streams/streams.h
  FailPointHook fail_point = {};
};

}  // namespace planwright::executor
