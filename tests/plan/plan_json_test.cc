#include "planner/plan/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "planner/base/text/limits.h"
#include "tests/plan/random_plan.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

Plan RandomPlan(int seed) {
  std::mt19937 random(seed);
  RandomFill fill(random);
  Plan plan;
  Describe(fill, plan);
  plan.format_version = kPlanFormatVersion;
  plan.digest = PlanDigest(plan);
  return plan;
}

// A plan with at least one of everything, so that edits below have something to edit. What a random plan lacks it gets
// from the next one: all at once are in one of thousands.
Plan FullPlan() {
  Plan plan = RandomPlan(0);
  for (int seed = 1;; ++seed) {
    const auto full = [](const Plan& one) {
      return std::array{!one.modules.empty() && !one.modules[0].parameters.empty(),
                        !one.roles.empty() && !one.roles[0].step.empty() && !one.roles[0].ranks.empty() &&
                            !one.roles[0].step[0].outputs.empty(),
                        !one.origins.empty(),
                        !one.bridges.empty() && !one.bridges[0].forward.empty(),
                        one.initialize.has_value(),
                        !one.blocks.empty(),
                        !one.data.image_grids.empty() && !one.data.encoders.empty()};
    };
    const auto has = full(plan);
    if (std::find(has.begin(), has.end(), false) == has.end()) break;
    Plan other = RandomPlan(seed);
    const auto gives = full(other);
    if (!has[0] && gives[0]) plan.modules = std::move(other.modules);
    if (!has[1] && gives[1]) plan.roles = std::move(other.roles);
    if (!has[2] && gives[2]) plan.origins = std::move(other.origins);
    if (!has[3] && gives[3]) plan.bridges = std::move(other.bridges);
    if (!has[4] && gives[4]) plan.initialize = std::move(other.initialize);
    if (!has[5] && gives[5]) plan.blocks = std::move(other.blocks);
    if (!has[6] && gives[6]) plan.data = std::move(other.data);
  }
  plan.digest = PlanDigest(plan);
  return plan;
}

std::string ErrorOf(const ordered_json& json) { return std::string(ReadPlan(json.dump()).status().message()); }

TEST(PlanJson, RoundTripsRandomPlansInEveryField) {
  for (int seed = 0; seed < 300; ++seed) {
    const std::string text = WritePlan(RandomPlan(seed));
    absl::StatusOr<Plan> read = ReadPlan(text);
    ASSERT_TRUE(read.ok()) << seed << ": " << read.status();
    ASSERT_EQ(WritePlan(*read), text) << seed;
  }
}

// What lies beside an index has the fields of a plan.
TEST(PlanJson, CountsOfAnIndexAreReadAsTheyAreWritten) {
  int images = 0, documents = 0;
  for (int seed = 0; seed < 300; ++seed) {
    const CountedSamples counted = RandomPlan(seed).data.counted;
    const absl::StatusOr<CountedSamples> read = CountedFromJson(CountedToJson(counted));
    ASSERT_TRUE(read.ok()) << seed << ": " << read.status();
    ASSERT_EQ(*read, counted) << seed;
    images += !counted.images.empty(), documents += !counted.documents.empty();
  }
  EXPECT_GT(images, 10);
  EXPECT_GT(documents, 10);
  const auto error = [](const ordered_json& json) { return std::string(CountedFromJson(json).status().message()); };
  ordered_json json = CountedToJson({});
  json["color"] = 1;
  EXPECT_EQ(error(json), "color: what an index counts has no such field");
  json.erase("color");
  json["first_squares"] = "many";
  EXPECT_EQ(error(json), "first_squares: expected a list, found string");
  json.erase("first_squares");
  json.erase("digest");
  EXPECT_EQ(error(json), "digest: the field is missing");
  EXPECT_EQ(error(ordered_json::array()), "not the counts of an index: it is no object");
}

