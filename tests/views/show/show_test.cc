// `plan show`, subject by subject, on a plan made by hand.
#include "planner/views/show/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "planner/base/paper/table.h"
#include "planner/state/checkpoint/disk_use.h"
#include "planner/views/show/layer_parameters.h"
#include "planner/views/show/quantities.h"
#include "tests/views/show/small_budget.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two encoder ranks feed a language model of four (tp2 dp2, ep4) on nodes of four.
Plan SixRanks() {
  Plan plan;
  plan.world_size = 6;
  plan.cluster = {2, 4, "none"};
  plan.modules.resize(2);
  plan.modules[0].name = "encoder";
  plan.modules[0].grid = {0, 1, 1, 2, 1, 1, 1, 2};
  plan.modules[1].name = "language";
  plan.modules[1].kind = "hybrid_lm";
  plan.modules[1].grid = {2, 2, 1, 2, 1, 1, 4, 1};
  plan.modules[1].parameter_count = 123456;
  plan.modules[1].layers = {{'M', "language.layers.0", 100}, {'E', "language.layers.1", 200}};
  Group world{"world", "world"};
  world.ranks = {0, 1, 2, 3, 4, 5};
  world.streams = {""};
  Group tp{"language.tp", "tp", "language", View::kDense, {Axis::kTp}};
  plan.groups = {world, tp};
  plan.bridges = {{"encoder.language",
                   "encoder",
                   "language",
                   "equal",
                   -1,
                   0,
                   {{0, 2, 0, 1}, {1, 4, 1, 2}},
                   {{2, 0, 0, 1}, {4, 1, 1, 2}}}};
  plan.schedule = {{"encoder", 0, 1, {"F0", "F1", "B0", "B1"}}, {"language", 0, 0, {"F0", "B0", "F1", "B1"}}};
  Instruction norm;
  norm.kind = OpKind::kRmsNorm;
  norm.inputs = {"x"};
  norm.parameters = {"norm"};
  norm.outputs = {{"y", {DType::kFp32, {int64_t{8}, std::string("rows")}}}};
  norm.attributes = {{"eps", 1e-5}};
  plan.blocks.resize(2);
  plan.blocks[0].name = "language.norm.forward";
  plan.blocks[0].body = {norm};
  plan.blocks[0].outputs = {"y"};
  plan.blocks[1].name = "encoder.other";
  Instruction call;
  call.kind = OpKind::kCall;
  call.block = "language.norm.forward";
  call.frame = "language.layers.0";
  call.microbatch = 1;
  plan.roles.resize(2);
  plan.roles[0].name = "encoder.s0";
  plan.roles[0].ranks = {{0, 2, 1}};
  plan.roles[1].name = "language.s0";
  plan.roles[1].ranks = {{2, 4, 1}};
  plan.roles[1].step = {call};
  return plan;
}

TEST(ShowRanks, GivesEachRanksCoordinatesInBothViews) {
  const ordered_json json = ShowRanksJson(SixRanks());
  EXPECT_EQ(json["world_size"], 6);
  ASSERT_EQ(json["ranks"].size(), 6u);
  EXPECT_EQ(json["ranks"][5],
            ordered_json::parse(R"({"rank": 5, "node": 1, "local_rank": 1, "role": "language.s0", "modules":
      {"language": {"dense": {"tp": 1, "cp": 0, "dp": 1, "pp": 0},
                    "expert": {"expert_tp": 0, "ep": 3, "expert_dp": 0, "pp": 0}}}})"));
}

TEST(ShowRanks, DrawsABoxForEachRankOfANode) {
  const std::string text = ShowRanks(SixRanks());
  EXPECT_THAT(text, HasSubstr("node 0  │ rank 0      │ rank 1      │ rank 2      │ rank 3      │"));
  EXPECT_THAT(text, HasSubstr("node 1  │ rank 4      │ rank 5      │\n        │ language    │ language    │\n"
                              "        │ tp0 dp1 ep2 │ tp1 dp1 ep3 │"));
}

// Ranks on CPUs may be more than the cluster has places for: they take as many nodes as they need.
TEST(ShowRanks, CountsTheNodesThatItDraws) {
  Plan plan = SixRanks();
  plan.cluster.nodes = 1;
  EXPECT_THAT(ShowRanks(plan), HasSubstr("6 ranks on 2 nodes of 4"));
  plan.cluster.nodes = 3;
  EXPECT_THAT(ShowRanks(plan), HasSubstr("6 ranks on 3 nodes of 4"));
}

