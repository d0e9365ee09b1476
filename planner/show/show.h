// `plan show RECIPE SUBJECT`: parts of a plan as tables and drawings, and as JSON (shapes: docs, "What --json prints").
// One file per subject: show_ranks.cc, ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"

namespace planwright {

// Characters of a line of text, where nobody says how many fit: longer ones wrap, are cut into pieces or shortened.
inline constexpr size_t kShowWidth = 150;

std::string ShowRanks(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowRanksJson(const Plan& plan);

std::string ShowGroups(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowGroupsJson(const Plan& plan);

std::string ShowBridges(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowBridgesJson(const Plan& plan);

// `at`: sample counts to show the learning rate and weight decay of.
std::string ShowBudget(const Plan& plan, const std::vector<int64_t>& at, size_t width = kShowWidth);
nlohmann::ordered_json ShowBudgetJson(const Plan& plan, const std::vector<int64_t>& at);

std::string ShowSchedule(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowScheduleJson(const Plan& plan);

std::string ShowModel(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowModelJson(const Plan& plan);

std::string ShowMemory(const Plan& plan, size_t width = kShowWidth);
nlohmann::ordered_json ShowMemoryJson(const Plan& plan);

// `role`: only this one; empty: all.
std::string ShowProgram(const Plan& plan, const std::string& role, size_t width = kShowWidth);
nlohmann::ordered_json ShowProgramJson(const Plan& plan, const std::string& role);

}  // namespace planwright
