// A plan's file: canonical JSON. The same plan gives the same bytes on every machine. One instruction, parameter or
// storage is on one line, so that text diffs read well. Fields with their default value are left out where
// plan_fields.h says so.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"

namespace planwright {

// The text of the file, which ends with a newline. plan.digest is written as it is: set it with PlanDigest first.
std::string WritePlan(const Plan& plan);

// The plan as the JSON tree of its file, for programs that print parts of it.
nlohmann::ordered_json PlanToJson(const Plan& plan);

// Reads the text of a file. FailedPrecondition for another format_version. InvalidArgument, with the path
// ("modules[1].parameters[3].shape: ..."), for: a field that is unknown, repeated, missing or of another type; numbers
// out of range (plan_ranges.h); more than limits.h allows; a digest that is not that of the contents.
absl::StatusOr<Plan> ReadPlan(std::string_view text);

// What an index has counted, as data.counted of a plan: what lies beside the index is written and read as plans are
// (data/samples/count_samples.h).
nlohmann::ordered_json CountedToJson(const CountedSamples& counted);
// InvalidArgument, with the path, for a field that is unknown, missing or of another type. Whether the numbers fit the
// data says RangeProblem of that.
absl::StatusOr<CountedSamples> CountedFromJson(const nlohmann::ordered_json& json);

// SHA-256, in hex, over the canonical JSON of what ranks do. Not covered: origins, tool version, recipe digest, the
// digest itself, and the `base` folders of paths.
std::string PlanDigest(const Plan& plan);

// SHA-256, in hex, of what an evaluation set of the plan is made of: the number of samples, their length in tokens, and
// the data but for the folder of its index; of mock data also the seed of the training, which draws what there is to
// learn. The layout, the name of the set and how often it is evaluated change nothing. Losses of two digests are of
// other samples, and are not compared. Files count by their names and, if these are relative, by their folder.
std::string SamplesDigest(const Plan& plan, const EvaluationSet& set);

}  // namespace planwright