TEST(ShowGroups, ListsMembersInOrder) {
  const ordered_json json = ShowGroupsJson(SixRanks());
  EXPECT_TRUE(json["groups"][0]["module"].is_null());
  EXPECT_EQ(json["groups"][1]["name"], "tp");
  EXPECT_EQ(json["groups"][1]["view"], "dense");
  EXPECT_EQ(json["groups"][1]["axes"], ordered_json({"tp"}));
  EXPECT_EQ(json["groups"][1]["used"], false);
  EXPECT_EQ(json["groups"][1]["members"], ordered_json::parse("[[2, 3], [4, 5]]"));
  EXPECT_THAT(ShowGroups(SixRanks()), HasSubstr("[2-3] [4-5]"));
}

TEST(ShowBridges, ListsHalfOpenSamples) {
  EXPECT_EQ(ShowBridgesJson(SixRanks())["bridges"][0]["transfers"],
            ordered_json::parse(R"([{"from_rank": 0, "to_rank": 2, "microbatch_samples": [0, 1]},
                                    {"from_rank": 1, "to_rank": 4, "microbatch_samples": [1, 2]}])"));
  EXPECT_THAT(ShowBridges(SixRanks()), HasSubstr("encoder ──▶ language   equal"));
}

// The parameters of a merger of inner layers are the projector's.
TEST(ShowModel, LayersWhoseParametersAreOfTheProjectorSayIt) {
  Plan plan = SixRanks();
  Module& encoder = plan.modules[0];
  encoder.kind = "qwen_vit", encoder.projector_count = 10;
  encoder.layers = {{.kind = 'V', .frame = "inner.0", .parameters = 7}, {.kind = 'D', .frame = "inner.1"}};
  encoder.parameters = {{.shape = {7}}, {.shape = {2, 3}}, {.shape = {4}}, {.shape = {5}, .buffer = true}};
  encoder.storages = {{.frame = "inner.0", .parameters = {0}},
                      {.frame = "inner.1", .parameters = {1, 2}},
                      {.frame = "inner.1", .parameters = {3}}};
  EXPECT_THAT(ShowModel(plan, TimeStep(plan), 400),
              ::testing::ContainsRegex("inner.0 +V .* 7 .*\n +inner.1 +D .*10 of the projector"));
  const ordered_json layers = ShowModelJson(plan, TimeStep(plan))["modules"][encoder.name]["layers"];
  EXPECT_EQ(layers[0]["parameters"], 7);
  EXPECT_EQ(layers[0]["projector_parameters"], 0);
  EXPECT_EQ(layers[1]["parameters"], 0);
  EXPECT_EQ(layers[1]["projector_parameters"], 10);
  EXPECT_EQ((LayerParameters{3, 4000}.Text()), "3 and 4,000 of the projector");
}

// What the plan does, what both kinds are estimated to take, and who chooses. Nothing where no token goes to another
// rank.
TEST(ShowModel, SaysHowTokensReachExperts) {
  Plan plan = SixRanks();
  plan.precision = "bf16";
  Module& language = plan.modules[1];
  language.constants = {{"hidden", int64_t{2688}}, {"moe.experts", int64_t{128}}, {"moe.top_k", int64_t{6}}};
  language.layers[1].expert_row = 0;
  EXPECT_THAT(ShowModel(plan, TimeStep(plan), 400),
              HasSubstr("token dispatch over ep 4: all_to_all. Predicted for a token of a layer "
                        "in the forward: all_to_all 9 rows; all_gather 9 rows. `dispatch: "
                        "auto` takes the faster one, and all_to_all where times are unknown."));
  language.dispatch = "all_gather";
  plan.cluster.gpu = "h200_sxm";
  const ordered_json json = ShowModelJson(plan, TimeStep(plan))["modules"]["language"]["dispatch"];
  EXPECT_EQ(json["kind"], "all_gather");
  EXPECT_EQ(json["all_to_all"]["rows"], 9);
  EXPECT_GT(json["all_gather"]["seconds"], json["all_to_all"]["seconds"]);  // more is read and written in memory
  EXPECT_THAT(ShowModel(plan, TimeStep(plan), 400), HasSubstr("token dispatch over ep 4: all_gather. "));
  language.grid.ep = 1;
  EXPECT_THAT(ShowModel(plan, TimeStep(plan)), ::testing::Not(HasSubstr("token dispatch")));
  EXPECT_FALSE(ShowModelJson(plan, TimeStep(plan))["modules"]["language"].contains("dispatch"));
}

