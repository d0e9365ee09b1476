// Ranges of the numbers of a plan. A plan's file may be damaged, and code that walks a plan divides by its sizes, adds
// and multiplies them. Within these ranges no divisor is zero and no product of the sizes of a tensor overflows. Ranges
// of single free numbers are in plan_fields.h, beside the fields.
//
// Each function returns what is out of range, as a noun phrase ("a token outside the vocabulary"), or "".
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

std::string RangeProblem(const RankRange& range);
std::string RangeProblem(const Grid& grid);
std::string RangeProblem(const DeviceFigures& figures);
std::string RangeProblem(const MeasuredTime& time);
std::string RangeProblem(const MeasuredCompute& point);
std::string RangeProblem(const MeasuredCommunication& point);
std::string RangeProblem(const MeasuredLaunch& point);
std::string RangeProblem(const MeasuredBeside& point);
std::string RangeProblem(const MeasuredSkew& point);
std::string RangeProblem(const ScaledUses& uses);
std::string RangeProblem(const Cluster& cluster);
std::string RangeProblem(const LayerSummary& layer);
std::string RangeProblem(const Module& module);
std::string RangeProblem(const Transfer& transfer);
std::string RangeProblem(const Bridge& bridge);
std::string RangeProblem(const ExchangePart& part);
std::string RangeProblem(const Budget& budget);
std::string RangeProblem(const DataPlan& data);
std::string RangeProblem(const EvaluationSet& set);
std::string RangeProblem(const EvaluationPlan& evaluation);
std::string RangeProblem(const DivergencePlan& divergence);
std::string RangeProblem(const LearningRate& rate);
std::string RangeProblem(const WeightDecay& decay);
std::string RangeProblem(const RatePart& part);
std::string RangeProblem(const OptimizerPlan& optimizer);
std::string RangeProblem(const Symbol& symbol);
std::string RangeProblem(const Accumulator& sum);
std::string RangeProblem(const CheckpointPlan& checkpoint);
std::string RangeProblem(const InitializePlan& initialize);
std::string RangeProblem(const LaunchPlan& launch);
// The plan's own fields, and those parts that decide how weights are drawn and stepped and how ranks are run. (A reader
// has checked the other parts one by one; a plan that the planner made is checked here as a whole.)
std::string RangeProblem(const Plan& plan);

}  // namespace planwright
