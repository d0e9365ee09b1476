// What lies outside any range in a part of a plan that was read, or "". Whoever walks a plan divides by its sizes, adds
// and multiplies them, and leans on these ranges: no such number is zero where that matters, and no product of a
// tensor's sizes overflows. Ranges of single free numbers stand with their fields, in plan_fields.h.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

std::string RangeProblem(const RankRange& range);
std::string RangeProblem(const Grid& grid);
std::string RangeProblem(const Cluster& cluster);
std::string RangeProblem(const LayerSummary& layer);
std::string RangeProblem(const Module& module);
std::string RangeProblem(const Transfer& transfer);
std::string RangeProblem(const ExchangePart& part);
std::string RangeProblem(const Budget& budget);
std::string RangeProblem(const DataPlan& data);
std::string RangeProblem(const LearningRate& rate);
std::string RangeProblem(const WeightDecay& decay);
std::string RangeProblem(const OptimizerPlan& optimizer);
std::string RangeProblem(const Symbol& symbol);
std::string RangeProblem(const Accumulator& sum);
std::string RangeProblem(const CheckpointPlan& checkpoint);
// Of its own fields and of those above that decide how weights are drawn and stepped.
std::string RangeProblem(const Plan& plan);

}  // namespace planwright