TEST(ShowSchedule, DrawsWhenEachMicrobatchCanRun) {
  const Plan plan = SixRanks();
  const std::string text = ShowSchedule(plan, TimeStep(plan));
  EXPECT_THAT(text, HasSubstr("encoder.s0   |F0|F1|. |B0|. |B1|"));
  EXPECT_THAT(text, HasSubstr("language.s0  |. |F0|B0|F1|B1|"));
  EXPECT_EQ(ShowScheduleJson(plan, TimeStep(plan))["stages"][1],
            ordered_json::parse(R"({"module": "language", "stage": 0, "ranks": [2, 3, 4, 5], "warmup": 0,
                                    "order": ["F0", "B0", "F1", "B1"], "slots": [1, 2, 3, 4], "times": []})"));
}

// Bars from where each forward and backward begins until it ends: the encoder for a quarter of the step, then the
// language model.
TEST(ShowSchedule, DrawsPredictedTime) {
  const Plan plan = SixRanks();
  StepTime time{.seconds = true, .length = 2};
  RoleTime encoder{.role = &plan.roles[0], .ranks = plan.roles[0].ranks},
      language{.role = &plan.roles[1], .ranks = plan.roles[1].ranks};
  encoder.waiting = 1.5, language.waiting = 0.5;
  encoder.actions = {{.module = "encoder", .microbatch = 0, .start = 0, .end = 0.25},
                     {.module = "encoder", .microbatch = 1, .start = 0.25, .end = 0.5}};
  language.actions = {{.module = "language", .microbatch = 0, .start = 0.5, .end = 1},
                      {.module = "language", .microbatch = 0, .backward = true, .start = 1, .end = 2}};
  time.roles = {encoder, language};
  const std::string text = ShowSchedule(plan, time, 55);
  EXPECT_THAT(text, HasSubstr("encoder.s0   |F0░░░F1░░░                              |\n"
                              "language.s0  |          F0░░░░░░░░B0██████████████████|\n"
                              "              0   500 ms       1 s     1.5 s       2 s\n"));
  EXPECT_THAT(text, HasSubstr("empty time"));
  EXPECT_THAT(text, HasSubstr("a step of 2 s, as predicted"));
  const ordered_json json = ShowScheduleJson(plan, time);
  EXPECT_EQ(json["seconds"], 2);
  EXPECT_EQ(json["stages"][1]["times"], ordered_json::parse("[[0.25, 0.5], [0.5, 1]]"));
}

TEST(ShowSchedule, GoesOnBelowWhereALineIsFull) {
  Plan plan = SixRanks();
  plan.schedule[1].order.clear();
  for (int i = 0; i < 20; ++i)
    plan.schedule[1].order.insert(plan.schedule[1].order.end(), {"F" + std::to_string(i), "B" + std::to_string(i)});
  plan.schedule[0].order = plan.schedule[1].order;
  plan.bridges.clear();
  const std::string text = ShowSchedule(plan, TimeStep(plan), 80);
  EXPECT_THAT(text, HasSubstr("from column 16"));
  EXPECT_THAT(text, HasSubstr("|B19|"));
  EXPECT_THAT(text, Not(HasSubstr("(the first")));
}

// No line of any subject is longer than the terminal is wide.
TEST(Show, KeepsToTheWidth) {
  Plan plan = SixRanks();
  plan.budget = testing::SmallBudget(0.0);
  for (const size_t width : {60, 80, 150}) {
    for (const std::string& text :
         {ShowRanks(plan, width), ShowGroups(plan, width), ShowBridges(plan, width), ShowBudget(plan, {10}, width),
          ShowSchedule(plan, TimeStep(plan), width), ShowModel(plan, TimeStep(plan), width), ShowMemory(plan, width),
          ShowProgram(plan, "", width)}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(Width(line), width) << line;
    }
  }
}

