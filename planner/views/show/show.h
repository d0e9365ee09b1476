// `plan show RECIPE SUBJECT`: parts of a plan as tables and drawings for the terminal, and as JSON for programs. One
// file for each subject: show_ranks.cc, show_groups.cc, ... Each reads the plan and nothing else, but ShowData, which
// reads the sizes of images where the data is. `time`: the predicted step of the plan. Keys of the JSON are an
// interface: they are added, and not renamed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"

namespace planwright {

// Characters of a line if the terminal does not say how many fit. Longer lines wrap, tables are cut into pieces, and
// charts go on below.
inline constexpr size_t kShowWidth = 150;

// Who is where: nodes, modules, coordinates in both views. The text draws similar nodes once; the JSON has every rank.
std::string ShowRanks(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowRanksJson(const Plan& plan);

// Process groups in the order of their creation (docs/layouts/grids.md#groups).
std::string ShowGroups(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowGroupsJson(const Plan& plan);

// Which rank sends which samples to which (docs/layouts/bridges.md#samples).
std::string ShowBridges(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowBridgesJson(const Plan& plan);

// Where samples come from, which lane has which of them, and how evenly images are dealt to the lanes of encoders
// (docs/training/data.md#balance). If the files or the index of the data are not here, the last says so in a line.
std::string ShowData(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowDataJson(const Plan& plan);

// Steps, segments and curves. `at`: sample counts at which the learning rate and the weight decay are shown with all
// their digits.
std::string ShowBudget(const Plan& plan, const std::vector<int64_t>& at, size_t width = kShowWidth);
nlohmann::ordered_json ShowBudgetJson(const Plan& plan, const std::vector<int64_t>& at);

// The pipeline: its forwards and backwards in predicted time, and their order in equal slots (timeline.h).
std::string ShowSchedule(const Plan& plan, const StepTime& time, size_t width = kShowWidth);
nlohmann::ordered_json ShowScheduleJson(const Plan& plan, const StepTime& time);

// Layers, parameters, FLOPs and the predicted time of a step (docs/flops.md).
std::string ShowModel(const Plan& plan, const StepTime& time, size_t width = kShowWidth);
nlohmann::ordered_json ShowModelJson(const Plan& plan, const StepTime& time);

// The predicted time of a step: speed, what each role does with the time, what bounds the step, and the largest costs
// (docs/step_time.md).
// `rows`: that `time` was predicted with, of a recording; null: none.
std::string ShowTime(const Plan& plan, const StepTime& time, const ExpertRows* rows, size_t width = kShowWidth);
nlohmann::ordered_json ShowTimeJson(const Plan& plan, const StepTime& time, const ExpertRows* rows);

// Bytes of a rank of each role by category, against its device (docs/memory.md).
std::string ShowMemory(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowMemoryJson(const Plan& plan);

// Every instruction of the roles and the blocks that they call. `role`: only this one; empty: all roles.
std::string ShowProgram(const Plan& plan, const std::string& role, size_t width = kShowWidth);
nlohmann::ordered_json ShowProgramJson(const Plan& plan, const std::string& role);

}  // namespace planwright