TEST(PlanJson, KeepsValuesNotOnlyTheirText) {
  Plan plan = FullPlan();
  plan.budget.learning_rate.peak = 0.1 + 0.2;
  plan.seed = kLargestNumber;
  plan.data.vocabulary = kLargestNumber;
  plan.data.image_token = kLargestNumber - 1;
  plan.roles[0].step[0].attributes = {{"whole", 3.0}, {"count", int64_t{3}}, {"list", std::vector<int64_t>{}}};
  plan.digest = PlanDigest(plan);
  absl::StatusOr<Plan> read = ReadPlan(WritePlan(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->seed, kLargestNumber);
  EXPECT_EQ(read->data.image_token, kLargestNumber - 1);
  EXPECT_EQ(read->budget.learning_rate.peak, 0.1 + 0.2);
  EXPECT_EQ(read->roles[0].step[0].attributes, plan.roles[0].step[0].attributes);
  EXPECT_EQ(read->roles[0].step[0].kind, plan.roles[0].step[0].kind);
  EXPECT_EQ(read->bridges[0].forward[0].end_sample, plan.bridges[0].forward[0].end_sample);
  EXPECT_EQ(read->modules[0].parameters[0].shard_dim, plan.modules[0].parameters[0].shard_dim);
}

TEST(PlanJson, SaysFirstWhatItIs) {
  Plan plan = FullPlan();
  plan.tool_version = plan.recipe_digest = "1.2.3";  // of the random plan they may be empty, and are then left out
  const ordered_json json = ordered_json::parse(WritePlan(plan));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  keys.resize(5);
  EXPECT_THAT(keys, ::testing::ElementsAre("format_version", "tool_version", "name", "recipe_digest", "digest"));
}

TEST(PlanJson, WritesOneInstructionALine) {
  const Plan plan = FullPlan();
  const std::string text = WritePlan(plan);
  const std::string op = "{\"op\":\"" + std::string(OpName(plan.roles[0].step[0].kind)) + "\"";
  const size_t at = text.find("\"step\": [\n    " + op);
  ASSERT_NE(at, std::string::npos);
  const size_t line = text.find(op, at);
  EXPECT_NO_THROW(
      ordered_json::parse(text.substr(line, text.find('\n', line) - line - (text[text.find('\n', line) - 1] == ','))));
}

TEST(PlanJson, ChecksTheFormatVersionFirst) {
  EXPECT_THAT(ErrorOf({{"format_version", 1}, {"new_field", 1}}),
              HasSubstr("format_version 1; this version of Planwright"));
  EXPECT_THAT(ErrorOf({{"format_version", 1}}), HasSubstr("reads 2"));
  EXPECT_THAT(ErrorOf({{"name", "x"}}), HasSubstr("no format_version"));
  EXPECT_THAT(ErrorOf(ordered_json::array()), HasSubstr("not a plan"));
  EXPECT_THAT(std::string(ReadPlan("name: recipe\n").status().message()), HasSubstr("not a plan"));
}

TEST(PlanJson, NamesThePathOfWhatIsWrong) {
  const ordered_json good = ordered_json::parse(WritePlan(FullPlan()));
  auto changed = [&](const char* pointer, ordered_json value) {
    ordered_json json = good;
    json[ordered_json::json_pointer(pointer)] = std::move(value);
    return ErrorOf(json);
  };
  EXPECT_THAT(changed("/modules/0/parameters/0/shape", "wide"),
              HasSubstr("modules[0].parameters[0].shape: expected a list, found string"));
  EXPECT_THAT(changed("/modules/0/parameters/0/shap", 1),
              HasSubstr("modules[0].parameters[0].shap: a plan has no such field"));
  EXPECT_THAT(changed("/roles/0/step/0/op", "fly"), HasSubstr("roles[0].step[0].op: no op: \"fly\""));
  EXPECT_THAT(changed("/roles/0/step/0/outputs/0", "x: fp3[1]"), HasSubstr("roles[0].step[0].outputs[0]: no value"));
  EXPECT_THAT(changed("/roles/0/ranks/0/stride", 0), HasSubstr("roles[0].ranks[0]: count and stride"));
  EXPECT_THAT(changed("/modules/0/grid/tp", 0), HasSubstr("modules[0].grid: sizes of axes"));
  EXPECT_THAT(changed("/modules/0/grid/tp", 1.5), HasSubstr("modules[0].grid.tp: expected an integer"));
  EXPECT_THAT(changed("/bridges/0/forward/0", {1, 2}), HasSubstr("bridges[0].forward[0]: expected [from rank"));
  EXPECT_THAT(changed("/world_size", 4294967296), HasSubstr("world_size: the integer is too large"));
  EXPECT_THAT(changed("/seed", kLargestNumber + 1), HasSubstr("seed: the integer is too large"));
  EXPECT_THAT(changed("/seed", UINT64_MAX), HasSubstr("seed: the integer is too large"));
  EXPECT_THAT(changed("/budget/train_samples", kMostSamples + 1),
              HasSubstr("budget: a number of samples or steps out of range"));
  EXPECT_THAT(changed("/budget/microbatches", kMostPassages + 1),
              HasSubstr("budget: micro_samples, sequence_length or microbatches"));
  EXPECT_THAT(changed("/data/image_grids/0", ordered_json::array()), HasSubstr("data: image sizes out of range"));
  EXPECT_THAT(changed("/data/image_grids/0", {4, 6, 6}), HasSubstr("data: image sizes out of range"));
  EXPECT_THAT(changed("/data/resize", "lanczos"), HasSubstr("data: an unknown way to resize images"));
  EXPECT_THAT(changed("/data/grid", "floor"), HasSubstr("data: an unknown rule for grids of patches"));
  EXPECT_THAT(changed("/data/orientation", "north"), HasSubstr("data: an unknown way to turn images"));
  EXPECT_THAT(changed("/data/image_grids/0", {4, 0}), HasSubstr("data: image sizes out of range"));
  EXPECT_THAT(changed("/data/encoders/0/pixel_shuffle", kMostPixelShuffle + 1),
              HasSubstr("data: image sizes out of range"));
  EXPECT_THAT(changed("/modules/0/parameters/0/shape", {kLargestDim, kLargestDim}),
              HasSubstr("modules[0]: a number of elements out of range, at parameter"));
  ordered_json missing = good;
  missing["budget"].erase("steps");
  EXPECT_THAT(ErrorOf(missing), HasSubstr("budget.steps: the field is missing"));
}

TEST(PlanJson, RefusesControlCharacters) {
  const ordered_json good = ordered_json::parse(WritePlan(FullPlan()));
  for (const std::string& bad :
       {std::string("a\0b", 3), std::string("a\x1b[2J"), std::string("a\nb"), std::string("a\x7f")}) {
    for (const char* pointer :
         {"/name", "/cluster/gpu", "/modules/0/name", "/blocks/0/name", "/roles/0/step/0/stream"}) {
      ordered_json json = good;
      json[ordered_json::json_pointer(pointer)] = bad;
      EXPECT_THAT(ErrorOf(json), HasSubstr("the text has a control character")) << pointer;
    }
    ordered_json json = good;
    json["modules"][0]["constants"][bad] = 1;
    EXPECT_THAT(ErrorOf(json), HasSubstr("a name in it has a control character"));
  }
}

TEST(PlanJson, RefusesARepeatedField) {
  std::string text = WritePlan(FullPlan());
  text.insert(text.find("\"world_size\""), "\"world_size\": 1,\n ");
  EXPECT_THAT(std::string(ReadPlan(text).status().message()), HasSubstr("\"world_size\" is given twice"));
}

// `text` over and over in a list or an object, as the value of `roles`.
std::string ErrorOfMany(const std::string& open, size_t count, const std::string& text, const std::string& close) {
  std::string json = R"({"format_version":1,"roles":)" + open;
  for (size_t i = 0; i < count; ++i) json += i == 0 ? text : "," + text;
  return std::string(ReadPlan(json + close + "}").status().message());
}

TEST(PlanJson, RefusesMoreThanAPlanCanHave) {
  const std::string values = std::to_string(kMostPlanValues), levels = std::to_string(kDeepestPlan),
                    fields = std::to_string(kMostPlanFields);
  for (const char* value : {"0", "[]", "{}", R"({"a":[]})"}) {
    EXPECT_EQ(ErrorOfMany("[", kMostPlanValues, value, "]"), "not a plan: more than " + values + " values") << value;
  }
  EXPECT_EQ(ErrorOfMany(std::string(kDeepestPlan, '['), 1, "0", std::string(kDeepestPlan, ']')),
            "not a plan: more than " + levels + " levels of objects and lists");
  std::string many = "{";
  for (size_t i = 0; i <= kMostPlanFields; ++i) many += "\"f" + std::to_string(i) + "\":0,";
  EXPECT_EQ(ErrorOfMany(many, 1, "\"last\":0", "}"), "not a plan: an object of more than " + fields + " fields");
  ordered_json plan = ordered_json::parse(WritePlan(FullPlan()));
  plan["roles"] = ordered_json::array_t(kMostParts, 0);
  EXPECT_THAT(ErrorOf(plan), HasSubstr("roles[0]: expected an object"));
  plan["roles"].push_back(0);
  EXPECT_EQ(ErrorOf(plan), "roles: the list has more than " + std::to_string(kMostParts) + " items");
  EXPECT_THAT(ErrorOfMany("[", 1, "1e999", "]"), HasSubstr("not a plan: number overflow parsing"));
}

TEST(PlanJson, RefusesAPlanChangedAfterCompiling) {
  ordered_json json = ordered_json::parse(WritePlan(FullPlan()));
  json["world_size"] = json["world_size"].get<int>() + 1;
  EXPECT_THAT(ErrorOf(json), HasSubstr("digest: the plan was changed after it was compiled"));
}

TEST(PlanDigest, IsSha256OfWhatRanksDo) {
  const Plan plan = FullPlan();
  EXPECT_EQ(plan.digest.size(), 64u);
  Plan same = plan;
  same.tool_version = "9.9";
  same.recipe_digest = "other";
  same.digest = "other";
  same.origins[0].line += 7;
  same.modules[0].origin += 1;
  same.roles[0].step[0].origin += 1;
  same.data.base = "elsewhere";
  same.initialize->base = "elsewhere";
  for (WeightSourcePlan& source : same.initialize->sources) source.base = "elsewhere";
  EXPECT_EQ(PlanDigest(same), plan.digest);
  for (const auto& change : std::vector<void (*)(Plan&)>{
           [](Plan& p) { p.data.path += "x"; }, [](Plan& p) { p.roles[0].step[0].frees.push_back("x"); },
           [](Plan& p) { p.modules[0].parameters[0].init.a = 1 - 2 * p.modules[0].parameters[0].init.a; },
           [](Plan& p) { p.seed ^= 1; },
           [](Plan& p) {
             std::swap(p.bridges[0].forward[0].from_rank, p.bridges[0].forward[0].to_rank);
             p.bridges[0].forward[0].from_rank += 1;
           }}) {
    Plan other = plan;
    change(other);
    EXPECT_NE(PlanDigest(other), plan.digest);
  }
}

TEST(SamplesDigest, IsSha256OfWhatASetIsMadeOf) {
  Plan plan = FullPlan();
  plan.data.kind = DataKind::kMock;
  const EvaluationSet set{.name = "held_out", .samples = 8, .rounds = 2, .data = plan.data};
  const std::string digest = SamplesDigest(plan, set);
  EXPECT_EQ(digest.size(), 64u);
  for (const auto& same : std::vector<void (*)(Plan&, EvaluationSet&)>{
           [](Plan&, EvaluationSet&s) { s.name = "other"; }, [](Plan&, EvaluationSet&s) { s.rounds = 1; },
           [](Plan&, EvaluationSet&s) { s.data.base = "elsewhere"; },
           [](Plan&, EvaluationSet&s) { s.data.index = "elsewhere"; },
           [](Plan&p, EvaluationSet&) { p.evaluation.every_samples += 8; }, [](Plan&p, EvaluationSet&) { ++p.seed; },
           [](Plan&p, EvaluationSet&) { p.data.path += "x"; }}) {
    Plan other = plan;
    EvaluationSet of_other = set;
    same(other, of_other);
    EXPECT_EQ(SamplesDigest(other, of_other), digest);
  }
  for (const auto& change : std::vector<void (*)(Plan&, EvaluationSet&)>{
           [](Plan&, EvaluationSet&s) { ++s.samples; }, [](Plan&, EvaluationSet&s) { ++s.data.seed; },
           [](Plan&, EvaluationSet&s) { s.data.path += "x"; }, [](Plan&, EvaluationSet&s) { s.data.tokenizer += "x"; },
           [](Plan&p, EvaluationSet&) { ++p.budget.sequence_length; }, [](Plan&p, EvaluationSet&) { ++p.data.seed; }}) {
    Plan other = plan;
    EvaluationSet of_other = set;
    change(other, of_other);
    EXPECT_NE(SamplesDigest(other, of_other), digest);
  }
  Plan of_files = plan;
  EvaluationSet set_of_files = set;
  of_files.data.kind = set_of_files.data.kind = DataKind::kRecorded;
  const std::string digest_of_files = SamplesDigest(of_files, set_of_files);
  ++of_files.data.seed;
  EXPECT_EQ(SamplesDigest(of_files, set_of_files), digest_of_files)
      << "the seed of the training makes no task of files";
  // The same relative names in two folders are other files; how a folder is written, and absolute names, change
  // nothing.
  set_of_files.data.path = "x.tar";
  set_of_files.data.base = "/data/a";
  const std::string here = SamplesDigest(of_files, set_of_files);
  set_of_files.data.base = "/data/b/../a";
  EXPECT_EQ(SamplesDigest(of_files, set_of_files), here);
  set_of_files.data.base = "/data/b";
  EXPECT_NE(SamplesDigest(of_files, set_of_files), here);
  set_of_files.data.path = "/data/x.tar";
  set_of_files.data.sources.clear();
  const std::string absolute = SamplesDigest(of_files, set_of_files);
  set_of_files.data.base = "/data/a";
  EXPECT_EQ(SamplesDigest(of_files, set_of_files), absolute);
}

}  // namespace
}  // namespace planwright