TEST(ShowBudget, GivesRatesAtSampleCounts) {
  Plan plan = SixRanks();
  plan.budget = testing::SmallBudget(0.1);
  const ordered_json json = ShowBudgetJson(plan, {0, 10, 20});
  EXPECT_EQ(json["steps"], 7);
  EXPECT_EQ(json["segments"][1], ordered_json({{"kind", "decay"}, {"first_sample", 20}, {"end_sample", 100}}));
  EXPECT_EQ(json["at"][0], ordered_json({{"sample", 0}, {"learning_rate", 0.0}, {"weight_decay", 0.1}}));
  EXPECT_EQ(json["at"][1]["learning_rate"], 5e-4);
  EXPECT_EQ(json["at"][2]["learning_rate"], 1e-3);
  EXPECT_FALSE(ShowBudgetJson(plan, {}).contains("at"));
  EXPECT_THAT(ShowBudget(plan, {10}), HasSubstr("12 samples past the budget"));
}

TEST(ShowTime, GivesFlopsWhereTheDeviceIsUnknown) {
  const Plan plan = SixRanks();
  StepTime time;
  time.length = 4e12;
  time.costs.push_back({.part = "language.moe", .kind = "experts", .seconds = 2e12});
  const std::string unknown = ShowTime(plan, time, nullptr);
  EXPECT_THAT(unknown, AllOf(HasSubstr("FLOPs"), HasSubstr("experts  50.0 %     2 TFLOP"), Not(HasSubstr("2e+12"))));
}

// Also where nobody knows how long a step takes.
TEST(ShowTime, SaysWhatCheckpointsTakeOnDisk) {
  Plan plan = SixRanks();
  plan.budget = testing::SmallBudget(0.0);
  StepTime time;
  time.length = 4e12;
  EXPECT_THAT(ShowTime(plan, time, nullptr), Not(HasSubstr("checkpoint")));
  EXPECT_TRUE(ShowTimeJson(plan, time, nullptr)["checkpoint"].is_null());
  const int64_t bytes = BytesOnDisk(plan);
  const auto told = [&](int64_t every, int64_t keep_last) {
    plan.checkpoint.every_steps = every, plan.checkpoint.keep_last = keep_last;
    return ShowTime(plan, time, nullptr, 200);
  };
  const std::string one = "it takes " + BytesText(bytes) + " on disk";
  EXPECT_THAT(told(2, 3), HasSubstr("A checkpoint every 2 steps: " + one + "; of 4 of the run 3 stay, " +
                                    BytesText(3 * bytes) + "."));
  EXPECT_THAT(told(1, 0), HasSubstr("A checkpoint every step: " + one + "; all 7 of the run stay, "));
  EXPECT_THAT(told(7, 1), AllOf(HasSubstr(one + "."), Not(HasSubstr("A rank copies"))));
  const ordered_json json = ShowTimeJson(plan, time, nullptr)["checkpoint"];
  EXPECT_EQ(json, ordered_json({{"every_steps", 7},
                                {"bytes", nullptr},
                                {"bytes_on_disk", bytes},
                                {"written", 1},
                                {"kept", 1},
                                {"copy_seconds", nullptr},
                                {"longer_seconds", nullptr},
                                {"seconds_per_step", nullptr}}));
  time.seconds = true, time.save = {.every = 7, .bytes = 1000, .copy = 0.5, .longer = 0, .known = true};
  EXPECT_THAT(ShowTime(plan, time, nullptr, 200), HasSubstr("A rank copies up to 1.00 kB beside the next step in "));
}

TEST(ShowModel, CountsParametersLayerByLayer) {
  const Plan plan = SixRanks();
  const ordered_json json = ShowModelJson(plan, TimeStep(plan))["modules"]["language"];
  EXPECT_EQ(json["parameters"], 123456);
  EXPECT_EQ(json["layers"].size(), 2u);
  EXPECT_THAT(ShowModel(plan, TimeStep(plan)), HasSubstr("language.layers.1  E  moe           200"));
}

TEST(ShowModel, TellsAdapters) {
  Plan plan = SixRanks();
  EXPECT_TRUE(ShowModelJson(plan, TimeStep(plan))["modules"]["language"]["adapter"].is_null());
  Module& language = plan.modules[1];
  language.trains_backbone = language.trains_projection = false;
  language.adapter_targets = {"q_proj", "in_proj"};
  language.constants = {{"adapter.rank", int64_t{4}}, {"adapter.alpha", 8.0}};
  language.parameters = {{.name = "language.layers.0.in_proj.weight", .shape = {20, 10}},
                         {.name = "language.layers.0.in_proj.lora_A.weight", .shape = {4, 10}},
                         {.name = "language.layers.0.in_proj.lora_B.weight", .shape = {20, 4}}};
  EXPECT_THAT(ShowModel(plan, TimeStep(plan), 400),
              HasSubstr("frozen but for adapters: 120 parameters of rank 4 on q_proj, in_proj\n"));
  const ordered_json json = ShowModelJson(plan, TimeStep(plan))["modules"]["language"]["adapter"];
  EXPECT_EQ(json["parameters"], 120);
  EXPECT_EQ(json["alpha"], 8.0);
}

TEST(ShowModel, TellsTheRatesOfEveryParameter) {
  Plan plan = SixRanks();
  plan.budget.learning_rate.peak = 1e-3, plan.budget.weight_decay.end = 0.1;
  plan.optimizer.parts = {{"*norm*", 1e-4, 0.1}, {"language", 1e-3, 0.2}};
  std::vector<Parameter>& parameters = plan.modules[1].parameters;
  for (const int layer : {0, 1, 2, 5}) {
    const std::string of = "a.layers." + std::to_string(layer);
    parameters.push_back({.name = "language." + of + ".norm", .file_name = of + ".norm", .shape = {4}, .part = 0});
    parameters.push_back({.name = "language." + of + ".up",
                          .file_name = of + ".up",
                          .shape = {2, 4},
                          .decay = true,
                          .part = layer == 5 ? -1 : 1});
  }
  parameters.push_back({.name = "language.bias", .file_name = "bias", .shape = {4}, .trained = false});
  const std::string text = ShowModel(plan, TimeStep(plan), 120);
  EXPECT_THAT(
      text, AllOf(HasSubstr("0        4        16              0.0001                      0.1  *norm*\n"),
                  HasSubstr("1        3        24               0.001                      0.2  language\n"),
                  HasSubstr("              1         8               0.001                      0.1  (in no part)\n")));
  EXPECT_THAT(text, AllOf(HasSubstr("0              0.0001  none                     a.layers.{0-2,5}.norm\n"),
                          HasSubstr("1               0.001  0.2                      a.layers.{0-2}.up\n"),
                          HasSubstr("                0.001  0.1                      a.layers.5.up\n"),
                          Not(HasSubstr("bias"))));
  const ordered_json tensors = ShowModelJson(plan, TimeStep(plan))["modules"]["language"]["tensors"];
  EXPECT_EQ(tensors[0]["rates"], ordered_json({{"part", "*norm*"}, {"learning_rate", 1e-4}, {"weight_decay", 0.0}}));
  EXPECT_EQ(tensors[7]["rates"], ordered_json({{"part", nullptr}, {"learning_rate", 1e-3}, {"weight_decay", 0.1}}));
  EXPECT_EQ(tensors[8]["rates"]["learning_rate"], nullptr);
  plan.optimizer.parts.clear();
  for (Parameter& parameter : parameters) parameter.part = -1;
  EXPECT_THAT(ShowModel(plan, TimeStep(plan), 120), Not(HasSubstr("rates by part")));
}

TEST(ShowProgram, GivesARoleOnlyTheBlocksThatItCalls) {
  const ordered_json json = ShowProgramJson(SixRanks(), "");
  ASSERT_EQ(json["roles"].size(), 2u);
  EXPECT_EQ(json["roles"][0]["blocks"], ordered_json::object());
  EXPECT_EQ(json["roles"][1]["ranks"], ordered_json({2, 3, 4, 5}));
  EXPECT_EQ(json["roles"][1]["step"][0]["block"], "language.norm.forward");
  EXPECT_EQ(json["roles"][1]["blocks"].size(), 1u);
  EXPECT_EQ(json["roles"][1]["blocks"]["language.norm.forward"]["body"][0]["op"], "rms_norm");
  EXPECT_EQ(ShowProgramJson(SixRanks(), "encoder.s0")["roles"].size(), 1u);
}

TEST(ShowProgram, PrintsInstructionsAsAssignments) {
  const std::string text = ShowProgram(SixRanks(), "language.s0");
  EXPECT_THAT(text, HasSubstr("compute  y = rms_norm x @norm eps=1e-05  fp32[8,rows]\n"));
  EXPECT_THAT(text, HasSubstr("language.norm.forward of language.layers.0 m1"));
  EXPECT_THAT(text, HasSubstr("\n host waits 0 a step\n"));
  EXPECT_THAT(text, Not(HasSubstr("encoder.other")));
}

}  // namespace
}  // namespace planwright
